"""The benchmark of colour images: what it measures, and its section."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from benchmarks import colour
from benchmarks.colour import DEFAULT, GAUSSIAN, REAL, SCORES, images_of, result_of, section
from benchmarks.images import PERMUTED, PURE_NOISE, Run
from benchmarks.material.records import training_part
from dpntk.common.adjacency import Adjacency
from dpntk.evaluate.images.frechet import FeatureMetric
from dpntk.generate import TrainingSettings, generate


def run(method: str, seed: int = 0) -> Run:
    return Run("CIFAR-10", 10.0, Adjacency.REPLACE_ONE, method, seed)


def test_real_images_are_near_and_gaussian_ones_are_farther(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stripes of ten kinds in three channels; what is measured is all that the table shows."""
    monkeypatch.setattr("dpntk.evaluate.images.utility.CLASSIFIERS", {})
    monkeypatch.setattr("dpntk.evaluate.images.utility.IN_COLOUR", {})
    monkeypatch.setattr(colour, "RECORDS", 300)
    random = np.random.default_rng(0)
    labels = np.arange(900) % 10
    images = random.integers(0, 100, (900, 8, 8, 3))
    images[np.arange(900), :, labels % 8] += 120
    np.savez(tmp_path / "train.npz", x=images.astype(np.uint8), y=labels)
    train = training_part(tmp_path / "train.npz")
    assert train.channels == 3
    metric = FeatureMetric.of_pixels(train.shape)
    found = {}
    for method in (REAL, GAUSSIAN):
        made = images_of(run(method), tmp_path, train, None, tmp_path)
        assert made.shape == train.shape
        assert len(made) == 300
        found[method] = result_of(made, train, metric, 0)
    assert set(found[REAL]) < set(SCORES)
    assert found[REAL]["Frechet distance"] < 0.5 * found[GAUSSIAN]["Frechet distance"]


def test_the_controls_know_nothing_of_the_classes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of bright and dark images the default's differ in brightness by class, and theirs do not."""
    monkeypatch.setattr(colour, "RECORDS", 60)
    monkeypatch.setattr(colour, "CLASSES", 2)
    settings = TrainingSettings(steps=2, batch=8)
    monkeypatch.setattr(colour, "generate", partial(generate, settings=settings))
    labels = np.arange(2_000) % 2
    images = (
        np.random.default_rng(0).integers(0, 60, (2_000, 8, 8, 3))
        + 150 * labels[:, None, None, None]
    )
    np.savez(tmp_path / "train.npz", x=images.astype(np.uint8), y=labels)
    train = training_part(tmp_path / "train.npz")
    apart = {}
    for method in (DEFAULT, PURE_NOISE, PERMUTED):
        made = images_of(run(method), tmp_path / "train.npz", train, None, tmp_path)
        brightness = made.images().mean(axis=1)
        apart[method] = abs(
            brightness[made.labels == 1].mean() - brightness[made.labels == 0].mean()
        )
    assert apart[DEFAULT] > 0.4
    assert max(apart[PURE_NOISE], apart[PERMUTED]) < 0.1


def test_the_section_has_means_over_the_seeds() -> None:
    results = {
        run(method, seed).key: dict.fromkeys(SCORES, 0.25 + 0.5 * seed) | {"seconds": 3.0}
        for method, seeds in ((REAL, 1), ("default", 2))
        for seed in range(seeds)
    }
    lines = section(results).splitlines()
    assert lines[-2].startswith("| CIFAR-10 | 10 | default | 2 | 0.500 ± 0.354 |")
    assert lines[-1].startswith("| CIFAR-10 | 10 | real | 1 | 0.250 |")
    assert {line.count("|") for line in lines[-4:]} == {6 + len(SCORES)}
