"""Maximum a posteriori estimates of each class's columns, from everything a release says.

How frequent a value is in a class shows in the marginals of a release, those of single columns and
those of several (`margins`), and in its tangent features. The change of the latter when a column's
value is set is practically known, and with few records they say twice as much. None of these is
enough for every class by itself, so all classes are estimated together. The shares p_c of a
column's cells are a softmax of u + d_c, where u is shared by all classes. The estimates of u and
d_c minimise

    sum over c of  || m_c - M p_c ||^2 / (2 s_c^2)  +  <r_c, V_c^-1 r_c> / 2  +  prior(u) + prior(d)

where m_c are the noisy shares of cells, some of them merged (M), and s_c their noise, and r_c =
mu_c - E phi - J_c (p_c - q_c) is the residual of the released mean of the tangent features,
linearised around rows of independent columns with shares q_c. `prior` says what is expected of u
and d.

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
from ....common.features.joint import parts_of
from ....common.schema.table import TableSchema
from ....release.file.model import Release
from ...kernels.mean_embedding import released_mean
from ..marginals.released import ColumnMarginal, marginals_of
from ..refinement import has_own_columns, noise_on_all
from .cells import Columns, Shares
from .evidence import Evidence, EvidenceSource
from .margins import Margins
from .minimum import minimise_by_lbfgs
from .prior import TREND, ColumnPrior
from .tilts import tilted

NEGLIGIBLE_NOISE: Final = 2e-4
"""With at most this much noise on an entry of its mean feature, a class takes the posterior means
of its own marginals: the mean feature also shows that numbers are not spread evenly within a
cell."""
_ROUNDS: Final = 2
"""Rounds of estimation, each linearised around independent rows with the last shares."""
_STEPS: Final = 150
_MOST_PRODUCTS: Final = 1 << 38
"""This many multiplications take some seconds. If the choices of hundreds of columns would need
more, the mean features are not used, only what is released of columns and pairs."""


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
    margins = Margins.of(mean, parts_of(release.feature_map))
    witness = EvidenceSource.of(release, mean, columns, np.random.default_rng(seed))
    shares = np.concatenate([marginal.posterior_mean for marginal in noisy], axis=1)
    possible, own, plain = (
        columns.possible(),
        has_own_columns(mean.noise),
        mean.noise <= NEGLIGIBLE_NOISE,
    )
    is_heard = columns.choice_count**2 * witness.split <= _MOST_PRODUCTS
    exact = shares[plain]
    start = columns.logits(release.class_weights, shares)
    asked, rare = (np.flatnonzero(each & ~plain & is_heard) for each in (own, ~own))
    rounds = 0 if plain.all() else _ROUNDS if is_heard else 1
    with progress("columns", rounds * len(asked) + len(rare), "classes") as advance:
        for _ in range(rounds):
            together = None
            if is_heard:
                evidence = [Evidence.uninformative(columns)] * len(shares)
                for label in asked.tolist():
                    evidence[label] = witness.of_class(label, shares[label])
                    advance(1, "")
                together = Evidence.stacked(evidence)
            shares, start = _posterior_mode(columns, margins, possible, shares, together, start)
        shares[plain] = exact
        shares[~own] = release.class_weights @ shares
        noise = noise_on_all(noisy[0].noise)
        for label in rare.tolist():
            shares[label] = tilted(
                columns,
                shares[label],
                noise,
                partial(witness.of_class, label),
                margins.of_class(label),
            )
            advance(1, "")
    return columns.known(shares)


def _posterior_mode(
    columns: Columns,
    margins: Margins,
    possible: NDArray[np.bool_],
    shares: Shares,
    evidence: Evidence | None,
    start: Tensor,
) -> tuple[Shares, Tensor]:
    """Estimated shares, (classes, cells), 0 in impossible cells; and the logits u and d.

    Without evidence the mean features are not used.
    """
    never = torch.zeros(len(possible)).masked_fill_(torch.from_numpy(~possible), -torch.inf)
    around = torch.from_numpy(shares)
    prior = ColumnPrior(columns.marginals)

    def shares_by(logits: Tensor) -> Tensor:
        parts = (logits[0] + logits[1:] + never).split(columns.sizes, dim=1)
        return torch.cat([part.softmax(dim=1) for part in parts], dim=1)

    def split(unknowns: Tensor) -> tuple[Tensor, Tensor]:
        logits, trends = unknowns.split([start.numel(), len(TREND) * len(columns.sizes)])
        return logits.view_as(start), trends.view(len(columns.sizes), -1)

    def loss(unknowns: Tensor) -> Tensor:
        logits, trends = split(unknowns)
        now = shares_by(logits)
        total = margins.negative_log_likelihood(now) + prior(logits, trends)
        if evidence is not None:
            overlap = torch.from_numpy(columns.overlap)
            total = total + evidence.negative_log_likelihood((now - around) @ overlap)
        return total

    trends = torch.tensor(TREND, dtype=start.dtype).repeat(len(columns.sizes))
    logits, _ = split(minimise_by_lbfgs(loss, torch.cat([start.flatten(), trends]), _STEPS))
    return shares_by(logits).numpy(), logits
