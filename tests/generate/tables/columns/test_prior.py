"""What is expected of columns before a release is seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.encoding import NumericEncoding
from dpntk.common.schema.table import TableSchema
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import TangentOptions, embed
from dpntk.generate.kernels.mean_embedding import released_mean
from dpntk.generate.tables.columns.prior import ColumnPrior, has_trend
from dpntk.generate.tables.marginals.released import ColumnMarginal, marginals_of
from dpntk.release import PrivacyParameters
from dpntk.release.publishing.pipeline import unrecorded_release

SCHEMA = TableSchema(
    (
        Column.categorical("town", ["a", "b", "c"]),
        Column.integer("pay", 0, 10_000, transform="log1p", missing=True),
        Column.integer("rooms", 1, 6, missing=True),
        Column.categorical("ward", ["x", "y"], missing=True),
        Column.integer("age", 0, 90),
        Column.boolean("ill"),
    ),
    "ill",
)


@pytest.fixture(scope="module")
def marginals(tmp_path_factory: pytest.TempPathFactory) -> tuple[ColumnMarginal, ...]:
    """Of a released table with every kind of column, of which one has a trend."""
    random, count = np.random.default_rng(0), 2_000
    columns = [
        random.choice(["a", "b", "c"], count),
        np.where(random.random(count) < 0.1, "", random.lognormal(5, 1, count).astype(int)),
        np.where(random.random(count) < 0.1, "", random.integers(1, 7, count)),
        random.choice(["x", "y", ""], count),
        random.integers(0, 91, count),
        random.choice(["false", "true"], count),
    ]
    path = tmp_path_factory.mktemp("table") / "a.csv"
    lines = [",".join(map(str, row)) for row in zip(*columns, strict=True)]
    path.write_text("\n".join([",".join(column.name for column in SCHEMA.columns), *lines]) + "\n")
    release = unrecorded_release(
        embed(path, TangentOptions(width=5), SourceOptions(schema=SCHEMA)),
        PrivacyParameters(10.0, 1e-5),
    )
    return marginals_of(released_mean(release), release.feature_map, SCHEMA)


def said(
    marginal: ColumnMarginal, logits: NDArray[np.float64], trend: NDArray[np.float64]
) -> float:
    """The negative log prior of one column, written out: the sum over its parts."""

    def huber(values: NDArray[np.float64]) -> float:
        return float((np.sqrt(1 + values**2) - 1).sum())

    total = float(((logits / 20.0) ** 2).sum() / 2 + (trend**2).sum() / 2)
    if not isinstance(marginal.block.encoding, NumericEncoding):
        return total + float((logits[0] ** 2).sum() / 2) + huber(logits[1:] / 0.6)
    numbers, missing = logits[:, : marginal.points], logits[:, marginal.points :]
    steps = np.diff(numbers)
    jumps = steps[0]
    if has_trend(marginal):
        along = np.linspace(-1, 1, len(jumps))
        jumps = jumps - 0.5 * trend[0] + 4.0 * trend[1] ** 2 * along
    total += float(np.log1p((jumps / 0.6) ** 2).sum()) + huber(steps[1:] / 0.4)
    if missing.size:
        odds = missing[0, 0] - np.log(np.exp(numbers[0]).sum())
        total += ((odds + 4.2) / 1.5) ** 2 / 2
        total += huber((missing[1:, 0] - numbers[1:].mean(axis=1)) / 0.6)
    return total


def test_linear_scales_have_a_trend_where_noise_hides_every_cell(
    marginals: tuple[ColumnMarginal, ...],
) -> None:
    (linear,) = (m for m in marginals if m.block.column.name == "age")
    assert not has_trend(linear)
    even = 1 / linear.shares.shape[1]
    for noise, trend in (([0.9 * even, 9 * even], False), ([1.1 * even, 9 * even], True)):
        assert has_trend(replace(linear, noise=np.array(noise))) == trend
    # But for zeros, which stand alone.
    shares = np.full_like(linear.shares, 0.01)
    shares[:, 0] = 0.9
    assert not has_trend(replace(linear, shares=shares, noise=np.full(2, 1.1 * even)))


def test_all_columns_at_once_are_the_sum_of_each(marginals: tuple[ColumnMarginal, ...]) -> None:
    sizes = [marginal.shares.shape[1] for marginal in marginals]
    assert [has_trend(marginal) for marginal in marginals].count(True) == 1
    random = np.random.default_rng(0)
    logits, trends = random.normal(size=(3, sum(sizes))), random.normal(size=(len(sizes), 2))
    parts = np.split(logits, np.cumsum(sizes)[:-1], axis=1)
    each = [said(*one) for one in zip(marginals, parts, trends, strict=True)]
    found = ColumnPrior(marginals)(torch.from_numpy(logits), torch.from_numpy(trends))
    assert float(found) == pytest.approx(sum(each), rel=1e-12)


@pytest.mark.parametrize("kind", [True, False], ids=["numbers", "categories"])
def test_columns_of_one_kind_are_enough(marginals: tuple[ColumnMarginal, ...], kind: bool) -> None:
    some = [one for one in marginals if isinstance(one.block.encoding, NumericEncoding) is kind]
    cells = sum(one.shares.shape[1] for one in some)
    logits, trends = np.ones((2, cells)), np.ones((len(some), 2))
    sizes = np.cumsum([one.shares.shape[1] for one in some])[:-1]
    parts = np.split(logits, sizes, axis=1)
    each = [said(*one) for one in zip(some, parts, trends, strict=True)]
    found = ColumnPrior(some)(torch.from_numpy(logits), torch.from_numpy(trends))
    assert float(found) == pytest.approx(sum(each), rel=1e-12)
