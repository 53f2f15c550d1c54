"""Small tables, random schemas with rows that fit them, and generators and marginals of these."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from hypothesis import strategies as st

from dpntk.common.schema.columns.codes import MISSING
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.dates import TimeUnit
from dpntk.common.schema.columns.kinds import ColumnKind, Missing, Transform
from dpntk.common.schema.csv_format import CsvFormat
from dpntk.common.schema.encoding import NumericEncoding, blocks_of
from dpntk.common.schema.table import TableSchema
from dpntk.generate.tables.generators.knots import TableGenerator, TableGeneratorSpec
from dpntk.generate.tables.marginals.released import ColumnMarginal
from dpntk.generate.tables.rows.values import records_of

PEOPLE = TableSchema(
    (
        Column("age", ColumnKind.INTEGER, "int64", 0, 99),
        Column(
            "pay", ColumnKind.CONTINUOUS, "float64", 0.0, 1000.0,
            transform=Transform.LOG1P, missing=Missing.INDICATOR,
        ),
        Column("grade", ColumnKind.ORDINAL, "string", categories=("low", "mid", "high")),
        Column(
            "town", ColumnKind.CATEGORICAL, "string", categories=("Ulm", "Bonn", "other"),
            other="other", missing=Missing.CATEGORY,
        ),
        Column("ill", ColumnKind.BOOLEAN, "string", categories=("no", "yes")),
    ),
    "ill",
    left_out=("id",),
)  # fmt: skip
RANKED = PEOPLE.with_ranks()
"""As it is encoded where a release chooses pairs: grades are numbers."""
UNORDERED = replace(
    PEOPLE,
    columns=tuple(
        replace(column, kind=ColumnKind.CATEGORICAL) if column.name == "grade" else column
        for column in PEOPLE.columns
    ),
)
"""The same people, whose grades are mere categories."""
HEADER = "id,age,pay,grade,town,ill"
ROWS = (
    "1,30,10.5,low,Ulm,no",
    "2,41,,mid,Bonn,yes",
    "3,99,1000,high,,no",
    "4,0,0,low,Berlin,yes",
)
CSV = "\n".join((HEADER, *ROWS)) + "\n"


def encoded_people(count: int, random: np.random.Generator) -> torch.Tensor:
    """Rows of random people, a third of whose pay is missing, values 0..1: (count, record size)."""
    pay = np.where(random.random(count) < 1 / 3, np.nan, random.uniform(0, 1000, count))
    values = {
        "age": random.integers(0, 100, count).astype(np.float64),
        "pay": pay,
        "grade": random.integers(3, size=count),
        "town": random.integers(MISSING, 3, size=count),
    }
    return torch.from_numpy(records_of(PEOPLE, values))


def people(count: int, seed: int = 0) -> str:
    """Rows in which who is ill is old and lives in Bonn."""
    random = np.random.default_rng(seed)
    lines = [HEADER]
    for number in range(count):
        ill = random.random() < 0.3
        age = int(np.clip(random.normal(70 if ill else 30, 8), 0, 99))
        town = "Bonn" if ill ^ (random.random() < 0.1) else "Ulm"
        pay = "" if random.random() < 0.1 else f"{random.exponential(50):.2f}"
        grade = random.choice(["low", "mid", "high"])
        lines.append(f"{number},{age},{pay},{grade},{town},{'yes' if ill else 'no'}")
    return "\n".join(lines) + "\n"


_NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=6)
_CATEGORIES = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=6)
"""Without carriage returns: CSV files that hold them are refused."""


@st.composite
def columns(draw: st.DrawFn, name: str) -> Column:
    """A column of any kind."""
    kind = draw(st.sampled_from(ColumnKind))
    if kind.numeric:
        missing = draw(st.sampled_from((Missing.REFUSED, Missing.INDICATOR)))
        transform = draw(st.sampled_from((Transform.NONE, Transform.SIGNED_LOG)))
        if kind.timed:
            first = draw(st.integers(-20_000, 20_000))
            dtypes = {
                ColumnKind.DATE: ("date32", "string"),
                ColumnKind.DATETIME: ("timestamp[ms]", "timestamp[ns]", "string"),
                ColumnKind.DURATION: ("duration[s]", "duration[ns]", "string"),
            }[kind]
            return Column(
                name,
                kind,
                draw(st.sampled_from(dtypes)),
                first,
                first + draw(st.integers(1, 9_000)),
                missing=missing,
                unit=draw(st.sampled_from((None, *TimeUnit))) if "date" not in dtypes[0] else None,
            )
        if kind is ColumnKind.INTEGER:
            low = draw(st.integers(-(2**31), 2**31 - 2))
            high = draw(st.integers(low + 1, 2**31 - 1))
            dtype = draw(st.sampled_from(("int32", "int64", "float64")))
            return Column(name, kind, dtype, low, high, transform=transform, missing=missing)
        low_ = draw(st.floats(-1e6, 1e6, width=32))
        high_ = low_ + draw(st.floats(1.0, 1e6, width=32))
        dtype = draw(st.sampled_from(("float32", "float64")))
        return Column(name, kind, dtype, low_, high_, transform=transform, missing=missing)
    missing = draw(st.sampled_from((Missing.REFUSED, Missing.CATEGORY)))
    if kind is ColumnKind.BOOLEAN and draw(st.booleans()):
        truths = draw(st.permutations(("false", "true")))
        return Column(name, kind, "bool", categories=tuple(truths), missing=missing)
    if kind is ColumnKind.BOOLEAN:
        names = draw(st.lists(_CATEGORIES, min_size=2, max_size=2, unique=True))
        return Column(name, kind, "string", categories=tuple(names), missing=missing)
    if draw(st.booleans()):
        numbers = draw(st.lists(st.integers(-99, 99), min_size=1, max_size=5, unique=True))
        texts = tuple(map(str, numbers))
        return Column(name, kind, "int8", categories=texts, missing=missing)
    names = draw(st.lists(_CATEGORIES, min_size=1, max_size=5, unique=True))
    return Column(name, kind, "string", categories=tuple(names), missing=missing)


@st.composite
def schemas(draw: st.DrawFn) -> TableSchema:
    """A schema with one to four columns and sometimes a label."""
    names = draw(st.lists(_NAMES, min_size=2, max_size=5, unique=True))
    drawn = [draw(columns(name)) for name in names[1:]]
    label = draw(st.booleans())
    if label:
        drawn.append(Column(names[0], ColumnKind.CATEGORICAL, "string", categories=("u", "v")))
    missing = draw(st.sampled_from(("", "NA", "?")))
    bins = draw(st.integers(2, 25))
    return TableSchema(
        tuple(drawn),
        names[0] if label else None,
        bins=bins,
        csv=CsvFormat(";", "utf-8", (missing,)),
    )


def require_valid(table: pa.Table, schema: TableSchema) -> None:
    """Check every value of a table against its schema."""
    assert table.column_names == [column.name for column in schema.columns]
    for column in schema.columns:
        values = table.column(column.name)
        arrow = {"float64": "double", "float32": "float", "date32": "date32[day]"}
        assert str(values.type) == arrow.get(column.dtype, column.dtype)
        if column.missing is Missing.REFUSED:
            assert not values.null_count
        known: list[Any] = [value for value in values.to_pylist() if value is not None]
        if column.lower is None or column.upper is None:
            spelled = (
                str(value).lower() if column.dtype == "bool" else str(value) for value in known
            )
            assert set(spelled) <= set(column.categories)
        elif column.kind.timed:
            dates = column.kind.temporal
            if column.dtype == "string":
                form = column.date_format if dates else column.duration_format
                known = form.parse(pa.array(known, pa.string())).astype(int).tolist()
            else:
                whole = pa.timestamp("s") if dates else pa.duration("s")
                known = values.drop_null().cast(whole).cast("int64").to_pylist()
            assert all(second % column.seconds == 0 for second in known)
            steps = [second // column.seconds for second in known]
            assert all(column.lower <= step <= column.upper for step in steps)
        else:
            assert all(column.lower <= value <= column.upper for value in known)
            if column.kind is ColumnKind.INTEGER:
                assert all(value == round(value) for value in known)


def random_generator(schema: TableSchema, seed: int = 0) -> TableGenerator:
    """Untrained, with outputs large enough to reach all bounds and categories."""
    torch.manual_seed(seed)
    generator = TableGenerator(TableGeneratorSpec(4, 8), schema)
    with torch.no_grad():
        generator.by_class.normal_(0, 5)
        last = generator.network[-1]
        assert isinstance(last, torch.nn.Linear)
        last.weight.mul_(10)
    return generator.eval()


def random_marginals(schema: TableSchema, seed: int) -> tuple[ColumnMarginal, ...]:
    random, classes = np.random.default_rng(seed), len(schema.classes)
    found = []
    for block in blocks_of(schema):
        cells = block.column.choices
        if isinstance(block.encoding, NumericEncoding):
            cells = 9 + block.missing_place
        shares = random.normal(1 / cells, 0.3, (classes, cells))
        found.append(ColumnMarginal(block, shares, np.full(classes, 0.01)))
    return tuple(found)


def not_in_utf8(text: bytes) -> pa.Array:
    """A column of one text, behind which stands a byte that no text in UTF-8 has."""
    written = text + b"\xff"
    offsets = np.array([0, len(written)], dtype=np.int32)
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(written)]
    return pa.Array.from_buffers(pa.string(), 1, buffers)
