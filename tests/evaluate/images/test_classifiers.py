"""Classifiers that only some images have: those in colour, and those beside a metric module."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from dpntk.common.schema.classes import numbered
from dpntk.evaluate.images import classifiers
from dpntk.evaluate.images.classifiers import IN_COLOUR, linear_on_features
from dpntk.evaluate.images.records import LabelledImages
from dpntk.evaluate.images.utility import measure


def blue_digits(part: slice) -> LabelledImages:
    """All that they show is in their blue."""
    data = load_digits()
    blue: NDArray[np.uint8] = np.rint(data.data[part] / 16 * 255).astype(np.uint8)
    pixels = np.pad(blue, ((0, 0), (128, 0)))
    return LabelledImages(pixels, data.target[part].astype(np.int64), numbered(10), {}, 3)


def test_colour_images_are_learnt_from_by_a_residual_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dpntk.evaluate.images.utility.CLASSIFIERS", {})
    monkeypatch.setattr(classifiers, "_CNN_STEPS", 150)
    assert list(IN_COLOUR) == ["ResNet"]
    sets = {"real": blue_digits(slice(0, 1300))}
    (row,) = measure(sets, blue_digits(slice(1300, None)), seed=0)
    assert row.accuracy["ResNet"] > 0.85


def test_a_linear_classifier_learns_from_features_of_any_scale() -> None:
    random = np.random.default_rng(0)
    labels = random.integers(0, 3, 300)
    features = random.normal(0, 1, (300, 5)) * 1e-6 + 1e3
    features[:, 0] += 1e-5 * labels
    train, test = ((features[part], labels[part]) for part in (slice(200), slice(200, None)))
    assert linear_on_features(train, test, 0) > 0.95
