"""Tables as they are read: every value in its place, and one clear line for each way to be bad."""

from __future__ import annotations

import gzip
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyarrow import csv as arrow_csv
from pyarrow import parquet

from dpntk.common.errors import DataError, DpntkError, SchemaError
from dpntk.common.schema.columns.codes import MISSING
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.kinds import ColumnKind, Missing, Transform
from dpntk.common.schema.csv_format import CsvFormat
from dpntk.common.schema.encoding import CategoryEncoding, NumericEncoding, blocks_of
from dpntk.common.schema.privacy_unit import PrivacyUnit
from dpntk.common.schema.table import TableSchema
from dpntk.common.sources import open_source, with_bounded_units
from dpntk.common.sources.options import SourceOptions
from dpntk.common.sources.tables import csv
from tests.helpers.data_sets import joined
from tests.helpers.tables import CSV, HEADER, PEOPLE, ROWS, people


def read(path: Path, schema: TableSchema = PEOPLE) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    return joined(open_source(path, SourceOptions(schema=schema)).batches(3))


def write(path: Path, text: str = CSV) -> Path:
    path.write_text(text)
    return path


def write_bytes(path: Path, text: str) -> Path:
    """The text with the line breaks that it has."""
    path.write_bytes(text.encode())
    return path


def embedded_rows(path: Path, schema: TableSchema) -> int:
    source = with_bounded_units(open_source(path, SourceOptions(schema=schema)))
    return sum(len(batch.labels) for batch in source.batches(3))


@pytest.mark.parametrize("ends", ["with an error", "with the last row", "early"])
def test_no_thread_holds_what_is_pythons_when_a_file_has_been_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    """Otherwise a process that ends soon afterwards may be aborted: one in a hundred or so is."""
    path = write(tmp_path / "a.csv", "a,b\n1,2\n" + ("3\n" if ends == "with an error" else ""))
    handlers = []

    def noting(
        ragged: list[tuple[int | None, int]], let_go: threading.Event
    ) -> Callable[[arrow_csv.InvalidRow], str]:
        handlers.append(weakref.ref(handler := original(ragged, let_go)))
        return handler

    original = csv._noting
    monkeypatch.setattr(csv, "_noting", noting)
    for _ in range(500):
        rows = csv.read_csv(path, ("a", "b"), ("a",), CsvFormat(encoding="latin-1"))
        match ends:
            case "with an error":
                with pytest.raises(DataError, match="row 2 has 1 values"):
                    next(rows)
            case "early":
                next(rows)
                rows.close()
            case _:
                assert len(list(rows)) == 1
        assert handlers.pop()() is None


def test_every_value_is_in_its_place(tmp_path: Path) -> None:
    records, labels = read(write(tmp_path / "a.csv"))
    assert labels.tolist() == [0, 1, 0, 1]
    blocks = {block.column.name: block for block in blocks_of(PEOPLE)}
    age = records[:, blocks["age"].place]
    assert age[:, 0].tolist() == [round(a / 99 * 255) for a in (30, 41, 99, 0)]
    assert (age[:, 1:].astype(int).sum(axis=1) == 255).all()
    assert age[3, 1] == 255
    assert age[2, 20] == 255
    pay = records[:, blocks["pay"].place]
    assert pay[1].tolist() == [0] * 21 + [255]  # missing: the indicator and nothing else
    assert pay[0, 0] == round(np.log1p(10.5) / np.log1p(1000) * 255)
    assert records[:, blocks["grade"].place].tolist() == [
        [0, 255, 0, 0], [127, 0, 255, 0], [255, 0, 0, 255], [0, 255, 0, 0],
    ]  # fmt: skip
    # Ulm, Bonn, other (Berlin), missing
    assert records[:, blocks["town"].place].argmax(axis=1).tolist() == [0, 1, 3, 2]


def to_parquet(folder: Path) -> Path:
    table = arrow_csv.read_csv(write(folder / "b.csv"))
    town = pa.array(["Ulm", "Bonn", None, "Berlin"]).dictionary_encode()
    table = table.set_column(4, "town", town)
    parquet.write_table(table, folder / "a.parquet", row_group_size=3)
    return folder / "a.parquet"


def to_gzip(folder: Path) -> Path:
    (folder / "a.csv.gz").write_bytes(gzip.compress(CSV.encode()))
    return folder / "a.csv.gz"


def to_folder(folder: Path) -> Path:
    (folder / "d").mkdir()
    write(folder / "d" / "train-1.csv", "\n".join((HEADER, *ROWS[:1])))
    write(folder / "d" / "train-2.csv", "\n".join((HEADER, *ROWS[1:])))
    write(folder / "d" / "test.csv", "\n".join((HEADER, ROWS[0])))
    return folder / "d"


def with_bom(folder: Path) -> Path:
    return write(folder / "a.csv", "\ufeff" + CSV)


@pytest.mark.parametrize("form", [to_parquet, to_gzip, to_folder, with_bom])
def test_all_forms_give_the_same_records(tmp_path: Path, form: Callable[[Path], Path]) -> None:
    wanted, labels = read(write(tmp_path / "plain.csv"))
    path = form(tmp_path)
    found, found_labels = read(path)
    assert np.array_equal(found, wanted)
    assert np.array_equal(found_labels, labels)
    source = open_source(path, SourceOptions(schema=PEOPLE))
    assert len(source) == 4
    some, _ = joined(source.batches(2, start=1, stop=3))
    assert np.array_equal(some, wanted[1:3])


@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_a_number_that_is_missing_does_not_change_how_others_are_read(
    tmp_path: Path, dtype: str
) -> None:
    """Programs store whole numbers as floats then, whose texts differ from 10^10 on."""
    codes: list[int | None] = [7, 10**10, 123_456_789_012, 8]
    names = pa.array(codes, pa.type_for_alias(dtype)).cast(pa.string()).to_pylist()
    code = Column(
        "code", ColumnKind.CATEGORICAL, dtype, categories=(*names[:3], "0"), other="0",
        missing=Missing.CATEGORY,
    )  # fmt: skip
    schema = TableSchema((code,))
    for name, stored, values in (
        ("all", pa.int64(), codes), ("lacking", pa.float64(), [*codes[:3], None])
    ):  # fmt: skip
        table = pa.table({"code": pa.array(values, stored)})
        parquet.write_table(table, tmp_path / f"{name}.parquet")
    places = [
        read(tmp_path / f"{name}.parquet", schema)[0].argmax(axis=1).tolist()
        for name in ("all", "lacking")
    ]
    assert places == [[0, 1, 2, 3], [0, 1, 2, 4]]


def test_separator_and_encoding_are_those_of_the_schema(tmp_path: Path) -> None:
    schema = TableSchema(
        (Column("stadt", ColumnKind.CATEGORICAL, "string", categories=("Köln", "a;b")),),
        csv=CsvFormat(";", "latin-1"),
    )
    (tmp_path / "a.csv").write_bytes('stadt\nKöln\n"a;b"\n'.encode("latin-1"))
    assert read(tmp_path / "a.csv", schema)[0].tolist() == [[255, 0], [0, 255]]
    with pytest.raises(DataError, match=r"a.csv: row 1, column 1 is not in utf-8: say in"):
        read(tmp_path / "a.csv", replace(schema, csv=CsvFormat(";")))
    (tmp_path / "b.csv").write_bytes('staßt\n"a;b"\n'.encode("latin-1"))
    with pytest.raises(DataError, match=r"b.csv: the header is not in utf-8: say in"):
        read(tmp_path / "b.csv", replace(schema, csv=CsvFormat(";")))


@pytest.mark.parametrize("one_sided", ["x\ry\nx\n", "x\r\ny\nx\r\n", "y\r\nx\r"])
def test_of_a_single_column_rows_end_alike(one_sided: str, tmp_path: Path) -> None:
    """Where a value holds a line break without quotes, it would be two rows."""
    schema = TableSchema((Column.categorical("x", ("x", "y", "x\ny")),))
    with pytest.raises(DataError, match=r"a.csv: rows end with unlike line breaks"):
        read(write_bytes(tmp_path / "a.csv", f"x\n{one_sided}"), schema)
    for end in ("\n", "\r\n", "\r"):
        text = end.join(("x", "y", '"x\ny"', "x"))
        for last in ("", end):
            records, _ = read(write_bytes(tmp_path / "a.csv", text + last), schema)
            assert records.argmax(axis=1).tolist() == [1, 2, 0]


@pytest.mark.parametrize("column", ["town", "person"])
def test_earlier_rows_do_not_change_what_line_breaks_in_a_value_are(
    column: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where Arrow reads on after the first sign of a line break in a value, it loses the second."""
    monkeypatch.setattr(csv, "_BLOCK_BYTES", 64)
    schema = TableSchema(
        (Column.categorical("town", ("Ulm", "a\nb", "a\r\nb")),), left_out=("person",)
    )
    if column == "person":
        schema = schema.with_privacy_unit(PrivacyUnit("person", 1))
    for broken, refused in (('"a\nb"', False), ('"a\r\nb"', True)):
        for length in range(1, 40):
            rows = [f"Ulm,{'p' * length}", f"{broken},q" if column == "town" else f"Ulm,{broken}"]
            path = write_bytes(tmp_path / "a.csv", "\n".join(("town,person", *rows, "")))
            if refused:
                with pytest.raises(DataError, match=f"row 2, column '{column}': there is a carr"):
                    embedded_rows(path, schema)
            else:
                assert embedded_rows(path, schema) == 2


def test_of_a_single_column_an_empty_line_is_a_row(tmp_path: Path) -> None:
    """Of others it is no row; there each row has a separator at least."""
    age = Column("x", ColumnKind.INTEGER, "float64", 0, 99, missing=Missing.INDICATOR)
    schema = TableSchema((age,), csv=CsvFormat(missing=("",)))
    for text in ("x\n34\n\n27\n", "x\r\n34\r\n\r\n27", '\ufeffx\n34\n""\n27\n'):
        records, _ = read(write(tmp_path / "a.csv", text), schema)
        assert records[:, -1].tolist() == [0, 255, 0]
    strict = TableSchema((replace(age, missing=Missing.REFUSED),))
    with pytest.raises(DataError, match=r"a.csv: row 2, column 'x': there is no value"):
        read(write(tmp_path / "a.csv", "x\n34\n\n27\n"), strict)
    with pytest.raises(DataError, match=r"a.csv: it begins with an empty line: remove it"):
        read(write(tmp_path / "a.csv", "\nx\n34\n"), schema)
    assert len(read(write(tmp_path / "b.csv", CSV.replace("\n", "\n\n")))[0]) == len(ROWS)


def test_values_beyond_their_bounds_are_clipped_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = CSV.replace(",30,", ",-5,").replace(",41,", ",300,")
    records, _ = read(write(tmp_path / "a.csv", text))
    assert records[:2, 0].tolist() == [0, 255]
    said = capsys.readouterr().err
    assert "age: beyond its bounds in 2 rows" in said
    assert "town: in no category in 1 row," in said
    names = ["a", "b", "c", "d"]
    wide = TableSchema(tuple(Column.integer(name, 0, 5) for name in names))
    read(write(tmp_path / "b.csv", "a,b,c,d\n1,9,9,9\n9,9,9,9\n"), wide)
    said = " ".join(capsys.readouterr().err.split())
    beyond = "a in 1 row, b in 2 rows, c in 2 rows, d in 2 rows"
    assert f"beyond their bounds, counted as the bounds: {beyond}" in said


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("2,41,,mid", "2,41,mid", r"a.csv: row 2 has 5 values, but the header has 6"),
        ("2,41,", "2,4l,", r"a.csv: row 2, column 'age': the value is not a number$"),
        ("2,41,", "2,4.5,", r"a.csv: row 2, column 'age': the value is not a whole number"),
        ("2,41,", "2,,", r"a.csv: row 2, column 'age': there is no value: .* missing = .indic"),
        ("2,41,", "2,nan,", r"a.csv: row 2, column 'age': there is no value"),
        (",1000,", ",inf,", r"a.csv: row 3, column 'pay': the value is infinite"),
        (",mid,", ",middle,", r"a.csv: row 2, column 'grade': the value is none of its categ"),
        ("Ulm,no", "Ulm,", r"a.csv: row 1, column 'ill': there is no value: a record needs a lab"),
        ("id,age", "age,age", r"a.csv: two columns have the same name"),
        ("id,age", "id,years", r"a.csv: there is no column 'age', which the schema describes"),
        ("id,age", "name,age", r"a.csv: the schema lacks column 1: describe it"),
        (",", ";", r"a.csv: the header is one column: .* separated by something else than ','"),
        (CSV, "age\n34\n", r"a.csv: there is no column 'pay', which the schema describes"),
        (CSV, "", r"a.csv: the file is empty"),
        (CSV, HEADER + "\n", r"a.csv: there are no records in it"),
    ],
)
def test_bad_tables_get_one_clear_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in CSV
    path = write(tmp_path / "a.csv", CSV.replace(old, new))
    with pytest.raises(DpntkError, match=message) as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_a_table_needs_a_schema_and_nothing_of_images(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv")
    with pytest.raises(SchemaError, match=r"'dpntk schema .*a.csv' drafts one"):
        open_source(path)
    said = "invert, channels, classes, class_names and labels are for images"
    with pytest.raises(SchemaError, match=said):
        open_source(path, SourceOptions(schema=PEOPLE, classes=2))
    with pytest.raises(DataError, match=r"a.txt: not a kind of table"):
        open_source(write(tmp_path / "a.txt"), SourceOptions(schema=PEOPLE))


def test_damaged_files_are_named(tmp_path: Path) -> None:
    whole = gzip.compress(people(500).encode())
    (tmp_path / "a.csv.gz").write_bytes(whole[:-20])
    with pytest.raises(DataError, match=r"a.csv.gz: not a whole file"):
        read(tmp_path / "a.csv.gz")
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"a.parquet: not a whole Parquet file"):
        read(tmp_path / "a.parquet")


@pytest.mark.parametrize("transform", Transform)
def test_bins_are_triangular_whole_numbers_that_add_up(transform: Transform) -> None:
    column = Column("x", ColumnKind.CONTINUOUS, "float64", 0.0, 500.0, transform=transform)
    encoding = NumericEncoding(column, 7)
    values = np.random.default_rng(0).uniform(-100, 700, 1000)
    encoded = encoding.encode(values, np.zeros(1000, bool)).astype(int)
    share = encoding.share(values.clip(0, 500))
    assert np.abs(encoded[:, 0] / 255 - share).max() <= (0.5 + 0.5 / 6) / 255 + 1e-9
    assert (encoded[:, 1:].sum(axis=1) == 255).all()
    bins = np.clip(1 - np.abs(share[:, None] * 6 - np.arange(7)), 0, 1)
    assert np.abs(encoded[:, 1:] / 255 - bins).max() <= 0.5 / 255 + 1e-9
    assert np.allclose(encoding.at(share), values.clip(0, 500))
    # a row has the same bytes wherever it stands
    shuffled = np.random.default_rng(1).permutation(1000)
    again = encoding.encode(values[shuffled], np.zeros(1000, bool))
    assert np.array_equal(again, encoded[shuffled])


@pytest.mark.parametrize("transform", [Transform.LOG1P, Transform.SIGNED_LOG])
@pytest.mark.parametrize(
    ("lower", "upper"), [(0.0, 99_999.0), (2.5, 7.0), (0.0, 1e-12), (0.0, 2.0**53)]
)
def test_a_number_lies_between_the_same_thresholds_on_every_processor(
    transform: Transform, lower: float, upper: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NumPy's logarithms differ from processor to processor; those of 90 digits do not."""
    column = Column("x", ColumnKind.CONTINUOUS, "float64", lower, upper, transform=transform)
    encoding = NumericEncoding(column, 5)
    with localcontext() as context:
        context.prec = 90
        low, high = ((1 + Decimal(bound)).ln() for bound in (lower, upper))
        exact = [
            float((low + (high - low) * (2 * place + 1) / (2 * encoding.places)).exp() - 1)
            for place in range(encoding.places)
        ]
    nothing = np.zeros(2 * len(exact), dtype=bool)
    beside = np.concatenate([np.array(exact), np.nextafter(exact, -np.inf)])
    places = np.arange(encoding.places)
    wanted = np.concatenate([places + 1, places])
    for function in (np.log1p, np.expm1):
        monkeypatch.setattr(np, function.__name__, lambda x, f=function: f(x) * (1 + 1e-15))
    found = encoding.encode(beside, nothing).astype(int)
    place = (found[:, 1:] @ np.arange(encoding.knots)).astype(int)
    assert np.array_equal(place, wanted)


def test_few_integers_have_a_bin_each() -> None:
    schema = TableSchema((Column("n", ColumnKind.INTEGER, "int8", -2, 3),))
    (block,) = blocks_of(schema)
    assert isinstance(block.encoding, NumericEncoding)
    encoded = block.encoding.encode(np.arange(-2.0, 4.0), np.zeros(6, bool))
    assert np.array_equal(encoded[:, 1:], 255 * np.eye(6))


def test_categories_are_one_hot_and_ranks_beside_them() -> None:
    column = Column(
        "x", ColumnKind.ORDINAL, "string", categories=("a", "b"), missing=Missing.CATEGORY
    )
    encoded = CategoryEncoding(column).encode(np.array([0, 1, MISSING]))
    assert encoded.tolist() == [[0, 255, 0, 0], [255, 0, 255, 0], [0, 0, 0, 255]]


_PEAKS = """
import resource, sys
from pathlib import Path
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.kinds import ColumnKind
from dpntk.common.sources.tables.table import TableSource
from dpntk.common.schema.table import TableSchema

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

schema = TableSchema((Column("x", ColumnKind.CONTINUOUS, "float64", 0.0, 1.0),))
batches = TableSource.open(Path(sys.argv[1]), schema).batches(4096)
first = len(next(batches).labels)
before = peak()
print(first + sum(len(batch.labels) for batch in batches), peak() - before)
"""


def test_a_single_row_group_is_streamed(tmp_path: Path) -> None:
    """Its 3 million numbers would take 24 MB, and many times that once they are encoded."""
    numbers = np.random.default_rng(0).random(3_000_000)
    parquet.write_table(
        pa.table({"x": numbers}), tmp_path / "a.parquet", row_group_size=len(numbers)
    )
    assert parquet.ParquetFile(tmp_path / "a.parquet").num_row_groups == 1
    said = subprocess.run(
        [sys.executable, "-c", _PEAKS, str(tmp_path / "a.parquet")],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    rows, megabytes = map(int, said.split())
    assert rows == len(numbers)
    assert megabytes < 12


@pytest.mark.parametrize("size", [100, 1 << 21])
def test_a_header_in_another_encoding_is_said_to_be_however_long_the_file_is(
    tmp_path: Path, size: int
) -> None:
    """Without its undecodable characters a header would name columns that nobody has."""
    path = tmp_path / "a.csv"
    path.write_bytes("Größe\n".encode("latin-1") + b"1\n" * size)
    with pytest.raises(DataError, match=r'not in utf-8: say in the schema .* encoding = "latin-1"'):
        csv.read_header(path, CsvFormat())
    assert csv.read_header(path, CsvFormat(encoding="latin-1")) == ("Größe",)
