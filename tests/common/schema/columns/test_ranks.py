"""Ordered categories that records hold as numbers, and nobody else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpntk.common.errors import SchemaError
from dpntk.common.schema.columns.codes import MISSING, UNLISTED
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.ranks import codes_of, numbers_of
from dpntk.common.schema.encoding import blocks_of
from dpntk.common.schema.table import TableSchema
from dpntk.generate.tables.rows.values import records_of, values_of

GRADE = Column.categorical("grade", ["low", "mid", "high"], ordered=True)
SMOKES = Column.boolean("smokes", ["no", "yes"], missing=True)
TOWN = Column.categorical("town", ["A", "B", "C"])
SIDE = Column.categorical("side", ["left", "right"])
STAGE = Column.categorical("stage", ["I", "II", "other"], ordered=True, other="other")
ONE = Column.categorical("one", ["same"], ordered=True)
SCHEMA = TableSchema((GRADE, SMOKES, TOWN, SIDE, STAGE, ONE))
BY_RANK = SCHEMA.with_ranks()
CODES = {
    "grade": np.array([0, 1, 2]),
    "smokes": np.array([0, MISSING, 1]),
    "town": np.array([2, 1, 0]),
    "side": np.array([1, 0, 1]),
    "stage": np.array([0, 1, 2]),
    "one": np.array([0, 0, 0]),
}


def test_only_categories_with_an_order_are_numbers() -> None:
    """An order with another category for all unlisted values is none."""
    numeric = [column.name for column in BY_RANK.encoded if column.kind.numeric]
    assert numeric == ["grade", "smokes", "side"]
    assert BY_RANK.columns == SCHEMA.columns
    assert SCHEMA.encoded == SCHEMA.features


def test_a_rank_has_its_bins_and_says_whether_it_is_missing() -> None:
    records = np.hstack([block.encode(CODES[block.column.name]) for block in blocks_of(BY_RANK)])
    assert records.shape[1] == BY_RANK.record_size
    grade, smokes = records[:, :4], records[:, 4:8]
    assert grade.tolist() == [[0, 255, 0, 0], [128, 0, 255, 0], [255, 0, 0, 255]]
    assert smokes.tolist() == [[0, 255, 0, 0], [0, 0, 0, 255], [255, 0, 255, 0]]


def test_codes_come_back_from_records() -> None:
    found = values_of(BY_RANK, records_of(BY_RANK, CODES), np.zeros(3, np.int64))
    assert {name: codes.tolist() for name, codes in found.items()} == {
        name: codes.tolist() for name, codes in CODES.items()
    }
    assert all(codes.dtype == np.int64 for codes in found.values())


def test_an_unlisted_category_is_no_rank_and_is_not_missing() -> None:
    block = blocks_of(BY_RANK)[1]
    assert block.encode(np.array([UNLISTED])).tolist() == [[0, 0, 0, 0]]


def test_ranks_and_codes_are_each_other_s_inverse() -> None:
    codes = np.array([0, 5, MISSING])
    assert codes_of(numbers_of(codes)).tolist() == codes.tolist()


def test_with_a_label_only_ordered_ones_are_and_only_if_they_are_few() -> None:
    age = Column.integer("age", 0, 120)
    labelled = replace(SCHEMA, label="town")
    assert labelled.with_ranks() == labelled  # an ordered column and no number
    some = replace(labelled, columns=(*SCHEMA.columns, age))
    assert some.with_ranks().by_rank == ("grade",)
    numbers = TableSchema((age, TOWN))
    assert numbers.with_ranks() == numbers


def test_a_file_says_so_only_if_it_is_so() -> None:
    assert "by_rank" not in SCHEMA.to_json()
    assert BY_RANK.to_json()["by_rank"] == ["grade", "smokes", "side"]
    assert TableSchema.from_json(BY_RANK.to_json()) == BY_RANK
    with pytest.raises(SchemaError, match="by_rank is a list of columns' names"):
        TableSchema.from_json({**SCHEMA.to_json(), "by_rank": True})


@pytest.mark.parametrize("names", [("town",), ("stage",), ("age",), ("grade", "grade"), (None,)])
def test_what_has_no_ranks_is_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(SchemaError, match="by_rank"):
        replace(SCHEMA, by_rank=names)
