"""The normal scores of a number: what standard normal numbers of the same ranks are on average.

The score of a value is the mean of a standard normal number between the ranks of the value's first
and last row. So the scores of numbers under a Gaussian copula are those of Gaussian numbers that
were rounded, and their products follow from the correlation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtri
from torch import Tensor

_MOST_PARTS: Final = 48
"""Numbers of more values are cut into this many parts to compute mean products of scores."""


@dataclass(frozen=True, eq=False)
class NormalScores:
    """The scores of a number among the rows of a class.

    Attributes:
        place: the place of the number in a record.
        missing: the place of the value that marks it as missing, -1 if it cannot be missing.
        values: its different values, in increasing order, float32 (v,).
        scores: of these values, float32 (v,); 0 for a value that nobody is to have.
        shares: of these values among known ones, float64 (v,), of sum 1.
    """

    place: int
    missing: int
    values: Tensor
    scores: Tensor
    shares: NDArray[np.float64]

    @classmethod
    def of(cls, place: int, missing: int, records: Tensor) -> NormalScores:
        """The scores among some rows, (n, record size), whose marginals stay as they are.

        Args:
            place: see above.
            missing: see above.
            records: values 0..1; the number is known in at least one row.
        """
        known = records[:, place][_is_known(records, missing)]
        values, counts = torch.unique(known, return_counts=True)
        shares = counts.double().numpy() / len(known)
        borders = np.concatenate([[0.0], np.cumsum(shares)]).clip(0, 1)
        # The mean of a normal number between two borders is the fall of its density over its share.
        density = np.exp(-np.square(ndtri(borders[1:-1])) / 2) / np.sqrt(2 * np.pi)
        scores = -np.diff(density, prepend=0.0, append=0.0) / shares
        return cls(place, missing, values, torch.from_numpy(scores).float(), shares)

    def known(self, records: Tensor) -> Tensor:
        """Whether rows (n, record size) have the number, bool (n,)."""
        return _is_known(records, self.missing)

    def __call__(self, records: Tensor) -> Tensor:
        """The scores of rows (n, record size), float32 (n,); 0 where the number is missing."""
        at = torch.searchsorted(self.values, records[:, self.place].contiguous())
        found = self.scores[at.clamp_(max=len(self.values) - 1)]
        return torch.where(self.known(records), found, 0.0)

    def in_parts(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The shares and the mean scores of at most `_MOST_PARTS` parts of the number."""
        part = np.arange(len(self.shares))
        if len(part) > _MOST_PARTS:
            middle = np.cumsum(self.shares) - self.shares / 2
            _, part = np.unique((middle * _MOST_PARTS).astype(int), return_inverse=True)
        sums = self.shares * self.scores.double().numpy()
        shares, of_scores = (
            np.bincount(part, each).astype(np.float64) for each in (self.shares, sums)
        )
        return shares, of_scores / shares


def _is_known(records: Tensor, missing: int) -> Tensor:
    if missing < 0:
        return torch.ones(len(records), dtype=torch.bool)
    return records[:, missing] < 0.5
