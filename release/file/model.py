"""What a release says, as values."""

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
from ...common.schema import Schema
from ..signing.policy import SignedBy

Figure = float | int | str | None
"""A plain value, as files and labels hold it."""
INDISTINCT: Final = 0.1
"""A class can hardly be told from noise if its mean feature, of length 1 at most, has more noise
than this in any one direction: mean features of different classes of images are about 0.4 apart. At
epsilon 1 these are classes of fewer than about 55 records."""


@dataclass(frozen=True, kw_only=True)
class Guarantee(ABC):
    """The promise of a release of either kind, and the figures that it follows from.

    Attributes:
        epsilon: as in (epsilon, delta) differential privacy; infinite if there is no noise.
        delta: as in (epsilon, delta) differential privacy.
        adjacency: which data sets are indistinguishable.
        noise_multiplier: standard deviation of the noise at sensitivity 1.
        sigma: standard deviation of the noise on every coordinate of a sum.
        grid: the unit in which sums and noise are whole numbers; sigma / grid is a whole number.
        mechanism: what was done.
        accountant: how epsilon follows from the noise, with the library's version.
        total_epsilon: epsilon of this and all earlier releases that its ledger knows of, together,
            at `delta`.
        total_releases: how many releases these are.
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
    total_releases: int

    @property
    def private(self) -> bool:
        """Whether anything is promised at all."""
        return math.isfinite(self.epsilon)

    @abstractmethod
    def figures(self) -> dict[str, Figure]:
        """All figures by the names that files and labels give them, in the order of labels."""


@dataclass(frozen=True, kw_only=True)
class EmbeddingGuarantee(Guarantee):
    """The promise of the release of an embedding.

    Sums are of features and weighted class counts, in units of the norm of one record's feature.

    Attributes:
        sensitivity: L2 sensitivity of the sums.
        count_weight: weight of a class count beside a unit-norm feature; 0 if the classes were
            declared to be equally frequent.
        records: m, the number of records: exact under replace-one, where it is public; under
            add-remove the sum of the noisy class counts.
        epsilon_replace_one: epsilon under replace-one, for an add-remove release. The other way
            round nothing is promised, since the number of records is published.
        total_adjacency: under which the total holds.
    """

    sensitivity: float
    count_weight: float
    records: int
    epsilon_replace_one: float | None
    total_adjacency: Adjacency

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
    """A privacy release.

    Attributes:
        embedding: noisy class-wise sum of features divided by m, float32 (d, c).
        class_weights: noisy (or declared) share of each class, float64 (c,), positive, of sum 1.
        feature_map: phi, with its weights.
        schema: what is publicly known of the records.
        guarantee: the promise.
        release_id: 32 random hexadecimal digits.
        created: when, in UTC, ISO 8601.
        dpntk_version: of the program that wrote it.
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
        """Epsilon of all that the file says, including bounds found with differential privacy."""
        return self.guarantee.total_epsilon if self.schema.spent else self.guarantee.epsilon

    @property
    def indistinct(self) -> tuple[str, ...]:
        """Names of the classes that can hardly be told from noise, as far as the release knows."""
        noise = self.noise_per_coordinate / self.class_weights
        names = zip(self.schema.classes, noise, strict=True)
        return tuple(name for name, of_class in names if of_class > INDISTINCT)

    @property
    def noise_per_coordinate(self) -> float:
        """Standard deviation of the noise on each entry of `embedding`."""
        return self.guarantee.sigma / self.guarantee.records

    @property
    def blur(self) -> float:
        """The same for a class's mean feature, if classes are equally frequent."""
        return self.noise_per_coordinate * len(self.schema.classes)

    @property
    def noise_norm(self) -> float:
        """Expected Frobenius norm of the noise in `embedding`."""
        return self.noise_per_coordinate * math.sqrt(self.embedding.size)


R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, eq=False)
class Opened(Generic[R_co]):
    """A release with what is known of its origin.

    Attributes:
        release: the contents.
        digest: SHA-256 of the file from byte 512 on, in hexadecimal.
        signed_by: who vouches for it.
        path: the file; None if it is not in one.
    """

    release: R_co
    digest: str
    signed_by: SignedBy
    path: Path | None = None


OpenedRelease = Opened[Release]
