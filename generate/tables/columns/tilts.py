"""Columns of a rare class: those of all classes, exponentially tilted.

Noise hides each single cell of a rare class, but its mean feature, which depends on all of its
columns, and the margins of its tables may still say much. So its columns come from a small
exponential family: cells have shares proportional to p exp <t, u>, where p are the shares in all
classes and u are statistics of a cell. The statistics of a number are its normal score and the size
of the score, so that the column shifts or widens; those of a category are its indicators; and
another one indicates a missing value. The tilt t has a normal prior, and is estimated from the mean
feature and the margins (maximum a posteriori).

Such a class may have numbers where all classes together have next to none, hidden by the noise. So
p is extended there by tails: less than the noise on a cell, and decreasing outwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import block_diag
from scipy.special import ndtri
from torch import Tensor

from ....common.schema.encoding import NumericEncoding
from .cells import Columns, Shares
from .evidence import Evidence
from .margins import Margins
from .minimum import minimise_by_lbfgs

ROUNDS: Final = 5
"""Rounds of estimation, each linearised around rows with the last tilts."""
_STEPS: Final = 200
_WEIGHTS: Final = (1e-4, 1e-2, 1.0)
"""Weights of the evidence, beside the prior, in one search after another."""
_TAIL_SHARE: Final = 0.3
"""Share of the first cell of a tail, in standard deviations of the noise."""
_TAIL_DECAY: Final = 0.25
"""Factor from each cell of a tail to the next one outwards."""
_OUTERMOST: Final = 1e-6
"""Ranks are clipped this far from 0 and 1 before normal scores are taken."""


def tilted(
    columns: Columns,
    shares: Shares,
    noise: float,
    evidence_at: Callable[[Shares], Evidence],
    margins: Margins,
) -> Shares:
    """Estimate the columns of a class.

    Args:
        columns: of the table.
        shares: shares of the cells in all classes together, (cells,).
        noise: standard deviation of the noise on these.
        evidence_at: gives the evidence of the class's mean feature, linearised around rows with the
            given shares.
        margins: what the class's marginals say.

    Returns:
        Shares, (cells,).
    """
    family = _Family.of(columns, shares, noise)
    for _ in range(ROUNDS):
        tilts = family.posterior_mode(evidence_at(shares), margins, columns, shares)
        shares = family.shares(tilts).numpy()
    return shares


@dataclass(frozen=True, eq=False)
class _Family:
    """The exponential family of a class's columns.

    Attributes:
        logarithms: log p, float64 (cells,); minus infinity in impossible cells.
        statistics: u, (cells, tilts).
        sizes: number of cells of each column.
    """

    logarithms: Tensor
    statistics: Tensor
    sizes: list[int]

    @classmethod
    def of(cls, columns: Columns, shares: Shares, noise: float) -> _Family:
        """The family around these shares, with tails as large as their noise may hide."""
        bases, statistics = [], []
        ends = np.cumsum(columns.sizes)[:-1]
        for marginal, part in zip(columns.marginals, np.split(shares, ends), strict=True):
            base, scores = part.copy(), np.eye(len(part))
            if isinstance(marginal.block.encoding, NumericEncoding):
                numbers, missing = part[: marginal.points], np.eye(len(part))[:, marginal.points :]
                base[: marginal.points] = _with_tails(numbers, noise)
                found = np.zeros((len(part), 2))
                found[: marginal.points] = _scores(base[: marginal.points])
                scores = np.concatenate([found, missing], axis=1)
            bases.append(base)
            statistics.append(scores)
        with np.errstate(divide="ignore"):
            logarithms = np.log(np.concatenate(bases))
        of_all = block_diag(*statistics)
        return cls(torch.from_numpy(logarithms), torch.from_numpy(of_all), columns.sizes)

    def shares(self, tilts: Tensor) -> Tensor:
        """The shares of the cells under the given tilts."""
        parts = (self.logarithms + self.statistics @ tilts).split(self.sizes)
        return torch.cat([part.softmax(dim=0) for part in parts])

    def posterior_mode(
        self, evidence: Evidence, margins: Margins, columns: Columns, around: Shares
    ) -> Tensor:
        """The maximum a posteriori tilts.

        Strong evidence pulls a search that begins without tilts so far that shares become 0 or 1,
        where slopes vanish. So it is tempered first, and the search goes on from what is found.

        Args:
            evidence: of the class's mean feature.
            margins: of the class.
            columns: of the table.
            around: the shares that the evidence is linearised around.
        """
        overlap, at = torch.from_numpy(columns.overlap), torch.from_numpy(around)

        def loss(tilts: Tensor, weight: float) -> Tensor:
            shares = self.shares(tilts)
            known = evidence.negative_log_likelihood((shares - at) @ overlap)
            known = known + margins.negative_log_likelihood(shares[None])
            return weight * known + tilts.square().sum() / 2

        tilts = self.statistics.new_zeros(self.statistics.shape[1])
        for weight in _WEIGHTS:
            tilts = minimise_by_lbfgs(partial(loss, weight=weight), tilts, _STEPS)
        return tilts


def _with_tails(numbers: Shares, noise: float) -> Shares:
    """The shares of a number's cells, with tails beyond the outermost occupied ones."""
    there = np.flatnonzero(numbers > 0)
    if not len(there):
        return numbers
    places = np.arange(len(numbers))
    beyond = np.maximum(there[0] - places, places - there[-1])
    tails = np.where(beyond > 0, _TAIL_SHARE * noise * _TAIL_DECAY ** (beyond - 1.0), 0.0)
    found = numbers + tails
    kept: Shares = found * (numbers.sum() / found.sum())
    return kept


def _scores(numbers: Shares) -> NDArray[np.float64]:
    """Normal scores of a number's cells, and their absolute values, (cells, 2)."""
    shares = numbers / max(numbers.sum(), np.finfo(float).tiny)
    middle = np.cumsum(shares) - shares / 2
    scores = ndtri(middle.clip(_OUTERMOST, 1 - _OUTERMOST))
    return np.stack([scores, np.abs(scores)], axis=1)
