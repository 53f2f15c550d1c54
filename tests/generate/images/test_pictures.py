"""Synthetic images as files: what they are called, and that they can be read back."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dpntk.common.sources import SourceOptions, open_source
from dpntk.generate.images.pictures import class_folders, zip_of_pictures
from tests.conftest import Command, refused

IMAGES = np.random.default_rng(0).integers(0, 256, (11, 8, 8), dtype=np.uint8)
LABELS = np.arange(11) % 2


@pytest.mark.parametrize("colour", [False, True], ids=["grey", "colour"])
def test_what_is_unpacked_is_a_data_set_again(tmp_path: Path, colour: bool) -> None:
    images = np.stack([IMAGES, IMAGES // 2, 255 - IMAGES], axis=-1) if colour else IMAGES
    content = zip_of_pictures(images, LABELS, ("moray, eel", "chat gris"))
    assert content == zip_of_pictures(images, LABELS, ("moray, eel", "chat gris"))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.namelist()[:3] == [
            "moray, eel/00.png",
            "chat gris/01.png",
            "moray, eel/02.png",
        ]
        archive.extractall(tmp_path)
    source = open_source(tmp_path, SourceOptions(class_names=("moray, eel", "chat gris")))
    (batch,) = source.batches(11)
    order = np.argsort(LABELS == 0, kind="stable")
    found = batch.records.reshape(11, -1, 8, 8).transpose(0, 2, 3, 1).squeeze()
    assert np.array_equal(found, images[order])
    assert np.array_equal(batch.labels, LABELS[order])


def test_images_of_one_class_lie_side_by_side() -> None:
    with zipfile.ZipFile(io.BytesIO(zip_of_pictures(IMAGES, LABELS * 0, ("0",)))) as archive:
        assert archive.namelist() == [f"{place:02}.png" for place in range(11)]
        assert np.array_equal(np.asarray(Image.open(archive.open("07.png"))), IMAGES[7])


@pytest.mark.parametrize(
    "name",
    [
        "..", ".", "", "../x", "/etc", "a/b", "a\\b", ".hidden", "C:", "con", "LPT1", "a.", "a ",
        " a", "-rf", "a\nb", "\u202egnp.exe", "x" * 81, "~", "*", "\x1b[2J",
    ],
)  # fmt: skip
def test_no_name_leads_out_of_the_folder_or_hides(name: str) -> None:
    assert class_folders(("cat", name)) == ("cat", "class 1")


def test_names_that_some_systems_take_for_one_are_told_apart() -> None:
    assert class_folders(("Cat", "cat", "0", "Émilie + 2")) == (
        "class 0",
        "class 1",
        "0",
        "Émilie + 2",
    )
    assert class_folders(("class 1", "..")) == ("class 0", "class 1")


def test_generate_writes_them_where_they_are_asked_for(dpntk: Command, tmp_path: Path) -> None:
    np.savez(
        tmp_path / "x.npz",
        x=np.tile(IMAGES, (20, 1, 1)),
        y=np.array(["b", "a"])[LABELS.tolist() * 20],
    )
    options = ("--class-names", "b,a", "--features", "pixels")
    assert dpntk("embed", "x.npz", *options).code == 0
    assert dpntk("release", "--eps", 5, "--delta", 1e-3).code == 0
    assert dpntk("generate", "release.h5", "--steps", 5, "-n", 30).code == 0
    assert not Path("synthetic/pictures.zip").exists()
    again = dpntk("generate", "--from", "synthetic", "--seed", 0, "-n", 30, "--pictures", "-o", "2")
    assert again.code == 0, again.stderr
    assert dpntk("generate", "release.h5", "--steps", 5, "-n", 30, "--pictures").code == 0
    with np.load("synthetic/images.npz") as made:
        images, labels, names = made["x"], made["y"], made["classes"]
    assert names.tolist() == ["b", "a"]
    content = Path("synthetic/pictures.zip").read_bytes()
    assert Path("2/pictures.zip").read_bytes() == content
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert len(archive.namelist()) == 30
        for place in (0, 17):
            picture = archive.open(f"{names[labels[place]]}/{place:02}.png")
            assert np.array_equal(np.asarray(Image.open(picture)), images[place])


def test_pictures_of_rows_are_refused_before_anything_is_done(dpntk: Command) -> None:
    assert dpntk("demo", "--table", "-o", "demo").code == 0
    table = ("demo/train.csv", "--schema", "demo/schema.toml")
    assert dpntk("embed", *table, "--width", 5, "--pairs", "none").code == 0
    assert dpntk("release", "--eps", 1).code == 0
    refused(dpntk("generate", "release.h5", "--pictures"), "--pictures: the release is of a table")
    assert not Path("synthetic").exists()
