"""Images that were cropped, scaled and inverted go the whole path, and come back as they were."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.conftest import Command, refused

RANDOM = np.random.default_rng(3)
OPTIONS = (
    "--classes", 2, "--image-size", 8, "--fit", "pad", "--value-range", "0,1000", "--invert",
    "--width", 9,
)  # fmt: skip


@pytest.fixture
def paper(tmp_path: Path) -> Path:
    """Ink on white paper of 9x12 pixels in 10 bits: class 1 has its ink on the right."""
    labels = np.arange(200) % 2
    images = np.full((200, 9, 12), 1000) - RANDOM.integers(0, 60, (200, 9, 12))
    images[labels == 0, :, 1:4] = 40
    images[labels == 1, :, 8:11] = 40
    np.savez(tmp_path / "paper.npz", x=images, y=labels)
    return tmp_path / "paper.npz"


def test_ink_on_paper_comes_back_as_ink_on_paper(dpntk: Command, paper: Path) -> None:
    assert dpntk("embed", paper, *OPTIONS).code == 0
    assert dpntk("release", "--eps", 50, "--delta", 1e-3).code == 0
    said = " ".join(dpntk("inspect", "release.h5").stdout.replace("│", " ").split())
    assert "8x8 pixels (values 0 to 1000, inverted, padded to squares) in 2 classes" in said
    assert "the range of values" in said
    assert dpntk("generate", "release.h5", "--steps", 60).code == 0
    assert dpntk("generate", "--from", "synthetic", "-n", 100, "-o", "more").code == 0
    for folder in ("synthetic", "more"):
        with np.load(f"{folder}/images.npz") as made:
            images, labels = made["x"].astype(float), made["y"]
        inked = images[labels == 0].mean(axis=0)[1:7]
        assert inked[:, 1].max() < 100
        assert inked[:, 5].min() > 200
        assert images[:, 0].mean() > 200  # what was padded is paper
    known = json.loads(Path("synthetic/provenance.json").read_text())
    prepared = {"fit": "pad", "value_range": [0.0, 1000.0], "inverted": True}
    assert known["preparation"] == prepared
    preview = np.asarray(Image.open("synthetic/preview.png"))
    assert (preview == 255).mean() > 0.1


def test_real_images_are_read_for_evaluation_as_they_were_for_embedding(
    dpntk: Command, paper: Path
) -> None:
    assert dpntk("embed", paper, *OPTIONS).code == 0
    assert dpntk("release", "--eps", 50, "--delta", 1e-3).code == 0
    assert dpntk("generate", "release.h5", "--steps", 60).code == 0
    scored = dpntk(
        "evaluate", "synthetic", "--test", paper, "--baseline", paper, "--release", "release.h5"
    )
    assert scored.code == 0, scored.stderr
    rows = json.loads(Path("evaluation.json").read_text())["rows"]
    for row in rows:
        assert row["logistic regression"] > 0.95
    provenance = Path("synthetic/provenance.json")
    document = json.loads(provenance.read_text())
    document["preparation"]["fit"] = "crop"
    provenance.write_text(json.dumps(document))
    other = dpntk("evaluate", "synthetic", "--test", paper, "--release", "release.h5", "-o", "2.js")
    refused(other, "is not true of it: preparation")
    document["preparation"]["fit"] = "zoom"
    provenance.write_text(json.dumps(document))
    refused(dpntk("evaluate", "synthetic", "--test", paper, "-o", "2.json"), "damaged; generate")


def test_points_learn_from_negatives_and_are_shown_as_they_were(
    dpntk: Command, paper: Path
) -> None:
    options = (
        "--per-class",
        2,
        "--steps",
        20,
        "--sampling-prob",
        0.5,
        "--eps",
        "inf",
        "--not-private",
    )
    distilled = dpntk("distill", paper, *OPTIONS[:-2], *options, "-o", "points.h5")
    assert distilled.code == 0, distilled.stderr
    assert dpntk("generate", "points.h5").code == 0
    with np.load("synthetic/images.npz") as made:
        assert made["x"].mean() > 128
    scored = dpntk("evaluate", "synthetic", "--test", paper)
    assert scored.code == 0, scored.stderr
    (row,) = json.loads(Path("evaluation.json").read_text())["rows"]
    assert row["kernel regression"] > 0.9


def test_what_was_prepared_otherwise_is_not_added_up(dpntk: Command, paper: Path) -> None:
    for name, options in {"a": OPTIONS, "b": (*OPTIONS, "--value-range", "0,900")}.items():
        assert dpntk("embed", paper, *options, "-o", f"{name}.h5").code == 0
    refused(
        dpntk("merge", "a.h5", "b.h5", "-o", "c.h5"),
        "schema value range is [0.0, 900.0] and not [0.0, 1000.0]",
    )
    assert not Path("c.h5").exists()


def test_a_range_that_is_none_is_one_line(dpntk: Command, paper: Path) -> None:
    for text, words in (
        ("0", "'--value-range': write it as in 0,4095"),
        ("9,1", "a range of values from 9 to 1: give the value that is black"),
    ):
        refused(dpntk("embed", paper, "--value-range", text), words)
    refused(dpntk("embed", paper, "--fit", "crop"), "--fit says how images become squares of")
    assert not Path("embedding.h5").exists()
