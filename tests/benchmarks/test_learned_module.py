"""A module that a small network learns from a data set, here scikit-learn's digits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from benchmarks.material.learned_module import SAID, accuracy, learned, main
from dpntk.common.features.torchscript import load_module
from dpntk.common.schema.classes import numbered
from dpntk.evaluate.images.frechet import FeatureMetric, Gaussian
from dpntk.evaluate.images.records import LabelledImages
from tests.helpers.data_sets import write_idx

EPOCHS = 6
DIGITS = load_digits()
PIXELS, LABELS = np.rint(DIGITS.data / 16 * 255).astype(np.uint8), DIGITS.target


def part(rows: slice) -> LabelledImages:
    return LabelledImages(PIXELS[rows], LABELS[rows], numbered(10), {})


TRAIN, TEST = part(slice(1400)), part(slice(1400, None))


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("learned")
    for records, name in ((TRAIN, "train"), (TEST, "t10k")):
        write_idx(folder / "data", records.pixels.reshape(-1, 8, 8), records.labels, name)
    main([str(folder / "data"), str(folder / "digits.pt"), "--epochs", str(EPOCHS)])
    return folder / "digits.pt"


def test_it_serves_as_metric_module_and_says_what_the_hidden_layer_does(module: Path) -> None:
    features, head = learned(TRAIN, epochs=EPOCHS, seed=0)
    assert accuracy(features, head, TEST) > 0.6  # of ten classes, after 60 steps or so
    metric = FeatureMetric.of_module(module, TEST.shape)
    with torch.no_grad():
        wanted = features(torch.from_numpy(TEST.images()).view(-1, 1, 8, 8))
    assert wanted.shape == (len(TEST), SAID)
    assert np.allclose(metric.features_of(TEST), wanted.numpy(), atol=1e-4)


def test_another_seed_makes_another_network_and_the_same_seed_the_same() -> None:
    said = [
        learned(TRAIN, epochs=1, seed=seed)[0](torch.ones(1, 1, 8, 8)).tolist()
        for seed in (0, 0, 1)
    ]
    assert said[0] == said[1] != said[2]


def test_real_digits_are_nearer_than_digits_that_lack_a_class_or_their_place(module: Path) -> None:
    """Of equally many images, beside as many of the same kind."""
    metric = FeatureMetric.of_module(module, TEST.shape)

    def gaussian(images: LabelledImages) -> Gaussian:
        return Gaussian.of(metric.features_of(images))

    test, count = gaussian(TEST), len(TEST)
    real = test.distance(gaussian(part(slice(count))))
    fewer = np.flatnonzero(LABELS[:1400] != 3)[:count]
    lacking = LabelledImages(PIXELS[fewer], LABELS[fewer], numbered(10), {})
    moved = np.roll(PIXELS[:count].reshape(-1, 8, 8), 2, axis=2).reshape(-1, 64)
    shifted = LabelledImages(moved, LABELS[:count], numbered(10), {})
    assert 1.2 * real < test.distance(gaussian(lacking)) < test.distance(gaussian(shifted))


def test_generators_can_follow_it_and_it_is_of_grey_images_of_this_size(module: Path) -> None:
    shown = torch.rand(3, 64, requires_grad=True)
    load_module(module, (1, 8, 8))(shown).sum().backward()
    assert shown.grad is not None
    assert shown.grad.abs().sum() > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing", "net.pt"], "learned_module: missing: "),
        ([".", "net.pt", "--epochs", "0"], "--epochs 0: one or more is needed"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert words in f"{stopped.value} {capsys.readouterr().err}"
    assert not (tmp_path / "net.pt").exists()
