"""A table without a header, whose first record has become the names of columns."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from dpntk.common.errors import SchemaError
from dpntk.embed import Draft, draft_schema
from dpntk.release import open_release
from tests.conftest import Command, refused

# No other row has any of these values.
NAME, AGE, ILLNESS, STREET = "Ada Smithson", "93", "HIV positive", "5 Mill Lane"
RECORD = (NAME, AGE, ILLNESS, STREET)
ROWS = "".join(f"Name{i} X,{20 + i % 50},{('pos', 'neg')[i % 2]},Street {i}\n" for i in range(300))
TABLE = f"{','.join(RECORD)}\n{ROWS}"


def of_column(name: str, values: list[str]) -> Draft:
    """A draft of a CSV file with a column of this name, beside one of numbers."""
    rows = "".join(f"{number},{value}\n" for number, value in enumerate(values))
    return draft_schema(pd.read_csv(io.StringIO(f"n,{name}\n{rows}"), keep_default_na=False))


def test_a_record_in_the_place_of_the_header_is_not_taken_for_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.csv").write_text(TABLE)
    frame = pd.read_csv(tmp_path / "t.csv")
    frame.to_parquet(tmp_path / "t.parquet")
    for data in (tmp_path / "t.csv", tmp_path / "t.parquet", frame, pa.Table.from_pandas(frame)):
        draft = draft_schema(data)
        assert not draft.names_confirmed
        assert draft.schema.from_data[0] == "names of the columns"
        everything = draft.confirm(*draft.unconfirmed, *draft.stated.left_out)
        with pytest.raises(SchemaError, match=r"draft\.confirm\(names=True\)") as caught:
            everything.settled()
        said = capsys.readouterr().err
        assert "column 2: the name could be a value there: is there no header?" in said
        remedy = "add a header" if isinstance(data, Path) else "give the columns names"
        assert f"{remedy} and draft again" in said
        assert "left out, because" in said
        for value in RECORD:
            # The folder may well have a number in its name.
            assert value not in said.replace(str(tmp_path), "") + str(caught.value)
        assert everything.confirm(names=True).settled().from_data == ()
    draft = draft_schema(frame, columns=[AGE, ILLNESS])  # by which others are left out, unread
    assert not draft.names_confirmed
    assert "column 2: the name" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("41", ["20", "31"] * 20),
        ("4.5", ["2.25", "3"] * 20),
        ("inf", ["2.25", "3"] * 20),
        ("nan", ["2.25", "3"] * 20),
        ("male", ["male", "female"] * 20),
        ("name 30", [f"name {number}" for number in range(40)]),  # which is left out
        ("name 777", [f"name {number}" for number in range(1_500)]),
        ("2001-02-03", [f"2001-02-{number + 1:02}" for number in range(28)]),
        ("03.02.2001", ["04.02.2001", "31.12.2011"] * 20),
        ("12:30", ["10:00", "100:10"] * 20),
        ("true", ["false", "false"] * 20),
        ("True", ["False", "False"] * 20),
        ("NA", ["1", "NA", "7", "5"] * 10),
        ('"3,5"', ['"1,5"', '"2,5"'] * 20),
    ],
)
def test_a_name_that_could_be_a_value_has_to_be_confirmed(
    tmp_path: Path, name: str, values: list[str]
) -> None:
    assert of_column(name, values).names_confirmed == (name == '"3,5"')  # texts of some kind
    (tmp_path / "t.csv").write_text(
        f"n,{name}\n" + "".join(f"{number},{value}\n" for number, value in enumerate(values))
    )
    by_file = draft_schema(tmp_path / "t.csv")
    assert by_file.names_confirmed == (name in ("True", "true"))  # texts that no row has


def test_types_of_a_frame_say_what_could_be_a_value() -> None:
    days = pd.to_datetime(["2001-02-03", "2002-02-03"])
    for name, column in (
        ("2001-01-05", days),
        ("2001-01-05 00:00:00", days),
        ("3 days", pd.to_timedelta([1, 2], unit="D")),
        ("False", [True, False]),
    ):
        assert not draft_schema(pd.DataFrame({name: column})).names_confirmed, name


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("age", ["20", "31"] * 20),
        ("2001-02-03", ["20", "31"] * 20),
        ("41", ["yes", "no"] * 20),  # as texts, none of which is 41
        ("born", ["2001-02-03", "2001-02-04"] * 20),
        ("None", ["male", "female"] * 20),
    ],
)
def test_names_that_are_names_need_no_word(name: str, values: list[str]) -> None:
    draft = of_column(name, values)
    assert draft.names_confirmed
    assert "names" not in draft.to_toml().split("[csv]")[0]


def test_what_is_accepted_is_said_in_the_release(dpntk: Command, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TABLE)
    drafted = dpntk("schema", "t.csv", "--quiet-values")
    assert drafted.code == 0
    assert "column 2: the name could be a value there" in drafted.stderr
    for value in RECORD:
        assert value not in drafted.stdout + drafted.stderr
    text = Path("schema.toml").read_text()
    assert "names_confirmed = false  # the first line looks like a record: is there no h" in text
    known = text.replace("\nconfirmed = false", "").replace("left_out_confirmed = false", "")
    Path("schema.toml").write_text(known)
    embed = ("embed", "t.csv", "--schema", "schema.toml", "--width", "2")
    outcome = dpntk(*embed)
    refused(outcome, "schema.toml: not confirmed", "give the data a header and draft again")
    for value in RECORD:
        assert value not in outcome.stderr
    assert dpntk(*embed, "--accept-from-data").code == 0
    assert dpntk("release", "--eps", "1", "--delta", "1e-4").code == 0
    release = open_release("release.h5").release
    assert "Looked up in the records: names of the columns." in release.statement
    Path("schema.toml").write_text(known.replace("names_confirmed = false", ""))
    assert dpntk(*embed, "--overwrite").code == 0


def test_columns_of_several_files_are_told_by_their_places(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for part, first in (("a", 1), ("b", 3)):
        rows = {"id": [f"{part}{number}" for number in range(30)], "7": range(first, first + 30)}
        parquet.write_table(pa.table(rows), tmp_path / f"{part}.parquet")
    assert not draft_schema(tmp_path).names_confirmed
    assert "column 2: the name could be" in capsys.readouterr().err
