"""The benchmark of the paper's own system goes the whole way, and its table shows what was run."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmarks import paper
from benchmarks.paper import DEFAULT, EPSILONS, PAPER, WIDTHS, Run, cells_of, table, wanted
from dpntk.common.features.ntk.presets import PRESETS
from dpntk.common.schema.classes import numbered
from dpntk.common.schema.image import ImageSchema
from dpntk.common.schema.origin import Origin
from dpntk.embed import TangentOptions
from dpntk.generate import TrainingSettings
from dpntk.generate.fit.recipe import ComposedSettings, settings_from
from tests.conftest import make_small_release
from tests.helpers.data_sets import write_idx


def test_quick_goes_the_whole_way_and_keeps_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("dpntk.evaluate.images.classifiers._MLP_STEPS", 5)
    results = tmp_path / "results.json"
    monkeypatch.setattr(paper, "RESULTS", results)
    random = np.random.default_rng(0)
    data = tmp_path / "data"
    data.mkdir()
    for part in ("train", "t10k"):
        images = random.integers(0, 256, (60, 8, 8), dtype=np.uint8)
        write_idx(data, images, np.arange(60) % 10, part)
    pictures = tmp_path / "pictures"
    paper.main([f"MNIST={data}", "--quick", "--pictures", str(pictures)])
    rows = capsys.readouterr().out.splitlines()
    assert [row.split(" | ")[3] for row in rows if row.startswith("| MNIST | 100 | 10 |")] == [
        DEFAULT, PAPER,
    ]  # fmt: skip
    assert not results.exists()
    with Image.open(pictures / "MNIST.png") as shown:
        assert shown.size == (3 * 10 * 8 + 2 * 20, 10 * 8)  # real, paper, default


def test_the_runs_are_those_of_table_1_and_figures_1_2_4() -> None:
    cells = cells_of(list(WIDTHS), list(EPSILONS))
    runs = list(wanted(["MNIST"], [PAPER], cells, 5000, 2000))
    assert [(run.width, run.epsilon) for run in runs] == [
        (100, 10.0), (400, 10.0), (800, 10.0), (1000, 10.0),
        (800, 0.2), (800, 1.0), (800, math.inf),
    ]  # fmt: skip
    assert {(run.batch, run.steps) for run in runs} == {(5000, 2000)}


def test_runs_of_other_batches_and_steps_are_rows_of_their_own() -> None:
    scores = {"logistic regression": 0.83, "MLP": 0.87, "seconds": 9.0}
    runs = [Run("MNIST", 800, 10.0, PAPER, 500, 2000, seed) for seed in range(2)]
    runs += [Run("MNIST", 800, math.inf, PAPER, 5000, 300, 0)]
    lines = table({run.key: scores for run in runs}).splitlines()[-2:]
    assert lines == [
        "| MNIST | 800 | 10 | paper | 500 x 2000 | 2 | 0.830 ± 0.000 | 0.870 ± 0.000 | 9 |",
        "| MNIST | 800 | inf | paper | 5000 x 300 | 1 | 0.830 | 0.870 | 9 |",
    ]


def test_the_papers_settings_are_those_of_the_recipe() -> None:
    schema = ImageSchema(28, numbered(10), Origin.FORMAT, Origin.DECLARED)
    feature_map = TangentOptions(preset="mnist").draw(schema)
    release = replace(make_small_release(), feature_map=feature_map, schema=schema)
    row = PRESETS["mnist"]
    run = Run("MNIST", 800, 10.0, PAPER, row.batch, row.steps, 3)
    recipe = settings_from({"recipe": "paper"}, TrainingSettings(seed=3), release)
    assert isinstance(recipe, ComposedSettings)
    assert run.settings(release, None) == replace(recipe, recipe="", presets=())
