"""The Frechet distance is its formula, and says what there is to say of images without labels."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.linalg import sqrtm
from torch import Tensor, nn

from dpntk.common.errors import DataError, ModuleError
from dpntk.evaluate.images.frechet import FeatureMetric, Gaussian
from dpntk.evaluate.images.records import LabelledImages
from tests.conftest import Command, refused
from tests.helpers.modules import write_convolutions, write_module


def images_of(pixels: NDArray[np.uint8]) -> LabelledImages:
    labels = np.zeros(len(pixels), np.int64)
    return LabelledImages(pixels.reshape(len(pixels), -1), labels, ("0",), {}, pixels.shape[1])


def noise(count: int, seed: int, most: int = 256, channels: int = 1) -> NDArray[np.uint8]:
    random = np.random.default_rng(seed)
    return random.integers(0, most, (count, channels, 8, 8), dtype=np.uint8)


def write(path: Path, pixels: NDArray[np.uint8], **labels: object) -> Path:
    np.savez(path, x=pixels.transpose(0, 2, 3, 1), **labels)  # type: ignore[arg-type]
    return path


def test_it_is_the_formula() -> None:
    one, other = (
        Gaussian.of(
            FeatureMetric.of_pixels((1, 8, 8)).features_of(images_of(noise(300, seed, most)))
        )
        for seed, most in ((0, 256), (1, 200))
    )
    root = sqrtm(one.covariance @ other.covariance).real
    expected = np.sum((one.mean - other.mean) ** 2) + np.trace(
        one.covariance + other.covariance - 2 * root
    )
    assert one.distance(other) == pytest.approx(expected, rel=1e-9)
    assert one.distance(other) == pytest.approx(other.distance(one), rel=1e-9)
    assert one.distance(one) == pytest.approx(0, abs=1e-9)


def test_of_normal_features_it_is_known() -> None:
    shift, scale = np.array([1.0, 2.0]), 3.0
    one = Gaussian(np.zeros(2), np.eye(2))
    assert one.distance(Gaussian(shift, scale**2 * np.eye(2))) == pytest.approx(5 + 2 * 2**2)
    assert one.distance(Gaussian(shift, np.zeros((2, 2)))) == pytest.approx(5 + 2)


def test_pixels_are_averaged_channel_by_channel() -> None:
    small = FeatureMetric.of_pixels((3, 32, 32)).features
    images = torch.rand(2, 3, 32, 32)
    blocks = images.view(2, 3, 16, 2, 16, 2).mean(dim=(3, 5))
    assert torch.allclose(small(images.flatten(1)), blocks.flatten(1), atol=1e-6)


def test_features_are_what_the_module_says(tmp_path: Path) -> None:
    network = write_convolutions(tmp_path / "module.pt")
    metric = FeatureMetric.of_module(tmp_path / "module.pt", (1, 8, 8))
    pixels = noise(250, 0)
    with torch.no_grad():
        said = network(torch.from_numpy(pixels).float() / 255).flatten(1).double().numpy()
    found = Gaussian.of(metric.features_of(images_of(pixels)))
    assert np.allclose(found.mean, said.mean(axis=0), atol=1e-5)
    assert np.allclose(found.covariance, np.cov(said, rowvar=False), atol=1e-5)


class Wide(nn.Module):
    """Says a great deal."""

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1).repeat(1, 100)


def test_what_cannot_be_measured_is_refused(tmp_path: Path) -> None:
    write_module(Wide(), tmp_path / "wide.pt")
    with pytest.raises(ModuleError, match=r"it says 6,400 numbers of an image: .* 4,096 at most"):
        FeatureMetric.of_module(tmp_path / "wide.pt", (1, 8, 8))
    with pytest.raises(DataError, match="between two images or more"):
        FeatureMetric.of_pixels((1, 8, 8)).features_of(images_of(noise(1, 0)))


@pytest.mark.parametrize("channels", [1, 3])
def test_images_without_labels_are_measured_by_their_distance_alone(
    dpntk: Command, tmp_path: Path, channels: int
) -> None:
    """Labels of the real ones do not count."""
    write(tmp_path / "images.npz", noise(90, 0, channels=channels))
    write(tmp_path / "far.npz", noise(90, 0, 128, channels))
    write(tmp_path / "test.npz", noise(80, 1, channels=channels), y=np.arange(80) % 3)
    for name in ("images.npz", "far.npz"):
        made = dpntk(
            "evaluate", name, "--test", "test.npz", "--baseline", "images.npz", "-o", f"{name}.json"
        )
        assert made.code == 0, made.stderr
        assert "all records are of one class, so there is nothing to classify" in made.stderr
        assert "Frechet distance to these: of pixels" in made.stdout
    near, far = (json.loads(Path(f"{name}.npz.json").read_text()) for name in ("images", "far"))
    distances = {"Frechet distance", "precision", "recall"}
    assert [set(row) for row in near["rows"]] == [{"trained_on", "records", *distances}] * 2
    assert near["classifiers"] == {}
    assert near["metric"] == {"features": "pixels"}
    synthetic, real = (row["Frechet distance"] for row in near["rows"])
    assert synthetic == real
    assert far["rows"][0]["Frechet distance"] > synthetic
    assert far["rows"][1]["Frechet distance"] == real


def test_a_module_adds_the_distance_to_the_accuracies(dpntk: Command, tmp_path: Path) -> None:
    write_convolutions(tmp_path / "module.pt", channels=4)
    for number, name in enumerate(("images", "test", "train")):
        write(tmp_path / f"{name}.npz", noise(60, number), y=np.arange(60) % 3)
    arguments = ("evaluate", "images.npz", "--test", "test.npz", "--baseline", "train.npz")
    without = dpntk(*arguments, "-o", "without.json")
    assert without.code == 0
    assert dpntk(*arguments, "--metric-module", "module.pt", "-o", "with.json").code == 0
    plain, found = (json.loads(Path(f"{name}.json").read_text()) for name in ("without", "with"))
    assert {"metric", "Frechet distance"}.isdisjoint({*plain, *plain["rows"][0]})
    for row, same in zip(found["rows"], plain["rows"], strict=True):
        assert row.pop("Frechet distance") > 0
        assert 0 < row.pop("precision") <= 1
        assert 0 < row.pop("recall") <= 1
        assert 0 < row.pop("linear on features") < 1
        assert row == same
    assert "on the metric module's features" in found["classifiers"]["linear on features"]
    assert not any("\n" in said for said in found["classifiers"].values())
    assert len(found["metric"]["module"]) == 64
    write(tmp_path / "dark.npz", noise(60, 0, 20), y=np.arange(60) % 3)
    dark = dpntk("evaluate", "dark.npz", *arguments[2:], "--metric-module", "module.pt")
    assert dark.code == 0
    row, *_ = json.loads(Path("evaluation.json").read_text())["rows"]
    assert row["precision"] == row["recall"] == 0
    write(tmp_path / "colour.npz", noise(60, 0, channels=3), y=np.arange(60) % 3)
    wrong = dpntk("evaluate", "colour.npz", "--test", "colour.npz", "--metric-module", "module.pt")
    refused(wrong, "module.pt: it fails on float32 values of shape (1, 3, 8, 8)")
