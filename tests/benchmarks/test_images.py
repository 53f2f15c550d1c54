"""The benchmark of images: what is kept of a run, its table, and the yardstick beside it."""

from __future__ import annotations

import numpy as np

from benchmarks.gaussian import gaussian_records
from benchmarks.images import Run, table
from dpntk.common.adjacency import Adjacency
from tests.conftest import CLASSES, SIDE


def test_runs_that_differ_in_anything_are_kept_apart() -> None:
    first = Run("MNIST", 1.0, Adjacency.REPLACE_ONE, "default", 0)
    others = [
        Run("FashionMNIST", 1.0, Adjacency.REPLACE_ONE, "default", 0),
        Run("MNIST", 10.0, Adjacency.REPLACE_ONE, "default", 0),
        Run("MNIST", 1.0, Adjacency.ADD_REMOVE, "default", 0),
        Run("MNIST", 1.0, Adjacency.REPLACE_ONE, "Gaussian", 0),
        Run("MNIST", 1.0, Adjacency.REPLACE_ONE, "default", 1),
    ]
    assert len({run.key for run in (first, *others)}) == 6


def test_the_table_has_mean_and_standard_deviation_over_the_seeds() -> None:
    results = {
        Run("MNIST", epsilon, Adjacency.REPLACE_ONE, "default", seed).key: {
            "logistic regression": value,
            "MLP": value,
            "CNN": 0.9,
            "seconds": 10.0 + seed,
        }
        for epsilon, seed, value in ((1.0, 0, 0.8), (1.0, 1, 0.82), (0.2, 0, 0.7))
    }
    lines = table(results).splitlines()
    assert lines[-1] == (
        "| MNIST | 1 | replace-one | default | 2 | 0.810 ± 0.014 | 0.810 ± 0.014 | "
        "0.900 ± 0.000 | 10 |"
    )
    assert lines[-2] == "| MNIST | 0.2 | replace-one | default | 1 | 0.700 | 0.700 | 0.900 | 10 |"


def test_the_yardstick_has_the_means_and_covariances_of_the_records() -> None:
    """Without much noise its records have the moments of those that it was given."""
    random = np.random.default_rng(0)
    labels = random.integers(0, CLASSES, 6000)
    factors = random.normal(0, 8, (CLASSES, 3, SIDE**2))
    code = random.standard_normal((6000, 1, 3))
    exact = 120 + 5 * labels[:, None] + (code @ factors[labels])[:, 0]
    records = exact.round().clip(0, 255).astype(np.uint8)
    drawn = gaussian_records(
        records, labels, ("a", "b", "c"),
        epsilon=1e6, adjacency=Adjacency.REPLACE_ONE, count=6000, seed=1,
    )  # fmt: skip
    for label in range(CLASSES):
        made = drawn.pixels[drawn.labels == label].astype(float)
        given = records[labels == label].astype(float)
        assert np.abs(made.mean(axis=0) - given.mean(axis=0)).max() < 3
        covariance, wanted = np.cov(made.T), np.cov(given.T)
        assert np.linalg.norm(covariance - wanted) < 0.15 * np.linalg.norm(wanted)


def test_the_yardstick_drowns_in_noise_at_small_epsilon() -> None:
    random = np.random.default_rng(0)
    records = random.integers(0, 256, (300, SIDE**2), dtype=np.uint8)
    labels = random.integers(0, CLASSES, 300)
    drawn = gaussian_records(
        records, labels, ("a", "b", "c"),
        epsilon=0.01, adjacency=Adjacency.ADD_REMOVE, count=300, seed=1,
    )  # fmt: skip
    assert drawn.pixels.shape == (300, SIDE**2)
    assert np.bincount(drawn.labels).tolist() == [100, 100, 100]
