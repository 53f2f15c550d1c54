"""Tables as programs and people write them: drafted, embedded, released, generated, read again."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv as arrow_csv
from pyarrow import parquet

from dpntk.common.features.marginals.map import MarginalFeatures
from dpntk.common.schema.columns.kinds import ColumnKind
from dpntk.common.schema.drafts.toml import read_schema
from dpntk.common.sources import open_source
from dpntk.common.sources.options import SourceOptions
from dpntk.release import open_release
from tests.conftest import Command, refused
from tests.end_to_end.test_tables import confirm

pytestmark = pytest.mark.usefixtures("hasty_rows")


def go_through(dpntk: Command, file: str, *options: str) -> None:
    """From a table to a synthetic one, which its own schema takes."""
    drafted = dpntk("schema", file, *options)
    assert drafted.code == 0, drafted.stderr
    confirm(Path("schema.toml"))
    embedded = dpntk("embed", file, "--schema", "schema.toml", "--width", "5")
    assert embedded.code == 0, embedded.stderr
    assert dpntk("release", "--eps", "100", "--delta", "1e-3").code == 0
    generated = dpntk("generate", "release.h5", "--steps", "2", "-n", "50")
    assert generated.code == 0, generated.stderr
    for name in ("table.csv", "table.parquet"):
        source = open_source(
            Path("synthetic") / name, SourceOptions(schema=read_schema(Path("schema.toml")))
        )
        assert sum(len(batch.records) for batch in source.batches(100)) == 50


@pytest.mark.parametrize(
    ("texts", "dtype", "written"),
    [
        ((" 0", " 1"), "int64", ["0", "1"]),
        (("+1", "-1"), "string", ["+1", "-1"]),
        (("1.0", "0.0"), "float64", ["1.0", "0.0"]),
        (("02", "01"), "string", ["02", "01"]),
        (("0.50", "1.00"), "float64", ["0.50", "1.00"]),
        (("1e3", "2e3"), "float64", ["1e3", "2e3"]),
        (("1", "1.0", "2"), "float64", ["1", "2"]),
        (("7", "-8"), "int64", ["7", "-8"]),
    ],
    ids=str,
)
def test_categories_that_are_numbers_are_written_as_they_were(
    dpntk: Command, tmp_path: Path, texts: tuple[str, ...], dtype: str, written: list[str]
) -> None:
    rows = [f"{i % 7},{texts[i % len(texts)]}\n" for i in range(40)]
    (tmp_path / "a.csv").write_text("x,y\n" + "".join(rows))
    go_through(dpntk, "a.csv", "--label", "y")
    assert read_schema(Path("schema.toml")).columns[1].dtype == dtype
    as_texts = arrow_csv.ConvertOptions(column_types={"y": pa.string()})
    found = arrow_csv.read_csv("synthetic/table.csv", convert_options=as_texts)
    assert set(found.column("y").to_pylist()) <= set(written)
    assert str(parquet.read_schema("synthetic/table.parquet").field("y").type) == (
        {"float64": "double"}.get(dtype, dtype)
    )


def test_numbers_of_a_parquet_file_are_the_categories_that_they_were(
    dpntk: Command, tmp_path: Path
) -> None:
    price = pa.array(["1.50", "2.50"] * 20).cast(pa.decimal128(10, 2))
    columns = {
        "half": pa.array([0.1, 0.2] * 20, pa.float32()),
        "price": price,
        "there": pa.array([1.0, float("nan"), 0.0, 1.0] * 10),
        "years": pa.array(range(40), pa.int16()),
    }
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    go_through(dpntk, "a.parquet")
    found = arrow_csv.read_csv("synthetic/table.csv").to_pydict()
    assert set(found["half"]) <= {0.1, 0.2}
    assert set(found["price"]) <= {1.5, 2.5}
    assert set(found["there"]) <= {0, 1, None}


def test_whole_numbers_of_which_some_are_missing_stay_whole(dpntk: Command, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "x,y\n" + "".join(f"{'' if i % 5 == 0 else i},{('0', '1', '')[i % 3]}\n" for i in range(40))
    )
    go_through(dpntk, "a.csv")
    as_texts = arrow_csv.ConvertOptions(column_types=dict.fromkeys("xy", pa.string()))
    found = arrow_csv.read_csv("synthetic/table.csv", convert_options=as_texts).to_pydict()
    assert "" in found["x"]
    assert all(text.isdigit() for text in found["x"] if text)
    assert set(found["y"]) <= {"0", "1", ""}
    stored = parquet.read_schema("synthetic/table.parquet")
    assert [str(kind) for kind in stored.types] == ["int64", "int64"]


def test_a_column_that_cannot_be_described_does_not_stop_the_draft(
    dpntk: Command, tmp_path: Path
) -> None:
    columns = {
        "id": [2**60 + 2**20 * i for i in range(30)],
        "text": ["a" * 1001, "b" * 1001] * 15,
        "limit": [1.0, float("inf")] * 15,
        "age": list(range(30)),
    }
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    drafted = dpntk("schema", "a.parquet")
    assert drafted.code == 0
    assert read_schema(Path("schema.toml"), accept_from_data=True).left_out == (
        "id", "text", "limit",
    )  # fmt: skip
    assert "column 'id': its bounds have to go up" in drafted.stderr
    assert "they hold infinite numbers" in drafted.stderr
    assert drafted.stderr.count("it is left out") == 2
    assert "nor a few texts" not in drafted.stderr
    (tmp_path / "b.csv").write_text(
        "x,y\n" + "".join(f"{i},{'ab'[i % 2] * 1001}\n" for i in (0, 1))
    )
    refused(
        dpntk("schema", "b.csv", "-o", "b.toml", "--label", "y"), "b.csv: column 'y': a category"
    )


def test_a_column_whose_values_all_lack_in_one_file_is_not_of_another_type(
    dpntk: Command, tmp_path: Path
) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    for name, values in (("a", pa.nulls(20)), ("b", pa.array(range(20))), ("c", pa.nulls(20))):
        table = pa.table({"x": values, "y": pa.array(["u", "v"] * 10)})
        parquet.write_table(table, folder / f"{name}.parquet")
    go_through(dpntk, "parts")


def test_columns_have_names_of_their_own(dpntk: Command, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,x\n1,2\n3,4\n5,6\n")
    parquet.write_table(pa.table([[1, 2, 3]] * 2, names=["x", "x"]), tmp_path / "a.parquet")
    for name in ("a.csv", "a.parquet"):
        refused(
            dpntk("schema", name),
            f"{name}: two columns have the same name: rename one of them ('x')",
        )


ID = """
[[columns]]
name = "id"
kind = "integer"
dtype = "int64"
lower = 0
upper = 99
"""


def test_a_quote_that_stays_open_swallows_no_rows(dpntk: Command, tmp_path: Path) -> None:
    """Not even where the column that it is in is left out."""
    Path("s.toml").write_text(f'left_out = ["y", "notes"]\n{ID}')
    rows = [f"{i},b,note {i}\n" for i in range(60)]
    for name, begins, ends in (
        ("open.csv", '"5 inch pipe', "note"),
        ("again.csv", '"5 inch pipe', '"a note"'),
        ("closed.csv", '"5"" pipe,\nor so"', '"a\nnote"'),
    ):
        rows[50], rows[55] = f"50,b,{begins}\n", f"55,b,{ends}\n"
        (tmp_path / name).write_text("id,y,notes\n" + "".join(rows))
    for name in ("open.csv", "again.csv"):
        message = f"{name}: row 51 opens a quote and does not close it"
        refused(dpntk("embed", name, "--schema", "s.toml"), message)
        refused(dpntk("schema", name), message)
    made = dpntk("embed", "closed.csv", "--schema", "s.toml", "--width", "5")
    assert "embedded 60 rows" in made.stderr


@pytest.mark.parametrize("place", [0, 1])
def test_a_quote_swallows_no_rows_whichever_column_it_is_in(
    dpntk: Command, tmp_path: Path, place: int
) -> None:
    """Further down a value is in quotes, as it should be: it ends what the open one began."""

    def write(opening: str) -> None:
        lines = [["k", "m", str(row % 10)] for row in range(60)]
        lines[0][place] = opening + lines[0][place]
        lines[50][place + 1] = '"q, r"'
        Path("a.csv").write_text("x,y,z\n" + "".join(",".join(line) + "\n" for line in lines))

    write("")
    assert dpntk("schema", "a.csv").code == 0
    confirm(tmp_path / "schema.toml")
    assert dpntk("embed", "a.csv", "--schema", "schema.toml", "--width", "5").code == 0
    write('"')
    message = "a.csv: row 1 opens a quote and does not close it"
    refused(dpntk("embed", "a.csv", "--schema", "schema.toml", "-o", "other.h5"), message)
    refused(dpntk("schema", "a.csv", "-o", "other.toml"), message)


def test_what_is_left_out_may_be_in_another_encoding(dpntk: Command, tmp_path: Path) -> None:
    """It is looked at for ends of lines alone; in small files all is decoded with the header."""
    Path("s.toml").write_text(f'left_out = ["notes", "y"]\n{ID}')
    notes = "caf\u00e9 " * 4000
    rows = "".join(f"{row},{notes},b\n" for row in range(60))
    (tmp_path / "a.csv").write_bytes(f"id,notes,y\n{rows}".encode("latin-1"))
    made = dpntk("embed", "a.csv", "--schema", "s.toml", "--width", "5")
    assert "embedded 60 rows" in made.stderr


def test_a_table_of_categories_alone_is_released_with_every_map(
    dpntk: Command, tmp_path: Path
) -> None:
    """Its Fourier features are marginals, as magnitudes are."""
    (tmp_path / "a.csv").write_text("a,b\n" + "k1,m1\nk2,m2\nk1,m2\n" * 10)
    dpntk("schema", "a.csv")
    confirm(tmp_path / "schema.toml")
    assert dpntk("embed", "a.csv", "--schema", "schema.toml", "--features", "rff").code == 0
    assert dpntk("release", "--eps", "1", "--delta", "1e-3").code == 0
    released = open_release("release.h5").release.feature_map
    assert isinstance(released, MarginalFeatures)
    assert [table.dimension for table in released.tables] == [2, 2]


def test_a_schema_may_begin_with_a_mark_and_its_missing_texts_can_be_written(
    dpntk: Command, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,u\n2,v\n3,u\n")
    dpntk("schema", "a.csv")
    confirm(tmp_path / "schema.toml")
    text = Path("schema.toml").read_text()
    Path("schema.toml").write_text("\ufeff" + text)
    assert dpntk("embed", "a.csv", "--schema", "schema.toml", "--width", "5").code == 0
    changed = text.replace('encoding = "utf-8"', 'encoding = "latin-1"').replace(
        'missing = ["",', 'missing = ["\u2013", "",'
    )
    Path("schema.toml").write_text(changed, encoding="utf-8")
    refused(
        dpntk("embed", "a.csv", "--schema", "schema.toml", "-o", "b.h5"),
        "missing: latin-1 cannot write '\u2013', which stands for missing values",
    )


def test_columns_that_are_chosen_are_drafted_and_all_others_left_out(dpntk: Command) -> None:
    Path("table.csv").write_text(
        'age,"pay, gross",name,ill,city\n'
        + "".join(f"{20 + n},{n}.5,N{n},{'ny'[n % 2]},{'abc'[n % 3]}\n" for n in range(60))
    )
    for chosen in ("age,city", "age, city ", 'age, "pay, gross", city'):
        drafted = dpntk("schema", "table.csv", "--label", "ill", "--columns", chosen, "--overwrite")
        assert "left out" not in drafted.stderr  # nothing that the data decided
        assert "left_out_confirmed" not in Path("schema.toml").read_text()
        schema = read_schema(Path("schema.toml"), accept_from_data=True)
        used = {"age", "ill", "city"} | ({"pay, gross"} if '"' in chosen else set())
        assert {column.name for column in schema.columns} == used
        assert set(schema.left_out) == {"age", "pay, gross", "name", "ill", "city"} - used
        confirm(Path("schema.toml"))
        embedded = dpntk("embed", "table.csv", "--schema", "schema.toml", "--overwrite")
        assert embedded.code == 0, embedded.stderr
    refused(
        dpntk("schema", "table.csv", "--columns", "age,no", "--overwrite"),
        "--columns no: table.csv has no such column ('age, pay, gross, name, ill, city')",
    )
    for wrong in ("age\ncity", 'age,"city', "age,,city", ""):
        refused(
            dpntk("schema", "table.csv", "--columns", wrong, "--overwrite"),
            "Invalid value for '--columns': ",
        )


@pytest.mark.parametrize("header", [",age,ill,", "age,,ill,"])
def test_columns_without_a_name_are_left_out(dpntk: Command, header: str) -> None:
    rows = [f"{n},{n % 2},{n % 2},9" if header[0] == "a" else f"9,{n},{n % 2},9" for n in range(60)]
    Path("table.csv").write_text("\n".join([header, *rows]) + "\n")
    drafted = dpntk("schema", "table.csv", "--label", "ill", "--columns", "age")
    assert drafted.code == 0, drafted.stderr
    again = dpntk("schema", "table.csv", "--label", "ill", "-o", "all.toml")
    assert "left out: what has no name (R writes its row names so, and pandas its" in again.stderr
    assert Path("all.toml").read_text() == Path("schema.toml").read_text()
    assert read_schema(Path("schema.toml"), accept_from_data=True).left_out == ("",)
    confirm(Path("schema.toml"))
    embedded = dpntk("embed", "table.csv", "--schema", "schema.toml")
    assert "embedded 60 rows" in embedded.stderr
    assert dpntk("release", "--eps", "1", "--delta", "1e-3").code == 0
    assert dpntk("inspect", "release.h5").code == 0

    text = Path("schema.toml").read_text()
    Path("schema.toml").write_text(text.replace('left_out = [""]', "left_out = []"))
    refused(
        dpntk("embed", "table.csv", "--schema", "schema.toml", "-o", "other.h5"),
        f'column {header.split(",").index("") + 1} has no name: write "" into left_out',
    )


def test_numbers_with_decimal_commas_are_numbers_and_come_back_so(dpntk: Command) -> None:
    heights = [f"{150 + n / 4:.2f}".replace(".", ",") for n in range(120)]
    rows = [f"{h};{-n};{n % 3},5;{n % 2}" for n, h in enumerate(heights)]
    Path("table.csv").write_text("\n".join(["height;n;dose;ill", *rows]) + "\n")
    drafted = dpntk("schema", "table.csv", "--separator", ";")
    note = "a decimal comma (if they are, say --decimal ,): height, dose\n"
    assert drafted.stderr.count("left out") == 1
    assert note in drafted.stderr
    assert "150,25" not in Path("schema.toml").read_text()  # as a category
    options = ("--separator", ";", "--decimal", ",", "--overwrite")
    go_through(dpntk, "table.csv", *options)
    height, n, dose = read_schema(Path("schema.toml")).columns[:3]
    assert (height.lower, height.upper, height.step) == (150.0, 179.75, 0.25)
    assert (n.kind, dose.kind) == (ColumnKind.INTEGER, ColumnKind.CONTINUOUS)
    lines = Path("synthetic/table.csv").read_text().splitlines()
    assert lines[0] == "height;n;dose;ill"
    assert all(
        re.fullmatch(r"1[5-7][0-9],[0-9]{2};-?[0-9]+;[0-2],[0-9];[01]", x) for x in lines[1:]
    )
    Path("pointed.csv").write_text("height;n;dose;ill\n1.500;1;1,5;0\n")
    refused(
        dpntk("embed", "pointed.csv", "--schema", "schema.toml", "-o", "other.h5"),
        "row 1, column 'height': the value is not a number ('1.500')",
    )


def test_categories_may_have_decimal_commas(dpntk: Command) -> None:
    Path("table.csv").write_text(
        "dose,n\n" + "".join(f'"0,5",{n}\n"-1,0",{n}\n' for n in range(30))
    )
    go_through(dpntk, "table.csv", "--decimal", ",")
    assert read_schema(Path("schema.toml")).columns[0].categories == ("-1.0", "0.5")
    made = dpntk("generate", "release.h5", "--steps", 2, "--safe-csv", "-o", "safe")
    assert made.code == 0, made.stderr
    for folder in ("synthetic", "safe"):
        lines = Path(folder, "table.csv").read_text().splitlines()[1:]
        assert {line.rpartition(",")[0] for line in lines} == {'"0,5"', '"-1,0"'}
