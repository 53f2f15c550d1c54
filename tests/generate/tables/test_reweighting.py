"""Which rows of a generator are kept: the tilt is the best one, and rare classes are told apart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from dpntk.common.errors import GeneratorError
from dpntk.common.features.base import FeatureMap
from dpntk.common.features.marginals.map import MarginalFeatures
from dpntk.common.schema.encoding import blocks_of
from dpntk.common.sources import open_source
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import FeatureOptions, FourierOptions, HermiteOptions, TangentOptions, embed
from dpntk.generate import load_generator
from dpntk.generate.fit.settings import TableSettings
from dpntk.generate.kernels.mean_embedding import pooled_mean, released_mean
from dpntk.generate.tables.export import SavedTableGenerator, write_table
from dpntk.generate.tables.generators.knots import TableGenerator, TableGeneratorSpec
from dpntk.generate.tables.marginals.released import ColumnMarginal, marginals_of
from dpntk.generate.tables.reweighting import (
    Reweighting,
    RowFeatures,
    best_tilt,
    reweighting_of,
    rows_that_fit,
)
from dpntk.generate.tables.sampling import RowModel, corrected_rows, draw_rows
from dpntk.generate.tables.training import train_table
from dpntk.release import PrivacyParameters
from dpntk.release.file.model import Release
from dpntk.release.publishing.pipeline import unrecorded_release
from tests.helpers.tables import HEADER, people
from tests.helpers.tables import RANKED as PEOPLE

MAPS = {
    "tangent features beside marginals": TangentOptions(width=3),
    "with a pair": TangentOptions(width=3, pairs=["age,town"]),
    "tangent features alone": TangentOptions(width=3, marginals=0.0),
    "marginals alone": MarginalFeatures.of(PEOPLE),
    "random Fourier features": FourierOptions(frequencies=20),
    "Hermite features": HermiteOptions(),
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("table") / "a.csv"
    path.write_text(people(300))
    return path


def read(path: Path) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    (batch,) = open_source(path, SourceOptions(schema=PEOPLE)).batches(1 << 20)
    return (batch.records / np.float32(255)).astype(np.float32), batch.labels


@pytest.mark.parametrize("features", MAPS.values(), ids=MAPS)
def test_features_of_rows_are_those_that_were_embedded(
    table: Path, features: FeatureOptions | FeatureMap
) -> None:
    """The mean over a class's rows of <v, phi(x)> is <v, mean feature> of a noiseless release."""
    made = unrecorded_release(
        embed(table, features, SourceOptions(schema=PEOPLE)), PrivacyParameters(4e5, 1e-3)
    )
    records, labels = read(table)
    mean = released_mean(made)
    values = torch.from_numpy(mean.values).double()
    v = torch.randn(len(values), generator=torch.Generator().manual_seed(0))
    for label in range(2):
        rows = RowFeatures(made.feature_map, records[labels == label])
        found = float(rows.inner(v).double().mean())
        # Classes differ by more than 0.1.
        close = 1e-3 + 5 * float(mean.noise[label]) * float(v.norm())
        assert close < 0.02
        assert found == pytest.approx(float(v.double() @ values[:, label]), abs=close)


def test_no_more_rows_are_held_than_there_is_room_for(table: Path) -> None:
    """Gradients of convolutions are written out, those of linear layers are not."""
    dense = embed(
        table, TangentOptions(width=3, marginals=0.0), SourceOptions(schema=PEOPLE)
    ).feature_map
    convolution = embed(
        table, TangentOptions(arch="cnn_1l", width=64, marginals=0.0), SourceOptions(schema=PEOPLE)
    ).feature_map
    held = {}
    for name, feature_map in (("dense", dense), ("convolution", convolution)):
        for rows in (1, 3):
            records = np.zeros((rows, PEOPLE.record_size), np.float32)
            held[name, rows] = RowFeatures(feature_map, records).numbers()
        assert held[name, 3] == 3 * held[name, 1]
        assert rows_that_fit(feature_map, 5) == 5
        assert rows_that_fit(feature_map, 1 << 40) == (1 << 28) // held[name, 1]
    # Of 3 units: how they change the output, what went in, what came out, and the norm.
    assert held["dense", 1] == 3 + PEOPLE.record_size + 3 + 1
    assert held["convolution", 1] > 64 * 9


def test_the_tilt_leaves_what_its_price_is_worth(table: Path) -> None:
    """Where the dual is largest, theta is (mu - E_P phi) / ridge."""
    made = unrecorded_release(
        embed(table, TangentOptions(width=3), SourceOptions(schema=PEOPLE)),
        PrivacyParameters(4e5, 1e-3),
    )
    records, labels = read(table)
    mu = torch.tensor(released_mean(made).values[:, 1])
    features, ridge = RowFeatures(made.feature_map, records), 0.002
    theta = best_tilt(features, mu, ridge)
    shares = features.inner(theta).softmax(0)
    probe = torch.eye(len(mu))[:: len(mu) // 40]
    mean = torch.stack([shares @ features.inner(direction) for direction in probe])
    assert torch.allclose(ridge * (probe @ theta), probe @ mu - mean, atol=2e-4)
    # Rows of the class get most of the mass, though they are three in ten.
    assert float(shares[torch.from_numpy(labels == 1)].sum()) > 0.8
    cautious = features.inner(best_tilt(features, mu, 100.0)).softmax(0)
    assert float(cautious[torch.from_numpy(labels == 1)].sum()) < 0.4


def test_rows_are_drawn_as_the_tilt_says_and_none_twice() -> None:
    """Of two kinds of rows, one is tilted by log 3."""
    feature_map = MarginalFeatures.of(PEOPLE)
    kinds = np.zeros((2, PEOPLE.record_size), dtype=np.float32)
    kinds[1, 0] = 1.0
    theta = torch.zeros(feature_map.dimension)
    entry = feature_map.entry
    last = feature_map.hits(torch.from_numpy(kinds[1:] * 255))[0, 0]
    theta[last] = float(np.log(3)) / entry
    asked: list[tuple[int, int]] = []

    def rows(label: int, count: int) -> NDArray[np.float32]:
        asked.append((label, count))
        made = kinds[np.arange(count) % 2].copy()
        made[:, 1] = np.arange(count) + 4000 * len(asked)  # to be told apart by
        return made

    some = np.array([1, 40])
    reweighting = Reweighting(feature_map, torch.stack([theta, theta]).numpy(), some, some > 1)
    drawn = reweighting.draw(1, 400, rows, np.random.default_rng(0))
    assert {label for label, _ in asked} == {1}
    assert sum(count for _, count in asked) == 400 * 40
    assert len(np.unique(drawn[:, 1])) == len(drawn) == 400
    assert float(drawn[:, 0].mean()) == pytest.approx(0.75, abs=0.07)  # 3 standard deviations
    assert float(reweighting.draw(0, 400, rows, np.random.default_rng(0))[:, 0].mean()) == 0.5


def test_what_was_chosen_is_corrected_unless_its_candidates_are_those_of_all() -> None:
    """A tilt towards one town: it stays where marginals are pooled, and goes where they are not."""
    feature_map, town = MarginalFeatures.of(PEOPLE), blocks_of(PEOPLE)[3]
    theta = np.zeros((2, feature_map.dimension), np.float32)
    theta[:, feature_map.places[3].start + 1] = 100 / feature_map.entry
    shares = np.full((2, 4), 0.25)
    marginals = (ColumnMarginal(town, shares, np.zeros(2)),)
    reweighting = Reweighting(feature_map, theta, np.array([20, 20]), np.array([True, False]))
    generator = TableGenerator(TableGeneratorSpec(4, 8), PEOPLE).eval()
    model = RowModel(PEOPLE, generator, marginals, reweighting)
    made = draw_rows(model, 200, np.array([0.5, 0.5]), 0).table
    ill = made["ill"].to_numpy()
    bonn = made["town"].to_pylist()
    found = [np.mean([t == "Bonn" for t, i in zip(bonn, ill, strict=True) if i == known])
             for known in ("no", "yes")]  # fmt: skip
    assert found == [1.0, 0.25]


def test_outliers_stay_only_where_rows_are_those_of_all() -> None:
    """Of these the rare class may need what is rare among all."""
    pay, cells = blocks_of(PEOPLE)[1], 65
    shares = np.zeros((2, cells))
    shares[:, 20:30], shares[:, 60] = 0.1, 0.005
    marginals = (ColumnMarginal(pay, shares, np.full(2, 0.004)),)
    feature_map = MarginalFeatures.of(PEOPLE)
    theta = np.zeros((2, feature_map.dimension), np.float32)
    reweighting = Reweighting(feature_map, theta, np.array([1, 1]), np.array([True, False]))
    generator = TableGenerator(TableGeneratorSpec(4, 8), PEOPLE).eval()
    model = RowModel(PEOPLE, generator, marginals, reweighting)
    made = draw_rows(model, 4000, np.array([0.5, 0.5]), 0).table
    ill, paid = made["ill"].to_numpy() == "yes", made["pay"].to_numpy()
    far = pay.encoding.at(np.array([45 / 63]))[0]  # type: ignore[union-attr]
    assert np.nanmax(paid[ill]) < far < np.nanmax(paid[~ill])


def rare(count: int, ill: int) -> str:
    """Rows of which a few are ill; these are old and live in Bonn."""
    lines = people(count * 4, seed=1).splitlines()[1:]
    sick = [line for line in lines if line.endswith("yes")][:ill]
    well = [line for line in lines if line.endswith("no")][: count - ill]
    return "\n".join([HEADER, *sick, *well]) + "\n"


@pytest.fixture(scope="module")
def low_signal(tmp_path_factory: pytest.TempPathFactory) -> Release:
    path = tmp_path_factory.mktemp("table") / "rare.csv"
    path.write_text(rare(6000, 200))
    return unrecorded_release(
        embed(path, TangentOptions(width=20), SourceOptions(schema=PEOPLE)),
        PrivacyParameters(1.0, 1e-5),
    )


def test_a_class_with_low_signal_is_taken_for_the_mean_of_all(low_signal: Release) -> None:
    alone, pooled = released_mean(low_signal), pooled_mean(low_signal)
    assert list(alone.low_signal) == [1]
    assert np.array_equal(alone.values[:, 0], pooled.values[:, 0])
    assert np.allclose(pooled.values[:, 1], low_signal.embedding.sum(axis=1))
    assert pooled.noise[0] == alone.noise[0]
    # Noise of both columns, added up.
    assert pooled.noise[1] == pytest.approx(low_signal.noise_per_coordinate * 2**0.5)


def test_rows_of_a_rare_class_tell_it_from_the_others(
    low_signal: Release, table: Path, tmp_path: Path
) -> None:
    """200 rows at epsilon 1: what is learnt from the chosen rows holds for real ones."""
    generator = train_table(low_signal, TableSettings(steps=60)).generator
    marginals = marginals_of(pooled_mean(low_signal), low_signal.feature_map, PEOPLE)
    rows = corrected_rows(generator, marginals, torch.Generator().manual_seed(0))
    reweighting = reweighting_of(low_signal, rows)
    assert list(reweighting.pooled) == [False, True]
    assert reweighting.candidates[1] > reweighting.candidates[0] >= 1

    model = RowModel(PEOPLE, generator, marginals, reweighting)
    saved = SavedTableGenerator(model, low_signal.class_weights, {})
    made = saved.draw(4000, 0).table
    write_table(tmp_path / "s", saved, made, {})
    again = load_generator(tmp_path / "s" / "generator.safetensors")
    assert isinstance(again, SavedTableGenerator)
    assert again.draw(4000, 0).table.equals(made)

    records, known = read(tmp_path / "s" / "table.parquet")
    classifier = LogisticRegression(max_iter=1000, class_weight="balanced").fit(records, known)
    real, labels = read(table)
    assert roc_auc_score(labels, classifier.decision_function(real)) > 0.85


def test_a_generator_whose_tilt_does_not_fit_is_refused(
    low_signal: Release, tmp_path: Path
) -> None:
    generator = train_table(low_signal, TableSettings(steps=1)).generator
    shares = low_signal.class_weights
    good = Reweighting(
        low_signal.feature_map,
        np.zeros((2, low_signal.feature_map.dimension), np.float32),
        np.ones(2, np.int64),
        np.zeros(2, np.bool_),
    )
    table = draw_rows(RowModel(PEOPLE, generator), 2, shares, 0).table
    wrong = (
        replace(good, theta=good.theta[:1]),
        replace(good, theta=good.theta * np.float32("nan")),
        replace(good, candidates=good.candidates - 1),
        replace(good, candidates=good.candidates * 10**9),
        replace(good, pooled=good.pooled[:1]),
        replace(good, feature_map=MarginalFeatures.of(PEOPLE)),
    )
    for number, reweighting in enumerate((good, *wrong)):
        folder = tmp_path / str(number)
        model = RowModel(PEOPLE, generator, reweighting=reweighting)
        write_table(folder, SavedTableGenerator(model, shares, {}), table, {})
        if reweighting is good:
            load_generator(folder / "generator.safetensors")
            continue
        with pytest.raises(GeneratorError, match="tilts contradict"):
            load_generator(folder / "generator.safetensors")
