"""Membership attacks on synthetic tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import OneHotEncoder

from ...common.display.representations import RedactedRepr
from ...common.errors import DataError
from ...common.schema.columns.codes import UNLISTED
from ...common.schema.table import TableSchema
from ..privacy.closest_record import Points, distances_to_closest, share_nearer
from ..privacy.membership import CONFIDENCE, attack
from .baselines import rows_of, some_rows
from .table import Table

CLOSEST: Final = "distance to closest member"
CLOSEST_OF_OTHERS: Final = "distance of test rows"
NEARER: Final = "nearer to members"
ATTACK: Final = "membership attack, AUC"
ATTACK_LOW: Final = "membership attack, at least"
ATTACK_HIGH: Final = "membership attack, at most"
_PERCENTILE: Final = 5
_FEWEST: Final = 20
_MOST: Final = 5_000
_MOST_SYNTHETIC: Final = 30_000
_MOST_VALUES: Final = 1 << 27
"""Largest number of values in the points of a table: a GiB."""

METHODS: Final = {
    CLOSEST: f"{_PERCENTILE}th percentile, over synthetic rows, of the Euclidean distance to the "
    "closest of the rows that they were made from. Numbers are divided by the declared range; two "
    "categories are 1 apart, a number and a missing one at least 1",
    CLOSEST_OF_OTHERS: "the same of real test rows, as if they were synthetic ones",
    NEARER: "share of synthetic rows that are nearer to one of the rows that they were made from "
    "than to any of as many test rows; 0.5 where no row is remembered",
    ATTACK: "area under the receiver operating characteristic of a membership inference attack by "
    "the ratio of distances to the nearest test row and to the nearest synthetic one; 0.5 where "
    "the attacker guesses",
    ATTACK_LOW: f"lower end of its {CONFIDENCE:.0%} confidence interval (DeLong)",
    ATTACK_HIGH: "upper end of the same",
}
"""Explanations of the figures, for readers."""
SCOPE: Final = "attacks check the implementation: that they find nothing is no promise"


@dataclass(frozen=True, eq=False, repr=False)
class Attackers(RedactedRepr):
    """Attackers who know rows that were used, and rows of the same population that were not.

    Attributes:
        members: rows that were used.
        outsiders: as many rows that were not.
        population: as many further rows that were not, only for comparison.
        seed: of the draw of synthetic rows.
    """

    members: Table
    outsiders: Table
    population: Table
    seed: int

    @classmethod
    def with_rows(cls, members: Table, test: Table, seed: int) -> Attackers:
        """Draw the rows that attackers know: at most 5,000 of each kind.

        Args:
            members: all rows that were used.
            test: rows of the same population that were not.
            seed: of the draw.

        Raises:
            DataError: there are too few rows for an attack.
        """
        size = min(len(members), len(test) // 2, _MOST, _most_rows(members.schema))
        if size < _FEWEST:
            raise DataError(
                f"attacks need {_FEWEST} members and {2 * _FEWEST} test rows, but there are "
                f"{len(members):,} and {len(test):,}"
            )
        drawn = np.random.default_rng(seed).choice(len(test), 2 * size, replace=False)
        return cls(
            some_rows(members, size, seed),
            rows_of(test, drawn[:size]),
            rows_of(test, drawn[size:]),
            seed,
        )

    def figures_of(self, table: Table) -> dict[str, float]:
        """Attack a table; return the figures by their names (`METHODS`)."""
        members, outsiders, population = map(
            points_of, (self.members, self.outsiders, self.population)
        )
        most = min(_MOST_SYNTHETIC, _most_rows(table.schema))
        synthetic = points_of(some_rows(table, most, self.seed))
        some = points_of(some_rows(table, len(members), self.seed))
        found = attack(synthetic, members, outsiders, population)
        return {
            CLOSEST: _near_end(some, members),
            CLOSEST_OF_OTHERS: _near_end(outsiders, members),
            NEARER: share_nearer(some, members, outsiders),
            ATTACK: found.value,
            ATTACK_LOW: found.low,
            ATTACK_HIGH: found.high,
        }


def _most_rows(schema: TableSchema) -> int:
    return _MOST_VALUES // sum(max(2, len(column.categories) + 2) for column in schema.columns)


def _near_end(points: Points, records: Points) -> float:
    return float(np.percentile(distances_to_closest(points, records), _PERCENTILE))


def points_of(table: Table) -> Points:
    """Rows as points, float64 (n, d), whose squared distances add up over columns.

    Numbers are divided by their declared range. Two different categories are at distance 1, and a
    missing number is at distance at least 1 from any other.
    """
    parts: list[NDArray[np.float64]] = []
    for column in table.schema.columns:
        values = table.columns[column.name]
        if not column.kind.numeric:
            encoder = OneHotEncoder(
                categories=[np.arange(UNLISTED, len(column.categories))], sparse_output=False
            )
            parts.append(encoder.fit_transform(values[:, None]) / np.sqrt(2))
            continue
        absent = np.isnan(values)
        lower, upper = column.bounds
        scaled = (np.clip(values, lower, upper) - lower) / (upper - lower)
        parts.append(np.column_stack([np.where(absent, 0.0, scaled), absent]))
    return np.hstack(parts)
