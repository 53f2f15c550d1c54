"""The benchmark of the paper's own system: it goes the whole way, and its table shows both."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmarks import paper
from benchmarks.paper import DEFAULT, PAPER, PRINTED, Run, table, wanted
from dpntk.common.features.ntk.presets import PRESETS
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
    runs = list(wanted(["MNIST"], [PAPER], 500, 1))
    assert [(run.width, run.epsilon) for run in runs] == [
        (100, 10.0), (400, 10.0), (800, 10.0), (1000, 10.0),
        (800, 0.2), (800, 1.0), (800, math.inf),
    ]  # fmt: skip
    cells = {("MNIST", run.width, run.epsilon) for run in runs}
    assert {cell for cell in PRINTED if cell[0] == "MNIST"} == cells - {("MNIST", 800, math.inf)}


def test_what_was_printed_stands_beside_the_papers_system_alone() -> None:
    scores = {"logistic regression": 0.83, "MLP": 0.87, "seconds": 9.0}
    runs = [Run("MNIST", 800, 10.0, method, 500, 0) for method in (PAPER, DEFAULT)]
    runs += [Run("MNIST", 800, math.inf, PAPER, 500, seed) for seed in range(2)]
    ours, default = "0.830 / 0.870", "| MNIST | 800 | 10 | default"
    lines = table({run.key: scores for run in runs}).splitlines()[-3:]
    assert lines == [
        f"{default} | 500 | 1 | {ours} |  | 9 |",
        f"| MNIST | 800 | 10 | paper | 500 | 1 | {ours} | 0.840 / 0.880 | 9 |",
        f"| MNIST | 800 | none | paper | 500 | 2 | {ours} |  | 9 |",
    ]


def test_the_papers_settings_are_those_of_its_table_5() -> None:
    settings = Run("MNIST", 800, 10.0, PAPER, PRESETS["mnist"].batch, 3).settings
    chosen = settings(None, None)  # type: ignore[arg-type]
    row = PRESETS["mnist"]
    assert (chosen.steps, chosen.batch, chosen.seed) == (row.steps, row.batch, 3)
