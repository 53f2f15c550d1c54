"""Sizes, ranges of values and kinds of files that are not as a map takes them, by declaration."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from PIL import ExifTags, Image
from pyarrow import parquet

from dpntk.common.errors import DataError, DpntkError, SchemaError
from dpntk.common.schema.image import ImageSchema
from dpntk.common.schema.preparation import Fit, Preparation
from dpntk.common.sources import SourceOptions, open_source
from tests.helpers.data_sets import IMAGES, KINDS, LABELS, encoded, joined

RANDOM = np.random.default_rng(11)
SCANS = RANDOM.integers(0, 4096, (20, 8, 8), dtype=np.uint16)
TWELVE_BITS = SourceOptions(value_range=(0, 4095))


def read(path: Path, options: SourceOptions) -> NDArray[np.uint8]:
    """Records of grey images, as images."""
    source = open_source(path, options)
    assert isinstance(source.schema, ImageSchema)
    side = source.schema.side
    return joined(source.batches(7))[0].reshape(-1, side, side)


def saved(folder: Path, *images: NDArray[np.generic], suffix: str = "png") -> Path:
    folder.mkdir()
    for number, image in enumerate(images):
        Image.fromarray(image).save(folder / f"{number:02}.{suffix}")
    return folder


def in_order(kind: str, images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return images[np.argsort(LABELS, kind="stable")] if kind == "folder" else images


# A black image of 12x20 pixels with a white square of 12x12 in its middle, and a grey left edge.
WIDE = np.zeros((12, 20), dtype=np.uint8)
WIDE[:, 4:16] = 255
WIDE[:, 0] = 100


@pytest.mark.parametrize("turned", [False, True], ids=["wide", "tall"])
@pytest.mark.parametrize("stored", ["files", "array"])
def test_what_is_cropped_padded_or_stretched(tmp_path: Path, stored: str, turned: bool) -> None:
    image = np.ascontiguousarray(WIDE.T if turned else WIDE)
    if stored == "files":
        path = saved(tmp_path / "data", image, image)
    else:
        path = tmp_path / "x.npy"
        np.save(path, np.stack([image, image]))

    def first(fit: str, side: int) -> NDArray[np.uint8]:
        made: NDArray[np.uint8] = read(path, SourceOptions(image_size=side, fit=fit))[0]
        return made.T if turned else made

    assert (first("crop", 12) == 255).all()
    padded = first("pad", 20)
    assert np.array_equal(padded[4:16], WIDE)
    assert not padded[:4].any()
    assert not padded[16:].any()
    stretched = first("stretch", 10)
    assert stretched[5, 0] > 0
    assert (stretched[:, 3:7] == 255).all()
    assert np.array_equal(
        stretched, np.asarray(Image.fromarray(WIDE).resize((10, 10), Image.Resampling.BILINEAR))
    )


def test_an_image_that_is_thin_as_a_line_is_padded(tmp_path: Path) -> None:
    line = np.full((1, 300), 9, dtype=np.uint8)
    made = read(saved(tmp_path / "data", line, line), SourceOptions(image_size=8, fit="pad"))
    assert made[0].sum() == 8 * 9


def test_images_of_many_sizes_become_one_size_each_by_itself(tmp_path: Path) -> None:
    images = [RANDOM.integers(0, 256, size, dtype=np.uint8) for size in ((90, 70), (9, 31), (8, 8))]
    path = saved(tmp_path / "data", *images)
    for fit in ("stretch", "crop", "pad"):
        options = SourceOptions(image_size=16, fit=fit)
        together = read(path, options)
        for number, image in enumerate(images):
            alone = saved(tmp_path / f"{fit}{number}", image, images[0])
            assert np.array_equal(read(alone, options)[0], together[number])


def test_sizes_for_which_nothing_was_asked_are_one_line_with_a_size_that_is_possible(
    tmp_path: Path,
) -> None:
    for size, advice in (
        ((100, 80), "not square: image_size=64 resizes every image to 64x64, fit='crop'"),
        ((28, 6), "not square: image_size=8 resizes"),
        ((96, 96), "a side of 8 to 64 is supported: image_size=64 resizes"),
    ):
        image = np.zeros(size, dtype=np.uint8)
        with pytest.raises(SchemaError, match=advice):
            open_source(saved(tmp_path / str(size), image, image))


@pytest.mark.parametrize("kind", KINDS)
def test_a_range_and_negatives_mean_the_same_in_every_kind_of_file(
    tmp_path: Path, kind: str
) -> None:
    options = SourceOptions(value_range=(20, 220), invert=True, image_size=8)
    expected = np.rint((IMAGES.clip(20, 220) - 20.0) / 200 * 255).astype(np.uint8)
    found = read(KINDS[kind](tmp_path / "data"), options)
    assert np.array_equal(found, in_order(kind, 255 - expected))


def test_colours_are_inverted_before_they_become_shades_of_grey(tmp_path: Path) -> None:
    colours = RANDOM.integers(0, 256, (20, 8, 8, 3), dtype=np.uint8)
    negatives = [np.asarray(Image.fromarray(255 - image).convert("L")) for image in colours]
    for kind in ("npz", "folder", "parquet rows"):
        path = KINDS[kind](tmp_path / kind, colours)
        found = read(path, SourceOptions(channels=1, invert=True))
        assert np.array_equal(found, in_order(kind, np.stack(negatives))), kind


def test_black_is_padded_to_negatives(tmp_path: Path) -> None:
    paper = np.full((8, 16), 255, dtype=np.uint8)
    options = SourceOptions(image_size=16, fit="pad", invert=True)
    assert not read(saved(tmp_path / "data", paper, paper), options).any()


@pytest.mark.parametrize("suffix", ["png", "tiff"])
def test_more_than_8_bits_need_a_declared_range(tmp_path: Path, suffix: str) -> None:
    path = saved(tmp_path / "data", *SCANS, suffix=suffix)
    with pytest.raises(DataError, match=r"00\.\w+: more than 8 bits a pixel: say with value_ra"):
        open_source(path)
    expected = np.rint(SCANS / 4095 * 255).astype(np.uint8)
    assert np.array_equal(read(path, TWELVE_BITS), expected)
    assert np.array_equal(
        read(path, SourceOptions(value_range=(0, 65535))), np.rint(SCANS / 257).astype(np.uint8)
    )


@pytest.mark.parametrize("dtype", [np.uint16, np.int16, np.int32, np.int64, np.float32, np.float64])
def test_the_same_values_are_the_same_records_in_arrays_and_files_of_any_type(
    tmp_path: Path, dtype: type[np.generic]
) -> None:
    values = SCANS.astype(dtype)
    expected = np.rint(SCANS / 4095 * 255).astype(np.uint8)
    np.save(tmp_path / "x.npy", values)
    lists = pa.array(values.tolist(), pa.list_(pa.list_(pa.from_numpy_dtype(np.dtype(dtype)))))
    parquet.write_table(pa.table({"image": lists}), tmp_path / "x.parquet")
    paths = [tmp_path / "x.npy", tmp_path / "x.parquet"]
    if dtype not in (np.int64, np.float64, np.int16):  # which Pillow does not write
        paths.append(saved(tmp_path / "files", *values, suffix="tiff"))
    for path in paths:
        assert np.array_equal(read(path, TWELVE_BITS), expected), path
        with pytest.raises(DataError, match="say with value_range which values are black and"):
            read(path, SourceOptions())


def test_values_beyond_the_range_are_cut_and_that_is_said_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    values = np.zeros((5, 8, 8))
    values[2, 0, :3] = -2000.0, 400.5, np.inf
    values[4, 0, 0] = 500.0
    np.save(tmp_path / "x.npy", values)
    found = read(tmp_path / "x.npy", SourceOptions(value_range=(-1000, 400)))
    assert found[2, 0].tolist() == [0, 255, 255, 182, 182, 182, 182, 182]
    said = capfd.readouterr().err
    assert said.count("cut to these") == 1
    assert "x.npy: record 2 has values beyond -1000 to 400: such values are cut to these" in said
    values[3, 1, 1] = np.nan
    np.save(tmp_path / "x.npy", values)
    with pytest.raises(DataError, match=r"record 3 has a value that is no number \(NaN\)"):
        read(tmp_path / "x.npy", SourceOptions(value_range=(-1000, 400)))


def test_a_range_is_not_true_of_8_and_of_16_bits(tmp_path: Path) -> None:
    for name, images, more in (("a", (SCANS[0], IMAGES[0]), "8"), ("b", (IMAGES[0], SCANS[0]), "")):
        path = saved(tmp_path / name, *images)
        with pytest.raises(SchemaError, match=rf"01.png has .*{more} bits a pixel, unlike .*00.pn"):
            read(path, TWELVE_BITS)


@pytest.mark.parametrize("suffix", ["tif", "tiff", "bmp", "webp"])
def test_other_kinds_of_files(tmp_path: Path, suffix: str) -> None:
    colours = RANDOM.integers(0, 256, (3, 8, 8, 3), dtype=np.uint8)
    path = tmp_path / "data"
    path.mkdir()
    for number, image in enumerate(colours):
        options: dict[str, Any] = {"lossless": True} if suffix == "webp" else {}
        Image.fromarray(image).save(path / f"{number}.{suffix}", **options)
    source = open_source(path)
    assert source.schema.record_size == 3 * 64
    (batch,) = source.batches(3)
    assert np.array_equal(batch.records.reshape(3, 3, 8, 8).transpose(0, 2, 3, 1), colours)


@pytest.mark.parametrize("compression", ["tiff_lzw", "tiff_deflate", "packbits", "jpeg"])
def test_compressed_tiff_files(tmp_path: Path, compression: str) -> None:
    image = np.full((8, 8), 77, dtype=np.uint8)
    (tmp_path / "data").mkdir()
    for name in "ab":
        Image.fromarray(image).save(tmp_path / "data" / f"{name}.tif", compression=compression)
    assert np.array_equal(read(tmp_path / "data", SourceOptions())[0], image)


def content_of(image: Image.Image, kind: str, **options: object) -> bytes:
    content = io.BytesIO()
    image.save(content, kind, **options)
    return content.getvalue()


NOISE = Image.fromarray(RANDOM.integers(0, 256, (40, 40, 3), dtype=np.uint8))
SHORT = [Image.new("L", (8, 8), shade) for shade in (10, 200)]
TIFF_16 = content_of(Image.fromarray(SCANS[0]), "TIFF")


def tiff_with(tag: int, value: int) -> bytes:
    """A TIFF file of 16 bits that says something else of its pixels."""
    entry = tag.to_bytes(2, "little") + (3).to_bytes(2, "little") + (1).to_bytes(4, "little")
    place = TIFF_16.index(entry) + len(entry)
    return TIFF_16[:place] + value.to_bytes(2, "little") + TIFF_16[place + 2 :]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (content_of(SHORT[0], "TIFF", save_all=True, append_images=SHORT[1:]), "several pages: a"),
        (content_of(SHORT[0], "WEBP", save_all=True, append_images=SHORT[1:]), "animated: a recor"),
        (content_of(NOISE, "TIFF")[:-900], "a.img: "),
        (content_of(NOISE, "TIFF", compression="tiff_lzw")[:2000], "a.img: "),
        (content_of(NOISE, "BMP")[:-900], "damaged"),
        (content_of(NOISE, "WEBP", lossless=True)[:-900], "a.img: "),
        (content_of(NOISE.convert("CMYK"), "TIFF"), "pixels of kind CMYK"),
        (b"II*\0" + bytes(20), "not a whole TIFF image, or of a kind that is not read"),
        (b"RIFF" + bytes(20), "not a whole WebP image"),
        (b"BM" + bytes(20), "not a whole BMP image"),
        (tiff_with(262, 0), "its smallest value is white: save it with 0 for black"),
        (content_of(NOISE.convert("L"), "GIF"), "not a whole image: PNG, JPEG, TIFF, BMP and"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings(
    "ignore:Corrupt EXIF"
)  # as the program does: the content is its owner's
def test_files_that_are_no_record_are_one_line(tmp_path: Path, content: bytes, words: str) -> None:
    parquet.write_table(pa.table({"image": [content, content]}), tmp_path / "a.img.parquet")
    with pytest.raises(DpntkError) as refusal:
        read(tmp_path / "a.img.parquet", SourceOptions(value_range=(0, 4095), image_size=8))
    assert words.replace("a.img: ", "a.img.parquet: record 0: ") in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_turned_tiff_files_are_set_upright(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    turned = Image.fromarray(WIDE).transpose(Image.Transpose.ROTATE_90)
    turned.save(tmp_path / "a.tif", exif=exif)
    Image.fromarray(WIDE).save(tmp_path / "b.tif")
    first, second = read(tmp_path, SourceOptions(image_size=20))
    assert np.array_equal(first, second)
    assert "a.tif is marked as turned: such images are set upright" in capfd.readouterr().err


def test_several_kinds_of_files_are_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A mask beside each image would make two records of a person."""
    (tmp_path / "a.png").write_bytes(encoded(IMAGES[0]))
    (tmp_path / "a.tif").write_bytes(encoded(IMAGES[0], "TIFF"))
    assert len(open_source(tmp_path)) == 2
    assert "read PNG and TIFF files: each of them is a record" in capfd.readouterr().err


def test_lists_of_other_whole_numbers_are_no_images_beside_images(tmp_path: Path) -> None:
    scans = [encoded(image) for image in IMAGES]
    boxes = [[1, 2, 3, 4]] * len(scans)
    parquet.write_table(pa.table({"scan": scans, "box": boxes}), tmp_path / "a.parquet")
    assert np.array_equal(read(tmp_path / "a.parquet", SourceOptions()), IMAGES)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fit": "crop"}, "fit says how images become squares of image_size: give both"),
        ({"fit": "zoom", "image_size": 8}, "fit: it is 'stretch', 'crop' or 'pad'"),
        ({"value_range": (5, 5)}, "a range of values from 5 to 5: give the value that is black"),
        ({"value_range": (0, float("inf"))}, "a range of values from 0 to inf"),
        ({"value_range": (float("nan"), 1)}, "a range of values from nan to 1"),
        ({"value_range": (-1e308, 1e308)}, "a range of values from -1e"),
        ({"value_range": (0, 1, 2)}, "value_range: two numbers, black and white"),
        ({"value_range": ("0", "1")}, "value_range: two numbers, black and white"),
        ({"invert": "yes"}, "invert"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, object], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        SourceOptions(**options)  # type: ignore[arg-type]


def test_what_was_done_is_in_the_schema_and_in_words(tmp_path: Path) -> None:
    path = KINDS["npz"](tmp_path / "data")
    options = SourceOptions(image_size=8, fit="pad", value_range=(0, 200), invert=True)
    schema = open_source(path, options).schema
    assert isinstance(schema, ImageSchema)
    assert schema.preparation == Preparation(Fit.PAD, (0, 200), inverted=True)
    assert "8x8 pixels (values 0 to 200, inverted, padded to squares) in" in schema.summary
    assert ImageSchema.from_json(schema.to_json()) == schema
