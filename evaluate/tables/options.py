"""Options for the evaluation of tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ...common.arguments import Location, positive_number, set_plain, whole_number
from ...common.errors import DataError
from ...common.schema.table import TableSchema

if TYPE_CHECKING:
    from ...common.sources.tables.frames import Frame

MOST_RECORDS: Final = 50_000
"""Classifiers are trained on at most this many records by default."""


@dataclass(frozen=True)
class TableOptions:
    """Options for tables.

    Attributes:
        schema: of the synthetic records, or the path of its `schema.toml`, if the records do not
            contain it.
        positive: the positive one of two classes, for ROC and PRC; if None, the rarer one among the
            test records.
        keep_negatives: keep only this share of the negative class, in training and test parts; only
            for comparison with published figures that were computed in this way.
        train_records: train classifiers on at most this many records, drawn at random.
        target: the column to predict in place of the label; a numeric one by regressions.
        members: the real records that the synthetic ones were made from, or their path (their train
            part, if they have one), for membership attacks by somebody who knows them.
        published: give the classifiers the settings of DP-KIP's table 7, not the usual ones; only
            for comparison with published figures.

    Raises:
        DataError: a number is out of its range.
    """

    schema: TableSchema | Location | None = None
    positive: str | None = None
    keep_negatives: float = 1.0
    train_records: int = MOST_RECORDS
    target: str | None = None
    members: Frame | Location | None = field(default=None, repr=False)  # may be records
    published: bool = False

    def __post_init__(self) -> None:
        set_plain(
            self,
            keep_negatives=positive_number(
                "keep_negatives", self.keep_negatives, most=1, refusal=DataError
            ),
            train_records=whole_number(
                "train_records", self.train_records, least=1, refusal=DataError
            ),
        )
