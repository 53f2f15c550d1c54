"""Stage two: add noise once and write the file that may be shared."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from enum import Enum
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..common.adjacency import Adjacency
from ..common.errors import BudgetError
from ..common.feature_map import sensitivity
from ..common.files import write_atomically
from ..embed.artifact import Embedding
from .accountant import ACCOUNTANT, accountant_version, epsilon_for, require_budget
from .contents import Guarantee, Release, statement_of
from .mechanism import DEFAULT_COUNT_WEIGHT, MECHANISM, NoiseScale, add_noise, calibrate
from .writer import serialise

DEFAULT_DELTA = 1e-5


class ClassCounts(Enum):
    """How the share of each class becomes known."""

    NOISY = "noisy"
    """Released with noise, as further coordinates of the same Gaussian."""
    UNIFORM = "uniform"
    """Declared by the owner to be equal, as public knowledge."""


def release(
    embedding: Embedding,
    *,
    epsilon: float,
    delta: float = DEFAULT_DELTA,
    adjacency: Adjacency = Adjacency.REPLACE_ONE,
    class_counts: ClassCounts = ClassCounts.NOISY,
    count_weight: float = DEFAULT_COUNT_WEIGHT,
) -> Release:
    """Make a differentially private release of an embedding.

    Guarantee:
        The result satisfies (epsilon, delta) differential privacy under `adjacency`: the matrix
        and the class counts by the Gaussian mechanism (`mechanism.calibrate`), the class weights
        and the number of records under add-remove as functions of the noisy counts, all else
        because it does not depend on the records beyond what is public: the schema, the feature
        map and, under replace-one, the number of records. Every call spends the budget anew.

    Args:
        embedding: the exact sums.
        epsilon: above 0.
        delta: above 0 and below 1/n.
        adjacency: which data sets are to be indistinguishable.
        class_counts: whether to release class counts, or to declare them equal.
        count_weight: weight of a class count beside a unit-norm feature.

    Raises:
        BudgetError: epsilon, delta or the weight is out of range, or the embedding's grid is not
            public under add-remove.
    """
    require_budget(epsilon, delta)
    if delta >= 1 / embedding.records:
        raise BudgetError(
            f"--delta {delta:g} is not below 1/n = {1 / embedding.records:.3g}: such a delta "
            "allows publishing somebody's record as it is; choose at most "
            f"{0.1 / embedding.records:.0e}"
        )
    if count_weight <= 0:
        raise BudgetError(f"--count-weight {count_weight:g}: it must be above 0")
    exact_total = adjacency is Adjacency.REPLACE_ONE
    grid = embedding.grid
    if not exact_total and grid.capacity == embedding.records:
        raise BudgetError(
            "the embedding's grid was chosen by the number of records, which add-remove protects: "
            "embed again with a --capacity that does not depend on it"
        )
    declared = class_counts is ClassCounts.UNIFORM
    # Under add-remove the counts are needed in any case: their sum is the number of records.
    weight = 0.0 if declared and exact_total else count_weight
    scale = calibrate(
        embedding.feature_map,
        grid.units_per_one,
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency,
        count_weight=weight,
    )
    noisy = add_noise(embedding.sums, embedding.counts, scale)
    classes = len(embedding.schema.classes)
    counts = np.ones(classes) if noisy.counts is None else noisy.counts / scale.count_weight
    records = embedding.records if exact_total else max(1, round(float(counts.sum())))
    guarantee = Guarantee(
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency,
        noise_multiplier=scale.multiplier,
        sensitivity=scale.sensitivity * grid.unit,
        sigma=scale.sigma * grid.unit,
        grid=grid.unit,
        count_weight=weight,
        records=records,
        mechanism=MECHANISM,
        accountant=f"{ACCOUNTANT}, {accountant_version()}",
        epsilon_replace_one=None if exact_total else _exchanged(embedding, scale, weight, delta),
    )
    return Release(
        embedding=(noisy.sums * (grid.unit / records)).astype(np.float32),
        class_weights=np.full(classes, 1 / classes) if declared else _shares(counts, records),
        feature_map=embedding.feature_map,
        schema=embedding.schema,
        guarantee=guarantee,
        release_id=secrets.token_hex(16),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        dpntk_version=version("dpntk"),
        statement=statement_of(guarantee, embedding.schema, equal_classes=declared),
    )


def _exchanged(embedding: Embedding, scale: NoiseScale, weight: float, delta: float) -> float:
    """Epsilon under replace-one of noise that was calibrated for add-remove."""
    exchange = sensitivity(embedding.feature_map, Adjacency.REPLACE_ONE, count_weight=weight)
    change = sensitivity(embedding.feature_map, Adjacency.ADD_REMOVE, count_weight=weight)
    return epsilon_for(scale.multiplier * change / exchange, delta)


def save_release(made: Release, path: Path) -> None:
    """Write a release file.

    Raises:
        OutputError: it cannot be written; nothing is left behind.
    """
    write_atomically(path, serialise(made))


def _shares(noisy_counts: NDArray[np.float64], records: int) -> NDArray[np.float64]:
    """Noisy counts as positive shares of 1; a class counts as one record at least.

    Post-processing of the noisy counts and of the released number of records.
    """
    counts = np.clip(noisy_counts, 1.0, float(records))
    shares: NDArray[np.float64] = counts / counts.sum()
    return shares
