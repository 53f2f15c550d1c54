"""Precision and recall: the share of images that resemble those of another set.

Around each image of a set is a ball that reaches to its k-th nearest neighbour in the set; the
union of the balls estimates the manifold of such images. Precision is the share of synthetic images
within the balls of real ones, recall the share of real images within those of synthetic ones
(Kynkaanniemi et al. 2019, "Improved Precision and Recall Metric for Assessing Generative Models",
with its k = 3). Both depend on the number of images, so equally many are compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances_chunked

from ...common.display.representations import RedactedRepr

_NEIGHBOURS: Final = 3
MOST_COMPARED: Final = 5000
"""Most images of either set: the work grows with the square."""
_MEGABYTES: Final = 64


@dataclass(frozen=True, repr=False)
class Manifold(RedactedRepr):
    """Balls around features of images.

    Attributes:
        points: their centres, float64 (n, d).
        radii: float64 (n,).
    """

    points: NDArray[np.float64]
    radii: NDArray[np.float64]

    @classmethod
    def of(cls, features: NDArray[np.float64]) -> Manifold:
        """The balls around features (n, d), n at least 2."""
        place = min(_NEIGHBOURS, len(features) - 1)  # the nearest one is the image itself
        nearest = [np.partition(part, place)[:, place] for part in _distances(features, features)]
        return cls(features, np.concatenate(nearest))

    def share_within(self, features: NDArray[np.float64]) -> float:
        """The share of features (m, d) that lie in one of the balls."""
        within = [(part <= self.radii).any(axis=1) for part in _distances(features, self.points)]
        return float(np.concatenate(within).mean())


def _distances(
    ones: NDArray[np.float64], others: NDArray[np.float64]
) -> Iterator[NDArray[np.float64]]:
    """Distances from each of `ones` to all `others`, some rows at a time."""
    yield from pairwise_distances_chunked(ones, others, working_memory=_MEGABYTES)
