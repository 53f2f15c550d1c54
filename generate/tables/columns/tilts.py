"""Columns of a class of which little is known: those of all classes, tilted.

Noise hides the columns of a rare class, one by one; its mean feature, which holds all of them, may
say much all the same. So its columns are looked for among few: cells have shares in proportion to
p exp <t, u>, where p is what all classes have in common and u are statistics of a cell (an
exponential family). Of a number they are its normal score and the size of that, so that the column
moves or widens; of a category, which one it is; and whether a value is missing. t is what the mean
feature makes most likely of what is normally distributed before anything is seen.

Such a class may have its numbers where all together have next to none, and noise hides that there
are any. So p goes on there: with less than the noise on a cell, and less and less farther out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
from .minimum import least

ROUNDS: Final = 5
"""How often tilts are looked for, each time around rows with those found last."""
_STEPS: Final = 200
_HIDDEN: Final = 0.3
"""Next to cells that have some numbers there are so many standard deviations of the noise,"""
_FALLS: Final = 0.25
"""and in each cell farther out so much of that."""
_OUTERMOST: Final = 1e-6
"""No share of numbers is taken to lie farther out."""


def tilted(
    columns: Columns, shares: Shares, noise: float, evidence_at: Callable[[Shares], Evidence]
) -> Shares:
    """The likely columns of a class.

    Args:
        columns: of the table.
        shares: of the cells in all classes together, (cells,).
        noise: standard deviation of the noise on these.
        evidence_at: what the mean feature of the class says, around rows with such shares.

    Returns:
        Shares, (cells,).
    """
    family = _Family.of(columns, shares, noise)
    tilts = family.statistics.new_zeros(family.statistics.shape[1])
    for _ in range(ROUNDS):
        tilts = family.most_likely(evidence_at(shares), columns, shares, tilts)
        shares = family.shares(tilts).numpy()
    return shares


@dataclass(frozen=True, eq=False)
class _Family:
    """What columns of the class may be.

    Attributes:
        logarithms: of p, float64 (cells,); minus infinity where nothing can be.
        statistics: u, (cells, tilts).
        sizes: how many cells each column has.
    """

    logarithms: Tensor
    statistics: Tensor
    sizes: list[int]

    @classmethod
    def of(cls, columns: Columns, shares: Shares, noise: float) -> _Family:
        """All tilts of these shares; their noise says what else there may be."""
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
        """Shares of the cells, at such tilts."""
        parts = (self.logarithms + self.statistics @ tilts).split(self.sizes)
        return torch.cat([part.softmax(dim=0) for part in parts])

    def most_likely(
        self, evidence: Evidence, columns: Columns, around: Shares, start: Tensor
    ) -> Tensor:
        """The most likely tilts.

        Args:
            evidence: of the class.
            columns: of the table.
            around: the shares that the evidence is around.
            start: tilts to begin with.
        """
        overlap, at = torch.from_numpy(columns.overlap), torch.from_numpy(around)

        def loss(tilts: Tensor) -> Tensor:
            off = (self.shares(tilts) - at) @ overlap
            return evidence.against(off) + tilts.square().sum() / 2

        return least(loss, start, _STEPS)


def _with_tails(numbers: Shares, noise: float) -> Shares:
    """The shares of a number's cells, with some beyond the outermost that have any."""
    there = np.flatnonzero(numbers > 0)
    if not len(there):
        return numbers
    places = np.arange(len(numbers))
    beyond = np.maximum(there[0] - places, places - there[-1])
    tails = np.where(beyond > 0, _HIDDEN * noise * _FALLS ** (beyond - 1.0), 0.0)
    found = numbers + tails
    kept: Shares = found * (numbers.sum() / found.sum())
    return kept


def _scores(numbers: Shares) -> NDArray[np.float64]:
    """Normal scores of the cells of a number, and their sizes, (cells, 2)."""
    shares = numbers / max(numbers.sum(), np.finfo(float).tiny)
    middle = np.cumsum(shares) - shares / 2
    scores = ndtri(middle.clip(_OUTERMOST, 1 - _OUTERMOST))
    return np.stack([scores, np.abs(scores)], axis=1)
