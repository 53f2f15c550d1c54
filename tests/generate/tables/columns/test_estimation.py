"""Columns of each class, from marginals and tangent features together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.kinds import ColumnKind
from dpntk.common.schema.encoding import NumericEncoding
from dpntk.common.schema.table import TableSchema
from dpntk.common.sources import open_source
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import TangentOptions, embed
from dpntk.generate.kernels.mean_embedding import released_mean
from dpntk.generate.tables.columns.estimation import estimate_columns
from dpntk.generate.tables.columns.evidence import Evidence
from dpntk.generate.tables.marginals.matching import independent_rows
from dpntk.generate.tables.marginals.released import ColumnMarginal, marginals_of
from dpntk.generate.tables.moves.swap import SwapMoves
from dpntk.generate.tables.refinement import Refinement, refinement_of
from dpntk.release import PrivacyParameters
from dpntk.release.file.model import Release
from dpntk.release.publishing.pipeline import unrecorded_release
from tests.helpers.tables import PEOPLE, people

SKEWED = TableSchema(
    tuple(
        Column(name, ColumnKind.CATEGORICAL, "string", categories=("a", "b", "c"))
        for name in ("one", "two", "three")
    ),
    None,
)


def test_evidence_of_classes_together_is_the_sum_of_what_each_says() -> None:
    random = np.random.default_rng(0)
    roots, slopes = random.normal(size=(3, 5, 5)), random.normal(size=(3, 5))
    curvatures, off = roots @ roots.transpose(0, 2, 1), random.normal(size=(3, 5))
    each = [Evidence(*map(torch.from_numpy, pair)) for pair in zip(curvatures, slopes, strict=True)]
    said = [x @ curvature @ x / 2 - slope @ x
            for x, curvature, slope in zip(off, curvatures, slopes, strict=True)]  # fmt: skip
    places = torch.from_numpy(off)
    alone = [
        float(one.negative_log_likelihood(place)) for one, place in zip(each, places, strict=True)
    ]
    assert alone == pytest.approx(said)
    assert float(Evidence.stacked(each).negative_log_likelihood(places)) == pytest.approx(sum(said))


def released(
    path: Path,
    schema: TableSchema,
    epsilon: float,
    width: int = 50,
    marginals: float | None = None,
    moments: float | None = None,
) -> Release:
    options = TangentOptions(width=width, marginals=marginals, moments=moments)
    return unrecorded_release(
        embed(path, options, SourceOptions(schema=schema)),
        PrivacyParameters(epsilon, 1e-5),
    )


def noisy(release: Release) -> tuple[ColumnMarginal, ...]:
    assert isinstance(release.schema, TableSchema)
    return marginals_of(released_mean(release), release.feature_map, release.schema)


def off(columns: tuple[ColumnMarginal, ...], path: Path, schema: TableSchema) -> float:
    """Total variation between likely shares and those of the records, mean over all of them."""
    (batch,) = open_source(path, SourceOptions(schema=schema)).batches(1 << 20)
    records = (batch.records / np.float32(255)).astype(np.float32)
    found = []
    for column in columns:
        cells = column.cells(records)
        for label in range(len(schema.classes)):
            here = cells[batch.labels == label]
            true = np.bincount(here, minlength=column.shares.shape[1]) / len(here)
            found.append(np.abs(column.posterior_mean[label] - true).sum() / 2)
    return float(np.mean(found))


def test_few_records_have_the_columns_that_all_of_the_release_says(tmp_path: Path) -> None:
    """By marginals alone they are twice as far off."""
    path = tmp_path / "a.csv"
    path.write_text(people(1000))
    releases = [released(path, PEOPLE, 1.0) for _ in range(4)]
    alone = np.mean([off(noisy(release), path, PEOPLE) for release in releases])
    together = np.mean([off(estimate_columns(release, 0), path, PEOPLE) for release in releases])
    assert together < 0.65 * alone


def test_so_they_have_where_mean_features_would_take_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With hundreds of columns, classes still are alike, and neighbouring numbers, too."""
    path = tmp_path / "a.csv"
    path.write_text(people(1000))
    monkeypatch.setattr("dpntk.generate.tables.columns.estimation._MOST_PRODUCTS", 0)
    monkeypatch.setattr(
        "dpntk.generate.tables.columns.estimation.EvidenceSource.of_class", lambda *_: 1 / 0
    )
    releases = [released(path, PEOPLE, 1.0) for _ in range(4)]
    alone = np.mean([off(noisy(release), path, PEOPLE) for release in releases])
    together = np.mean([off(estimate_columns(release, 0), path, PEOPLE) for release in releases])
    assert together < 0.95 * alone


def dependent(path: Path, count: int) -> None:
    """Three columns, of which the second and third mostly are as the first."""
    random = np.random.default_rng(0)
    first = random.choice(3, count, p=(0.8, 0.15, 0.05))
    rows = [first] + [np.where(random.random(count) < 0.9, first, 2) for _ in range(2)]
    lines = [",".join("abc"[code] for code in row) for row in zip(*rows, strict=True)]
    path.write_text("\n".join(["one,two,three", *lines]) + "\n")


def test_what_goes_with_what_is_not_taken_for_a_columns_doing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without noise to speak of the marginals are right, and nothing else moves columns."""
    path = tmp_path / "a.csv"
    dependent(path, 20_000)
    release = released(path, SKEWED, 20.0, marginals=0.4, moments=0.3)
    plain = zip(estimate_columns(release, 0), noisy(release), strict=True)
    assert all((one.shares == other.posterior_mean).all() for one, other in plain)
    monkeypatch.setattr("dpntk.generate.tables.columns.estimation.NEGLIGIBLE_NOISE", 0.0)
    assert off(estimate_columns(release, 0), path, SKEWED) < 0.004
    monkeypatch.setattr("dpntk.generate.tables.columns.evidence.strength", lambda *_: 0.0)
    assert off(estimate_columns(release, 0), path, SKEWED) > 0.01


def test_numbers_are_seldom_missing_unless_that_is_seen(tmp_path: Path) -> None:
    """Of answers 1 to 5 noise hides how often they are missing: not as often as an answer is."""
    random, names, rows = np.random.default_rng(0), [f"q{number}" for number in range(20)], 1_500
    schema = TableSchema(tuple(Column.integer(name, 1, 5, missing=True) for name in names), None)
    answers = random.integers(1, 6, (rows, len(names))).astype(str)
    often = np.where(np.arange(len(names)) < 2, 0.5, 0.01)
    answers[random.random(answers.shape) < often] = ""
    path = tmp_path / "a.csv"
    path.write_text("\n".join([",".join(names), *map(",".join, answers)]) + "\n")
    found = [estimate_columns(released(path, schema, 1.0), 0) for _ in range(4)]
    missing = np.array(
        [[float(each.shares[0, each.points :].sum()) for each in columns] for columns in found]
    )
    assert missing[:, 2:].mean() < 0.0195  # by a fifth beforehand, about .026
    assert missing[:, :2].min() > 0.3


def test_shares_that_are_known_are_left_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(people(500))
    release = released(path, PEOPLE, 0.1, width=5)  # so noisy that no cell is known to be empty
    found = estimate_columns(release, 0)
    assert [column.block for column in found] == [column.block for column in noisy(release)]
    for column in found:
        assert column.known
        assert column.posterior_mean is column.shares
        assert column.shares.min() > 0
        assert column.shares.sum(axis=1) == pytest.approx(1)


def test_independent_rows_have_the_columns_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(people(3000))
    columns = noisy(released(path, PEOPLE, 100.0, width=5))
    rows = independent_rows(4000, 1, columns, PEOPLE, np.random.default_rng(0))
    assert rows.shape == (4000, PEOPLE.record_size)
    for column in columns:
        made = np.bincount(column.cells(rows), minlength=column.shares.shape[1]) / len(rows)
        assert np.abs(made - column.posterior_mean[1]).sum() < 0.1
    age, town = rows[:, columns[0].block.place.start], rows[:, columns[3].block.place.start]
    assert abs(np.corrcoef(age, town)[0, 1]) < 0.06
    assert isinstance(columns[0].block.encoding, NumericEncoding)


@pytest.fixture
def refinement(tmp_path: Path) -> Refinement:
    path = tmp_path / "a.csv"
    dependent(path, 2000)
    found = refinement_of(released(path, SKEWED, 10.0, width=50))
    assert found is not None
    return found


def test_rows_do_not_take_noise_for_what_goes_with_what(refinement: Refinement) -> None:
    """Nothing but noise was released, and columns stay as independent as they were."""
    goal = refinement.goal(0)
    start = torch.eye(3)[torch.randint(3, (4000, 3), generator=torch.Generator().manual_seed(0))]
    rows = start.flatten(1)
    random = torch.Generator().manual_seed(1)
    noise = 0.03
    made = goal.tangents.mean(rows) + noise * torch.randn(len(goal.mean), generator=random)
    goal = type(goal)(goal.tangents, goal.blocks, made, noise)
    before = (rows[:, :3] * rows[:, 3:6]).sum(dim=1).mean()
    SwapMoves(goal, np.random.default_rng(0)).fit(rows, lambda units, remark: None)
    tables = torch.einsum("ni,nj->ij", rows[:, :3], rows[:, 3:6]) / len(rows)
    assert float((tables - 1 / 9).abs().sum()) < 0.1
    assert float(before) == pytest.approx(1 / 3, abs=0.03)


def test_noise_far_from_all_numbers_is_not_believed(tmp_path: Path) -> None:
    """Of incomes on a logarithmic scale, there would be millionaires in a town that has none."""
    random, names, rows = np.random.default_rng(0), [f"y{number}" for number in range(12)], 1_000
    schema = TableSchema(
        tuple(Column.continuous(name, 1_000, 1_000_000, transform="log1p") for name in names),
        None,
    )
    incomes = np.exp(random.normal(10.3, 0.5, (rows, len(names)))).clip(1_000, 200_000)
    path = tmp_path / "a.csv"
    np.savetxt(path, incomes, delimiter=",", header=",".join(names), comments="", fmt="%.2f")
    richest = [
        column.posterior_mean[0][-4:].sum()
        for _ in range(2)
        for column in estimate_columns(released(path, schema, 1.0), 0)
    ]
    # .00001 to .0001; without a trend .0033 to .0052 of the shares of a column
    assert np.median(richest) < 0.001
