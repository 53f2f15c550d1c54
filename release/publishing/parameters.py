"""The promise of a release, and the noise that keeps it."""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING

from ...common.adjacency import Adjacency
from ...common.arguments import argument, number, require_flag, require_kind, set_plain
from ...common.errors import BudgetError
from ...common.features.base import FeatureMap, share_of_exchange
from ...common.ledger import Entry, default_delta, require_budget
from ...common.schema.privacy_unit import PrivacyUnit, rows_per_unit
from ...embed.exact.grid import Grid
from ..mechanism.gaussian import DEFAULT_COUNT_WEIGHT, NoiseScale, calibrate, no_noise

if TYPE_CHECKING:
    from ...embed.sums.file import Embedding


class ClassCounts(Enum):
    """How class shares become known."""

    NOISY = "noisy"
    """Released with noise, as further coordinates of the same Gaussian."""
    UNIFORM = "uniform"
    """Declared by the owner to be equal, as public knowledge."""


@dataclass(frozen=True)
class PrivacyParameters:
    """The promise of a release.

    Example::

        PrivacyParameters(epsilon=1.0)
        PrivacyParameters(0.5, delta=1e-6, adjacency=Adjacency.ADD_REMOVE)

    Attributes:
        epsilon: above 0; infinity means no noise, and needs `not_private`.
        delta: above 0 and below 1/n; if None, `delta_for` chooses it.
        adjacency: which data sets are neighbours.
        class_counts: whether class counts are released with noise, or declared to be equal.
        count_weight: weight of a class count beside a unit-norm feature.
        not_private: the owner's confirmation that a release without noise is wanted.

    Raises:
        BudgetError: a number is out of its range.
    """

    epsilon: float
    delta: float | None = None
    adjacency: Adjacency = Adjacency.REPLACE_ONE
    class_counts: ClassCounts = ClassCounts.NOISY
    count_weight: float = DEFAULT_COUNT_WEIGHT
    not_private: bool = False

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta", "count_weight"):
            value = getattr(self, name)
            if not (name == "delta" and value is None):
                set_plain(self, **{name: number(name, value, "a number", refusal=BudgetError)})
        delta = default_delta(Adjacency.ADD_REMOVE, 1) if self.delta is None else self.delta
        for name, choice, kind in (
            ("adjacency", self.adjacency, Adjacency),
            ("class_counts", self.class_counts, ClassCounts),
        ):
            wanted = " or ".join(map(str, kind))
            require_kind(name, choice, kind, wanted, refusal=BudgetError)
        require_flag("not_private", self.not_private, refusal=BudgetError)
        if self.not_private:
            if self.epsilon != math.inf:
                infinite = argument("epsilon", math.inf, option="--eps")
                raise BudgetError(f"{argument('not_private')} means something with {infinite} only")
            require_budget(1.0, delta)
        elif self.epsilon == math.inf:
            raise BudgetError(
                "epsilon inf adds no noise, so the file would be as sensitive as the embedding: "
                "choose a number such as 1 ('dpntk release --not-private' makes such a file)"
            )
        else:
            require_budget(self.epsilon, delta)
        if not self.count_weight > 0:
            weight = argument("count_weight", self.count_weight)
            raise BudgetError(f"{weight}: it must be above 0")

    def delta_for(self, records: int) -> float:
        """The delta of a release from this many records: as given, or the default."""
        return default_delta(self.adjacency, records) if self.delta is None else self.delta

    @property
    def released_weight(self) -> float:
        """Weight of the counts in the joint vector; 0 if they are not released.

        Under add-remove they are always released: their sum estimates the number of records.
        """
        declared = self.class_counts is ClassCounts.UNIFORM
        return 0.0 if declared and self.adjacency is Adjacency.REPLACE_ONE else self.count_weight


def noise_for(embedding: Embedding, parameters: PrivacyParameters) -> NoiseScale:
    """Check the parameters against the embedding and calibrate the noise; see `noise_on`.

    Guarantee:
        Bounds that were found with differential privacy are counted: their entries are in the
        ledger, under the same adjacency. (docs/privacy/proofs.md, statement 20.)

    Raises:
        BudgetError: the parameters do not suit this embedding.
    """
    for entry in embedding.schema.spent:
        if entry not in embedding.ledger.all_entries:
            raise BudgetError(
                "the ledger does not count what was spent on the schema's bounds: embed again"
            )
        if entry.adjacency is not parameters.adjacency:
            raise BudgetError(
                f"the schema's bounds were found under {entry.adjacency.value}: release with "
                f"{argument('adjacency', entry.adjacency)}, or find them anew"
            )
    return noise_on(
        embedding.feature_map,
        embedding.grid,
        embedding.records,
        parameters,
        embedding.schema.privacy_unit,
    )


def noise_on(
    feature_map: FeatureMap,
    grid: Grid,
    records: int,
    parameters: PrivacyParameters,
    unit: PrivacyUnit | None,
) -> NoiseScale:
    """Check the parameters against what is to be released and calibrate the noise.

    Guarantee:
        Under add-remove nothing public depends on the number of records, not even the grid
        (docs/privacy/proofs.md, statement 12). If rows are protected together, replacing them would
        change their number, so only add-remove is possible (statement 21).

    Args:
        feature_map: of the embedding.
        grid: of the embedding.
        records: number of records.
        parameters: the promise of the release.
        unit: whose records are protected together; None if each is protected by itself.

    Raises:
        BudgetError: the parameters do not suit this embedding.
    """
    if unit is not None:
        unit.require(parameters.adjacency)
    still = no_noise(
        feature_map,
        grid.units_per_one,
        adjacency=parameters.adjacency,
        count_weight=parameters.released_weight,
        rows_per_unit=rows_per_unit(unit),
    )
    if parameters.not_private:
        return still
    delta = parameters.delta_for(records)
    if delta >= 1 / records:
        # Under add-remove the number of records is secret, and messages may be shared.
        known = parameters.adjacency is Adjacency.REPLACE_ONE
        bound = f"1/n = {1 / records:.3g}" if known else "one over the number of records"
        less = f"at most {0.1 / records:.0e}" if known else "a much smaller one"
        raise BudgetError(
            f"{argument('delta', delta)} is not below {bound}: such a delta allows publishing "
            f"somebody's record as it is; choose {less}"
        )
    if parameters.adjacency is Adjacency.ADD_REMOVE and grid.capacity == records:
        raise BudgetError(
            "the embedding's grid was chosen by the number of records, which add-remove protects: "
            f"embed again with a {argument('capacity')} that does not depend on it"
        )
    return calibrate(still, epsilon=parameters.epsilon, delta=delta)


def entry_for(embedding: Embedding, parameters: PrivacyParameters, scale: NoiseScale) -> Entry:
    """The ledger's entry for a release that is about to be made."""
    unit = embedding.schema.privacy_unit
    share = share_of_exchange(
        embedding.feature_map, parameters.adjacency, count_weight=parameters.released_weight
    )
    return Entry(
        release_id=secrets.token_hex(16),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        epsilon=parameters.epsilon,
        delta=parameters.delta_for(embedding.records),
        adjacency=parameters.adjacency,
        noise_multiplier=scale.noise_multiplier,
        noise_multiplier_replace_one=scale.noise_multiplier * share,
        privacy_unit=None if unit is None else unit.column,
    )
