"""Maximum a posteriori estimates of each class's columns, from everything a release says.

How frequent a value is in a class shows in the marginals of a release and in its tangent features.
The change of the latter when a column's value is set is practically known, and with few records
they say twice as much. Neither is enough for every class by itself, so all classes are estimated
together. The shares p_c of a column's cells are a softmax of u + d_c, where u is shared by all
classes. The estimates of u and d_c minimise

    sum over c of  || m_c - p_c ||^2 / (2 s_c^2)  +  <r_c, V_c^-1 r_c> / 2  +  prior(u) + prior(d)

where m_c are the noisy marginals and s_c their noise, and r_c = mu_c - E phi - J_c (p_c - q_c) is
the residual of the released mean of the tangent features, linearised around rows of independent
columns with shares q_c. The priors say that neighbouring numbers are about equally frequent, with
occasional jumps (spikes are usual), that numbers are seldom missing, and that classes differ by
little or, in some columns, by much.

On a logarithmic scale, neighbouring numbers are expected to differ in frequency by what a trend
says. The logarithms of shares by a trend are a parabola that opens downwards, as those of a normal
or an exponential distribution. Without it, noise in cells far from all numbers would be believed,
and the largest ones decide on the mean.

Dependence between columns also moves the mean feature, and must not be attributed to single
columns. So V_c adds its variance to that of the noise: the variance under random reweighting of
independent rows, minus what single columns explain (the interactions of an analysis of variance,
Hoeffding 1948, "A class of statistics with asymptotically normal distribution", section 5). Under
strong noise this hardly matters. Under weak noise, the mean feature counts only in directions in
which pairs of columns cannot move it; and with next to no noise (`NEGLIGIBLE_NOISE`), not at all.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ....common.display.console import progress
from ....common.schema.columns.kinds import Transform
from ....common.schema.encoding import NumericEncoding
from ....common.schema.table import TableSchema
from ....release.file.model import Release
from ...kernels.mean_embedding import released_mean
from ..marginals.released import ColumnMarginal, marginals_of
from ..refinement import has_own_columns, noise_on_all
from .cells import Columns, Shares
from .evidence import Evidence, EvidenceSource
from .minimum import minimise_by_lbfgs
from .tilts import tilted

_JUMP: Final = 0.6
"""Prior scale of the difference between the log shares of neighbouring numbers."""
_JUMP_OF_CLASS: Final = 0.4
"""The same for a class's deviation d."""
_SLOPE: Final = 0.5
"""Prior scale of the trend's mean difference from one number to the next."""
_BEND: Final = 4.0
"""Half of what this difference falls by from the first to the last number, at a coefficient of 1.
"""
_TREND: Final = (0.0, 0.5)
"""Coefficients of the slope and of the bend that estimation begins with; the bend's is squared."""
_FEWEST: Final = 4
"""Fewer numbers have no trend."""
_SPIKE: Final = 0.25
"""The most frequent number is a spike if the next ones have less than this times its share, and by
more than noise explains: `_SURE` standard deviations of it."""
_SURE: Final = 2.0
_SPREAD: Final = 1.0
"""Prior scale of the differences between the log shares of categories."""
_SPREAD_OF_CLASS: Final = 0.6
"""The same for a class's deviation d."""
_LOG_ODDS_OF_MISSING: Final = -4.2
"""Prior mean of the log odds that a number is missing, about one in 67. It does not follow from the
number of cells: with five answers to a question, that would be a fifth."""
_SPREAD_OF_MISSING: Final = 1.5
"""Prior scale of these log odds."""
NEGLIGIBLE_NOISE: Final = 2e-4
"""With at most this much noise on an entry of its mean feature, a class takes the posterior means
of its own marginals: the mean feature also shows that numbers are not spread evenly within a
cell."""
_WEAK_PRIOR: Final = 20.0
"""Width of a weak prior that only makes the solution unique."""
_ROUNDS: Final = 2
"""Rounds of estimation, each linearised around independent rows with the last shares."""
_STEPS: Final = 150
_MOST_PRODUCTS: Final = 1 << 38
"""This many multiplications take some seconds. If the choices of hundreds of columns would need
more, the mean feature is not used."""


def estimate_columns(release: Release, seed: int) -> tuple[ColumnMarginal, ...]:
    """The denoised marginals of a release of a table.

    Guarantee:
        Post-processing: reads the release alone. (docs/privacy/proofs.md, statement 10.)

    Args:
        release: with tangent features of one hidden layer of ReLU units, beside marginals.
        seed: of independent rows.

    Returns:
        Estimated marginals, marked as free of noise. Classes without columns of their own get those
        of all classes together, tilted (`tilts`).
    """
    assert isinstance(release.schema, TableSchema)
    mean = released_mean(release)
    noisy = marginals_of(mean, release.feature_map, release.schema)
    if not mean.noise.any():
        return noisy
    columns = Columns(noisy)
    witness = EvidenceSource.of(release, mean, columns, np.random.default_rng(seed))
    shares = np.concatenate([marginal.posterior_mean for marginal in noisy], axis=1)
    possible, own, plain = (
        columns.possible(),
        has_own_columns(mean.noise),
        mean.noise <= NEGLIGIBLE_NOISE,
    )
    products = columns.overlap.shape[1] ** 2 * witness.split
    if products > _MOST_PRODUCTS:
        plain = np.ones_like(plain)
    exact = shares[plain]
    start = columns.logits(release.class_weights, shares)
    asked, rare = np.flatnonzero(own & ~plain), np.flatnonzero(~own & ~plain)
    with progress("columns", _ROUNDS * len(asked) + len(rare), "classes") as advance:
        for _ in range(0 if plain.all() else _ROUNDS):
            evidence = [Evidence.uninformative(columns)] * len(shares)
            for label in asked.tolist():
                evidence[label] = witness.of_class(label, shares[label])
                advance(1, "")
            together = Evidence.stacked(evidence)
            shares, start = _posterior_mode(columns, noisy, possible, shares, together, start)
        shares[plain] = exact
        shares[~own] = release.class_weights @ shares
        noise = noise_on_all(noisy[0].noise)
        for label in rare.tolist():
            shares[label] = tilted(columns, shares[label], noise, partial(witness.of_class, label))
            advance(1, "")
    return columns.known(shares)


def _posterior_mode(
    columns: Columns,
    noisy: tuple[ColumnMarginal, ...],
    possible: NDArray[np.bool_],
    shares: Shares,
    evidence: Evidence,
    start: Tensor,
) -> tuple[Shares, Tensor]:
    """Estimated shares, (classes, cells), 0 in impossible cells; and the logits u and d."""
    never = torch.zeros(len(possible)).masked_fill_(torch.from_numpy(~possible), -torch.inf)
    seen = torch.from_numpy(np.concatenate([marginal.shares for marginal in noisy], axis=1))
    precision = torch.from_numpy(noisy[0].noise ** -2.0)
    overlap, around = torch.from_numpy(columns.overlap), torch.from_numpy(shares)
    trending = [_has_trend(marginal) for marginal in noisy]

    def shares_by(logits: Tensor) -> Tensor:
        parts = (logits[0] + logits[1:] + never).split(columns.sizes, dim=1)
        return torch.cat([part.softmax(dim=1) for part in parts], dim=1)

    def split(unknowns: Tensor) -> tuple[Tensor, Tensor]:
        logits, trends = unknowns.split([start.numel(), len(_TREND) * len(noisy)])
        return logits.view_as(start), trends.view(len(noisy), -1)

    def loss(unknowns: Tensor) -> Tensor:
        logits, trends = split(unknowns)
        now = shares_by(logits)
        total = evidence.negative_log_likelihood((now - around) @ overlap)
        total = total + (precision * (seen - now).square().sum(dim=1)).sum() / 2
        parts = logits.split(columns.sizes, dim=1)
        for marginal, part, trend, has in zip(noisy, parts, trends, trending, strict=True):
            total = total + _prior(marginal, part, trend, has_trend=has)
        return total

    trends = torch.tensor(_TREND, dtype=start.dtype).repeat(len(noisy))
    logits, _ = split(minimise_by_lbfgs(loss, torch.cat([start.flatten(), trends]), _STEPS))
    return shares_by(logits).numpy(), logits


def _prior(marginal: ColumnMarginal, logits: Tensor, trend: Tensor, *, has_trend: bool) -> Tensor:
    """Negative log prior of u and d of one column, (1 + classes, cells), and of its trend, (2,)."""
    common, own = logits[0], logits[1:]
    wide = (logits / _WEAK_PRIOR).square().sum() / 2 + trend.square().sum() / 2
    if not isinstance(marginal.block.encoding, NumericEncoding):
        return wide + (common / _SPREAD).square().sum() / 2 + _pseudo_huber(own / _SPREAD_OF_CLASS)
    numbers = logits[:, : marginal.points]
    steps = numbers.diff(dim=1)
    jumps = _beside(trend, steps[0]) if has_trend else steps[0]
    missing = logits[:, marginal.points :]
    seldom = missing[0] - numbers[0].logsumexp(dim=0) - _LOG_ODDS_OF_MISSING
    of_class = missing[1:] - numbers[1:].mean(dim=1, keepdim=True)
    return (
        wide
        + (jumps / _JUMP).square().log1p().sum()
        + _pseudo_huber(steps[1:] / _JUMP_OF_CLASS)
        + (seldom / _SPREAD_OF_MISSING).square().sum() / 2
        + _pseudo_huber(of_class / _SPREAD_OF_CLASS)
    )


def _beside(trend: Tensor, steps: Tensor) -> Tensor:
    """What a trend leaves of the differences between the log shares of neighbouring numbers.

    Args:
        trend: coefficients of the slope and of the bend.
        steps: these differences, (points - 1,).
    """
    slope, bend = trend
    along = torch.linspace(-1, 1, len(steps)).to(trend)
    left: Tensor = steps - _SLOPE * slope + _BEND * bend.square() * along
    return left


def _has_trend(marginal: ColumnMarginal) -> bool:
    """Whether numbers are on a logarithmic scale, and the most frequent one is no lone spike.

    Such a scale mostly is wider than the numbers. On others bounds are nearer, and numbers are
    frequent up to there. Zeros say nothing of how frequent other amounts are; next to them, a trend
    would have it that small ones are.
    """
    if marginal.points < _FEWEST or marginal.block.column.transform is Transform.NONE:
        return False
    shares, noise = marginal.together
    numbers = shares[: marginal.points]
    top = int(numbers.argmax())
    beside = np.r_[numbers[max(top - 1, 0) : top], numbers[top + 1 : top + 2]].max()
    return bool(_SPIKE * numbers[top] - beside < _SURE * noise)


def _pseudo_huber(values: Tensor) -> Tensor:
    """A pseudo-Huber penalty: quadratic near 0, linear far away, so that a few may be large."""
    return ((1 + values.square()).sqrt() - 1).sum()
