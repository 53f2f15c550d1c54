"""The benchmark of images: what is kept of a run, its table, and the yardstick beside it."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks import images, sections
from benchmarks.baselines.gaussian import gaussian_records
from benchmarks.images import REAL, Run, main, table
from benchmarks.material.public_module import write
from dpntk.common.adjacency import Adjacency
from dpntk.common.schema.classes import numbered
from dpntk.evaluate.images.classifiers import CLASSIFIERS
from dpntk.evaluate.images.records import LabelledImages, read_real
from tests.conftest import CLASSES, SIDE
from tests.helpers.data_sets import write_idx


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


def test_runs_that_have_no_distance_have_an_empty_cell() -> None:
    """And as long as none has one there is no such column."""
    old = {Run("MNIST", 1.0, Adjacency.REPLACE_ONE, "default", 0).key: {
        **dict.fromkeys(CLASSIFIERS, 0.9), "seconds": 5.0,
    }}  # fmt: skip
    assert "Frechet" not in table(old)
    new = {
        Run("MNIST", 10.0, Adjacency.REPLACE_ONE, "default", 0).key: {
            **dict.fromkeys(CLASSIFIERS, 0.95), "Frechet distance, 0123abcd": 7.25, "seconds": 6.0,
        },
        Run("MNIST", math.inf, Adjacency.REPLACE_ONE, REAL, 0).key: {
            "Frechet distance, 0123abcd": 0.5, "seconds": 0.0,
        },
    }  # fmt: skip
    heading, _, *rows = table({**old, **new}).splitlines()[-5:]
    assert heading.endswith(" | CNN | Frechet distance, 0123abcd | s |")
    assert rows == [
        "| MNIST | 1 | replace-one | default | 1 | 0.900 | 0.900 | 0.900 |  | 5 |",
        "| MNIST | 10 | replace-one | default | 1 | 0.950 | 0.950 | 0.950 | 7.250 | 6 |",
        f"| MNIST |  |  | {REAL} |  |  |  |  | 0.500 |  |",
    ]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Grey images of ten brightnesses, and a place for results."""
    monkeypatch.setattr(images, "RESULTS", tmp_path / "images.json")
    monkeypatch.setattr(sections, "put_section", lambda text: None)
    monkeypatch.setattr("dpntk.evaluate.images.utility.CLASSIFIERS", {})
    random = np.random.default_rng(0)
    for part, count in (("train", 300), ("t10k", 200)):
        labels = np.arange(count) % 10
        shown = random.integers(0, 50, (count, 8, 8)) + 20 * labels[:, None, None]
        write_idx(tmp_path / "data", shown.astype(np.uint8), labels, part)
    return tmp_path / "data"


def test_distances_are_kept_beside_accuracies_and_once_those_of_real_images(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In features of two modules that say means of parts: a closed form is known for these."""
    for name, parts in (("halves.pt", (1, 2)), ("quarters.pt", (2, 2))):
        means = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(parts), torch.nn.Flatten())
        write(means, tmp_path / name, (1, 8, 8))
    white = LabelledImages(np.full((80, 64), 255, np.uint8), np.arange(80) % 10, numbered(10), {})
    monkeypatch.setattr(images, "METHODS", {"default": lambda *_: white})
    old = {Run("MNIST", 1.0, Adjacency.REPLACE_ONE, "default", 0).key: {"CNN": 0.5, "seconds": 1.0}}
    (tmp_path / "images.json").write_text(json.dumps(old))
    arguments = [f"MNIST={data}", "--methods", "default", "--seeds", "1", "--epsilons", "1", "10"]
    modules = [tmp_path / "halves.pt", tmp_path / "quarters.pt"]
    main([*arguments, "--metric-module", *map(str, modules)])
    results = json.loads((tmp_path / "images.json").read_text())
    real = Run("MNIST", math.inf, Adjacency.REPLACE_ONE, REAL, 0).key
    new = Run("MNIST", 10.0, Adjacency.REPLACE_ONE, "default", 0).key
    assert results.keys() == {*old, new, real}
    assert {key: results[key] for key in old} == old  # finished is finished
    test = read_real(data, "test", white).images()
    for module, said in (
        (modules[0], test.reshape(-1, 8, 2, 4).mean(axis=(1, 3))),
        (modules[1], test.reshape(-1, 2, 4, 2, 4).mean(axis=(2, 4)).reshape(-1, 4)),
    ):
        name = f"Frechet distance, {hashlib.sha256(module.read_bytes()).hexdigest()[:8]}"
        assert 0 < results[real][name] < 0.02
        # White images have no covariance: squared shift of means, and the trace of the others.
        wanted = np.square(1 - said.mean(axis=0)).sum() + said.var(axis=0, ddof=1).sum()
        assert results[new][name] == pytest.approx(wanted, rel=1e-4)


def test_a_module_that_is_none_is_refused_in_one_line_before_anything_runs(
    data: Path, tmp_path: Path
) -> None:
    (tmp_path / "net.pt").write_bytes(b"nothing")
    with pytest.raises(SystemExit, match=r"^images: .*net\.pt: not a TorchScript archive"):
        main([f"MNIST={data}", "--metric-module", str(tmp_path / "net.pt")])
    assert not (tmp_path / "images.json").exists()


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
