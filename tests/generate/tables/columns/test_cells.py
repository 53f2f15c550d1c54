"""Which cells of a column a class may have."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.encoding import blocks_of
from dpntk.common.schema.table import TableSchema
from dpntk.generate.tables.columns.cells import Columns
from dpntk.generate.tables.marginals.released import ColumnMarginal

(BLOCK,) = blocks_of(TableSchema((Column.integer("death", 0, 364, missing=True),), None))
CELLS = 64
NOISE = np.array([0.008, 0.25])
"""Of a frequent class and a rare one, whose noise is larger than the share of a cell."""


def possible(frequent: NDArray[np.float64], rare: NDArray[np.float64]) -> NDArray[np.bool_]:
    return Columns((ColumnMarginal(BLOCK, np.stack([frequent, rare]), NOISE),)).possible()


def test_a_rare_class_may_have_numbers_where_all_others_lack_them() -> None:
    """No single cell is seen through the noise, and the class does not lack its numbers."""
    lacking = np.r_[np.zeros(CELLS), 1.0]
    assert possible(lacking, np.r_[np.zeros(CELLS), -0.5]).all()


def test_cells_far_from_numbers_that_are_seen_are_empty() -> None:
    seen = np.r_[np.full(8, 0.12), np.zeros(CELLS - 8), 0.04]
    found = possible(seen, np.r_[np.zeros(CELLS), -0.5])
    assert found[:8].all()
    assert not found[10:CELLS].any()
    assert found[CELLS]
