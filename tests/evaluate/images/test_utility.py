"""The figures mean what they say: real records score high, meaningless ones at chance."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from dpntk.common.errors import DataError, SchemaError
from dpntk.evaluate.images import classifiers
from dpntk.evaluate.images.classifiers import CLASSIFIERS
from dpntk.evaluate.images.records import LabelledImages, read_real, read_synthetic
from dpntk.evaluate.images.utility import measure

NAMES = tuple(map(str, range(10)))


def digits(part: slice, labels_from: np.random.Generator | None = None) -> LabelledImages:
    data = load_digits()
    pixels = np.rint(data.data / 16 * 255).astype(np.uint8)[part]
    labels = data.target.astype(np.int64)[part]
    return LabelledImages(
        pixels, labels_from.permutation(labels) if labels_from else labels, NAMES, {}
    )


@pytest.fixture(scope="module")
def held_out() -> LabelledImages:
    return digits(slice(1300, None))


@pytest.fixture(autouse=True)
def fewer_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as digits of 8x8 pixels take: no test here is of how many the protocol has."""
    monkeypatch.setattr(classifiers, "_MLP_STEPS", 600)
    monkeypatch.setattr(classifiers, "_CNN_STEPS", 300)


def test_images_next_to_black_are_compared_as_they_are(tmp_path: Path) -> None:
    """They are refused where they would be embedded, and nothing is promised here."""
    images = np.zeros((4, 8, 8), np.uint8)
    images[1:, 3, 3] = 1
    np.savez(tmp_path / "a.npz", x=images, y=[0, 1, 0, 1])
    synthetic = read_synthetic(tmp_path / "a.npz")
    for records in (synthetic, read_real(tmp_path / "a.npz", "test", synthetic)):
        assert records.pixels.max(axis=1).tolist() == [0, 1, 1, 1]


def test_real_records_score_high_and_permuted_labels_at_chance(held_out: LabelledImages) -> None:
    train = digits(slice(0, 1300))
    permuted = digits(slice(0, 1300), np.random.default_rng(0))

    real, chance = measure({"real": train, "permuted": permuted}, held_out, seed=0)

    assert set(real.accuracy) == set(chance.accuracy) == set(CLASSIFIERS)
    assert real.records == 1300
    assert min(real.accuracy.values()) > 0.85
    assert max(chance.accuracy.values()) < 0.25


def test_same_seed_gives_the_same_figures(
    held_out: LabelledImages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(classifiers, "_MLP_STEPS", 50)
    monkeypatch.setattr(classifiers, "_CNN_STEPS", 50)
    train = digits(slice(0, 200))
    first, second = (measure({"x": train}, held_out, seed=3)[0].accuracy for _ in range(2))
    assert first == second


def save(path: Path, count: int = 20, labels: list[int] | None = None) -> Path:
    data = load_digits()
    pixels = np.rint(data.images / 16 * 255).astype(np.uint8)[:count]
    np.savez(path, x=pixels, y=data.target[:count] if labels is None else labels)
    return path


def test_synthetic_records_are_read_back(tmp_path: Path) -> None:
    save(tmp_path / "images.npz")
    (tmp_path / "provenance.json").write_text('{"classes": ["a","b"], "release": {"epsilon": 1}}')
    with pytest.raises(SchemaError, match="labels of 2 classes"):
        read_synthetic(tmp_path)
    classes = '["a","b","c","d","e","f","g","h","i","j"]'
    (tmp_path / "provenance.json").write_text(f'{{"classes": {classes}, "release": {{}}}}')
    records = read_synthetic(tmp_path)
    assert records.class_names[2] == "c"
    assert records.labels.tolist() == load_digits().target[:20].tolist()
    assert records.side == 8


def test_real_records_take_the_size_of_the_synthetic_ones(tmp_path: Path) -> None:
    synthetic = read_synthetic(save(tmp_path / "a.npz"))
    large = np.zeros((5, 16, 16), np.uint8)
    np.savez(tmp_path / "b.npz", x=large, y=np.arange(5))
    assert read_real(tmp_path / "b.npz", "test", synthetic).pixels.shape == (5, 64)


def test_what_cannot_be_evaluated_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder"):
        read_synthetic(tmp_path / "missing")
    with pytest.raises(DataError, match=r"neither images\.npz nor a table in it"):
        read_synthetic(tmp_path)
    with pytest.raises(DataError, match="nothing to classify"):
        read_synthetic(save(tmp_path / "a.npz", labels=[1] * 20))
    save(tmp_path / "images.npz")
    (tmp_path / "provenance.json").write_text("[]")
    with pytest.raises(DataError, match="damaged"):
        read_synthetic(tmp_path)
