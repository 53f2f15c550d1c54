"""What a draft says to its owner of the table that it is of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from dpntk.embed import draft_schema


@pytest.mark.parametrize(
    ("gaps", "said"),
    [
        (("NA",), "missing values are written NA there, and '' in generated files: draft with "
         "--missing NA, or"),
        (("nan", "NA"), "draft with --missing NA --missing nan, or"),
        (("NA", ""), ""),
        ((), ""),
    ],
)  # fmt: skip
def test_how_missing_values_are_written_is_said_and_not_drafted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], gaps: tuple[str, ...], said: str
) -> None:
    """One row may decide it, so it is for the owner to write it into a schema that goes out."""
    numbers = [*map(str, range(30)), *gaps]
    table = tmp_path / "a.csv"
    # A column that is left out is not generated.
    table.write_text(
        "x,y\n" + "".join(f"{x},{('NULL', f't{i}')[i > 0]}\n" for i, x in enumerate(numbers))
    )
    draft = draft_schema(table)
    assert draft.schema.left_out == ("y",)
    assert draft.schema.csv.missing[0] == ""
    notices = capsys.readouterr().err
    assert said in notices
    assert ("missing values are written" in notices) == bool(said)


def test_why_columns_are_left_out_is_said_of_each_kind(
    capsys: pytest.CaptureFixture[str],
) -> None:
    days = pa.array(range(30), pa.int64())
    columns = {
        "age": days,
        "name": [f"p{number}" for number in range(30)],
        "zoned": days.cast(pa.timestamp("us", "UTC")),
        "other": days.cast(pa.timestamp("ms", "+02:00")),
        "nothing": pa.nulls(30),
        "none": pa.nulls(30, pa.float64()),
        "once": pa.array([0] * 30, pa.timestamp("us")),
        "tags": pa.array([["a"]] * 30),
        "pay": [f"{number},5" for number in range(30)],
    }
    draft = draft_schema(pa.table(columns))
    assert draft.schema.left_out == tuple(list(columns)[1:])
    said = capsys.readouterr().err
    for reason, names in (
        ("durations, nor a few texts", "name, tags, pay"),
        ("time zone (store those of one zone without it)", "zoned, other"),
        ("no row has a value", "nothing, none"),
        ("all dates, times or durations in them are the same", "once"),
    ):
        assert f"{reason}: {names}\n" in said


def test_what_may_be_an_identifier_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    rank = np.random.default_rng(0).permutation(40_000) + 1  # in several batches
    again = rank.copy()
    again[-1] = again[0]
    columns = {"rank": rank, "again": again, "pay": rank / 4}
    draft = draft_schema(pa.table(columns))
    said = capsys.readouterr().err
    assert "rank: every row has another number: if it is an identifier" in said
    assert said.count("every row") == 1
    assert draft.schema.left_out == ()  # which is for the owner to say
    draft_schema(pa.table({"age": range(20)}))
    draft_schema(pa.table({"age": [None, *range(100), 0]}))
    assert "every row" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("patient_id", [1, 2, 2, 3], True),
        ("id", [10, 20, 10, 30] * 100, True),
        ("patientID", [*map(str, range(600)), "7"], True),
        ("Tuna.id", [None, 1, 1, 2], True),
        ("patient_id", [1, 2, 3, 4], False),
        ("id", ["a", "b", "c", "d"], False),
        ("paid", [1, 2, 2, 3], False),
        ("idle", [1, 2, 2, 3], False),
    ],
)
def test_rows_of_one_person_are_said_to_need_a_unit(
    capsys: pytest.CaptureFixture[str], name: str, values: list[object], said: bool
) -> None:
    draft_schema(pa.table({"pay": np.arange(len(values)) % 3, name: values}))
    assert (
        f"'dpntk embed --unit {name}' protects them together" in capsys.readouterr().err
    ) == said


@pytest.mark.parametrize(
    ("classes", "rows", "said"),
    [
        (15, 1_499, "x: 15 classes for 1,499 rows: rare ones will be noise"),
        (15, 1_500, ""),
        (2, 30, ""),
    ],
)
def test_a_label_with_many_classes_is_said(
    capsys: pytest.CaptureFixture[str], classes: int, rows: int, said: str
) -> None:
    labels = [f"c{number % classes}" for number in range(rows)]
    draft_schema(pa.table({"x": labels, "y": np.zeros(rows)}), "x")
    found = capsys.readouterr().err
    assert said in found
    assert ("classes" in found) == bool(said)


def test_a_label_that_is_missing_in_some_rows_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "a.csv"
    table.write_text("x,lg\n" + "".join(f"{i},{('AL', 'NL', 'NA')[i % 3]}\n" for i in range(30)))
    draft_schema(table, "lg")
    assert "lg: without a value in 10 rows, and a record needs a label" in capsys.readouterr().err
    draft_schema(table)
    assert "lg" not in capsys.readouterr().err

    (folder := tmp_path / "parts").mkdir()
    for name, labels in (("a", pa.nulls(7)), ("b", pa.array(["u", "v", None]))):
        rows = {"x": pa.array(range(len(labels))), "lg": labels}
        parquet.write_table(pa.table(rows), folder / f"{name}.parquet")
    draft_schema(folder, "lg")
    assert "lg: without a value in 8 rows" in capsys.readouterr().err
