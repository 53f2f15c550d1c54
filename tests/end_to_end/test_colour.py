"""Colour images, and images without labels, from the records to the figures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from dpntk.common.features.joint_image import JointImageFeatures
from dpntk.common.schema.image import ImageSchema
from dpntk.embed import TangentOptions, embed
from dpntk.embed.sums.file import load_embedding
from dpntk.generate import load_generator
from dpntk.generate.images.export import SavedImageGenerator
from dpntk.release import open_release
from tests.conftest import Command, refused
from tests.helpers.modules import Centred, write_convolutions, write_module

MAPS = {
    "default": ("--width", "30"),
    "pixels": ("--width", "30", "--front", "pixels"),
    "two layers": ("--arch", "fc_2l", "--width", "9_6"),
    "convolutions": ("--arch", "cnn_2l", "--width", "3_4"),
    "rff": ("--features", "rff", "--frequencies", "40"),
    "hermite": ("--features", "hermite"),
}
GENERATE = ("--steps", 20, "--batch", 20, "-n", 60)


def colours(count: int, seed: int = 0) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Images that are mostly red, or mostly blue."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, count)
    images = random.integers(0, 60, (count, 8, 8, 3))
    images[labels == 0, :, :, 0] += 180
    images[labels == 1, :, :, 2] += 180
    return images.astype(np.uint8), labels


@pytest.fixture
def data(tmp_path: Path) -> Path:
    images, labels = colours(200)
    np.savez(tmp_path / "data.npz", x=images, y=labels)
    images, labels = colours(60, seed=1)
    np.savez(tmp_path / "test.npz", x=images, y=labels)
    return tmp_path / "data.npz"


@pytest.mark.parametrize("options", MAPS.values(), ids=MAPS)
def test_every_map_leads_from_colour_to_colour(
    dpntk: Command, data: Path, options: tuple[str, ...]
) -> None:
    embedded = dpntk("embed", data, "--classes", 2, *options)
    assert embedded.code == 0, embedded.stderr
    assert "embedded 200 colour images of 8x8 pixels in 2 classes" in embedded.stderr
    assert dpntk("release", "--eps", 100).code == 0
    assert "colour images of 8x8 pixels" in dpntk("inspect", "release.h5").stdout
    made = dpntk("generate", *GENERATE)
    assert made.code == 0, made.stderr
    with np.load("synthetic/images.npz") as synthetic:
        assert synthetic["x"].shape == (60, 8, 8, 3)
    with Image.open("synthetic/preview.png") as preview:
        assert preview.mode == "RGB"
    measured = dpntk("evaluate", "synthetic", "--test", "test.npz", "--baseline", data)
    assert measured.code == 0, measured.stderr


def test_red_stays_red_and_blue_stays_blue(dpntk: Command, data: Path) -> None:
    """The channels keep their order from the records to the pictures."""
    dpntk("embed", data, "--classes", 2, "--width", 60)
    dpntk("release", "--eps", 100)
    dpntk("generate", *GENERATE)
    with np.load("synthetic/images.npz") as synthetic:
        means = [synthetic["x"][synthetic["y"] == label].mean(axis=(0, 1, 2)) for label in (0, 1)]
    assert means[0].argmax() == 0
    assert means[1].argmax() == 2
    generator = load_generator("synthetic")
    assert isinstance(generator, SavedImageGenerator)
    assert generator.sample(3, 0)[0].shape == (3, 8, 8, 3)
    with Image.open("synthetic/preview.png") as preview:
        shown = np.asarray(preview)
    assert [shown[20 + 58 * row, 20].argmax() for row in (0, 1)] == [0, 2]


def require_points(dpntk: Command) -> None:
    """Assert that there are two points of each class, and that one can learn from them."""
    with np.load("synthetic/images.npz") as synthetic:
        assert synthetic["x"].shape == (4, 8, 8, 3)
        assert sorted(synthetic["y"]) == [0, 0, 1, 1]
    assert dpntk("evaluate", "synthetic", "--test", "test.npz").code == 0
    (row,) = json.loads(Path("evaluation.json").read_text())["rows"]
    assert row["records"] == 4
    assert {"ResNet", "kernel regression", "ConvNet"} <= set(row)


def test_points_of_colour_images(dpntk: Command, data: Path) -> None:
    dpntk("embed", data, "--classes", 2, "--width", 30)
    dpntk("release", "--eps", 100)
    assert dpntk("generate", "--steps", 20, "--batch", 20, "--points", 2).code == 0
    require_points(dpntk)


def test_distillation_of_colour_images(dpntk: Command, data: Path) -> None:
    made = dpntk("distill", data, "--classes", 2, "--eps", 10, "--steps", 5, "--per-class", 2)
    assert made.code == 0, made.stderr
    assert dpntk("generate", "release.h5").code == 0
    require_points(dpntk)


def test_plan_audit_and_merge(dpntk: Command, data: Path) -> None:
    with np.load(data) as arrays:
        for name, part in (("a", slice(0, 90)), ("b", slice(90, None))):
            np.savez(f"{name}.npz", x=arrays["x"][part], y=arrays["y"][part])
    for path in (data, Path("a.npz"), Path("b.npz")):
        output = path.with_suffix(".h5").name
        assert dpntk("embed", path, "--classes", 2, "--width", 9, "-o", output).code == 0
    assert dpntk("merge", "a.h5", "b.h5", "-o", "both.h5").code == 0
    whole = load_embedding(Path("data.h5"))
    assert np.array_equal(load_embedding(Path("both.h5")).sums, whole.sums)
    facts = ("--records", 200, "--classes", 2, "--image-size", 8, "--width", 9)
    assert isinstance(whole.feature_map, JointImageFeatures)
    for epsilon, of in ((1, whole.feature_map.pixels), (1000, whole.feature_map.main)):
        size = f"{of.dimension:,} x 2"
        assert size in dpntk("plan", *facts, "--eps", epsilon, "--colour").stdout
        assert size not in dpntk("plan", *facts, "--eps", epsilon).stdout
    assert dpntk("audit", "data.h5", "--eps", 1, "--runs", 100).code == 0


def test_grey_gives_what_grey_images_give(dpntk: Command, data: Path) -> None:
    with np.load(data) as arrays:
        grey = np.stack([np.asarray(Image.fromarray(image).convert("L")) for image in arrays["x"]])
        np.savez("grey.npz", x=grey, y=arrays["y"])
    for name, options in (("grey.npz", ()), (data, ("--grey",))):
        output = Path(name).with_suffix(".h5").name
        embedded = dpntk("embed", name, "--classes", 2, "--width", 9, "-o", output, *options)
        assert "embedded 200 images of 8x8 pixels" in embedded.stderr
    one, other = load_embedding(Path("grey.h5")), load_embedding(Path("data.h5"))
    assert np.array_equal(one.sums, other.sums)
    assert isinstance(other.schema, ImageSchema)
    assert other.schema.to_json()["channels_origin"] == "declared"
    mixed = dpntk("merge", "grey.h5", "data.h5", "-o", "both.h5")
    refused(mixed, "schema channels origin")
    assert dpntk("embed", data, "--grey", "--width", 9, "-o", "data.h5", "--overwrite").code == 0
    dpntk("release", "data.h5", "--eps", 100)
    dpntk("generate", *GENERATE)
    assert dpntk("evaluate", "synthetic", "--test", "test.npz").code == 0  # read as grey, too


def test_a_module_that_wants_one_channel_is_refused(dpntk: Command, data: Path) -> None:
    write_convolutions(Path("module.pt"))
    module = ("--features", "perceptual", "--module", "module.pt", "--module-is-public")
    outcome = dpntk("embed", data, "--classes", 2, *module)
    refused(outcome, "module.pt: it fails on float32 values of shape (1, 3, 8, 8)")
    assert dpntk("embed", data, "--grey", "--classes", 2, *module).code == 0


def test_features_of_a_module_are_given_to_a_gallery(dpntk: Command, data: Path) -> None:
    write_module(Centred(), Path("module.pt"))
    module = ("--features", "perceptual", "--module", "module.pt", "--module-is-public")
    assert dpntk("embed", data, "--classes", 2, *module).code == 0
    assert dpntk("release", "--eps", 1000, "--delta", 1e-3).code == 0
    made = dpntk("generate", "--module", "module.pt", "--steps", 60, "--lr", 1, "-n", 40)
    assert made.code == 0, made.stderr
    settings = json.loads(Path("synthetic/provenance.json").read_text())["training"]["settings"]
    chosen = [settings[name] for name in ("generator", "objective", "steps", "batch")]
    assert chosen == ["gallery", "running", 60, 100]
    assert dpntk("generate", "--from", "synthetic", "-n", 40, "-o", "more").code == 0
    for folder in ("synthetic", "more"):
        with np.load(f"{folder}/images.npz") as archive:
            red, _, blue = (archive["x"][..., i].mean(axis=(1, 2)) for i in range(3))
            redder = [(red - blue)[archive["y"] == label].mean() for label in (0, 1)]
            assert redder[0] > 40 > -40 > redder[1]


def test_a_single_image_needs_its_form_declared(dpntk: Command, tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", colours(1)[0])
    for options in ((), ("--image-size", 8), ("--colour",)):
        embedded = dpntk("embed", "one.npy", "--class-names", "a", *options)
        refused(embedded, "declare them with --image-size, and --grey")
    form = "--image-size", 8, "--colour", "--width", 9
    unsaid = dpntk("embed", "one.npy", *form)
    assert unsaid.code == 1
    assert "declare the classes with --classes or --class-names" in unsaid.stderr
    assert dpntk("embed", "one.npy", *form, "--classes", 1).code == 0


@pytest.mark.parametrize("channels", [1, 3])
def test_images_without_labels(dpntk: Command, tmp_path: Path, channels: int) -> None:
    images, _ = colours(40)
    (tmp_path / "faces").mkdir()
    for number, image in enumerate(images if channels == 3 else images[..., 0]):
        Image.fromarray(image).save(tmp_path / "faces" / f"{number}.png")
    embedded = dpntk("embed", "faces", "--width", 20)
    assert embedded.code == 0
    assert "faces: images without labels: all are taken to be of one class" in embedded.stderr
    assert dpntk("release", "--eps", 100).code == 0
    opened = open_release(Path("release.h5")).release
    assert opened.schema.from_data == ()
    assert dpntk("generate", "--steps", 20, "--batch", 20, "-n", 30).code == 0
    with np.load("synthetic/images.npz") as synthetic:
        assert synthetic["y"].tolist() == [0] * 30
    with Image.open("synthetic/preview.png") as preview:
        assert preview.height == 3 * 58 + 2  # 30 pictures in rows of twelve
    provenance = json.loads(Path("synthetic/provenance.json").read_text())
    assert provenance["classes"] == ["0"]


def test_unlabelled_and_labelled_sums_agree(tmp_path: Path) -> None:
    images, labels = colours(50)
    np.savez(tmp_path / "labelled.npz", x=images, y=np.zeros_like(labels))
    np.save(tmp_path / "alone.npy", images)
    labelled, alone = (
        embed(tmp_path / name, TangentOptions(width=5)).sums
        for name in ("labelled.npz", "alone.npy")
    )
    assert np.array_equal(labelled, alone)
