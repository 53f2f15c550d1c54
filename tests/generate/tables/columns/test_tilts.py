"""Columns of a class of which little is known are those of all, tilted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from dpntk.common.features.joint import parts_of
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.table import TableSchema
from dpntk.common.sources import open_source
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import TangentOptions, embed
from dpntk.generate.kernels.mean_embedding import released_mean
from dpntk.generate.tables.columns.cells import Columns, Shares
from dpntk.generate.tables.columns.estimation import estimate_columns
from dpntk.generate.tables.columns.evidence import Evidence
from dpntk.generate.tables.columns.margins import Margins
from dpntk.generate.tables.columns.tilts import tilted
from dpntk.generate.tables.marginals.released import marginals_of
from dpntk.generate.tables.refinement import has_own_columns
from dpntk.release import PrivacyParameters
from dpntk.release.file.model import Release
from dpntk.release.publishing.pipeline import unrecorded_release

NUMBERS, TRAITS = 6, 6
SCHEMA = TableSchema(
    (
        *(Column.continuous(f"n{number}", 0, 100) for number in range(NUMBERS)),
        *(Column.categorical(f"t{number}", ["no", "yes"]) for number in range(TRAITS)),
        Column.categorical("rare", ["no", "yes"]),
    ),
    "rare",
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """20,000 records, of which 100 have larger numbers, and most traits."""
    random, count = np.random.default_rng(0), 20_000
    rare = np.arange(count) < 100
    numbers = random.normal(np.where(rare, 45, 30)[:, None], 6, (count, NUMBERS))
    traits = random.random((count, TRAITS)) < np.where(rare, 0.9, 0.3)[:, None]
    texts = np.where(np.column_stack([traits, rare]), "yes", "no")
    lines = [",".join(column.name for column in SCHEMA.columns)]
    for number, text in zip(numbers, texts, strict=True):
        lines.append(",".join([*(f"{each:.2f}" for each in number), *text]))
    made = tmp_path_factory.mktemp("rare") / "a.csv"
    made.write_text("\n".join(lines) + "\n")
    return made


@pytest.fixture(scope="module")
def release(path: Path) -> Release:
    made = embed(path, TangentOptions(width=50), SourceOptions(schema=SCHEMA))
    return unrecorded_release(made, PrivacyParameters(1.0, 1e-5))


@pytest.fixture(scope="module")
def columns(release: Release) -> Columns:
    return Columns(marginals_of(released_mean(release), release.feature_map, SCHEMA))


def test_a_rare_class_is_told_by_all_its_columns_though_noise_hides_each(
    path: Path, release: Release, columns: Columns
) -> None:
    """Those of all classes are off by .6 of traits and .8 of numbers: twice as much."""
    assert has_own_columns(released_mean(release).noise).tolist() == [True, False]
    (batch,) = open_source(path, SourceOptions(schema=SCHEMA)).batches(1 << 20)
    records = (batch.records / np.float32(255)).astype(np.float32)[batch.labels == 1]
    cells = np.bincount(columns.marginals[0].cells(records)) / len(records)
    assert columns.marginals[0].noise[1] > 1.5 * cells.max()
    off: list[tuple[float, float]] = []
    for column in estimate_columns(release, 0):
        true = np.bincount(column.cells(records), minlength=column.shares.shape[1]) / len(records)
        own, all_ = (np.abs(column.shares[k] - true).sum() / 2 for k in (1, 0))
        off.append((float(own), float(all_)))
    own, all_ = np.mean(off, axis=0)
    assert all_ > 0.65
    assert own < 0.75 * all_


@pytest.fixture(scope="module")
def silent(release: Release) -> Margins:
    """Marginals of a class that say nothing."""
    margins = Margins.of(released_mean(release), parts_of(release.feature_map)).of_class(1)
    return replace(margins, precision=torch.zeros_like(margins.precision))


def pooled(columns: Columns) -> Shares:
    shares: Shares = np.concatenate([each.posterior_mean for each in columns.marginals], axis=1)[0]
    return shares


def test_where_nothing_is_known_columns_are_those_of_all(columns: Columns, silent: Margins) -> None:
    shares = pooled(columns)
    nothing = Evidence.uninformative(columns)
    found = tilted(columns, shares, 0.0, lambda _: nothing, silent)
    assert found == pytest.approx(shares, abs=1e-12)
    # With as much beyond the outermost cells as noise may hide, two times a third of it a column.
    noise = 1e-3
    found = tilted(columns, shares, noise, lambda _: nothing, silent)
    assert 0 < np.abs(found - shares).sum() < 2 * noise * NUMBERS


def seen(columns: Columns, around: Shares, wanted: Shares) -> Evidence:
    """That shares of choices are these, for sure: around wherever it is asked."""
    count = columns.overlap.shape[1]
    sure = 1e6
    slope = sure * torch.from_numpy((wanted - around) @ columns.overlap)
    return Evidence(sure * torch.eye(count, dtype=torch.float64), slope)


@pytest.mark.parametrize(("noise", "reached"), [(1e-3, True), (0.0, False)])
def test_tilts_are_those_that_are_seen(
    columns: Columns,
    silent: Margins,
    noise: float,
    reached: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where noise may hide numbers beyond those of all classes, they can go there."""
    monkeypatch.setattr("dpntk.generate.tables.columns.tilts.ROUNDS", 1)
    shares = pooled(columns)
    first = slice(0, columns.sizes[0])
    shares[first.stop - 3 : first.stop] = 0
    shares[first] /= shares[first].sum()
    beyond = int(np.flatnonzero(shares[first])[-1]) + 2
    wanted, traits = shares.copy(), slice(-columns.sizes[-1], None)
    wanted[first] = np.arange(columns.sizes[0]) == beyond
    wanted[traits] = 0.1, 0.9
    found = tilted(columns, shares, noise, lambda _: seen(columns, shares, wanted), silent)
    assert found[traits] == pytest.approx([0.1, 0.9], abs=1e-3)
    others = slice(first.stop, traits.start)
    assert np.abs(found[others] - shares[others]).max() < 0.05
    assert (found[beyond - 1 : first.stop].sum() > 0.5) == reached


def test_tilts_are_those_that_marginals_say(columns: Columns) -> None:
    """Even of a class of whose mean feature nothing else is known."""
    shares = pooled(columns)
    wanted, traits = shares.copy(), slice(-columns.sizes[-1], None)
    wanted[traits] = 0.1, 0.9
    cells, of_class = torch.arange(len(shares)), torch.from_numpy(wanted[None])
    sure = Margins(cells, cells, of_class, torch.full_like(of_class, 1e6))
    nothing = Evidence.uninformative(columns)
    found = tilted(columns, shares, 0.0, lambda _: nothing, sure)
    assert found == pytest.approx(wanted, abs=1e-3)
