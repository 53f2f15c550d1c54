"""Numbers come back from rows of 32 bits as people have written them."""

from __future__ import annotations

import numpy as np
import pytest

from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.table import TableSchema
from dpntk.generate.tables.rows.values import records_of, values_of

ROUND = np.array([0.25, 0.5, 1.0, 1.25, 3.0, 4.0, 12.5, 100.0, 180.0])


@pytest.mark.parametrize(
    ("transform", "upper"),
    [("none", 200.0), ("log1p", 200.0), ("log1p", 1e6), ("signed-log", 1e6)],
)
def test_round_numbers_come_back_exactly(transform: str, upper: float) -> None:
    """A week is 1, and not .99999997, of which nobody is told who counts those with one."""
    schema = TableSchema((Column.continuous("weeks", 0.25, upper, transform=transform),))
    records = records_of(schema, {"weeks": ROUND})
    found = values_of(schema, records, np.zeros(len(ROUND), np.int64))["weeks"]
    assert found.tolist() == ROUND.tolist()


def test_large_numbers_are_multiples_of_powers_of_ten() -> None:
    schema = TableSchema((Column.continuous("debt", 0.0, 1e14, transform="log1p"),))
    records = records_of(schema, {"debt": np.geomspace(1e11, 9e13, 999)})
    found = values_of(schema, records, np.zeros(999, np.int64))["debt"]
    assert (found % 1e4 == 0).all()


@pytest.mark.parametrize("transform", ["none", "log1p"])
@pytest.mark.parametrize("upper", [1e-280, 1e-300, 1e-307])
def test_numbers_of_a_tiny_range_are_numbers(transform: str, upper: float) -> None:
    schema = TableSchema((Column.continuous("dose", 0.0, upper, transform=transform),))
    records = np.random.default_rng(0).random((50, schema.record_size), dtype=np.float32)
    found = values_of(schema, records, np.zeros(50, np.int64))["dose"]
    assert ((found >= 0) & (found <= upper)).all()


def test_negative_numbers_on_a_logarithmic_scale_do_as_well() -> None:
    schema = TableSchema((Column.continuous("gain", -1000.0, 1000.0, transform="signed-log"),))
    exact = np.array([-750.0, -12.5, -1.0, -0.01, 0.0, 0.25, 300.0])
    records = records_of(schema, {"gain": exact})
    found = values_of(schema, records, np.zeros(len(exact), np.int64))["gain"]
    assert found.tolist() == exact.tolist()
