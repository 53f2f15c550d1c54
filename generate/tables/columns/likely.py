"""Columns of each class, as likely as all that a release says of them makes them.

Of how often a value is in a class the marginals of a release say something, and so do its tangent
features: what these change by if a column's value is set is as good as known, and with few records
they say twice as much. Neither is enough for every class by itself, so all classes are estimated
together. The shares p_c of a column's cells are a softmax of u + d_c, where u is what all classes
have in common, and the most likely u and d_c are those that make the least of

    sum over c of  || m_c - p_c ||^2 / (2 s_c^2)  +  <r_c, V_c^-1 r_c> / 2  +  prior(u) + prior(d)

with m_c the noisy marginals and s_c their noise; r_c = mu_c - E phi - J_c (p_c - q_c) what is left
of the released mean of the tangent features, linear around rows of independent columns with shares
q_c. Priors say that neighbouring numbers are about as frequent, with jumps (spikes are usual), that
numbers are seldom missing, and that classes differ by little or, in some columns, by much.

What goes with what also shows in the mean feature, and must not be taken for a column's doing. So
V_c is the variance of the noise and of that: of weighing independent rows anew at random, less what
single columns explain (the interactions of an analysis of variance, Hoeffding 1948, "A class of
statistics with asymptotically normal distribution", section 5). Where noise is strong, it hardly
counts. Where it is weak, the mean feature is believed only in directions in which pairs of columns
cannot move it; and where there is next to none (`PLAIN`), not at all.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ....common.display.console import progress
from ....common.schema.encoding import NumericEncoding
from ....common.schema.table import TableSchema
from ....release.file.model import Release
from ...kernels.mean_embedding import released_mean
from ..marginals import ColumnMarginal, marginals_of
from ..refinement import has_own_columns, noise_on_all
from .cells import Columns, Shares
from .evidence import Evidence, Witness
from .minimum import least
from .tilts import tilted

_JUMP: Final = 0.6
"""How far the logarithm of a number's share usually is from that of the next number."""
_JUMP_OF_CLASS: Final = 0.4
"""How much farther it is in one class than in all."""
_SPREAD: Final = 1.0
"""How far the logarithm of a category's share usually is from that of another category."""
_SPREAD_OF_CLASS: Final = 0.6
"""How much farther it is in one class than in all."""
_SELDOM: Final = -4.2
"""Logarithm of how often a number is missing, over how often it is there: about one in 67, before
anything is seen. It is not that of a cell of numbers: with five answers to a question, a fifth."""
_SPREAD_OF_MISSING: Final = 1.5
"""How far it usually is from that."""
PLAIN: Final = 2e-4
"""With no more noise than this on an entry of its mean feature a class has the likely shares of its
own marginals: within a cell numbers are not spread evenly, and the mean feature shows that, too."""
_FREE: Final = 20.0
"""So wide is a prior that is there only to make the solution a single one."""
_ROUNDS: Final = 2
"""How often shares are looked for, each time around independent rows with those found last."""
_STEPS: Final = 150
_MOST_PRODUCTS: Final = 1 << 38
"""So many products of numbers take some seconds. Where choices would need more, since there are
hundreds of columns, nothing is asked of the mean feature."""


def likely_columns(release: Release, seed: int) -> tuple[ColumnMarginal, ...]:
    """The marginals of a release of a table, without noise as far as it allows.

    Guarantee:
        Post-processing: reads the release alone. (docs/privacy/proofs.md, statement 10.)

    Args:
        release: with tangent features of one hidden layer of ReLU units, beside marginals.
        seed: of independent rows.

    Returns:
        Marginals whose noise is 0: their shares are what is likely. Those of classes that have no
        columns of their own are those of all classes together, tilted (`tilts`).
    """
    assert isinstance(release.schema, TableSchema)
    mean = released_mean(release)
    noisy = marginals_of(mean, release.feature_map, release.schema)
    if not mean.noise.any():
        return noisy
    columns = Columns(noisy)
    witness = Witness.of(release, mean, columns, np.random.default_rng(seed))
    shares = np.concatenate([marginal.posterior_mean for marginal in noisy], axis=1)
    possible, own, plain = columns.possible(), has_own_columns(mean.noise), mean.noise <= PLAIN
    products = columns.overlap.shape[1] ** 2 * witness.split
    if products > _MOST_PRODUCTS:
        plain = np.ones_like(plain)
    exact = shares[plain]
    start = columns.logits(release.class_weights, shares)
    asked, rare = np.flatnonzero(own & ~plain), np.flatnonzero(~own & ~plain)
    with progress("columns", _ROUNDS * len(asked) + len(rare), "classes") as advance:
        for _ in range(0 if plain.all() else _ROUNDS):
            evidence = [Evidence.nothing(columns)] * len(shares)
            for label in asked.tolist():
                evidence[label] = witness.asked(label, shares[label])
                advance(1, "")
            together = Evidence.together(evidence)
            shares, start = _most_likely(columns, noisy, possible, shares, together, start)
        shares[plain] = exact
        shares[~own] = release.class_weights @ shares
        noise = noise_on_all(noisy[0].noise)
        for label in rare.tolist():
            shares[label] = tilted(columns, shares[label], noise, partial(witness.asked, label))
            advance(1, "")
    return columns.known(shares)


def _most_likely(
    columns: Columns,
    noisy: tuple[ColumnMarginal, ...],
    possible: NDArray[np.bool_],
    shares: Shares,
    evidence: Evidence,
    start: Tensor,
) -> tuple[Shares, Tensor]:
    """Most likely shares, (classes, cells), 0 in cells that are not possible; and u and d."""
    never = torch.zeros(len(possible)).masked_fill_(torch.from_numpy(~possible), -torch.inf)
    seen = torch.from_numpy(np.concatenate([marginal.shares for marginal in noisy], axis=1))
    precision = torch.from_numpy(noisy[0].noise ** -2.0)
    overlap, around = torch.from_numpy(columns.overlap), torch.from_numpy(shares)

    def shares_by(logits: Tensor) -> Tensor:
        parts = (logits[0] + logits[1:] + never).split(columns.sizes, dim=1)
        return torch.cat([part.softmax(dim=1) for part in parts], dim=1)

    def loss(logits: Tensor) -> Tensor:
        now = shares_by(logits)
        total = evidence.against((now - around) @ overlap)
        total = total + (precision * (seen - now).square().sum(dim=1)).sum() / 2
        for marginal, part in zip(noisy, logits.split(columns.sizes, dim=1), strict=True):
            total = total + _prior(marginal, part)
        return total

    logits = least(loss, start, _STEPS)
    return shares_by(logits).numpy(), logits


def _prior(marginal: ColumnMarginal, logits: Tensor) -> Tensor:
    """Minus the logarithm of the prior of u and d of one column, (1 + classes, cells)."""
    common, own = logits[0], logits[1:]
    wide = (logits / _FREE).square().sum() / 2
    if not isinstance(marginal.block.encoding, NumericEncoding):
        return wide + (common / _SPREAD).square().sum() / 2 + _soft(own / _SPREAD_OF_CLASS)
    numbers = logits[:, : marginal.points]
    steps = numbers.diff(dim=1)
    missing = logits[:, marginal.points :]
    seldom = missing[0] - numbers[0].logsumexp(dim=0) - _SELDOM
    of_class = missing[1:] - numbers[1:].mean(dim=1, keepdim=True)
    return (
        wide
        + (steps[0] / _JUMP).square().log1p().sum()
        + _soft(steps[1:] / _JUMP_OF_CLASS)
        + (seldom / _SPREAD_OF_MISSING).square().sum() / 2
        + _soft(of_class / _SPREAD_OF_CLASS)
    )


def _soft(values: Tensor) -> Tensor:
    """Square near 0, as absolute values are far away: some of them may be large."""
    return ((1 + values.square()).sqrt() - 1).sum()
