"""Columns of each class, as likely as all that a release says of them makes them.

Of how often a value is in a class the marginals of a release say something, and so do its tangent
features: what these change by if a column's value is set is as good as known, and with few records
they say twice as much. Neither is enough for every class by itself, so all classes are estimated
together. The shares p_c of a column's cells are a softmax of u + d_c, where u is what all classes
have in common, and the most likely u and d_c are those that make the least of

    sum over c of  || m_c - p_c ||^2 / (2 s_c^2)  +  <r_c, V_c^-1 r_c> / 2  +  prior(u) + prior(d)

with m_c the noisy marginals and s_c their noise; r_c = mu_c - E phi - J_c (p_c - q_c) what is left
of the released mean of the tangent features, linear around rows of independent columns with shares
q_c. Priors say that neighbouring numbers are about as frequent, with jumps (spikes are usual), and
that classes differ by little or, in some columns, by much.

What goes with what also shows in the mean feature, and must not be taken for a column's doing. So
V_c is the variance of the noise and of that: of weighing independent rows anew at random, less what
single columns explain (the interactions of an analysis of variance, Hoeffding 1948, "A class of
statistics with asymptotically normal distribution", section 5). Where noise is strong, it hardly
counts. Where it is weak, the mean feature is believed only in directions in which pairs of columns
cannot move it; and where there is next to none (`PLAIN`), not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from ...common.display.console import progress
from ...common.features.joint import parts_of
from ...common.features.ntk.map import TangentFeatures
from ...common.schema.encoding import NumericEncoding
from ...common.schema.table import TableSchema
from ...release.file.model import Release
from ..kernels.mean_embedding import released_mean
from .marginal_matching import independent_rows
from .marginals import ColumnMarginal, marginals_of
from .moves.goal import strength
from .moves.relu_features import ReluFeatures
from .refinement import has_own_columns

_JUMP: Final = 0.6
"""How far the logarithm of a number's share usually is from that of the next number."""
_JUMP_OF_CLASS: Final = 0.4
"""How much farther it is in one class than in all."""
_SPREAD: Final = 1.0
"""How far the logarithm of a category's share usually is from that of another category."""
_SPREAD_OF_CLASS: Final = 0.6
"""How much farther it is in one class than in all."""
_SEEN: Final = 0.1
"""The search begins with no share below so many standard deviations of the noise."""
PLAIN: Final = 2e-4
"""With no more noise than this on an entry of its mean feature a class has the likely shares of its
own marginals: within a cell numbers are not spread evenly, and the mean feature shows that, too."""
_FREE: Final = 20.0
"""So wide is a prior that is there only to make the solution a single one."""
_ROUNDS: Final = 2
"""How often shares are looked for, each time around independent rows with those found last."""
_STEPS: Final = 150
_ROWS: Final = 2_000
"""How many independent rows a mean feature is taken of."""
_CHANGED: Final = 100
"""In how many of these rows a value is set, to see what it changes."""
_REWEIGHED: Final = 600
"""How many of these rows may be weighed anew."""
_MOST_NUMBERS: Final = 1 << 27
_MOST_PRODUCTS: Final = 1 << 38
"""So many products of numbers take some seconds. Where choices would need more, since there are
hundreds of columns, nothing is asked of the mean feature."""

Shares = NDArray[np.float64]


def likely_columns(release: Release, seed: int) -> tuple[ColumnMarginal, ...]:
    """The marginals of a release of a table, without noise as far as it allows.

    Guarantee:
        Post-processing: reads the release alone. (docs/privacy/proofs.md, statement 10.)

    Args:
        release: with tangent features of one hidden layer of ReLU units, beside marginals.
        seed: of independent rows.

    Returns:
        Marginals whose noise is 0: their shares are what is likely. Those of classes that have no
        columns of their own are what is likely in all classes together.
    """
    assert isinstance(release.schema, TableSchema)
    mean = released_mean(release)
    noisy = marginals_of(mean, release.feature_map, release.schema)
    if not mean.noise.any():
        return noisy
    chances = np.random.default_rng(seed)
    main = parts_of(release.feature_map)
    assert isinstance(main.main, TangentFeatures)
    tangents = ReluFeatures(main.main)
    columns = _Columns(noisy)
    shares = np.concatenate([marginal.posterior_mean for marginal in noisy], axis=1)
    possible, own, plain = columns.possible(), has_own_columns(mean.noise), mean.noise <= PLAIN
    if columns.overlap.shape[1] ** 2 * main.main.dimension > _MOST_PRODUCTS:
        plain = np.ones_like(plain)
    exact = shares[plain]
    start = columns.logits(release.class_weights, shares)
    with progress("columns", _ROUNDS * int((own & ~plain).sum()), "classes") as advance:
        for _ in range(0 if plain.all() else _ROUNDS):
            known = columns.known(shares)
            evidence = []
            for label, share in enumerate(shares):
                if plain[label] or not own[label]:
                    evidence.append(_Evidence.none(columns))
                    continue
                goal = torch.from_numpy(
                    mean.values[: main.split, label] / np.float32(main.main_weight)
                )
                noise = float(mean.noise[label]) / main.main_weight
                rows = torch.from_numpy(
                    independent_rows(_ROWS, label, known, release.schema, chances)
                )
                found = _evidence(tangents, columns, share, rows, goal, noise)
                evidence.append(found)
                advance(1, "")
            shares, start = _most_likely(columns, noisy, possible, shares, evidence, start)
    shares[plain] = exact
    shares[~own] = release.class_weights @ shares
    return columns.known(shares)


@dataclass(frozen=True, eq=False)
class _Evidence:
    """What the mean tangent feature of a class says of shares of choices, but for a constant.

    Minus its logarithm is <x, curvature x> / 2 - <slope, x> where x is how far they are from those
    of the rows.
    """

    curvature: Tensor
    slope: Tensor

    @classmethod
    def none(cls, columns: _Columns) -> _Evidence:
        """Nothing."""
        count = columns.overlap.shape[1]
        zero = torch.zeros(count, count, dtype=torch.float64)
        return cls(zero, zero[0])


class _Columns:
    """Cells of all columns, and the choices that a record has: its soft bins, or categories.

    Args:
        marginals: of all columns.
    """

    def __init__(self, marginals: tuple[ColumnMarginal, ...]) -> None:
        self.marginals = marginals
        self.sizes = [int(marginal.shares.shape[1]) for marginal in marginals]
        self.choices = [_choices(marginal) for marginal in marginals]
        overlaps = [_overlap(marginal) for marginal in marginals]
        self.overlap = np.zeros((sum(self.sizes), sum(len(one[0]) for one in overlaps)))
        cell = choice = 0
        for one in overlaps:
            self.overlap[cell : cell + len(one), choice : choice + one.shape[1]] = one
            cell, choice = cell + len(one), choice + one.shape[1]

    def known(self, shares: Shares) -> tuple[ColumnMarginal, ...]:
        """Marginals with other shares (classes, cells of all columns), which are exact."""
        parts = np.split(shares, np.cumsum(self.sizes)[:-1], axis=1)
        nothing = np.zeros(len(shares))
        return tuple(
            replace(marginal, shares=part, noise=nothing)
            for marginal, part in zip(self.marginals, parts, strict=True)
        )

    def possible(self) -> NDArray[np.bool_]:
        """Whether a cell may have anything in it, (cells,).

        Numbers between wide bounds are far out in most cells: marginals by themselves say where
        there likely are none, unless noise is more than what each cell has if all have as much.
        """
        return np.concatenate(
            [
                (marginal.posterior_mean > 0).any(axis=0) | (marginal.noise.min() * size > 1)
                for marginal, size in zip(self.marginals, self.sizes, strict=True)
            ]
        )

    def logits(self, weights: NDArray[np.float64], shares: Shares) -> Tensor:
        """What such shares (classes, cells) are made of, u and d, noise apart."""
        noise = min(float(marginal.noise.min()) for marginal in self.marginals)
        common = np.log(np.maximum(weights @ shares, noise * _SEEN))
        own = np.log(np.maximum(shares, noise * _SEEN)) - common
        return torch.from_numpy(np.concatenate([common[None], own]))

    def hits(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """How far each row belongs to each choice, (n, choices)."""
        return np.concatenate(
            [rows[:, marginal.block.shares] for marginal in self.marginals], axis=1
        )


def _choices(marginal: ColumnMarginal) -> NDArray[np.float32]:
    """A column's part of a record, choice by choice, (choices, values)."""
    block = marginal.block
    count = block.shares.stop - block.shares.start
    before = block.shares.start - block.place.start
    found = np.concatenate([np.zeros((count, before)), np.eye(count)], axis=1)
    if before:  # the number itself, or the rank
        numeric = isinstance(block.encoding, NumericEncoding)
        points = count - block.missing_place if numeric else len(block.column.categories)
        found[:points, 0] = np.arange(points) / max(1, points - 1)
    return found.astype(np.float32)


def _overlap(marginal: ColumnMarginal) -> Shares:
    """How far each cell belongs to each choice, (cells, choices)."""
    identity = replace(marginal, shares=np.eye(marginal.shares.shape[1]))
    return identity.in_record()


def _evidence(
    tangents: ReluFeatures,
    columns: _Columns,
    shares: Shares,
    rows: Tensor,
    goal: Tensor,
    noise: float,
) -> _Evidence:
    """What a class's mean feature says.

    Args:
        tangents: the features.
        columns: of the table.
        shares: q_c, (cells,).
        rows: with these and independent columns, (n, record size).
        goal: mu_c, (d,).
        noise: standard deviation of the noise on an entry of it.
    """
    left = goal - tangents.mean(rows)
    moves = _moves(tangents, columns, rows[:_CHANGED])
    at = torch.from_numpy(shares @ columns.overlap).float()
    start = 0
    for choices in columns.choices:  # what a choice changes as against the column's mean
        place = slice(start, start + len(choices))
        moves[place] -= at[place] @ moves[place]
        start = place.stop
    some = rows[: max(2, min(_REWEIGHED, _MOST_NUMBERS // len(goal)))]
    others = tangents.features(some)
    others -= torch.from_numpy(columns.hits(some.numpy())) @ moves
    others -= others.mean(dim=0)
    variance = float(others.square().sum(dim=1).mean())
    curvature, slope = (moves @ moves.T).double(), (moves @ left).double()
    found = strength(float(left.square().sum()), variance, noise, len(goal))
    if found * variance > 0:
        among, towards = (others @ others.T).double(), (moves @ others.T).double()
        among += noise**2 * len(some) / found * torch.eye(len(some), dtype=torch.float64)
        hidden = torch.linalg.solve(among, towards.T)
        curvature -= towards @ hidden
        slope -= hidden.T @ (others @ left).double()
    return _Evidence(curvature / noise**2, slope / noise**2)


def _moves(tangents: ReluFeatures, columns: _Columns, rows: Tensor) -> Tensor:
    """The mean features of rows where a column is set to a choice, one by one, (choices, d)."""
    found = []
    for marginal, choices in zip(columns.marginals, columns.choices, strict=True):
        changed = rows.clone()
        for choice in torch.from_numpy(choices):
            changed[:, marginal.block.place] = choice
            found.append(tangents.mean(changed))
    return torch.stack(found)


def _most_likely(
    columns: _Columns,
    noisy: tuple[ColumnMarginal, ...],
    possible: NDArray[np.bool_],
    shares: Shares,
    evidence: Sequence[_Evidence],
    start: Tensor,
) -> tuple[Shares, Tensor]:
    """Most likely shares, (classes, cells), 0 in cells that are not possible; and u and d."""
    never = torch.zeros(len(possible)).masked_fill_(torch.from_numpy(~possible), -torch.inf)
    seen = torch.from_numpy(np.concatenate([marginal.shares for marginal in noisy], axis=1))
    precision = torch.from_numpy(noisy[0].noise ** -2.0)
    overlap, around = torch.from_numpy(columns.overlap), torch.from_numpy(shares)
    curvature = torch.stack([one.curvature for one in evidence])
    slope = torch.stack([one.slope for one in evidence])

    def shares_by(logits: Tensor) -> Tensor:
        parts = (logits[0] + logits[1:] + never).split(columns.sizes, dim=1)
        return torch.cat([part.softmax(dim=1) for part in parts], dim=1)

    def loss(values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        logits = torch.from_numpy(values).view_as(start).requires_grad_()
        now = shares_by(logits)
        off = (now - around) @ overlap
        towards = torch.einsum("ci,cij->cj", off, curvature) / 2 - slope
        total = (towards * off).sum() + (precision * (seen - now).square().sum(dim=1)).sum() / 2
        for marginal, part in zip(noisy, logits.split(columns.sizes, dim=1), strict=True):
            total = total + _prior(marginal, part)
        (slopes,) = torch.autograd.grad(total, logits)
        return float(total.detach()), slopes.flatten().numpy()

    # SciPy's L-BFGS: torch's takes a second to import.
    least = minimize(
        loss,
        start.flatten().numpy(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": _STEPS, "maxcor": _STEPS},
    )
    logits = torch.from_numpy(least.x).view_as(start)
    return shares_by(logits).numpy(), logits


def _prior(marginal: ColumnMarginal, logits: Tensor) -> Tensor:
    """Minus the logarithm of the prior of u and d of one column, (1 + classes, cells)."""
    common, own = logits[0], logits[1:]
    wide = (logits / _FREE).square().sum() / 2
    if not isinstance(marginal.block.encoding, NumericEncoding):
        return wide + (common / _SPREAD).square().sum() / 2 + _soft(own / _SPREAD_OF_CLASS)
    numbers = logits[:, : marginal.points]
    steps = numbers.diff(dim=1)
    missing = logits[:, marginal.points :] - numbers.mean(dim=1, keepdim=True)
    return (
        wide
        + (steps[0] / _JUMP).square().log1p().sum()
        + _soft(steps[1:] / _JUMP_OF_CLASS)
        + (missing[0] / _SPREAD).square().sum() / 2
        + _soft(missing[1:] / _SPREAD_OF_CLASS)
    )


def _soft(values: Tensor) -> Tensor:
    """Square near 0, as absolute values are far away: some of them may be large."""
    return ((1 + values.square()).sqrt() - 1).sum()
