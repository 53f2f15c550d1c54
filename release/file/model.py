"""What a release says, as values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...common.adjacency import Adjacency
from ...common.features.base import FeatureMap
from ...common.features.perceptual import PerceptualFeatures
from ...common.outline import Outlined
from ...common.schema import Schema
from ...common.schema.table import TableSchema
from ...common.text import promised, rounded_up

NOT_PRIVATE: Final = (
    "NOT PRIVATE: this was made without noise and is as sensitive as the records themselves"
)
"""What everything that reads a release without noise has to say."""
NOT_COVERED_OPTIONS: Final = "and every choice of options made by looking at the records"


@dataclass(frozen=True)
class Guarantee:
    """The promise, and the figures that it follows from.

    Attributes:
        epsilon: of (epsilon, delta) differential privacy; infinite if there is no noise.
        delta: likewise.
        adjacency: which data sets are indistinguishable.
        noise_multiplier: standard deviation of the noise at sensitivity 1.
        sensitivity: L2 sensitivity of the sum of features and weighted counts, in units of the
            norm of one record's feature.
        sigma: standard deviation of the noise on every coordinate of that sum, in the same units.
        grid: the unit in which sums and noise are whole numbers; sigma / grid is a whole number.
        count_weight: weight of a class count beside a unit-norm feature; 0 if the classes were
            declared to be equally frequent.
        records: m, the number of records: exact under replace-one, where it is public; under
            add-remove the sum of the noisy class counts.
        mechanism: what was done.
        accountant: how epsilon follows from the noise, with the library's version.
        epsilon_replace_one: epsilon under replace-one, for an add-remove release. The other way
            round nothing is promised, since the number of records is published.
        total_epsilon: of this and all earlier releases from the same embedding, at `delta`.
        total_adjacency: under which the total holds.
        total_releases: how many releases that are.
    """

    epsilon: float
    delta: float
    adjacency: Adjacency
    noise_multiplier: float
    sensitivity: float
    sigma: float
    grid: float
    count_weight: float
    records: int
    mechanism: str
    accountant: str
    epsilon_replace_one: float | None
    total_epsilon: float
    total_adjacency: Adjacency
    total_releases: int

    @property
    def private(self) -> bool:
        """Whether anything is promised at all."""
        return math.isfinite(self.epsilon)


@dataclass(frozen=True, eq=False, repr=False)
class Release(Outlined):
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
    guarantee: Guarantee
    release_id: str
    created: str
    dpntk_version: str
    statement: str

    @property
    def epsilon(self) -> float:
        """Of all that the file says: bounds found with differential privacy are in it, too."""
        return self.guarantee.total_epsilon if self.schema.spent else self.guarantee.epsilon

    @property
    def noise_per_coordinate(self) -> float:
        """Standard deviation of the noise on each entry of `embedding`."""
        return self.guarantee.sigma / self.guarantee.records

    @property
    def noise_norm(self) -> float:
        """Expected Frobenius norm of the noise in `embedding`."""
        return self.noise_per_coordinate * math.sqrt(self.embedding.size)


def statement_of(
    guarantee: Guarantee, schema: Schema, feature_map: FeatureMap, *, equal_classes: bool
) -> str:
    """The promise in words, as NIST SP 800-226 asks for: unit, adjacency, what is not covered.

    Args:
        guarantee: the promise.
        schema: what was taken as known of the records.
        feature_map: phi; a module in it was trained on something.
        equal_classes: whether the classes were declared to be equally frequent.
    """
    if not guarantee.private:
        return (
            f"{NOT_PRIVATE}. It holds exact sums, for research on data that are not sensitive; it "
            "must not be given to anybody who may not see the records."
        )
    outside = [f"the {known}" for known in schema.known]
    if guarantee.adjacency is Adjacency.REPLACE_ONE:
        outside.insert(0, "the number of records")
    if equal_classes and len(schema.classes) > 1:
        outside.append("that all classes are equally frequent")
    trained = (
        " The features are those of a pre-trained module; the data that it was trained on are not "
        "covered, and the owner has declared them public."
        if isinstance(feature_map, PerceptualFeatures)
        else ""
    )
    exchanged = (
        ""
        if guarantee.epsilon_replace_one is None
        else " For exchanging one record for another, epsilon is "
        f"{rounded_up(guarantee.epsilon_replace_one)}."
    )
    spent = spent_before(
        guarantee.total_releases, guarantee.total_epsilon, guarantee.total_adjacency
    )
    promise = (
        f"This file satisfies ({promised(guarantee.epsilon)}, {promised(guarantee.delta)}) "
        f"differential privacy for {guarantee.adjacency.meaning}."
    )
    if isinstance(schema, TableSchema) and schema.spent:
        bounded = ", ".join(column.name for column in schema.private_bounds)
        promise = (
            f"This file satisfies ({rounded_up(guarantee.total_epsilon)}, "
            f"{promised(guarantee.delta)}) differential privacy for "
            f"{guarantee.total_adjacency.meaning}: epsilon {promised(guarantee.epsilon)} for its "
            "matrix, and the rest for what was released before, the bounds of "
            f"{bounded} among it, which were found in the records with differential "
            "privacy."
        )
        if exchanged:
            exchanged = exchanged.replace("epsilon is", "epsilon of the matrix alone is")
    return (
        f"{promise}{exchanged} The unit of privacy is one record: whoever "
        "contributed several is protected less. Everything computed from this file alone is "
        "covered by the same guarantee. Not covered, and treated as public: "
        f"{', '.join(outside)}, {NOT_COVERED_OPTIONS}."
        f"{looked_up_in_records(schema)}{trained} {spent}"
    )


def looked_up_in_records(schema: Schema) -> str:
    """A sentence on what was taken from the records themselves; nothing if nothing was."""
    if not schema.from_data:
        return ""
    return f" Looked up in the records: {' and '.join(schema.from_data)}."


def spent_before(releases: int, epsilon: float, adjacency: Adjacency) -> str:
    """Sentences on what this and earlier releases have spent together."""
    if releases == 1:
        spent = "The owner's ledger knows of no earlier release from these records."
    else:
        spent = (
            f"This is release number {releases} from these records; together they have epsilon "
            f"{rounded_up(epsilon)} ({adjacency.value})."
        )
    return f"{spent} Every further one adds to the privacy loss."
