"""Columns that follow from another one: read by nobody, and never in contradiction to it."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pyarrow import parquet

from dpntk.common.errors import SchemaError
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.kinds import Missing
from dpntk.common.schema.columns.lookup import LookupColumn
from dpntk.common.schema.drafts.draft import Draft
from dpntk.common.schema.origin import Origin
from dpntk.common.schema.table import TableSchema
from dpntk.common.sources.options import SourceOptions
from dpntk.common.sources.tables.table import TableSource
from dpntk.embed import embed
from dpntk.generate.tables.export import write_rows
from dpntk.generate.tables.rows.values import records_of
from dpntk.generate.tables.sampling import to_table
from tests.conftest import Command

MAKE = LookupColumn("make", "model", {"Golf": "VW", "Polo": "VW", "Clio": "Renault"}, place=1)
SEATS = LookupColumn("seats", "model", {"Golf": "5", "Polo": "4", "Clio": "5"}, "int64", place=3)
LITRES = LookupColumn("l", "model", {"Golf": "6.50", "Polo": "5", "Clio": "5"}, "float64", place=4)
SCHEMA = TableSchema(
    (
        Column.integer("age", 0, 99),
        Column.categorical("model", ["Golf", "Polo", "Clio"], missing=True),
        Column.boolean("claim", ["no", "yes"]),
    ),
    "claim",
    made=(MAKE, SEATS, LITRES),
)
CODES = np.array([0, 1, 2, -1] * 5)


def records() -> NDArray[np.float32]:
    return records_of(SCHEMA, {"age": np.arange(20.0), "model": CODES})


def test_they_stand_among_the_columns() -> None:
    document = SCHEMA.to_json()
    names = [column["name"] for column in document["columns"]]
    assert names == ["age", "make", "model", "seats", "l", "claim"]
    assert document["columns"][1] == {
        "name": "make",
        "kind": "lookup",
        "of": "model",
        "values": {"Golf": "VW", "Polo": "VW", "Clio": "Renault"},
    }
    assert TableSchema.from_json(document) == SCHEMA
    assert Draft.from_toml(Draft(SCHEMA).to_toml(), "it").schema == SCHEMA
    assert SCHEMA.known[1] == (
        "values of make for each model, seats for each model, l for each model"
    )
    assert len(replace(SCHEMA, made=()).known) == 1
    assert SCHEMA.record_size == replace(SCHEMA, made=()).record_size
    assert copy.deepcopy(SCHEMA) == SCHEMA  # as scikit-learn's clone does
    assert hash(SCHEMA) == hash(copy.deepcopy(SCHEMA))


def test_a_generated_table_looks_them_up(tmp_path: Path) -> None:
    write_rows(tmp_path, to_table(SCHEMA, records(), np.zeros(20, dtype=np.int64)), SCHEMA)
    lines = (tmp_path / "table.csv").read_text().splitlines()
    assert lines[0] == "age,make,model,seats,l,claim"
    assert lines[1:5] == [
        "0,VW,Golf,5,6.50,no",
        "1,VW,Polo,4,5,no",
        "2,Renault,Clio,5,5,no",
        "3,,,,,no",
    ]
    stored = parquet.read_table(tmp_path / "table.parquet")
    assert stored.column("make").to_pylist() == ["VW", "VW", "Renault", None] * 5
    assert stored.column("seats").to_pylist() == [5, 4, 5, None] * 5
    assert stored.column("l").to_pylist() == [6.5, 5.0, 5.0, None] * 5


def test_nothing_of_them_is_read(tmp_path: Path) -> None:
    """Whether they are there, and what is in them, makes no difference."""
    rows = [(number, "Golf" if number % 2 else "Clio", "no") for number in range(20)]
    with_them = "".join(f"{a},odd {a},{b},x,y,{c}\n" for a, b, c in rows)
    (tmp_path / "a.csv").write_text("age,make,model,seats,l,claim\n" + with_them)
    without = "".join(f"{a},{b},{c}\n" for a, b, c in rows)
    (tmp_path / "b.csv").write_text("age,model,claim\n" + without)
    one, other = (
        next(TableSource.open(tmp_path / name, SCHEMA).batches(30)).records
        for name in ("a.csv", "b.csv")
    )
    assert np.array_equal(one, other)
    plain = replace(SCHEMA, made=())
    both = (
        embed(tmp_path / "b.csv", source=SourceOptions(schema=schema)) for schema in (SCHEMA, plain)
    )
    assert len({embedding.sums.tobytes() for embedding in both}) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"of": "age"}, "'age' is integer, and has no categories"),
        ({"of": "seats"}, "the schema describes no column 'seats'"),
        ({"of": "make"}, "the schema describes no column 'make'"),
        ({"of": 3}, "name, of and dtype are texts"),
        ({"values": {"Golf": "VW", "Polo": "VW"}}, "values lack categories of 'model'"),
        (
            {"values": {"Golf": "VW", "Polo": "VW", "Clio": "Renault", "Fox": "VW"}},
            "values of no category of 'model'",
        ),
        ({"values": {"Golf": "VW", "Polo": "VW", "Clio": 4}}, "maps each category of 'model'"),
        ({"values": ["VW", "VW", "Renault"]}, "values maps each category of another column"),
        ({"values": {"Golf": "x" * 2000, "Polo": "", "Clio": ""}}, "a value has a name of 1 to"),
        ({"dtype": "int64"}, "dtype int64 does not hold all of its values"),
        ({"dtype": "bool"}, "known are string and numbers"),
        ({"dtype": None}, "name, of and dtype are texts"),
        (
            {"dtype": "float64", "values": {"Golf": "1", "Polo": "1.0", "Clio": "2"}},
            "two of its values are the same number",
        ),
        ({"origin": "private"}, 'origin is "declared" or "from-data"'),
        ({"origin": "me"}, 'origin is "declared" or "from-data"'),
        ({"pattern": "P"}, "unknown"),
        ({"name": "age"}, "column 'age' is there twice"),
    ],
)
def test_what_is_no_lookup_is_refused(change: dict[str, Any], message: str) -> None:
    document = SCHEMA.to_json()
    document["columns"][1] = {**document["columns"][1], **change}
    with pytest.raises(SchemaError, match=message):
        TableSchema.from_json(document)


def test_neither_the_label_nor_the_unit_of_another_column_is_looked_up() -> None:
    with pytest.raises(SchemaError, match="label 'make': there is no column of that name"):
        replace(SCHEMA, label="make")


def test_its_texts_have_to_fit_the_encoding() -> None:
    csv = replace(SCHEMA.csv, encoding="latin-1")
    values = {**MAKE.values, "Clio": "\N{CYRILLIC CAPITAL LETTER YA}"}
    with pytest.raises(SchemaError, match="'make': latin-1 cannot write"):
        replace(SCHEMA, csv=csv, made=(replace(MAKE, values=values),))


def test_a_drafted_one_has_to_be_confirmed() -> None:
    draft = Draft(SCHEMA, unconfirmed=("make",))
    text = draft.to_toml()
    assert text.count("confirmed = false") == 1
    assert Draft.from_toml(text, "it") == draft
    with pytest.raises(SchemaError, match="not confirmed: make"):
        draft.settled()
    taken = draft.settled(accept_from_data=True)
    assert taken.lookups["make"].origin is Origin.FROM_DATA
    assert taken.lookups["seats"].origin is Origin.DECLARED
    assert taken.from_data == ("values of make for each model",)
    assert TableSchema.from_json(taken.to_json()) == taken
    assert draft.confirm("make").settled() == SCHEMA


def test_a_drafted_one_can_become_a_column_that_is_read_and_the_reverse() -> None:
    draft = Draft(SCHEMA, unconfirmed=("make", "seats"))
    make = Column.categorical("make", ["VW", "Renault"])
    read = draft.confirm(make, "seats").settled()
    assert [column.name for column in read.described] == [
        "age", "make", "model", "seats", "l", "claim",
    ]  # fmt: skip
    assert read.by_name["make"] == make
    assert list(read.lookups) == ["seats", "l"]
    back = Draft(read).confirm(replace(MAKE, place=0, origin=Origin.FROM_DATA)).settled()
    assert back == SCHEMA


def test_from_the_data_to_rows_that_agree(dpntk: Command, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    codes = random.choice(3, 400, p=[0.5, 0.3, 0.2])
    lines = ["age,make,model,seats,l,claim"]
    for number, code in enumerate(codes):
        model = ("Golf", "Polo", "Clio")[code]
        looked_up = f"{MAKE.values[model]},{model},{SEATS.values[model]},{LITRES.values[model]}"
        lines.append(f"{number % 80},{looked_up},{('no', 'yes')[number % 3 == 0]}")
    Path("a.csv").write_text("\n".join(lines) + "\n")
    rules = replace(SCHEMA, constraints=("age >= 18 only if make = Renault",))
    Path("schema.toml").write_text(Draft(rules).to_toml())
    assert dpntk("embed", "a.csv", "--schema", "schema.toml").code == 0
    assert dpntk("release", "--eps", 3).code == 0
    said = " ".join(dpntk("inspect", "release.h5").stdout.replace("\u2502", " ").split())
    assert "and the values of make for each model" not in said
    assert "values of make for each model, seats for each model" in said
    assert dpntk("generate", "release.h5", "-n", 300).code == 0
    table = parquet.read_table("synthetic/table.parquet").to_pylist()
    for row in table:
        expected = row["model"] and MAKE.values[row["model"]]
        assert row["make"] == expected
        assert expected == "Renault" or expected is None or row["age"] < 18
    where = "make != Renault and seats <= 4"
    outcome = dpntk("generate", "--from", "synthetic", "--where", where, "-n", 20, "-o", "some")
    assert outcome.code == 0, outcome.stderr
    some = parquet.read_table("some/table.parquet").to_pylist()
    assert {row["model"] for row in some} == {"Polo"}


def test_missing_values_are_not_invented() -> None:
    sure = replace(SCHEMA.by_name["model"], missing=Missing.REFUSED)
    columns = tuple(sure if each.name == "model" else each for each in SCHEMA.columns)
    schema = replace(SCHEMA, columns=columns)
    made = schema.lookups["make"].looked_up(sure, np.array([2, 0, 1]))
    assert [schema.lookups["make"].categories[code] for code in made] == ["Renault", "VW", "VW"]
