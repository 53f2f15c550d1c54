"""Which runs the benchmark of distilled sets makes, and with which settings."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from benchmarks import distill as benchmark
from benchmarks.distill import METHODS, NO_NOISE, Run, runs_of, table


def test_what_has_no_noise_is_run_once_and_the_rest_for_each_epsilon() -> None:
    found = list(runs_of(["MNIST"], list(METHODS), [1.0, 10.0], [1], 2))
    assert [run.epsilon for run in found if run.method == NO_NOISE] == [math.inf, math.inf]
    noisy = [run for run in found if run.method != NO_NOISE]
    assert len(noisy) == 2 * 2 * (len(METHODS) - 1)
    assert {run.epsilon for run in noisy} == {1.0, 10.0}
    assert len({run.key for run in found}) == len(found)
    assert "MNIST | inf | 1 | distill, no noise | 1" in {run.key for run in found}


@pytest.mark.parametrize("epsilon", ["inf", "0", "nan"])
def test_no_noisy_method_gets_an_epsilon_that_means_no_noise(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], epsilon: str
) -> None:
    monkeypatch.setattr("sys.argv", ["distill", "MNIST=nowhere", "--epsilons", epsilon])
    with pytest.raises(SystemExit):
        benchmark.main()
    assert NO_NOISE in capsys.readouterr().err


@pytest.mark.parametrize(
    ("epsilon", "not_private", "smoothing"), [(math.inf, True, 0.0), (1.0, False, 1.5)]
)
def test_only_what_has_no_noise_is_not_private(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    epsilon: float,
    not_private: bool,
    smoothing: float,
) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(benchmark, "WORK", tmp_path)
    monkeypatch.setattr(benchmark, "open_source", lambda folder, options: folder)
    monkeypatch.setattr(benchmark, "distill", lambda *_, **options: asked.append(options))
    monkeypatch.setattr(benchmark, "generate", lambda release, folder: None)
    benchmark.distilled(tmp_path, Run("FashionMNIST", epsilon, 1, "any", 3), tmp_path / "synthetic")
    assert (asked[0]["epsilon"], asked[0]["not_private"]) == (epsilon, not_private)
    settings = asked[0]["settings"]
    assert (settings.smoothing, settings.seed, settings.per_class) == (smoothing, 3, 1)
    assert settings.steps == (600 if not_private else 200)


def test_the_table_says_that_what_has_no_noise_is_not_private() -> None:
    scores = {"kernel regression": 0.8, "ConvNet": 0.7, "seconds": 3.0}
    text = table({f"MNIST | {e} | 1 | m | 0": scores for e in ("inf", "10", "1")})
    assert "NOT private" in text
    rows = [line.split(" | ")[1] for line in text.splitlines() if line.startswith("| MNIST")]
    assert rows == ["1", "10", "inf"]
