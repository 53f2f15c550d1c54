"""Where within a cell numbers lie: by their levels, at values that stand out, and never outside."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from dpntk.common.features.marginals.cells import nearest_cell
from dpntk.common.features.marginals.map import MarginalFeatures
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.kinds import ColumnKind, Missing
from dpntk.common.schema.encoding import Block, NumericEncoding, blocks_of
from dpntk.common.schema.table import TableSchema
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import TangentOptions, embed, save_embedding
from dpntk.generate import generate
from dpntk.generate.tables.marginals.levels import Levels, SmoothCells, estimate_levels, roundest
from dpntk.release import PrivacyParameters, open_release, release

LEVELS = 256
CELLS = 64


def block_of(lower: float, upper: float, decimals: int | None = 2) -> Block:
    number = Column("x", ColumnKind.CONTINUOUS, "float64", lower, upper, decimals=decimals)
    return blocks_of(TableSchema((number, LABEL), "y"))[0]


LABEL = Column("y", ColumnKind.CATEGORICAL, "string", categories=("a", "b"))
CELL_OF = nearest_cell(np.arange(LEVELS), CELLS)
BLOCK = block_of(0.0, 100.0)


def in_cells(levels: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.bincount(CELL_OF, levels).astype(np.float64)


def digits(number: float) -> int:
    """How many there are from the first that is not 0 to the last."""
    return len(f"{abs(number):.12g}".replace(".", "").strip("0"))


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [
        (0.29, 0.31, 0.3),
        (-5.0, 5.0, 0.0),
        (0.0, 3.0, 0.0),
        (59.92, 60.08, 60.0),
        (14_901.0, 15_290.0, 15_000.0),
        (-310.0, -290.0, -300.0),
        (24.1, 26.0, 25.0),
        (999.0, 1001.0, 1000.0),
        (1 / 3, 1 / 3, 1 / 3),
    ],
)
def test_the_roundest_number(low: float, high: float, found: float) -> None:
    assert roundest(low, high) == pytest.approx(found, rel=1e-12)


def test_no_number_of_an_interval_has_fewer_digits_than_the_roundest() -> None:
    """By looking at all that have at most four; halves and quarters may have one or two more."""
    random = np.random.default_rng(0)
    for low in random.uniform(-1000, 1000, 300):
        high = low + random.uniform(0.5, 30)
        found = roundest(low, high)
        assert low <= found <= high
        every = np.arange(math.ceil(low * 10), math.floor(high * 10) + 1) / 10
        assert digits(found) <= min(map(digits, every)) + 1


def test_rows_of_a_cell_lie_among_its_levels_as_these_are_frequent() -> None:
    random = np.random.default_rng(0)
    shares = random.dirichlet(np.full(LEVELS, 0.3))
    spikes = np.where(random.random(LEVELS) < 0.2, random.random(LEVELS), 0.0)
    spikes[[0, -1]] = 1.0
    levels = Levels(BLOCK, CELLS, shares, spikes)
    cell_of, count = CELL_OF, 20_000
    quantile = (np.arange(count) + 0.5) / count
    encoding = BLOCK.encoding
    assert isinstance(encoding, NumericEncoding)
    for cell in range(CELLS):
        placed = levels.at(np.full(count, cell), quantile)
        assert (np.rint(placed.astype(np.float32) * (CELLS - 1)) == cell).all()
        assert (np.diff(placed) >= 0).all()  # the order of the rows stays
        of_cell = np.flatnonzero(cell_of == cell)
        wanted = shares[of_cell] / shares[of_cell].sum()
        # Of the first and the last of a cell a part may be nearer to a level of the next one.
        found = np.rint(placed * (LEVELS - 1)).clip(1, LEVELS - 2)
        found = np.select([placed == 0, placed == 1], [0, LEVELS - 1], found)
        found = found.clip(of_cell[0], of_cell[-1]).astype(int)
        seen = np.bincount(found - of_cell[0], minlength=len(of_cell)) / count
        assert seen == pytest.approx(wanted, abs=2e-4)
        for level, share in zip(of_cell, wanted, strict=True):
            at_peak = np.unique(placed[found == level], return_counts=True)[1]
            if spikes[level] * share * count > 2:
                assert at_peak.max() / count == pytest.approx(spikes[level] * share, abs=2e-4)


def test_where_nothing_is_seen_values_lie_evenly() -> None:
    """Shares of levels are noise around those of smooth cells: no spikes, little of the noise."""
    random = np.random.default_rng(0)
    cells = np.exp(-0.5 * ((np.arange(CELLS) - 25) / 9) ** 2)
    cells /= cells.sum()
    cell_of = CELL_OF
    evenly = (cells / np.bincount(cell_of))[cell_of]
    noise = 0.004
    found = estimate_levels(BLOCK, cells, evenly + random.normal(0, noise, LEVELS), noise)
    assert not found.spikes[1:-1].any()
    assert np.abs(found.shares - evenly).max() < noise / 2


def test_what_stands_out_of_the_noise_is_seen() -> None:
    random = np.random.default_rng(0)
    cell_of, noise = CELL_OF, 0.004
    true = np.full(LEVELS, 0.5 / LEVELS)
    common = {0: 0.2, 102: 0.1, 204: 0.15, 255: 0.05}
    for level, share in common.items():
        true[level] += share
    cells = in_cells(true)
    found = estimate_levels(BLOCK, cells, true + random.normal(0, noise, LEVELS), noise)
    assert set(np.flatnonzero(found.spikes)) == set(common)  # of which two are the bounds
    for level, share in common.items():
        assert found.shares[level] == pytest.approx(true[level], abs=4 * noise)
        assert found.spikes[level] > 0.9 * share / true[level] - 0.05
    everything = found.at(cell_of[[0, 102, 204, 255]], np.array([0.02, 0.5, 0.5, 0.98]))
    assert everything == pytest.approx([0.0, 0.4, 0.8, 1.0], abs=1e-12)


def test_of_the_few_values_of_a_level_others_may_be_frequent() -> None:
    """With steps of .01 between 0 and 6 a level holds two or three."""
    true = np.full(LEVELS, 0.8 / LEVELS)
    true[100] += 0.2
    cells = in_cells(true)
    few, many = (
        estimate_levels(block_of(0.0, 6.0, decimals), cells, true, 1e-4).spikes[100]
        for decimals in (2, 6)
    )
    assert many == pytest.approx(0.2 / true[100], abs=0.02)
    assert few == pytest.approx(many * (1 - 0.5 / (600 / 255)), abs=0.01)


def test_times_have_no_round_numbers() -> None:
    day = Column("x", ColumnKind.DATE, "date32", 0, 10_000)
    block = blocks_of(TableSchema((day, LABEL), "y"))[0]
    true = np.full(LEVELS, 0.8 / LEVELS)
    true[100] += 0.2
    found = estimate_levels(block, in_cells(true), true, 1e-4)
    assert not found.spikes[1:-1].any()
    assert found.shares[100] == pytest.approx(true[100], abs=1e-3)


def test_a_bound_is_told_from_all_that_lies_between_by_a_9690th_of_the_range() -> None:
    schema = TableSchema((BLOCK.column, Column.continuous("z", 0.0, 1.0), LABEL), "y")
    pairs = [("x", "z")]
    features = MarginalFeatures.of(schema, groups=pairs, fine=True, undecided=True)
    level, _ = features.by_level
    values = np.array([-1.0, 0.0, 0.01, 0.02, 0.3, 50.0, 99.7, 99.98, 99.995, 100.0, 120.0])
    records = np.zeros((len(values), schema.record_size), dtype=np.int64)
    records[:, BLOCK.place] = BLOCK.encode(values)
    found = level.cell(torch.from_numpy(records)).tolist()
    assert found == [0, 0, 0, 1, 1, 128, 254, 254, 255, 255, 255]


@pytest.mark.usefixtures("hasty_rows")
@pytest.mark.parametrize("epsilon", [50.0, math.inf])
def test_zeros_and_round_numbers_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, epsilon: float
) -> None:
    """Of 1,500 rows: gains are 0 for most, limits thousands, wages nothing in particular.

    Wages lie evenly within their cells, and some are missing.
    """
    random = np.random.default_rng(0)
    lines = ["gain,limit,wage,y"]
    for _ in range(1500):
        label = random.random() < 0.4
        gain = 0.0 if random.random() < 0.7 else random.uniform(0, 5000)
        limit = 1000 * random.choice([5, 10, 20, 40]) + 0.25 * (random.random() < 0.1)
        wage = "" if random.random() < 0.2 else f"{random.normal(40 + 20 * label, 10):.2f}"
        lines.append(f"{gain:.2f},{limit},{wage},{'ba'[label]}")
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    schema = TableSchema(
        (
            Column("gain", ColumnKind.CONTINUOUS, "float64", -1000.0, 9000.0, decimals=2),
            Column("limit", ColumnKind.CONTINUOUS, "float64", 0.0, 50_000.0, decimals=2),
            Column(
                "wage", ColumnKind.CONTINUOUS, "float64", 0.0, 120.0, decimals=2,
                missing=Missing.INDICATOR,
            ),
            LABEL,
        ),
        "y",
    )  # fmt: skip
    made = embed(tmp_path / "rows.csv", TangentOptions(), SourceOptions(schema=schema))
    save_embedding(made, tmp_path / "e.h5")
    without_noise = math.isinf(epsilon)
    parameters = PrivacyParameters(epsilon, 1e-5, not_private=without_noise)
    release(tmp_path / "e.h5", tmp_path / "r.h5", parameters)
    # As many rows are refined as are wanted, which leaves them the columns that they begin with.
    monkeypatch.setattr("dpntk.generate.tables.refinement._USUAL_ROWS", 1500)
    rows = generate(open_release(tmp_path / "r.h5"), tmp_path / "s", count=1500).records()
    shares = rows["gain"].value_counts(normalize=True)
    assert shares[0.0] == pytest.approx(0.7, abs=0.05)
    limits = rows["limit"].value_counts(normalize=True)
    assert limits[[5_000.0, 10_000.0, 20_000.0, 40_000.0]].sum() == pytest.approx(0.95, abs=0.06)
    wages = rows["wage"].dropna()
    assert len(wages) == pytest.approx(1200, abs=100)
    assert wages.value_counts(normalize=True).max() < 0.02
    assert wages.mean() == pytest.approx(48, abs=2.5)


@pytest.mark.parametrize("mean", [0.4, 2.0, 9.0])
def test_between_wide_bounds_quantiles_are_those_of_the_column(mean: float) -> None:
    """Of an exponential law on 0..100, whose mean may be that of a single level: .39 wide."""
    borders = np.concatenate([[0, 0], np.arange(1.5, 254), [255, 255]]) / 255 * 100
    below = 1 - np.exp(-borders / mean)
    true = np.diff(below) / below[-1]
    cells = in_cells(true)
    levels = estimate_levels(BLOCK, cells, true, 1e-4)
    quantile = (np.arange(20_000) + 0.5) / 20_000
    cell = np.searchsorted(cells.cumsum(), quantile)
    begin = np.concatenate([[0], cells.cumsum()])[cell]
    placed = levels.at(cell, (quantile - begin) / cells[cell]) * 100
    assert not levels.spikes[1:-1].any()
    for part in (0.1, 0.25, 0.5, 0.75, 0.9):
        expected = -mean * math.log(1 - part)
        # A level that reaches beyond its cell ends there: off by half a level at the most.
        half = 0.5 / 2.55 if expected > borders[2] else 0.0
        assert np.quantile(placed, part) == pytest.approx(expected, rel=0.15, abs=half)


def placed(cells: NDArray[np.float64], count: int = 20_000) -> NDArray[np.float64]:
    """Numbers of rows that have their cells as these are frequent, 0..1, in order."""
    quantile = (np.arange(count) + 0.5) / count
    ends = cells.cumsum() / cells.sum()
    cell = np.minimum(np.searchsorted(ends, quantile), len(cells) - 1)
    begin = np.concatenate([[0], ends])[cell]
    return SmoothCells(cells).at(cell, (quantile - begin) / (ends[cell] - begin))


@pytest.mark.parametrize("mean", [0.03, 0.06, 0.3])
@pytest.mark.parametrize("zeros", [0.0, 0.25])
def test_where_cells_are_all_that_is_known_zeros_are_what_is_more_than_beside_them(
    mean: float, zeros: float
) -> None:
    """Exponential laws, of which a part is 0: by 64 cells, the first of which is half as wide."""
    borders = np.concatenate([[0], (np.arange(CELLS - 1) + 0.5) / (CELLS - 1), [1]])
    below = (1 - np.exp(-borders / mean)) / (1 - np.exp(-1 / mean))
    cells = (1 - zeros) * np.diff(below)
    cells[0] += zeros
    found = placed(cells)
    assert (found == 0).mean() == pytest.approx(zeros, abs=0.01)
    assert (found == 1).mean() == 0
    law = (1 - np.exp(-found / mean)) / (1 - np.exp(-1 / mean))
    expected = zeros + (1 - zeros) * law[found > 0]
    seen = (np.arange(len(found)) + 0.5)[found > 0] / len(found)
    assert np.abs(seen - expected).max() < 0.01


def test_cells_keep_their_shares_whatever_they_are() -> None:
    random = np.random.default_rng(0)
    for cells in (
        random.dirichlet(np.full(CELLS, 0.1)),
        np.eye(CELLS)[0],
        np.eye(CELLS)[-1],
        np.eye(CELLS)[30],
        random.dirichlet(np.ones(5)),
    ):
        found = placed(cells)
        assert (np.diff(found) >= 0).all()
        assert found[0] >= 0
        assert found[-1] <= 1
        seen = np.bincount(np.rint(found * (len(cells) - 1)).astype(int), minlength=len(cells))
        assert seen / len(found) == pytest.approx(cells, abs=1e-4)


def test_of_few_rows_no_number_is_moved_to_a_bound_where_none_is(tmp_path: Path) -> None:
    """The release holds no levels: what lies in the first of its cells had been 0, half of it."""
    random = np.random.default_rng(0)
    lines = ["cost,y"]
    for _ in range(800):
        label = random.random() < 0.5
        lines.append(f"{random.exponential(150 + 50 * label) + 0.01:.2f},{'ba'[label]}")
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    cost = Column("cost", ColumnKind.CONTINUOUS, "float64", 0.0, 5000.0, decimals=2)
    schema = TableSchema((cost, LABEL), "y")
    made = embed(tmp_path / "rows.csv", TangentOptions(), SourceOptions(schema=schema))
    save_embedding(made, tmp_path / "e.h5")
    release(
        tmp_path / "e.h5", tmp_path / "r.h5", PrivacyParameters(math.inf, 1e-5, not_private=True)
    )
    opened = open_release(tmp_path / "r.h5")
    assert "by_level" not in opened.release.feature_map.spec()["marginals"]
    rows = generate(opened, tmp_path / "s", count=2000).records()
    assert (rows["cost"] == 0).mean() < 0.01
    assert rows["cost"].median() == pytest.approx(123, abs=12)


def test_an_excess_in_the_first_cell_is_on_the_bound_where_levels_are_noisy() -> None:
    """Many costs are 0; within its cell, noise hides which of the levels has them."""
    noise, random = 0.006, np.random.default_rng(0)
    truth = np.exp(-0.5 * ((np.arange(LEVELS) - 120) / 30) ** 2)
    truth[0] = 0.05 * truth.sum()
    truth /= truth.sum()
    zeros = []
    for _ in range(20):
        noisy = truth + noise * random.standard_normal(LEVELS)
        found = estimate_levels(BLOCK, in_cells(truth), noisy, noise)
        within_first = CELL_OF == 0
        zeros.append(found.shares[0] / found.shares[within_first].sum())
    assert np.mean(zeros) > 0.9


def test_without_an_excess_nothing_more_is_on_the_bound() -> None:
    evenly = np.full(LEVELS, 1 / LEVELS)
    found = estimate_levels(BLOCK, in_cells(evenly), evenly, 0.01)
    assert found.shares[0] < 1 / LEVELS
