"""What a plan says of use: by simulation, of nothing but what is public."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpntk.common.features.joint import parts_of
from dpntk.common.schema.drafts.draft import Draft
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import Column, TableSchema, TangentOptions, embed
from dpntk.embed.exact.grid import DEFAULT_CAPACITY, Grid
from dpntk.generate.output.provenance import _LARGE, _noise_on_correlations, warn_of_noise
from dpntk.release import PrivacyParameters
from dpntk.release.commands.forecast import show_forecast
from dpntk.release.publishing.forecast import Estimate, Forecast, Forecasts, forecast
from dpntk.release.publishing.pipeline import unrecorded_release
from dpntk.release.publishing.plan import plan
from tests.conftest import Command
from tests.helpers.tables import PEOPLE, people

OPTIONS = TangentOptions(width=5)


def of_people(records: int, *epsilons: float) -> Forecasts:
    feature_map = OPTIONS.draw(PEOPLE)
    grid = Grid.for_capacity(PEOPLE.levels, DEFAULT_CAPACITY)
    plans = [
        plan(feature_map, grid, 2, records, PrivacyParameters(epsilon)) for epsilon in epsilons
    ]
    found = forecast(PEOPLE, plans)
    assert found is not None
    return found


def test_more_epsilon_and_more_records_show_more() -> None:
    few, many = of_people(500, 0.1, 1, 10), of_people(50_000, 0.1, 1, 10)
    for found in (few, many):
        errors = [error_of(each) for each in found.at]
        assert found.correlation is not None
        assert errors == sorted(errors, reverse=True)
        assert errors[0] <= found.correlation + 1e-9  # nobody need be worse than who knows nothing
        assert found.without_noise is not None
        assert found.by_chance + 0.1 < found.without_noise < 0.98
    for worse, better in zip(few.at, many.at, strict=True):
        assert error_of(better) < error_of(worse)
        assert lacking(many, better) < lacking(few, worse) + 0.02
    assert [few.mostly_noise(each) for each in few.at] == [True, False, False]
    assert not any(map(many.mostly_noise, many.at))
    assert lacking(many, many.at[-1]) < 0.02


def test_correlations_that_noise_distorts_make_no_classifier_worse() -> None:
    """Of many numbers in few records, where they begin to show only with much epsilon."""
    columns = [Column.continuous(f"c{n}", 0, 1) for n in range(30)]
    schema = TableSchema((*columns, Column.boolean("ill", ["no", "yes"])), label="ill")
    feature_map = OPTIONS.draw(schema)
    grid = Grid.for_capacity(schema.levels, DEFAULT_CAPACITY)
    promises = map(PrivacyParameters, (1.0, 3.0, 10.0, 30.0))
    found = forecast(schema, [plan(feature_map, grid, 2, 569, each) for each in promises])
    assert found is not None
    accuracies = [each.accuracy.mean for each in found.at if each.accuracy is not None]
    assert len(accuracies) == 4
    assert max(accuracies[:2]) > found.by_chance + 0.1
    for less, more in pairwise(accuracies):
        assert more > less - 0.02


def test_numbers_are_seen_to_go_together_in_pairs_of_few_cells() -> None:
    """Products alone show nothing of eight numbers and three categories in so few rows."""
    columns = [Column.continuous(f"c{n}", 0, 1) for n in range(8)]
    columns += [Column.categorical(f"k{n}", list("abcde")) for n in range(3)]
    schema = TableSchema((*columns, Column.boolean("ill", ["no", "yes"])), label="ill")
    grid = Grid.for_capacity(schema.levels, DEFAULT_CAPACITY)
    errors = []
    for pairs in ((), ("none",)):
        feature_map = replace(OPTIONS, pairs=pairs).draw(schema)
        planned = plan(feature_map, grid, 2, 2_500, PrivacyParameters(1.0))
        found = forecast(schema, [planned])
        assert found is not None
        errors.append(error_of(found.at[0]))
    with_pairs, without = errors
    assert with_pairs < without / 2


def test_it_says_between_what_the_correlations_are() -> None:
    """A single number goes together with categories only."""
    assert of_people(500, 1).between == "numbers"
    schema = TableSchema(tuple(each for each in PEOPLE.columns if each.name != "pay"), "ill")
    grid = Grid.for_capacity(schema.levels, DEFAULT_CAPACITY)
    planned = plan(OPTIONS.draw(schema), grid, 2, 500, PrivacyParameters(1.0))
    found = forecast(schema, [planned])
    assert found is not None
    assert found.between == "columns"
    assert found.correlation


def error_of(each: Forecast) -> float:
    """Of correlations."""
    assert each.correlation_error is not None
    return each.correlation_error.mean


def lacking(found: Forecasts, each: Forecast) -> float:
    """How much less accurate one is than without noise."""
    assert each.accuracy is not None
    assert found.without_noise is not None
    return found.without_noise - each.accuracy.mean


def test_products_in_a_release_have_the_noise_that_is_simulated(tmp_path: Path) -> None:
    """Taken from twelve releases of 45 products each: within 20 % but for one case in 10^10."""
    (tmp_path / "people.csv").write_text(people(300))
    options = replace(OPTIONS, pairs=("none",), marginals=0.4, moments=0.3)
    embedding = embed(tmp_path / "people.csv", options, SourceOptions(schema=PEOPLE))
    parts = parts_of(embedding.feature_map)
    assert parts.moments is not None
    exact = embedding.sums * (embedding.grid.unit / embedding.records)
    above = np.triu_indices(parts.moments.factors, 1)
    drawn = []
    for _ in range(12):
        made = unrecorded_release(embedding, PrivacyParameters(1.0, 1e-3))
        noise = (made.embedding - exact)[parts.moment_place].sum(axis=1) / parts.moment_weight
        twice = noise.reshape(parts.moments.factors, parts.moments.factors)
        drawn.append(((twice + twice.T) / 2)[above])
    planned = plan(
        embedding.feature_map, embedding.grid, 2, 300, PrivacyParameters(1.0, 1e-3)
    )  # fmt: skip
    simulated = planned.blur / np.sqrt(2) / parts.moment_weight / np.sqrt(2)
    assert np.std(drawn) == pytest.approx(simulated, rel=0.2)
    # What is said after the release has the same scale.
    wide = _noise_on_correlations(made)
    assert wide == pytest.approx(parts.moments.noise_on_correlations(simulated))
    assert wide > _LARGE


def test_a_plan_says_what_could_be_learnt_and_where_it_is_mostly_noise(
    dpntk: Command, tmp_path: Path
) -> None:
    (tmp_path / "schema.toml").write_text(Draft(PEOPLE).to_toml())
    options = ("plan", "--schema", "schema.toml", "--width", 5, "--records", 500, "--eps")
    noisy = " ".join(dpntk(*options, 0.1).stdout.split())
    assert "error of numbers' correlations" in noisy
    assert "Mostly noise: with epsilon 0.1" in noisy
    assert "(0.3 would do for " in noisy
    assert "Mostly noise" not in dpntk(*options, 10).stdout
    told = json.loads(dpntk(*options, 0.1, "--json").stdout)["forecast"]
    assert [each["epsilon"] for each in told["at"]] == [0.01, 0.03, 0.1, 0.3, 1]
    here = told["at"][2]
    assert here["mostly_noise"]
    assert f"{here['correlation_error']['mean']:.3f} ± " in noisy
    assert told["by_chance"] == 0.5
    # There is nothing to tell it by.
    assert json.loads(dpntk(*options, 1, "--moments", 0, "--json").stdout)["forecast"] is None


@pytest.mark.parametrize(
    ("error", "accuracy", "said"),
    [
        (0.25, 0.55, "Mostly noise: with epsilon 1 the release would show less than half of how "
         "columns go together and of what tells classes apart. What helps: more records, a larger "
         "epsilon (3 would do for what tells classes apart), fewer"),
        (0.25, 0.79, "Partly noise: with epsilon 1 the release would show less than half of how "
         "columns go together. What helps: more records, a larger epsilon (10 would do), fewer"),
        (0.05, 0.55, "Partly noise: with epsilon 1 the release would show less than half of what "
         "tells classes apart. What helps: more records, a larger epsilon (3 would do), fewer"),
        (0.05, 0.79, ""),
    ],
)  # fmt: skip
def test_what_is_lost_is_named_and_what_epsilon_would_show_it(
    capsys: pytest.CaptureFixture[str], error: float, accuracy: float, said: str
) -> None:
    at = tuple(
        Forecast(epsilon, Estimate(of_pairs, 0.01), Estimate(of_classes, 0.01))
        for epsilon, of_pairs, of_classes in (
            (1.0, error, accuracy), (3.0, 0.2, 0.75), (10.0, 0.1, 0.8)
        )
    )  # fmt: skip
    show_forecast(Forecasts(at, correlation=0.3, without_noise=0.8, by_chance=0.5), 1.0)
    shown = " ".join(capsys.readouterr().out.split())
    assert said in shown
    assert ("noise: with" in shown) == bool(said)


def test_single_columns_are_lost_before_their_noise_is_as_large_as_they_are_wide(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A plan and its release say so alike: of a hundred numbers and a third of the epsilon."""
    random = np.random.default_rng(0)
    for count, epsilon, said in ((8, 1.0, False), (100, 1.0, False), (100, 0.3, True)):
        names = [f"c{n}" for n in range(count)]
        columns = [Column.continuous(name, 0, 1) for name in names]
        schema = TableSchema((*columns, Column.boolean("ill", ["no", "yes"])), label="ill")
        rows = pd.DataFrame(random.random((1_000, count)), columns=names)
        rows["ill"] = np.where(random.random(1_000) < 0.5, "yes", "no")
        embedded = embed(rows, OPTIONS, SourceOptions(schema=schema))
        parameters = PrivacyParameters(epsilon)
        planned = plan(embedded.feature_map, embedded.grid, 2, 1_000, parameters)
        found = forecast(schema, [planned])
        assert found is not None
        (here,) = found.at
        assert found.shows_columns(here) != said
        show_forecast(found, epsilon)
        shown = " ".join(capsys.readouterr().out.split())
        assert ("would show less than half of single columns" in shown) == said
        warn_of_noise(unrecorded_release(embedded, parameters))
        warned = " ".join(capsys.readouterr().err.split())
        assert ("single columns are mostly noise in this release" in warned) == said


def test_the_noise_on_a_mean_is_that_of_its_cells() -> None:
    """By simulation of noise on the cells of numbers, whose places are from 0 to 1."""
    marginals = parts_of(OPTIONS.draw(PEOPLE)).marginals
    assert marginals is not None
    random, errors = np.random.default_rng(0), []
    for column in marginals.columns:
        if column.cells:
            noise = random.normal(0, 0.01, (4_000, column.cells)) / marginals.entry
            errors.append((noise @ (np.linspace(0, 1, column.cells) - 0.5)).std())
    assert marginals.noise_on_means(0.01) == pytest.approx(np.mean(errors), rel=0.05)


def test_it_depends_on_no_record(dpntk: Command, tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text(Draft(PEOPLE).to_toml())
    said = []
    for seed in (0, 1):
        (tmp_path / "people.csv").write_text(people(200, seed))
        made = dpntk("embed", "people.csv", "--schema", "schema.toml", "--width", 5, "--overwrite")
        assert made.code == 0, made.stderr
        said.append(dpntk("plan", "embedding.h5", "--eps", 1).stdout)
    assert said[0] == said[1]
    assert "made-up rows" in said[0]
