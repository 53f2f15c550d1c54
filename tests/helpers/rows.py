"""Small tables in memory, as evaluations see them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.kinds import ColumnKind, Missing
from dpntk.common.schema.table import TableSchema
from dpntk.evaluate.tables.table import Table

AGE = Column(
    "age", ColumnKind.INTEGER, "int64", lower=0, upper=100, missing=Missing.INDICATOR
)  # fmt: skip
JOB = Column(
    "job", ColumnKind.CATEGORICAL, "string", categories=("a", "b", "c"), missing=Missing.CATEGORY
)
LABEL = Column("rich", ColumnKind.CATEGORICAL, "string", categories=("no", "yes"))
SCHEMA = TableSchema((AGE, JOB, LABEL), "rich")


def table(
    ages: list[float], jobs: list[int], labels: list[int], schema: TableSchema = SCHEMA
) -> Table:
    """Rows of ages, jobs and labels."""
    columns = {
        "age": np.array(ages, dtype=np.float64),
        "job": np.array(jobs, dtype=np.int64),
        "rich": np.array(labels, dtype=np.int64),
    }
    return Table(schema, {c.name: columns[c.name] for c in schema.columns}, {})


def drawn(rows: int, seed: int, schema: TableSchema = SCHEMA) -> Table:
    """The older somebody is, the likelier the last class; jobs say a little, too."""
    random = np.random.default_rng(seed)
    ages, jobs = random.integers(0, 101, rows), random.integers(-1, 3, rows)
    classes = len(schema.classes)
    steps = ages / 100 + 0.1 * (jobs == 0) + 0.1 * random.standard_normal(rows) - 0.2
    labels = np.clip(np.floor(steps * classes), 0, classes - 1).astype(np.int64)
    filled = np.where(random.random(rows) < 0.05, np.nan, ages)
    return table(filled.tolist(), jobs.tolist(), labels.tolist(), schema)


def numbers(*columns: Sequence[float]) -> Table:
    """Rows of numbers from 0 to 9."""
    names = [f"x{number}" for number in range(len(columns))]
    schema = TableSchema(
        tuple(Column(name, ColumnKind.CONTINUOUS, "float64", 0.0, 9.0) for name in names), None
    )
    values = (np.asarray(column, dtype=np.float64) for column in columns)
    return Table(schema, dict(zip(names, values, strict=True)), {})
