"""The contents of a release, as values."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...common.adjacency import Adjacency
from ...common.display.representations import RedactedRepr
from ...common.features.base import FeatureMap
from ...common.numerics.shrinkage import shrunk_to_equal
from ...common.schema import Schema
from ..signing.policy import SignedBy

Figure = float | int | str | None
"""A plain value, as files and labels hold it."""
INDISTINCT: Final = 0.1
"""A class can hardly be told from noise if its mean feature, of norm at most 1, has more noise than
this in any one direction: mean features of different image classes are about 0.4 apart. At epsilon
1 this applies to classes of fewer than about 55 records."""


@dataclass(frozen=True, kw_only=True)
class Guarantee(ABC):
    """The guarantee of a release of either kind, and the figures from which it follows.

    Attributes:
        epsilon: as in (epsilon, delta) differential privacy; infinite without noise.
        delta: as in (epsilon, delta) differential privacy.
        adjacency: which data sets are indistinguishable.
        noise_multiplier: standard deviation of the noise at sensitivity 1.
        sigma: standard deviation of the noise on every coordinate of a sum.
        grid: the unit in which sums and noise are integers; sigma / grid is an integer.
        mechanism: the name of the mechanism.
        accountant: how epsilon follows from the noise, with the library's version.
        total_epsilon: joint epsilon, at `delta`, of this and all earlier releases in its ledger.
        total_adjacency: the adjacency under which the total holds: that of all these releases, or
            replace-one if they do not share one.
        total_releases: the number of these releases.
    """

    epsilon: float
    delta: float
    adjacency: Adjacency
    noise_multiplier: float
    sigma: float
    grid: float
    mechanism: str
    accountant: str
    total_epsilon: float
    total_adjacency: Adjacency
    total_releases: int

    @property
    def private(self) -> bool:
        """Whether the release promises any privacy."""
        return math.isfinite(self.epsilon)

    @abstractmethod
    def figures(self) -> dict[str, Figure]:
        """All figures by their names in files and labels, in the order of labels."""


@dataclass(frozen=True, kw_only=True)
class EmbeddingGuarantee(Guarantee):
    """The guarantee of an embedding's release.

    The released sums are those of features and weighted class counts, in units of the norm of one
    record's feature.

    Attributes:
        sensitivity: L2 sensitivity of the sums.
        count_weight: weight of a class count beside a unit-norm feature; 0 if the classes were
            declared equally frequent.
        records: m, the number of records. Under replace-one it is exact, because it is public;
            under add-remove it is the sum of the noisy class counts.
        epsilon_replace_one: epsilon under replace-one, for an add-remove release. A replace-one
            release promises nothing under add-remove, because it publishes the number of records.
    """

    sensitivity: float
    count_weight: float
    records: int
    epsilon_replace_one: float | None

    def figures(self) -> dict[str, Figure]:
        """See `Guarantee.figures`."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "adjacency": self.adjacency.value,
            "noise_multiplier": self.noise_multiplier,
            "sensitivity": self.sensitivity,
            "sigma": self.sigma,
            "grid": self.grid,
            "count_weight": self.count_weight,
            "records": self.records,
            "mechanism": self.mechanism,
            "accountant": self.accountant,
            "epsilon_replace_one": self.epsilon_replace_one,
            "total_epsilon": self.total_epsilon,
            "total_adjacency": self.total_adjacency.value,
            "total_releases": self.total_releases,
        }


@dataclass(frozen=True, eq=False, repr=False)
class Release(RedactedRepr):
    """The release of an embedding.

    Attributes:
        embedding: noisy class-wise sum of features divided by m, float32 (d, c).
        class_weights: noisy (or declared) share of each class, float64 (c,), positive, with sum 1.
        feature_map: phi, with its weights.
        schema: what is publicly known of the records.
        guarantee: the guarantee.
        release_id: 32 random hexadecimal digits.
        created: when, in UTC, ISO 8601.
        dpntk_version: the version of dpntk that wrote it.
        statement: the promise in words.
    """

    embedding: NDArray[np.float32]
    class_weights: NDArray[np.float64]
    feature_map: FeatureMap
    schema: Schema
    guarantee: EmbeddingGuarantee
    release_id: str
    created: str
    dpntk_version: str
    statement: str

    @property
    def epsilon(self) -> float:
        """The epsilon of everything in the file, including privately found bounds."""
        return self.guarantee.total_epsilon if self.schema.spent else self.guarantee.epsilon

    @property
    def shrunk_shares(self) -> NDArray[np.float64]:
        """The shares of classes, shrunk towards equal ones as far as noise explains their spread.

        With 1,000 records at epsilon 1 a count of 100 is off by 22, and a mean feature that is
        divided by it gets the same relative error.

        Guarantee:
            Post-processing: reads the release alone. (docs/privacy/proofs.md, statement 10.)

        Returns:
            float64 (c,), positive, of sum 1; the released ones if they have no noise.
        """
        weight, noise = self.guarantee.count_weight, self.noise_per_coordinate
        if not weight or not noise:
            return self.class_weights
        variances = np.full(len(self.class_weights), (noise / weight) ** 2)
        return shrunk_to_equal(self.class_weights, variances)

    @property
    def indistinct(self) -> tuple[str, ...]:
        """The classes that can hardly be told from noise, as far as the release shows."""
        noise = self.noise_per_coordinate / self.shrunk_shares
        names = zip(self.schema.classes, noise, strict=True)
        return tuple(name for name, of_class in names if of_class > INDISTINCT)

    @property
    def noise_per_coordinate(self) -> float:
        """Standard deviation of the noise on each entry of `embedding`."""
        return self.guarantee.sigma / self.guarantee.records

    @property
    def blur(self) -> float:
        """The same on a class's mean feature, if classes are equally frequent."""
        return self.noise_per_coordinate * len(self.schema.classes)

    @property
    def noise_norm(self) -> float:
        """Expected Frobenius norm of the noise in `embedding`."""
        return self.noise_per_coordinate * math.sqrt(self.embedding.size)


R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, eq=False)
class Opened(Generic[R_co]):
    """A release, with what is known of its origin.

    Attributes:
        release: its contents.
        digest: SHA-256 of the file from byte 512 on, in hexadecimal.
        signed_by: who vouches for it.
        path: its file; None if it is in memory only.
    """

    release: R_co
    digest: str
    signed_by: SignedBy
    path: Path | None = None


OpenedRelease = Opened[Release]
