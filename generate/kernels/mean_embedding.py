"""The class-conditional mean embeddings in a release, and their noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...release.file.model import Release

LOW_SIGNAL: Final = 0.003
"""A class has low signal if its mean feature, of length at most 1, has more noise than this on each
entry. At epsilon 1 this holds for classes of fewer than about 2,000 records."""


@dataclass(frozen=True, eq=False)
class MeanEmbedding:
    """Class-conditional mean embeddings.

    Attributes:
        values: noisy, float32 (d, c).
        noise: standard deviation of the noise on each entry of a column, float64 (c,).
    """

    values: NDArray[np.float32]
    noise: NDArray[np.float64]

    @property
    def low_signal(self) -> NDArray[np.int64]:
        """Classes with too little signal in the noise for a generator to learn, int64 (k,)."""
        return np.flatnonzero(self.noise > LOW_SIGNAL)


def released_mean(release: Release) -> MeanEmbedding:
    """The released mean embedding of each class by itself.

    Guarantee:
        Post-processing: reads the release alone. (docs/privacy/proofs.md, statement 10.)
    """
    shares = release.class_weights
    values = (release.embedding / shares).astype(np.float32)
    return MeanEmbedding(values, release.noise_per_coordinate / shares)


def pooled_mean(release: Release) -> MeanEmbedding:
    """The same, with each low-signal class replaced by the mean over all records.

    Guarantee:
        Post-processing: reads the release alone. (docs/privacy/proofs.md, statement 10.)
    """
    mean = released_mean(release)
    values, noise, low_signal = mean.values, mean.noise, mean.low_signal
    values[:, low_signal] = release.embedding.sum(axis=1, keepdims=True)
    noise[low_signal] = release.noise_per_coordinate * np.sqrt(len(noise))
    return MeanEmbedding(values, noise)
