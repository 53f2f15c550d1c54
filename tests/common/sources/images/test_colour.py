"""Images in colour, turned, transparent, or without labels, whatever they are stored in."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from PIL import ExifTags, Image
from pyarrow import parquet

from dpntk.common.errors import DataError, SchemaError
from dpntk.common.schema.image import ImageSchema, pictures
from dpntk.common.schema.origin import Origin
from dpntk.common.sources import Source, SourceOptions, open_source
from dpntk.common.sources.images.decoding.layout import shades_of_grey
from tests.helpers.data_sets import (
    CLASS_NAMES,
    IMAGES,
    KINDS,
    LABELS,
    encoded,
    idx_bytes,
    joined,
    write_tar,
)

COLOURS = np.random.default_rng(7).integers(0, 256, (20, 8, 8, 3), dtype=np.uint8)
IN_COLOUR = [kind for kind in KINDS if kind != "parquet lists"]
GREY, COLOUR = SourceOptions(channels=1), SourceOptions(channels=3)


def read(source: Source) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Images in the order of the source, and labels."""
    records, labels = joined(source.batches(7))
    assert isinstance(source.schema, ImageSchema)
    assert records.shape[1] == source.schema.record_size
    return pictures(records, source.schema.channels), labels


def in_order(kind: str, images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return images[np.argsort(LABELS, kind="stable")] if kind == "folder" else images


def by_pillow(images: NDArray[np.uint8], mode: str, side: int = 8) -> NDArray[np.uint8]:
    converted = (Image.fromarray(image).convert(mode) for image in images)
    size = (side, side)
    return np.stack(
        [np.asarray(image.resize(size, Image.Resampling.BILINEAR)) for image in converted]
    )


@pytest.mark.parametrize("kind", IN_COLOUR)
def test_colour_stays_colour_in_every_kind_of_file(tmp_path: Path, kind: str) -> None:
    source = open_source(KINDS[kind](tmp_path / "data", COLOURS))
    images, _ = read(source)
    assert isinstance(source.schema, ImageSchema)
    assert source.schema.channels == 3
    assert np.array_equal(images, in_order(kind, COLOURS))


@pytest.mark.parametrize("kind", IN_COLOUR)
def test_grey_and_size_are_what_pillow_makes_of_them(tmp_path: Path, kind: str) -> None:
    path = KINDS[kind](tmp_path / "data", COLOURS)
    assert np.array_equal(read(open_source(path, GREY))[0], in_order(kind, by_pillow(COLOURS, "L")))
    for mode, channels in (("L", 1), ("RGB", 3)):
        larger = open_source(path, SourceOptions(image_size=11, channels=channels))
        assert np.array_equal(read(larger)[0], in_order(kind, by_pillow(COLOURS, mode, 11)))


@pytest.mark.parametrize("kind", KINDS)
def test_grey_images_can_be_read_as_colours(tmp_path: Path, kind: str) -> None:
    images, _ = read(open_source(KINDS[kind](tmp_path / "data"), COLOUR))
    assert np.array_equal(images, in_order(kind, by_pillow(IMAGES, "RGB")))


def test_brightness_of_every_extreme_is_pillows() -> None:
    values = np.array([0, 1, 2, 127, 128, 254, 255], dtype=np.uint8)
    pixels = np.stack(np.meshgrid(values, values, values), axis=-1).reshape(1, -1, 1, 3)
    expected = np.asarray(Image.fromarray(pixels[0]).convert("L"))
    assert np.array_equal(shades_of_grey(pixels.transpose(0, 3, 1, 2))[0, 0], expected)


@pytest.mark.parametrize("shape", [(0, 3, 1, 2), (0, 1, 2, 3)])
def test_channels_stand_before_or_behind_the_pixels(tmp_path: Path, shape: tuple[int, ...]) -> None:
    stored = np.ascontiguousarray(COLOURS.transpose(shape))
    np.savez(tmp_path / "ints.npz", x=stored, y=LABELS)
    np.savez(tmp_path / "floats.npz", x=stored / np.float32(255), y=LABELS)
    (tmp_path / "idx").mkdir()
    (tmp_path / "idx" / "train-images-idx4-ubyte").write_bytes(idx_bytes(stored))
    (tmp_path / "idx" / "train-labels-idx1-ubyte").write_bytes(idx_bytes(LABELS.astype(np.uint8)))
    for name in ("ints.npz", "floats.npz", "idx"):
        assert np.array_equal(read(open_source(tmp_path / name))[0], COLOURS), name


def test_cifars_binary_files(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (12, 32, 32, 3), dtype=np.uint8)
    labels = np.arange(12) % 10
    planes = images.transpose(0, 3, 1, 2).reshape(12, -1)
    content = np.concatenate([labels[:, None].astype(np.uint8), planes], axis=1)
    for number, part in enumerate(np.split(content[:11], [1, 2, 3, 4, 5, 6, 7, 8, 9]), 1):
        (tmp_path / f"data_batch_{number}.bin").write_bytes(part.tobytes())
    (tmp_path / "test_batch.bin").write_bytes(content[11:].tobytes())
    (tmp_path / "batches.meta.txt").write_text("airplane\n")

    source = open_source(tmp_path, SourceOptions(classes=10))
    found, numbers = read(source)
    assert np.array_equal(found, images[:11])  # number 10 follows number 9
    assert np.array_equal(numbers, labels[:11])
    assert [len(batch.labels) for batch in source.batches(3, 2, 9)] == [3, 3, 1]
    assert np.array_equal(next(source.batches(7, 2, 9)).labels, labels[2:9])
    test = open_source(tmp_path, SourceOptions(split="test", channels=1, image_size=16))
    assert np.array_equal(read(test)[0], by_pillow(images[11:], "L", 16))


@pytest.mark.parametrize("orientation", range(1, 10))
def test_photographs_are_set_upright(
    tmp_path: Path, orientation: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """By every one of the eight marks, with sides changed where it lies; a ninth means nothing."""
    upright = Image.fromarray(COLOURS[0]).resize((12, 9))
    undo = {
        2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM, 5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90, 7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }  # fmt: skip
    stored = upright.transpose(undo[orientation]) if orientation in undo else upright
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    stored.save(tmp_path / "a.png", exif=exif)
    upright.save(tmp_path / "b.png")
    images, _ = read(open_source(tmp_path, SourceOptions(image_size=8)))
    assert np.array_equal(images[0], images[1])
    said = capfd.readouterr().err
    assert ("a.png is marked as turned: such images are set upright" in said) == (
        orientation in undo
    )
    with pytest.raises(SchemaError, match="images of 9x12 pixels are not square"):
        open_source(tmp_path)


def test_a_mark_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    Image.fromarray(COLOURS[0]).save(tmp_path / "a.png", exif=b"Exif\0\0no marks at all")
    assert np.array_equal(read(open_source(tmp_path))[0], COLOURS[:1])


@pytest.mark.parametrize("kind", ["LA", "RGBA", "P", "L"])
def test_what_can_be_seen_through_is_laid_on_white_and_said_once(
    tmp_path: Path, kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    image = Image.fromarray(IMAGES[3] // 2).convert(kind)
    if kind in ("L", "P"):  # one shade, or entry of the palette, stands for nothing at all
        image.putpixel((2, 3), 255)
        image.save(tmp_path / "a.png", transparency=255)
    else:
        image.putalpha(255)
        image.putpixel((2, 3), (0,) * len(image.getbands()))
        image.save(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes((tmp_path / "a.png").read_bytes())
    images, _ = read(open_source(tmp_path, GREY))
    expected = IMAGES[3] // 2
    expected[3, 2] = 255
    assert np.array_equal(images, np.stack([expected, expected]))
    assert capfd.readouterr().err.count("is transparent in places: such images are laid on") == 1


def test_an_opaque_layer_changes_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    image = Image.fromarray(COLOURS[0])
    image.putalpha(255)
    image.save(tmp_path / "a.png")
    assert np.array_equal(read(open_source(tmp_path))[0], COLOURS[:1])
    assert "transparent" not in capfd.readouterr().err


def test_a_mixture_is_read_if_it_is_converted(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(encoded(COLOURS[0]))
    (tmp_path / "b.png").write_bytes(encoded(IMAGES[0]))
    with pytest.raises(SchemaError, match=r"b.png is grey but .*a.png is in colour: declare"):
        read(open_source(tmp_path))
    assert read(open_source(tmp_path, GREY))[0].shape == (2, 8, 8)
    assert read(open_source(tmp_path, COLOUR))[0].shape == (2, 8, 8, 3)


def unlabelled(folder: Path, kind: str, images: NDArray[np.uint8]) -> Path:
    folder.mkdir()
    match kind:
        case "folder":
            for number, image in enumerate(images):
                (folder / f"{number:02}.png").write_bytes(encoded(image))
            (folder / "notes.txt").touch()
            return folder
        case "npz":
            np.savez(folder / "data.npz", x=images)
            return folder / "data.npz"
        case "npy":
            np.save(folder / "faces.npy", images)
            return folder / "faces.npy"
        case "idx":
            for number, part in enumerate(np.split(images, [9])):
                (folder / f"train-images.{number}").write_bytes(idx_bytes(part))
            return folder
        case "parquet":
            for number, part in enumerate(np.split(images, [9])):
                scans = pa.table({"scan": [encoded(image) for image in part]})
                parquet.write_table(scans, folder / f"{number}.parquet")
            return folder
        case "tar":
            for number, part in enumerate(np.split(images, [9])):
                members = [(f"{key:02}.png", encoded(image)) for key, image in enumerate(part)]
                write_tar(folder / f"{number}.tar", [*members, ("19.txt", b"a caption")])
            return folder
        case _:
            np.save(folder / "x_train.npy", images)
            return folder


@pytest.mark.parametrize("images", [IMAGES, COLOURS], ids=["grey", "colour"])
@pytest.mark.parametrize("kind", ["folder", "npz", "npy", "arrays", "idx", "parquet", "tar"])
def test_images_without_labels_are_of_one_class(
    tmp_path: Path, kind: str, images: NDArray[np.uint8], capfd: pytest.CaptureFixture[str]
) -> None:
    path = unlabelled(tmp_path / "data", kind, images)
    source = open_source(path)
    found, labels = read(source)
    assert np.array_equal(found, images)
    assert labels.tolist() == [0] * 20
    assert source.schema.classes == ("0",)
    assert source.schema.from_data == ()
    assert "images without labels: all are taken to be of one class" in capfd.readouterr().err
    assert [len(batch.labels) for batch in source.batches(4, 3, 12)] == [4, 4, 1]
    named = open_source(path, SourceOptions(class_names=("face",)))
    assert named.schema.classes == ("face",)
    assert isinstance(named.schema, ImageSchema)
    assert named.schema.classes_origin is Origin.DECLARED
    with pytest.raises(SchemaError, match="all of one class, but 3 classes are declared"):
        open_source(path, SourceOptions(classes=3))


@pytest.mark.parametrize("label", [("00.cls", b"0"), ("00.json", b'{"label": 0}')])
def test_one_label_among_images_without_any_is_a_mistake(
    tmp_path: Path, label: tuple[str, bytes]
) -> None:
    shards = unlabelled(tmp_path / "data", "tar", IMAGES)
    write_tar(shards / "2.tar", [("00.png", encoded(IMAGES[0])), label])
    with pytest.raises(DataError, match=r"0\.tar: 00: an image without a label: put 00\.cls"):
        open_source(shards)


def test_folders_train_and_test_of_images_are_parts_and_no_classes(tmp_path: Path) -> None:
    for part, images in (("train", IMAGES[:5]), ("test", IMAGES[5:7])):
        unlabelled(tmp_path / part, "folder", images)
    assert np.array_equal(read(open_source(tmp_path))[0], IMAGES[:5])
    assert np.array_equal(read(open_source(tmp_path, SourceOptions(split="test")))[0], IMAGES[5:7])


def test_one_image_in_the_folder_of_a_part_does_not_hide_those_beside_it(tmp_path: Path) -> None:
    unlabelled(tmp_path / "data", "folder", IMAGES)
    unlabelled(tmp_path / "data" / "train", "folder", IMAGES[:1])
    with pytest.raises(
        DataError, match=r"holds 20 images beside train/.*: give .*train to read it"
    ):
        open_source(tmp_path / "data")
    assert len(open_source(tmp_path / "data" / "train")) == 1
    assert len(open_source(tmp_path / "data", SourceOptions(only_compared=True))) == 1


def test_images_beside_class_folders_are_passed_over_and_that_is_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (KINDS["folder"](tmp_path / "data") / "loose.png").write_bytes(encoded(IMAGES[0]))
    declared = SourceOptions(class_names=CLASS_NAMES)
    assert len(open_source(tmp_path / "data", declared)) == 20
    assert "passed over 1 image beside the class folders" in capfd.readouterr().err


@pytest.mark.parametrize("known", [{}, {"classes": 1}, {"class_names": ("0",)}], ids=str)
def test_one_image_in_a_folder_does_not_hide_those_beside_it(
    tmp_path: Path, known: dict[str, Any]
) -> None:
    """Without it all are read, as images of one class."""
    folder, options = unlabelled(tmp_path / "data", "folder", IMAGES), SourceOptions(**known)
    assert len(open_source(folder, options)) == 20
    (folder / "0").mkdir()
    (folder / "03.png").rename(folder / "0" / "03.png")
    with pytest.raises(DataError, match="data: holds 19 images beside class folders, which are"):
        open_source(folder, options)
    assert len(open_source(folder, replace(options, only_compared=True))) == 1


def test_a_changed_image_changes_the_fingerprint(tmp_path: Path) -> None:
    path = unlabelled(tmp_path / "data", "folder", IMAGES)
    before = open_source(path).fingerprint()
    assert open_source(path.rename(tmp_path / "moved")).fingerprint() == before
    content = io.BytesIO()
    Image.fromarray(COLOURS[0]).save(content, "PNG", compress_level=0)
    (tmp_path / "moved" / "03.png").write_bytes(content.getvalue())
    assert open_source(tmp_path / "moved").fingerprint() != before
