"""Columns that are made anew by a pattern: read by nobody, and where they were in the source."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

from dpntk.common.errors import SchemaError
from dpntk.common.schema.columns.made import MadeColumn
from dpntk.common.schema.drafts.draft import Draft
from dpntk.common.schema.table import TableSchema
from dpntk.common.sources.tables.table import TableSource
from dpntk.generate.tables.export import write_rows
from dpntk.generate.tables.sampling import to_table
from tests.helpers.tables import PEOPLE, people

MADE = (
    MadeColumn("id", "P-{number:03d};", place=0),
    MadeColumn("notes", "", place=3),
    MadeColumn("number", "{number}", "int64", place=7),
)
SCHEMA = replace(PEOPLE, left_out=(), made=MADE)


def test_they_stand_among_the_columns() -> None:
    document = SCHEMA.to_json()
    names = [column["name"] for column in document["columns"]]
    assert names == ["id", "age", "pay", "notes", "grade", "town", "ill", "number"]
    assert TableSchema.from_json(document) == SCHEMA
    assert Draft.from_toml(Draft(SCHEMA).to_toml(), "it").schema == SCHEMA
    for places in ((0, 3, 8), (0, -1, 7), (3, 0, 7)):
        moved = tuple(replace(c, place=place) for c, place in zip(MADE, places, strict=True))
        with pytest.raises(SchemaError, match="not in the order of their places"):
            replace(SCHEMA, made=moved)
    assert SCHEMA.known[1:] == ("patterns of columns that are made anew",)
    assert len(PEOPLE.known) == 1


def test_a_generated_table_has_them_again(tmp_path: Path) -> None:
    records = np.random.default_rng(0).random((12, SCHEMA.record_size), dtype=np.float32)
    made = to_table(SCHEMA, records, np.zeros(12, dtype=np.int64))
    write_rows(tmp_path, made, SCHEMA)
    lines = (tmp_path / "table.csv").read_text().splitlines()
    assert lines[0] == "id,age,pay,notes,grade,town,ill,number"
    assert lines[12].startswith("P-012;,")
    assert lines[12].endswith(",12")
    stored = parquet.read_table(tmp_path / "table.parquet")
    assert stored.column("number").to_pylist() == list(range(1, 13))
    assert stored.column("notes").to_pylist() == [""] * 12
    for name in ("table.csv", "table.parquet"):  # by evaluate, and as if they were records
        assert len(TableSource.open(tmp_path / name, SCHEMA)) == 12


def test_nothing_of_them_is_read(tmp_path: Path) -> None:
    """Whether they are there, and what is in them, makes no difference."""
    text = people(30)
    (tmp_path / "a.csv").write_text(text)
    (tmp_path / "b.csv").write_text(
        "\n".join(line.split(",", 1)[1] for line in text.splitlines()) + "\n"
    )
    one, other = (
        next(TableSource.open(tmp_path / name, SCHEMA).batches(30)).records
        for name in ("a.csv", "b.csv")
    )
    assert np.array_equal(one, other)


@pytest.mark.parametrize(
    "change",
    [
        {"pattern": "{name}"},
        {"pattern": "{number}{number}"},
        {"pattern": "{number.__class__}"},
        {"pattern": "{number!r}"},
        {"pattern": "{number:99d}"},
        {"pattern": "{number:>{number}}"},
        {"pattern": "{{number}}"},
        {"pattern": "{"},
        {"pattern": "x" * 2000},
        {"pattern": None},
        {"name": ""},
        {"name": "age"},
        {"dtype": "int8"},
        {"dtype": "int64"},  # of a text
        {"dtype": 8},
        {"place": 2},
        {"categories": ["a"]},
    ],
)
def test_other_patterns_are_refused(change: dict[str, Any]) -> None:
    document = SCHEMA.to_json()
    document["columns"][0] = {**document["columns"][0], **change}
    with pytest.raises(SchemaError):
        TableSchema.from_json(document)
