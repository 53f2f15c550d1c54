"""Stage two: add noise once and write the file that may be shared."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..common.adjacency import Adjacency
from ..common.errors import BudgetError
from ..common.files import write_atomically
from ..embed.artifact import Embedding
from .accountant import ACCOUNTANT, accountant_version, require_budget
from .contents import Guarantee, Release, statement_of
from .mechanism import DEFAULT_COUNT_WEIGHT, MECHANISM, add_noise, calibrate
from .writer import serialise

DEFAULT_DELTA = 1e-5


def release(
    embedding: Embedding,
    *,
    epsilon: float,
    delta: float = DEFAULT_DELTA,
    count_weight: float = DEFAULT_COUNT_WEIGHT,
) -> Release:
    """Make a differentially private release of an embedding.

    Guarantee:
        The result satisfies (epsilon, delta) differential privacy under replace-one adjacency:
        the matrix and the class weights by the Gaussian mechanism (`mechanism.calibrate`), all
        else because it does not depend on the records beyond what is public: their number, the
        schema, the feature map. Every call spends epsilon and delta anew.

    Args:
        embedding: the exact sums.
        epsilon: above 0.
        delta: above 0 and below 1/n.
        count_weight: weight of a class count beside a unit-norm feature.

    Raises:
        BudgetError: epsilon, delta or the weight is out of range.
    """
    require_budget(epsilon, delta)
    records = embedding.records
    if delta >= 1 / records:
        raise BudgetError(
            f"--delta {delta:g} is not below 1/n = {1 / records:.3g}: such a delta allows "
            f"publishing somebody's record as it is; choose at most {0.1 / records:.0e}"
        )
    adjacency = Adjacency.REPLACE_ONE
    grid = embedding.grid
    scale = calibrate(
        embedding.feature_map,
        grid.units_per_one,
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency,
        count_weight=count_weight,
    )
    noisy = add_noise(embedding.sums, embedding.counts, scale)
    guarantee = Guarantee(
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency,
        noise_multiplier=scale.multiplier,
        sensitivity=scale.sensitivity * grid.unit,
        sigma=scale.sigma * grid.unit,
        grid=grid.unit,
        count_weight=count_weight,
        records=records,
        mechanism=MECHANISM,
        accountant=f"{ACCOUNTANT}, {accountant_version()}",
    )
    return Release(
        embedding=(noisy.sums * (grid.unit / records)).astype(np.float32),
        class_weights=_shares(noisy.counts / scale.count_weight, records),
        feature_map=embedding.feature_map,
        schema=embedding.schema,
        guarantee=guarantee,
        release_id=secrets.token_hex(16),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        dpntk_version=version("dpntk"),
        statement=statement_of(guarantee, embedding.schema),
    )


def save_release(made: Release, path: Path) -> None:
    """Write a release file.

    Raises:
        OutputError: it cannot be written; nothing is left behind.
    """
    write_atomically(path, serialise(made))


def _shares(noisy_counts: NDArray[np.float64], records: int) -> NDArray[np.float64]:
    """Noisy counts as positive shares of 1; a class counts as one record at least.

    Post-processing of the noisy counts and of the public number of records.
    """
    counts = np.clip(noisy_counts, 1.0, float(records))
    shares: NDArray[np.float64] = counts / counts.sum()
    return shares
