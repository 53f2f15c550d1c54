"""Data in memory: data frames, Arrow tables and arrays give what their files give, to the bit."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from dpntk.common.errors import DataError, DpntkError, OutputError, SchemaError
from dpntk.common.sources import open_source
from dpntk.embed import (
    Column,
    SourceOptions,
    TableSchema,
    TangentOptions,
    draft_schema,
    embed,
    read_schema,
    save_schema,
)
from dpntk.embed.run.plan import RunPlan
from dpntk.evaluate import TableOptions, evaluate
from tests.helpers.data_sets import IMAGES, LABELS, joined
from tests.helpers.tables import PEOPLE, not_in_utf8, people

OPTIONS = SourceOptions(schema=PEOPLE)
NARROW = TangentOptions(width="5")


class Stream:
    """What speaks Arrow's protocol and nothing else, and can be read once, as queries can."""

    def __init__(self, table: pa.Table) -> None:
        self.reader: Any = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        reader, self.reader = self.reader, None
        if reader is None:
            raise ValueError("read before")
        return reader.__arrow_c_stream__(requested_schema)


def frame(text: str) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(text))


def as_polars_has_it(table: pa.Table) -> Stream:
    """Texts as views, some in dictionaries of views, in several chunks."""
    view = pa.string_view()
    columns = {
        name: column.cast(view) if pa.types.is_large_string(column.type) else column
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    towns = table["town"].combine_chunks().cast(pa.string()).dictionary_encode()
    columns["town"] = pa.DictionaryArray.from_arrays(
        towns.indices.cast(pa.uint32()), towns.dictionary.cast(view)
    )
    whole = pa.table(columns)
    return Stream(pa.concat_tables([whole.slice(0, 7), whole.slice(7)]))


def shuffled_columns(rows: pd.DataFrame) -> pd.DataFrame:
    """Other types and order for the same values, and an index that says nothing of them."""
    rows = rows.astype({"age": "Int16", "grade": "category", "ill": object})
    rows["town"] = rows["town"].astype(object)
    return rows[["ill", "pay", "town", "id", "grade", "age"]].set_index(rows["age"] + 100)


FORMS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda rows: rows,
    "pandas with other types": shuffled_columns,
    "Arrow": lambda rows: pa.Table.from_pandas(rows, preserve_index=False),
    "a record batch": lambda rows: pa.RecordBatch.from_pandas(rows, preserve_index=False),
    "a stream": lambda rows: Stream(pa.Table.from_pandas(rows, preserve_index=False)),
    "as Polars has it": lambda rows: as_polars_has_it(pa.Table.from_pandas(rows)),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_table_gives_the_same_bits_from_memory_and_from_its_files(
    form: str, tmp_path: Path
) -> None:
    text = people(300)
    (tmp_path / "a.csv").write_text(text)
    rows = frame(text)
    rows.to_parquet(tmp_path / "a.parquet")
    from_csv = embed(tmp_path / "a.csv", NARROW, OPTIONS)
    from_parquet = embed(tmp_path / "a.parquet", NARROW, OPTIONS)
    held = embed(FORMS[form](rows), NARROW, OPTIONS)
    for other in (from_csv, from_parquet):
        assert np.array_equal(held.sums, other.sums)
        assert np.array_equal(held.counts, other.counts)
        assert held.plan_digest == other.plan_digest
    assert held.records == 300


@pytest.mark.parametrize("pixels", [IMAGES, IMAGES[:, None], (IMAGES / 255).astype(np.float32)])
def test_arrays_give_the_same_bits_from_memory_and_from_their_file(
    pixels: Any,  # noqa: ANN401
    tmp_path: Path,
) -> None:
    np.savez(tmp_path / "a.npz", x=pixels, y=LABELS)
    declared = SourceOptions(classes=3, image_size=9)
    from_file = embed(tmp_path / "a.npz", NARROW, declared)
    for labels in (LABELS, LABELS.tolist(), pd.Series(LABELS, index=LABELS + 5)):
        held = embed((pixels, labels), NARROW, declared)
        assert np.array_equal(held.sums, from_file.sums)
        assert held.plan_digest == from_file.plan_digest


@pytest.mark.parametrize("short", [np.float16, np.float32])
def test_floats_are_the_same_pixels_in_every_type(short: type[np.floating[Any]]) -> None:
    """Beside values half-way between two pixels, products of short floats are rounded elsewhere."""
    halves = ((np.arange(64) + 0.5) / 255).astype(short)
    around = [np.nextafter(halves, short(0)), halves, np.nextafter(halves, short(1))]
    images = np.concatenate(around).reshape(3, 8, 8)
    pixels = [
        joined(open_source((x, [0, 0, 0]), SourceOptions(classes=1)).batches(9))[0]
        for x in (images, images.astype(np.float64))
    ]
    assert np.array_equal(pixels[0], pixels[1])


@pytest.mark.parametrize("kind", ["held", "npz", "packed npz", "lists"])
def test_an_image_with_fractions_does_not_make_white_of_what_is_next_to_black(
    kind: str, tmp_path: Path
) -> None:
    """It makes floats of all images, in which 1 is white: bytes of 0 and 1 alone are refused."""

    def read(images: Any, options: SourceOptions) -> list[int]:  # noqa: ANN401
        data: Any = images, [0] * len(images)
        if kind.endswith("npz"):
            data = tmp_path / "a.npz"
            (np.savez if kind == "npz" else np.savez_compressed)(data, x=images)
        if kind == "lists":
            data = tmp_path / "a.parquet"
            parquet.write_table(pa.table({"x": list(images.reshape(len(images), -1))}), data)
        (batch,) = open_source(data, options).batches(9)
        return [int(record.max()) for record in batch.records]

    binary = np.zeros((3, 8, 8), np.uint8)
    binary[0, 0, 0], binary[2, 4, 4] = 2, 1
    with_fractions = binary.astype(np.float64)
    with_fractions[0, 0, 0] = 0.5
    one = SourceOptions(classes=1)
    assert read(with_fractions, one) == [128, 0, 255]
    with pytest.raises(DataError, match=r"record 2 has no value above 1, .* 0,1 or 0,255"):
        read(binary, one)
    assert read(binary[:2], one) == [2, 0]
    assert read(binary, replace(one, only_compared=True)) == [2, 0, 1]
    for white, brightest in ((255, 1), (1, 255)):
        declared = SourceOptions(classes=1, value_range=(0, white))
        for images in (binary, with_fractions):
            assert read(images, declared)[1:] == [0, brightest]


def test_any_range_of_records_can_be_read() -> None:
    """Passes are interrupted and divided."""
    tables = open_source(frame(people(50)), OPTIONS)
    images = open_source((IMAGES, LABELS))
    for source in (tables, images):
        (whole,) = source.batches(len(source))
        parts = [*source.batches(4, 0, 9), *source.batches(100, 9, 11), *source.batches(3, 11)]
        records, labels = joined(parts)
        assert np.array_equal(records, whole.records)
        assert np.array_equal(labels, whole.labels)


def test_an_interrupted_pass_goes_on_with_the_same_records_only() -> None:
    """Data in memory have no name and no time: their records tell them from others."""
    rows = frame(people(40))
    same = open_source(pa.Table.from_pandas(rows), OPTIONS).fingerprint()
    assert open_source(shuffled_columns(rows), OPTIONS).fingerprint() == same
    rows.loc[39, "age"] += 30
    assert open_source(rows, OPTIONS).fingerprint() != same
    images = open_source((IMAGES, LABELS)).fingerprint()
    assert open_source((IMAGES.copy(), LABELS.tolist())).fingerprint() == images
    other = IMAGES.copy()
    other[-1, 0, 0] ^= 1
    assert open_source((other, LABELS)).fingerprint() != images
    assert open_source((IMAGES, LABELS[::-1])).fingerprint() != images
    plans: list[RunPlan] = []

    def note(job: Any) -> Any:  # noqa: ANN401
        plans.append(RunPlan.of(job))

    for data in (rows, rows.copy(), rows.iloc[::-1]):
        embed(data, NARROW, OPTIONS, carry_out=note)
    assert plans[0].digest == plans[1].digest != plans[2].digest


def test_a_frame_shows_no_values_by_itself() -> None:
    said = repr(open_source(frame(people(40)), OPTIONS))
    assert "Bonn" not in said
    assert len(said) < 200


def bad(**values: object) -> pd.DataFrame:
    rows = frame(people(5))
    for name, value in values.items():
        rows[name] = value
    return rows


def read_before() -> Stream:
    stream = Stream(pa.Table.from_pandas(bad()))
    pa.table(stream)
    return stream


def categories_not_in_utf8(text: bytes) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array([0]), not_in_utf8(text), safe=False)


def beyond_its_categories() -> pa.DictionaryArray:
    """It would have Arrow read what lies behind the texts in memory."""
    return pa.DictionaryArray.from_arrays(pa.array([0, 10**6]), pa.array(["a"]), safe=False)


@pytest.mark.parametrize("as_held", [lambda table: table, pa.Table.to_pandas])
def test_several_columns_may_have_no_name(as_held: Callable[[pa.Table], Any]) -> None:
    table = pa.table([[1, 2, 3], ["a", "b", "c"], [True, False, True]], names=["x", "", ""])
    drafted = draft_schema(as_held(table)).stated
    assert [column.name for column in drafted.columns] == ["x"]
    assert drafted.left_out == ("",)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "no schema": (lambda: embed(frame(people(3))), "DataFrame: a table needs a schema"),
    "a column too many": (lambda: embed(bad(x=1), source=OPTIONS), "the schema lacks column 7:"),
    "a column too few": (
        lambda: embed(bad().drop(columns="pay"), source=OPTIONS), "there is no column 'pay'",
    ),
    "two of a name": (
        lambda: embed(pd.concat([bad(), bad()], axis=1), source=OPTIONS), "have the same name",
    ),
    "values of several kinds": (
        lambda: embed(bad(age=[1, "secret", 3, 4, 5]), source=OPTIONS),
        "DataFrame: column 'age' holds values of several kinds",
    ),
    "a name that is no text": (
        lambda: draft_schema(pd.DataFrame([[1]], columns=pd.Index(["\ud800"], dtype=object))),
        "DataFrame: the name of column 1 is no text",
    ),
    "a text that is none": (
        lambda: draft_schema(pa.table({"x": [1], "y": not_in_utf8(b"secret")})),
        "Table: column 'y' is damaged, or holds texts that are not in UTF-8",
    ),
    "a category that is no text": (
        lambda: draft_schema(pa.table({"y": categories_not_in_utf8(b"secret")})),
        "Table: column 'y' is damaged, or holds texts that are not in UTF-8",
    ),
    "a category that there is not": (
        lambda: draft_schema(pa.table({"y": beyond_its_categories()})),
        "Table: column 'y' is damaged, or holds texts that are not in UTF-8",
    ),
    "a value that is missing": (
        lambda: embed(bad(age=[1, 2, None, 4, 5]), source=OPTIONS),
        "DataFrame: row 3, column 'age': there is no value",
    ),
    "no category": (
        lambda: embed(bad(grade="secret"), source=OPTIONS),
        "DataFrame: row 1, column 'grade': the value is none of its categories",
    ),
    "a single column": (
        lambda: embed(pa.chunked_array([[1, 2]]), source=OPTIONS), "ChunkedArray: not a table",
    ),
    "what was read before": (lambda: embed(read_before(), source=OPTIONS), "Stream: not a table"),
    "no rows": (lambda: embed(bad().head(0), source=OPTIONS), "there are no records in it"),
    "an image with a mask": (
        lambda: embed((np.ma.masked_equal(IMAGES, IMAGES[0, 0, 0]), LABELS)),
        "some of its values are masked",
    ),
    "a label with a mask": (
        lambda: embed((IMAGES, np.ma.masked_equal(LABELS, 1))), "some of its values are masked",
    ),
    "a list of images with masks": (
        lambda: embed(([np.ma.masked_equal(image, image[0, 0]) for image in IMAGES], LABELS)),
        "some of its values are masked",
    ),
    "a part": (
        lambda: embed(bad(), source=SourceOptions(PEOPLE, split="test")), "have no parts",
    ),
    "a schema of images": (lambda: embed((IMAGES, LABELS), source=OPTIONS), "is of a table"),
    "images alone": (lambda: embed((IMAGES,)), "a pair of arrays (images, labels)"),  # type: ignore[arg-type]
    "a list": (lambda: embed([IMAGES, LABELS]), "not of type list"),  # type: ignore[arg-type]
    "too few labels": (lambda: embed((IMAGES, LABELS[:3])), "holds 20 images but labels holds 3"),
    "large numbers": (lambda: embed((IMAGES.astype(np.int64), LABELS)), "images is int64"),
    "labels of any kind": (
        lambda: embed((IMAGES, np.array(["a", None] * 10))), "labels is object: store labels as",
    ),
    "a negative label": (
        lambda: embed((IMAGES, LABELS - 1), source=SourceOptions(classes=3)), "labels: record ",
    ),
    "images of several sizes": (lambda: embed(([IMAGES[0], IMAGES[0][:3]], [0, 1])), "images: not"),
    "a single number": (lambda: embed((3, 4)), "images is a single value"),
    "too bright": (lambda: embed((IMAGES / 100, LABELS)), "has a value outside [0, 1]"),
    "no number": (
        lambda: embed((np.where(IMAGES[3, 0, 0] == IMAGES, np.nan, IMAGES), LABELS)),
        "has a value that is no number (NaN): replace it",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", REFUSED)
def test_a_mistake_gets_one_line_without_what_the_records_hold(mistake: str) -> None:
    call, words = REFUSED[mistake]
    with pytest.raises(DpntkError) as caught:
        call()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None or "secret" not in str(caught.value.__cause__)


def test_a_message_counts_rows_through_all_pieces() -> None:
    rows = pa.Table.from_pandas(bad(), preserve_index=False)
    wrong = pa.Table.from_pandas(bad(grade=["low", "low", "x", "low", "low"]), preserve_index=False)
    whole = pa.concat_tables([rows, rows, wrong])
    with pytest.raises(DataError, match="Table: row 13, column 'grade'"):
        embed(whole, NARROW, OPTIONS)


def test_what_no_table_has_may_be_in_a_column_that_is_left_out() -> None:
    made = embed(bad(id=[{1}, "a", 3, None, 5]), NARROW, OPTIONS)
    assert made.records == 5


def test_a_draft_of_a_frame_is_that_of_its_file(tmp_path: Path) -> None:
    rows = frame(people(80))
    rows.to_parquet(tmp_path / "a.parquet")
    of_file = draft_schema(tmp_path / "a.parquet", "ill")
    assert draft_schema(rows, "ill") == of_file
    assert draft_schema(as_polars_has_it(pa.Table.from_pandas(rows)), "ill") == of_file
    with pytest.raises(SchemaError, match="not confirmed: id, age, pay, grade, town and 1 more"):
        embed(rows, source=SourceOptions(schema=of_file.settled()))


def test_columns_are_chosen_beside_one_without_a_name() -> None:
    rows = frame(people(80)).rename(columns={"id": ""})
    assert draft_schema(rows, "ill").schema.left_out == ("",)
    draft = draft_schema(rows, "ill", columns=["age", "town"])
    assert draft.schema.left_out == ("", "pay", "grade")
    schema = draft.settled(accept_from_data=True)
    assert embed(rows, NARROW, SourceOptions(schema=schema)).records == 80


def test_a_draft_is_confirmed_saved_and_used(tmp_path: Path) -> None:
    rows = frame(people(80)).drop(columns="id")
    age, pay = Column.integer("age", 0, 120), Column.continuous("pay", 0, 1e4, missing=True)
    draft = draft_schema(rows, "ill").confirm(age, pay, "grade", "ill")
    with pytest.raises(
        SchemaError, match=r"draft: not confirmed: town: draft\.confirm\(\)"
    ) as held:
        draft.settled()
    assert "--" not in str(held.value)  # which no function takes
    assert "settled(accept_from_data=True)" in str(held.value)
    save_schema(draft, tmp_path / "draft.toml")
    in_file = r"draft\.toml: not confirmed: town: .* 'confirmed = false'; or --accept-from-data"
    with pytest.raises(SchemaError, match=in_file):
        read_schema(tmp_path / "draft.toml")
    for refused in (
        lambda: embed(rows, NARROW, SourceOptions(schema=draft)),  # type: ignore[arg-type]
        lambda: evaluate(rows, test=rows, tables=TableOptions(schema=draft)),  # type: ignore[arg-type]
    ):
        with pytest.raises(SchemaError, match=r"schema must be .* draft\.settled\(\) gives one"):
            refused()
    schema = draft.confirm("town").settled()
    assert (schema.columns[0], schema.columns[1]) == (age, pay)
    assert schema.from_data == ()
    save_schema(schema, str(tmp_path / "schema.toml"))
    assert (tmp_path / "schema.toml").stat().st_mode & 0o777 == 0o600
    assert read_schema(tmp_path / "schema.toml") == schema
    with pytest.raises(OutputError, match="already exists"):
        save_schema(draft, tmp_path / "schema.toml")
    assert read_schema(tmp_path / "schema.toml") == schema
    embedding = embed(rows, NARROW, SourceOptions(schema=tmp_path / "schema.toml"))
    assert embedding.schema == schema
    for wrong in ("agee", Column.integer("agee", 0, 1)):
        with pytest.raises(SchemaError, match="the draft has no column 'agee'"):
            draft.confirm(wrong)


def test_a_draft_that_nobody_confirmed_is_no_declaration() -> None:
    """Whoever takes its schema as it is says so in the release."""
    draft = draft_schema(frame(people(80)), "ill")
    assert set(draft.unconfirmed) == {column.name for column in draft.schema.columns}
    assert ", ".join(draft.unconfirmed) in draft.schema.from_data[0]
    assert draft.schema == draft.settled(accept_from_data=True)
    first, *others = draft.schema.columns
    declared = draft.confirm(first, *(column.name for column in others), *draft.schema.left_out)
    assert not declared.schema.from_data
    assert declared.settled() == declared.schema


def test_what_a_draft_leaves_out_is_confirmed_by_its_name() -> None:
    rows = frame(people(80))
    rows["name"] = [f"person {number}" for number in range(80)]
    rows["born"] = pd.Timestamp("1970-01-01")
    draft = draft_schema(rows, "ill").confirm(*rows.columns[:6])
    assert draft.schema.left_out == ("name", "born")
    assert not draft.confirm("name").left_out_confirmed
    with pytest.raises(
        SchemaError, match=r"left out: if you leave name, born out .*confirm\(\*dra"
    ):
        draft.settled()
    assert draft.confirm(*draft.schema.left_out).settled().left_out == ("name", "born")
    assert draft.confirm("name", "born").settled().left_out == ("name", "born")


def test_columns_are_typed_in_python_as_in_a_file(tmp_path: Path) -> None:
    written = TableSchema(
        (
            Column.integer("age", 0, 99),
            Column.continuous("pay", 0, 1000, transform="log1p", missing=True),
            Column.categorical("grade", ["low", "mid", "high"], ordered=True),
            Column.categorical("town", ("Ulm", "Bonn", "other"), other="other", missing=True),
            Column.boolean("ill", ["no", "yes"]),
        ),
        label="ill",
        left_out=("id",),
    )
    assert written == PEOPLE
    assert Column.boolean("x").dtype == "bool"
    assert Column.continuous("x", 0, 9, decimals=2).rounded(np.array([1.256])).tolist() == [1.26]
    save_schema(written, tmp_path / "schema.toml")
    assert read_schema(tmp_path / "schema.toml") == PEOPLE


def test_bounds_may_be_numbers_of_numpy() -> None:
    whole = np.array([0, 9], dtype=np.uint8)
    assert Column.integer("x", *whole) == Column.integer("x", 0, 9)
    for dtype in (np.float32, np.float64, np.int16):
        found = Column.continuous("x", *np.array([0.0, 2.0], dtype=dtype), decimals=1)
        assert found == Column.continuous("x", 0, 2, decimals=1)
        assert type(found.lower) is type(found.upper) is float  # as canonical JSON has them


def test_times_are_typed_in_python_as_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text(
        """
[[columns]]
name = "admitted"
kind = "date"
dtype = "date32"
lower = "2000-01-01"
upper = "2029-12-31"

[[columns]]
name = "seen"
kind = "datetime"
dtype = "timestamp[us]"
unit = "minute"
lower = "2000-01-01"
upper = "2029-12-31T23:59:00"
missing = "indicator"

[[columns]]
name = "stay"
kind = "duration"
dtype = "string"
unit = "hour"
format = "%d days %H"
lower = "PT0S"
upper = "P60D"
transform = "log1p"
"""
    )
    stay: dict[str, Any] = {
        "dtype": "string",
        "unit": "hour",
        "format": "%d days %H",
        "transform": "log1p",
    }
    last = dt.datetime(2029, 12, 31, 23, 59)
    texts = (
        Column.date("admitted", "2000-01-01", "2029-12-31"),
        Column.datetime("seen", "2000-01-01", last.isoformat(), unit="minute", missing=True),
        Column.duration("stay", "PT0S", "P60D", **stay),
    )
    objects = (
        Column.date("admitted", dt.date(2000, 1, 1), last.date()),
        Column.datetime("seen", dt.date(2000, 1, 1), last, unit="minute", missing=True),
        Column.duration("stay", dt.timedelta(0), dt.timedelta(60), **stay),
    )
    assert texts == objects == read_schema(tmp_path / "schema.toml").columns


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Column.integer("age", 0.5, 3), "the bounds of integers are integers"),  # type: ignore[arg-type]
        (lambda: Column.integer("age", 0, 3, transform="log"), "transform = 'log': known are"),
        (lambda: Column.categorical("sex", "mf"), "categories are texts, as in"),
        (lambda: Column.categorical("year", [2020, 2021]), 'as in ["1", "2"] with dtype="int64"'),  # type: ignore[list-item]
        (lambda: Column.boolean("ill", ["yes"]), "has two categories"),
        (lambda: Column.continuous("pay", 3, 1), "its bounds have to go up"),
        (lambda: Column.continuous("pay", 0, 1, decimals="2"), "decimals is a whole number"),  # type: ignore[arg-type]
        (lambda: Column.continuous("pay", "0", 9), "lower is a number"),  # type: ignore[arg-type]
        (lambda: Column.integer("age", "0", "9"), "lower is a number"),  # type: ignore[arg-type]
        (lambda: Column.integer("age", False, True), "lower is a number"),
        (lambda: Column.date("day", 0, 9), "lower is a date as in 2000-01-31"),  # type: ignore[arg-type]
        (lambda: Column.date("day", "2020-02-30", "2021-01-01"), "lower is a date as in"),
        (lambda: Column.date("day", "2020-02-01T12:00", "2021-01-01"), "lower is not a whole day"),
        (lambda: Column.date("day", "2021-01-01", "2020-01-01"), "its bounds have to go up"),
        (
            lambda: Column.datetime("at", dt.datetime(2020, 1, 1, tzinfo=dt.UTC), "2021-01-01"),
            "lower is a date as in 2000-01-31, or a time",
        ),
        (lambda: Column.datetime("at", "2020-01-01", "2021-01-01", unit="week"), "known are day"),
        (lambda: Column.duration("stay", "P1M", "P9D"), "lower is a duration as in P60D"),
        (
            lambda: Column.duration("stay", dt.timedelta(0), dt.timedelta(0, 0, 1)),
            "upper is a duration as in P60D",
        ),
        (lambda: Column.duration("stay", "P1D", "P9D", transform="log"), "transform = 'log'"),
    ],
)
def test_an_impossible_column_gets_one_line(make: Callable[[], object], words: str) -> None:
    with pytest.raises(SchemaError) as caught:
        make()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_data_error_keeps_the_value_for_the_owner() -> None:
    with pytest.raises(DataError) as caught:
        embed(bad(age=[1, "secret", 3, 4, 5]), source=OPTIONS)
    assert "secret" in caught.value.with_value


@pytest.mark.parametrize(
    ("images", "labels", "words"),
    [
        ([np.ones((8, 8), np.uint8), np.ones((8, 8), np.float32)], [0, 1], "images: its items"),
        ([np.ones((8, 8), np.uint8), np.ones((8, 8), np.uint16)], [0, 1], "images: its items"),
        ([[[0, 1], [1, 0]], [[0, 0.5], [1, 0]]], [0, 1], "images: its items"),
        ([np.ones((8, 8), np.uint8)] * 2, [0, "1"], "labels: its items"),
    ],
)
def test_one_item_of_a_list_does_not_change_how_others_are_read(
    images: list[Any], labels: list[Any], words: str
) -> None:
    """NumPy makes one type of all: a single image of floats would make 255 of every other's 1."""
    with pytest.raises(DataError, match=words):
        embed((images, labels), NARROW, SourceOptions(classes=2))


def test_a_list_is_what_its_array_is() -> None:
    arrays = embed((IMAGES, LABELS), NARROW, SourceOptions(classes=10))
    lists = embed((list(IMAGES), list(LABELS)), NARROW, SourceOptions(classes=10))
    assert (arrays.sums == lists.sums).all()
    kinds = (np.float32, np.float64)
    floats = [(image / 255).astype(kinds[n % 2]) for n, image in enumerate(IMAGES)]
    assert (embed((floats, LABELS), NARROW, SourceOptions(classes=10)).sums == lists.sums).all()
