"""Data that are broken, hostile, or not what they seem get one clear line each."""

from __future__ import annotations

import gzip
import os
import re
import struct
import tarfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import parquet

from dpntk.common.errors import DpntkError
from dpntk.common.sources import open_source
from tests.helpers.data_sets import (
    IMAGES,
    LABELS,
    RECORDS,
    Member,
    encoded,
    fixed_lists,
    idx_bytes,
    tar_members,
    write_folder,
    write_idx,
    write_idx_shards,
    write_npy,
    write_packed_npz,
    write_parquet,
    write_parquet_bytes,
    write_parquet_lists,
    write_parquet_rows,
    write_parquet_shards,
    write_tar,
    write_tar_file,
    write_tar_shards,
)


def bad_idx_cut(folder: Path) -> Path:
    write_idx(folder)
    (folder / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx_bytes(IMAGES)[:-70]))
    return folder


def bad_gzip_cut(folder: Path) -> Path:
    file = write_idx(folder) / "train-images-idx3-ubyte.gz"
    file.write_bytes(file.read_bytes()[:-40])
    return folder


def bad_gzip_damaged(folder: Path) -> Path:
    file = write_idx(folder) / "train-images-idx3-ubyte.gz"
    content = bytearray(file.read_bytes())
    content[-6] ^= 255
    file.write_bytes(content)
    return folder


def bad_idx_long(folder: Path) -> Path:
    file = write_idx(folder) / "train-labels-idx1-ubyte"
    file.write_bytes(file.read_bytes() + b"\0")
    return folder


def bad_idx_counts(folder: Path) -> Path:
    return write_idx(folder, labels=LABELS[:-1])


def bad_idx_magic(folder: Path) -> Path:
    (write_idx(folder) / "train-labels-idx1-ubyte").write_bytes(b"not an IDX file")
    return folder


def bad_idx_missing(folder: Path) -> Path:
    """There are labels, but of the other part."""
    labels = write_idx(folder) / "train-labels-idx1-ubyte"
    labels.rename(folder / "t10k-labels-idx1-ubyte")
    return folder


def bad_idx_images_missing(folder: Path) -> Path:
    (write_idx(folder) / "train-images-idx3-ubyte.gz").unlink()
    return folder


def bad_empty_folder(folder: Path) -> Path:
    folder.mkdir()
    return folder


def bad_missing(folder: Path) -> Path:
    return folder / "missing"


def bad_class_folder(folder: Path) -> Path:
    (write_folder(folder) / "fox").mkdir()
    return folder


def bad_png_cut(folder: Path) -> Path:
    file = write_folder(folder) / "dog" / "99.png"
    Image.fromarray(IMAGES[0]).save(file)
    file.write_bytes(file.read_bytes()[:-20])
    return folder


def bad_png_cut_early(folder: Path) -> Path:
    random = np.random.default_rng(0).integers(0, 256, (8, 8), dtype=np.uint8)
    file = write_folder(folder) / "dog" / "99.png"
    Image.fromarray(random).save(file)
    file.write_bytes(file.read_bytes()[:80])
    return folder


def bad_jpeg_cut(folder: Path) -> Path:
    random = np.random.default_rng(0).integers(0, 256, (8, 8), dtype=np.uint8)
    file = write_folder(folder) / "dog" / "99.jpg"
    Image.fromarray(random).save(file)
    file.write_bytes(file.read_bytes()[:-12])
    return folder


def bad_png_text(folder: Path) -> Path:
    (write_folder(folder) / "cat" / "00a.png").write_text("no picture")
    return folder


def bad_png_size(folder: Path) -> Path:
    file = write_folder(folder) / "dog" / "99.png"
    Image.new("L", (9, 8)).save(file)
    return folder


def bad_png_depth(folder: Path) -> Path:
    Image.new("I;16", (8, 8)).save(write_folder(folder) / "dog" / "99.png")
    return folder


def bad_png_colour_depth(folder: Path) -> Path:
    """A colour image of 16 bits a channel, of which Pillow would read the upper eight."""
    header = struct.pack(">IIBBBBB", 8, 8, 16, 2, 0, 0, 0)
    rows = zlib.compress((b"\0" + bytes(8 * 6)) * 8)
    chunks = ((b"IHDR", header), (b"IDAT", rows), (b"IEND", b""))
    content = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
    (write_folder(folder) / "dog" / "99.png").write_bytes(b"\x89PNG\r\n\x1a\n" + content)
    return folder


def bad_png_animated(folder: Path) -> Path:
    first, second = (Image.fromarray(image) for image in IMAGES[3:5])
    file = write_folder(folder) / "dog" / "99.png"
    first.save(file, save_all=True, append_images=[second])
    return folder


def bad_jpeg_for_print(folder: Path) -> Path:
    Image.new("CMYK", (8, 8)).save(write_folder(folder) / "dog" / "99.jpg")
    return folder


def bad_folder_mixture(folder: Path) -> Path:
    Image.new("RGB", (8, 8)).save(write_folder(folder) / "dog" / "99.png")
    return folder


def bad_tar_mixture(folder: Path) -> Path:
    members = [("z.png", encoded(np.zeros((8, 8, 3), np.uint8))), ("z.cls", b"0")]
    return write_tar(folder.with_suffix(".tar"), [*tar_members(), *members])


def bad_npz_four_channels(folder: Path) -> Path:
    return write_arrays(folder, x=np.zeros((20, 8, 8, 4), np.uint8), y=LABELS)


def bad_npz_labels_alone(folder: Path) -> Path:
    return write_arrays(folder, y=LABELS)


def bad_cifar_pickle(folder: Path) -> Path:
    folder.mkdir()
    (folder / "data_batch_1").write_bytes(b"\x80\x04.")
    return folder


def bad_cifar_cut(folder: Path) -> Path:
    folder.mkdir()
    (folder / "data_batch_1.bin").write_bytes(bytes(3073 + 3072))
    return folder


def bad_cifar_missing(folder: Path) -> Path:
    folder.mkdir()
    for number in (1, 3):
        (folder / f"data_batch_{number}.bin").write_bytes(bytes(3073))
    return folder


def bad_cifar_split(folder: Path) -> Path:
    folder.mkdir()
    (folder / "test_batch.bin").write_bytes(bytes(3073))
    return folder


def write_arrays(folder: Path, **arrays: object) -> Path:
    path = folder.with_suffix(".npz")
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return path


def bad_npz_lengths(folder: Path) -> Path:
    return write_arrays(folder, x=IMAGES, y=LABELS[:-1])


def bad_npz_names(folder: Path) -> Path:
    return write_arrays(folder, images=IMAGES, y=LABELS)


def bad_npz_objects(folder: Path) -> Path:
    return write_arrays(folder, x=IMAGES, y=np.array([{}] * len(LABELS), dtype=object))


def bad_npz_range(folder: Path) -> Path:
    return write_arrays(folder, x=IMAGES.astype(np.float32), y=LABELS)


def bad_npz_nan(folder: Path) -> Path:
    values = IMAGES / 255
    values[7, 1, 1] = np.nan
    return write_arrays(folder, x=values, y=LABELS)


def bad_npz_label(folder: Path) -> Path:
    labels = LABELS.copy()
    labels[11] = -1
    return write_arrays(folder, x=IMAGES, y=labels)


def bad_npz_cut(folder: Path) -> Path:
    path = write_arrays(folder, x=IMAGES, y=LABELS)
    path.write_bytes(path.read_bytes()[:-100])
    return path


def bad_npz_columns(folder: Path) -> Path:
    return write_arrays(folder, x=np.asfortranarray(IMAGES), y=LABELS)


def bad_npz_empty(folder: Path) -> Path:
    return write_arrays(folder, x=IMAGES[:0], y=LABELS[:0])


def bad_kind(folder: Path) -> Path:
    path = folder.with_suffix(".csv")
    path.write_text("a,b\n1,2\n")
    return path


def bad_stdin(folder: Path) -> Path:
    return Path("-")


def bad_pipe(folder: Path) -> Path:
    os.mkfifo(folder)
    return folder


def bad_mixture(folder: Path) -> Path:
    write_idx(folder)
    return write_tar_shards(folder)


def bad_idx_gap(folder: Path) -> Path:
    write_idx_shards(folder)
    (folder / "train-images-idx3-ubyte.10").unlink()
    (folder / "train-10-labels.gz").unlink()
    return folder


def bad_idx_missing_shard(folder: Path) -> Path:
    for file in write_idx_shards(folder).iterdir():
        number = int(re.findall(r"\d+", file.name)[-1]) - 8
        what = "images" if "images" in file.name else "labels"
        ending = ".gz" if file.suffix == ".gz" else ""
        file.rename(folder / f"train-{what}-{number}-of-5{ending}")
    return folder


def bad_idx_shard_without_labels(folder: Path) -> Path:
    write_idx_shards(folder)
    (folder / "train-11-labels.gz").unlink()
    return folder


def bad_idx_shard_twice(folder: Path) -> Path:
    file = write_idx_shards(folder) / "train-images-idx3-ubyte.9"
    file.with_name("train-09-images").write_bytes(file.read_bytes())
    return folder


def bad_idx_whole_and_shards(folder: Path) -> Path:
    return write_idx_shards(write_idx(folder))


def bad_idx_shard_size(folder: Path) -> Path:
    images = np.zeros((9, 9, 8), np.uint8)
    (write_idx_shards(folder) / "train-images-idx3-ubyte.10").write_bytes(idx_bytes(images))
    return folder


def bad_idx_shard_cut(folder: Path) -> Path:
    file = write_idx_shards(folder) / "train-images-idx3-ubyte.10"
    file.write_bytes(file.read_bytes()[:-100])
    return folder


def bad_idx_huge(folder: Path) -> Path:
    header = struct.pack(">BBBBIII", 0, 0, 8, 3, 20, 1 << 31, 1 << 31)
    (write_idx(folder) / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(header))
    return folder


def bad_png_bomb(folder: Path) -> Path:
    """A header that announces 40,000 x 40,000 pixels."""
    file = write_folder(folder) / "cat" / "00.PNG"
    content = bytearray(encoded(IMAGES[0]))
    content[16:24] = struct.pack(">II", 40_000, 40_000)
    content[29:33] = struct.pack(">I", zlib.crc32(content[12:29]))
    file.write_bytes(content)
    return folder


def bad_png_large_file(folder: Path) -> Path:
    with (write_folder(folder) / "dog" / "99.png").open("wb") as file:
        file.truncate(1 << 40)  # takes no room on the disk
    return folder


def bad_npz_huge_label(folder: Path) -> Path:
    return write_arrays(folder, x=IMAGES, y=LABELS + 10**15)


def bad_npz_no_pixels(folder: Path) -> Path:
    return write_arrays(folder, x=np.zeros((20, 0), np.uint8), y=LABELS)


def bad_npz_damaged(folder: Path) -> Path:
    """The pixels no longer have the checksum that the archive says they have."""
    path = write_packed_npz(folder)
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 16] ^= 255
    path.write_bytes(content)
    return path


def bad_npy_objects(folder: Path) -> Path:
    np.save(write_npy(folder) / "y.npy", np.array([{}] * 20, dtype=object), allow_pickle=True)
    return folder


def bad_npy_cut(folder: Path) -> Path:
    file = write_npy(folder) / "x.npy"
    file.write_bytes(file.read_bytes()[:-130])
    return folder


def bad_npy_text(folder: Path) -> Path:
    (write_npy(folder) / "x.npy").write_text("no array")
    return folder


def bad_npy_integers(folder: Path) -> Path:
    np.save(write_npy(folder) / "x.npy", IMAGES.astype(np.int64))
    return folder


def bad_npy_scalar(folder: Path) -> Path:
    np.save(write_npy(folder) / "y.npy", np.int64(3))
    return folder


PNGS = [encoded(image) for image in IMAGES]


def bad_parquet_text(folder: Path) -> Path:
    path = folder.with_suffix(".parquet")
    path.write_text("a,b\n1,2\n" * 9)
    return path


def bad_parquet_cut(folder: Path) -> Path:
    path = write_parquet_bytes(folder)
    path.write_bytes(path.read_bytes()[:-30])
    return path


def bad_parquet_damaged(folder: Path) -> Path:
    """The first page of a column of lists is overwritten."""
    path = write_parquet_lists(folder)
    content = bytearray(path.read_bytes())
    begin = parquet.ParquetFile(path).metadata.row_group(2).column(1).data_page_offset
    content[begin : begin + 40] = b"\xff" * 40
    path.write_bytes(content)
    return path


def bad_parquet_null_image(folder: Path) -> Path:
    return write_parquet(folder.with_suffix(".parquet"), [*PNGS[:13], None, *PNGS[14:]])


def bad_parquet_path_alone(folder: Path) -> Path:
    images = [{"bytes": content, "path": None} for content in PNGS]
    images[8] = {"bytes": None, "path": "8.png"}  # type: ignore[dict-item]
    return write_parquet(folder.with_suffix(".parquet"), images)


def bad_parquet_null_label(folder: Path) -> Path:
    labels = [*LABELS.tolist()[:-1], None]
    return write_parquet(folder.with_suffix(".parquet"), PNGS, labels)


def bad_parquet_label_kind(folder: Path) -> Path:
    return write_parquet(folder.with_suffix(".parquet"), PNGS, [["cat"]] * 20)


def bad_parquet_no_picture(folder: Path) -> Path:
    return write_parquet(folder.with_suffix(".parquet"), [*PNGS[:13], b"no picture", *PNGS[14:]])


def bad_parquet_size(folder: Path) -> Path:
    images = [*PNGS[:-1], encoded(np.zeros((9, 8), np.uint8))]
    return write_parquet(folder.with_suffix(".parquet"), images)


def bad_parquet_list_length(folder: Path) -> Path:
    lists = RECORDS.tolist()
    lists[17] = lists[17][:-1]
    return write_parquet(folder.with_suffix(".parquet"), pa.array(lists, pa.list_(pa.uint8())))


def bad_parquet_list_null(folder: Path) -> Path:
    lists = RECORDS.tolist()
    lists[3][5] = None
    return write_parquet(folder.with_suffix(".parquet"), pa.array(lists, pa.list_(pa.uint8())))


def bad_parquet_list_shape(folder: Path) -> Path:
    return write_parquet(folder.with_suffix(".parquet"), fixed_lists(RECORDS[:, :-1]))


def bad_parquet_rows_length(folder: Path) -> Path:
    rows = IMAGES.tolist()
    rows[17][2] = rows[17][2][:-1]
    lists = pa.array(rows, pa.list_(pa.list_(pa.uint8())))
    return write_parquet(folder.with_suffix(".parquet"), lists)


def bad_parquet_rows_null(folder: Path) -> Path:
    rows: list[Any] = IMAGES.tolist()
    rows[3][7] = None
    lists = pa.array(rows, pa.list_(pa.list_(pa.uint8())))
    return write_parquet(folder.with_suffix(".parquet"), lists)


def bad_parquet_rows_empty(folder: Path) -> Path:
    lists = pa.array([[]] * 20, pa.list_(pa.list_(pa.uint8())))
    return write_parquet(folder.with_suffix(".parquet"), lists)


def bad_parquet_four_channels(folder: Path) -> Path:
    return write_parquet_rows(folder, np.zeros((20, 8, 8, 4), np.uint8))


def bad_parquet_list_range(folder: Path) -> Path:
    values = RECORDS / 255
    values[12, 3] = 1.5
    return write_parquet(folder.with_suffix(".parquet"), fixed_lists(values))


def bad_parquet_integers(folder: Path) -> Path:
    return write_parquet(folder.with_suffix(".parquet"), fixed_lists(RECORDS.astype(np.int64)))


def bad_parquet_columns(folder: Path) -> Path:
    path = folder.with_suffix(".parquet")
    parquet.write_table(pa.table({"front": PNGS, "back": PNGS, "label": LABELS}), path)
    return path


def bad_parquet_labels(folder: Path) -> Path:
    path = folder.with_suffix(".parquet")
    parquet.write_table(pa.table({"image": PNGS, "age": LABELS, "sex": LABELS}), path)
    return path


def bad_parquet_empty(folder: Path) -> Path:
    return write_parquet(folder.with_suffix(".parquet"), pa.array([], pa.binary()), LABELS[:0])


def bad_parquet_shards(folder: Path) -> Path:
    write_parquet(write_parquet_shards(folder) / "train-00001-of-00002.parquet", PNGS)
    return folder


def bad_parquet_missing_shard(folder: Path) -> Path:
    (write_parquet_shards(folder) / "train-00000-of-00002.parquet").unlink()
    return folder


def bad_parquet_split(folder: Path) -> Path:
    for file in write_parquet_shards(folder).iterdir():
        file.rename(file.with_name(file.name.replace("train", "validation")))
    return folder


def tar(folder: Path, *members: Member) -> Path:
    """A good shard with some more members behind."""
    return write_tar(folder.with_suffix(".tar"), [*tar_members(), *members])


def bad_tar_text(folder: Path) -> Path:
    path = folder.with_suffix(".tar")
    path.write_text("no archive" * 99)
    return path


def bad_tar_compressed(folder: Path) -> Path:
    path = write_tar_file(folder)
    path.write_bytes(gzip.compress(path.read_bytes()))
    return path


def bad_tar_cut_in_an_image(folder: Path) -> Path:
    path = write_tar(folder.with_suffix(".tar"), [("a.cls", b"1"), ("a.png", PNGS[4])])
    path.write_bytes(path.read_bytes()[: 3 * 512 + 60])
    return path


def bad_tar_cut_between_members(folder: Path) -> Path:
    """The last record is gone without a trace, but for the missing mark of the end."""
    path = folder.with_suffix(".tar")
    write_tar(path, [("a.cls", b"1"), ("a.png", PNGS[4]), ("b.cls", b"1"), ("b.png", PNGS[5])])
    path.write_bytes(path.read_bytes()[: 4 * 512])
    return path


def bad_tar_damaged_header(folder: Path) -> Path:
    path = write_tar_file(folder)
    content = bytearray(path.read_bytes())
    content[content.index(b"some.dir/0007")] ^= 255
    path.write_bytes(content)
    return path


def bad_tar_joined(folder: Path) -> Path:
    path = write_tar_file(folder)
    path.write_bytes(path.read_bytes() * 2)
    return path


def bad_tar_without_label(folder: Path) -> Path:
    return tar(folder, ("last.png", PNGS[0]), ("last.txt", b"1"))


def bad_tar_without_image(folder: Path) -> Path:
    return tar(folder, ("last.gif", PNGS[0]), ("last.cls", b"1"))


def bad_tar_two_images(folder: Path) -> Path:
    return tar(folder, ("z.png", PNGS[0]), ("z.jpg", PNGS[0]), ("z.cls", b"1"))


def bad_tar_label(folder: Path) -> Path:
    return tar(folder, ("z.png", PNGS[0]), ("z.cls", b"cat"))


def bad_tar_negative_label(folder: Path) -> Path:
    return tar(folder, ("z.png", PNGS[0]), ("z.json", b'{"label": -1}'))


def bad_tar_json(folder: Path) -> Path:
    return tar(folder, ("z.png", PNGS[0]), ("z.json", b"[" * 100_000))


def bad_tar_huge_label(folder: Path) -> Path:
    return tar(folder, ("z.png", PNGS[0]), ("z.cls", b"10000000000"))


def bad_tar_damaged_image(folder: Path) -> Path:
    return tar(folder, ("z.png", PNGS[0][:-20]), ("z.cls", b"1"))


def bad_tar_size(folder: Path) -> Path:
    return tar(folder, ("z.png", encoded(np.zeros((8, 9), np.uint8))), ("z.cls", b"1"))


def bad_tar_link(folder: Path) -> Path:
    path = folder.with_suffix(".tar")
    with tarfile.open(path, "w") as archive:
        link = tarfile.TarInfo("z.png")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return path


def bad_tar_large_member(folder: Path) -> Path:
    path = folder.with_suffix(".tar")
    large = tarfile.TarInfo("z.png")
    large.size = 1 << 40
    with path.open("wb") as file:
        file.write(large.tobuf())
        file.truncate(1 << 41)  # takes no room on the disk
    return path


def bad_tar_empty(folder: Path) -> Path:
    return write_tar(folder.with_suffix(".tar"), [("README", b"nothing here")])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (bad_missing, "there is no such file or folder"),
        (bad_empty_folder, "neither class folders with images, nor images side by side"),
        (bad_png_colour_depth, "99.png: 16 bits a channel: save it with 8"),
        (bad_png_animated, "99.png: animated: a record is one image"),
        (bad_jpeg_for_print, "99.jpg: pixels of kind CMYK: save it as RGB"),
        (bad_folder_mixture, "dog/99.png is in colour but .*.PNG is grey: declare with channels"),
        (bad_tar_mixture, r"record 20 \(z.png\) is in colour but .*record 0 .* is grey: declare"),
        (bad_npz_four_channels, r"x: images of the shape \(8, 8, 4\): .*width, 3\) in colour"),
        (bad_npz_labels_alone, "holds no array named x: .* there is y"),
        (bad_cifar_pickle, "data_batch_1: a pickle, which dpntk never loads: fetch .* binary"),
        (bad_cifar_cut, "data_batch_1.bin: cut short, .* it ends within record 1"),
        (bad_cifar_missing, "data_batch_2.bin is missing"),
        (bad_cifar_split, r"there is no data_batch\*.bin in it"),
        (bad_class_folder, "fox: a class folder without an image: fill it or remove it"),
        (bad_png_cut, "99.png: damaged"),
        (bad_png_cut_early, "99.png: damaged"),
        (bad_jpeg_cut, "99.jpg: damaged"),
        (bad_png_text, "00a.png: not a whole image: PNG, JPEG, TIFF, BMP and WebP are read"),
        (bad_png_size, r"99.png is 8x9 pixels but .* is 8x8: image_size=8 resizes every image"),
        (
            bad_png_depth,
            r"99.png has more than 8 bits a pixel, unlike .*02.PNG: save all of them alike",
        ),
        (bad_idx_cut, "ends after 18 of 20 items"),
        (bad_gzip_cut, "cut short"),
        (bad_gzip_damaged, "damaged"),
        (bad_idx_long, "goes on after the 20 items"),
        (bad_idx_counts, "holds 20 images but train-labels-idx1-ubyte holds 19 labels"),
        (bad_idx_magic, "not an IDX file"),
        (bad_idx_missing, "no IDX file of train labels"),
        (bad_idx_images_missing, "no IDX file of train images"),
        (bad_npz_lengths, "x holds 20 images but y holds 19 labels"),
        (bad_npz_names, "holds no array named x: images are x and labels y, but there is imag"),
        (bad_npz_objects, "y holds Python objects"),
        (bad_npz_range, r"record 0 has a value outside \[0, 1\]|record 1 has a value"),
        (bad_npz_nan, r"record 7 has a value that is no number \(NaN\)"),
        (
            bad_npz_label,
            "record 11 has a label below 0, but .* numbers from 0: correct it$",
        ),
        (bad_npz_cut, "not a whole .npz archive"),
        (bad_npz_columns, "stored by columns"),
        (bad_npz_empty, "no records"),
        (bad_kind, "a table needs a schema"),
        (bad_stdin, "-: standard input is no source"),
        (bad_pipe, "not a regular file"),
        (bad_mixture, "several kinds of data, IDX files and tar shards"),
        (bad_idx_gap, "no IDX file of train images of shard 10"),
        (bad_idx_missing_shard, "number 4 of train-images-...-of-5 is missing"),
        (bad_idx_shard_without_labels, "no IDX file of train labels of shard 11"),
        (bad_idx_shard_twice, "both train-09-images and train-images-idx3-ubyte.9 hold the train"),
        (bad_idx_whole_and_shards, "hold the train images: keep whole or shards"),
        (bad_idx_shard_size, r"ubyte.10 holds images of 9x8 pixels but .*ubyte.8 of 8x8"),
        (bad_idx_shard_cut, r"ubyte.10: cut short: it ends after 7 of 9 items"),
        (bad_idx_huge, "images of 2147483648x2147483648 pixels"),
        (bad_png_bomb, "00.PNG: images of 40000x40000 pixels"),
        (bad_png_large_file, "99.png: 1,099,511,627,776 bytes"),
        (bad_npz_huge_label, "y: there is a label that is too large: labels are 0 to 9999"),
        (bad_npz_no_pixels, "x: images of 0x0 pixels"),
        (bad_npz_damaged, "not a whole .npz archive: Bad CRC-32 for file 'x.npy'"),
        (bad_npy_objects, "y.npy: y holds Python objects, which dpntk never loads"),
        (bad_npy_cut, "x.npy: x is cut short: it ends after 17 of 20 records"),
        (bad_npy_text, "x.npy: not a whole .npy file"),
        (
            bad_npy_integers,
            "x.npy is int64: say with value_range which values .* or store pixels as uint8",
        ),
        (bad_npy_scalar, "y is a single number"),
        (bad_parquet_text, "data.parquet: not a whole Parquet file"),
        (bad_parquet_cut, "data.parquet: not a whole Parquet file"),
        (bad_parquet_damaged, "data.parquet: not a whole Parquet file"),
        (bad_parquet_null_image, r"data.parquet: record 13 has no image \(null\)"),
        (bad_parquet_path_alone, r"data.parquet: record 8 has no image \(null\)"),
        (bad_parquet_null_label, r"data.parquet: record 19 has no label \(null\)"),
        (bad_parquet_label_kind, "the column label is list: store labels as whole numbers"),
        (
            bad_parquet_no_picture,
            "record 13: not a whole image: PNG, JPEG, TIFF, BMP and WebP are read",
        ),
        (bad_parquet_size, r"record 19 is 9x8 pixels but .*record 0 is 8x8: image_size=8"),
        (bad_parquet_list_length, "record 17 has 63 values but the first one 64"),
        (bad_parquet_list_null, r"record 3 lacks a value of its image \(null\)"),
        (bad_parquet_list_shape, "a list of 63 values is no square image"),
        (bad_parquet_rows_length, "record 17 has 7 values but the first one 8, in a list of"),
        (bad_parquet_rows_null, r"record 3 lacks a value of its image \(null\)"),
        (bad_parquet_rows_empty, "images of 0x0 pixels"),
        (bad_parquet_four_channels, r"images of the shape \(8, 8, 4\): .*width, 3\) in colour"),
        (bad_parquet_list_range, r"record 12 has a value outside \[0, 1\]"),
        (bad_parquet_integers, "data.parquet: record 0 is int64: say with value_range which"),
        (bad_parquet_columns, "images .* in any of the columns front, back: name the right one im"),
        (
            bad_parquet_labels,
            "labels may be in age, sex: name their column label, or declare one class",
        ),
        (bad_parquet_empty, "no records"),
        (bad_parquet_shards, r"00001-of-00002.parquet: .* stored otherwise than those of train-00"),
        (bad_parquet_missing_shard, r"number 0 of train-...-of-00002.parquet is missing"),
        (bad_parquet_split, "no .parquet file of the train split, only of validation"),
        (bad_tar_text, "data.tar: not a whole tar archive"),
        (bad_tar_compressed, "data.tar: compressed: .* unpack it"),
        (bad_tar_cut_in_an_image, "data.tar: not a whole tar archive: unexpected end of data"),
        (bad_tar_cut_between_members, "data.tar: cut short: it has no end mark"),
        (bad_tar_damaged_header, r"data.tar: damaged at byte \d+"),
        (bad_tar_joined, "data.tar: goes on after its end mark"),
        (bad_tar_without_label, "data.tar: last: an image without a label: put last.cls beside"),
        (bad_tar_without_image, "data.tar: last: a label without an image"),
        (bad_tar_two_images, "data.tar: z.jpg: a second image of the same name"),
        (bad_tar_label, r"data.tar: z.cls: it holds no label"),
        (bad_tar_negative_label, "data.tar: z.json: its label is no whole number from 0"),
        (bad_tar_json, "data.tar: z.json: no JSON such as"),
        (bad_tar_huge_label, "there is a label that is too large"),
        (bad_tar_damaged_image, r"data.tar: record 20 \(z.png\): damaged: cut short"),
        (bad_tar_size, r"record 20 \(z.png\) is 8x9 pixels but .*record 0 .* is 8x8"),
        (bad_tar_link, "data.tar: z.png: a link or a special file"),
        (bad_tar_large_member, "data.tar: z.png: 1099511627776 bytes"),
        (bad_tar_empty, "there are no records in it: KEY.png"),
    ],
)
def test_bad_data_is_one_clear_line(tmp_path: Path, make: object, message: str) -> None:
    assert callable(make)
    path = make(tmp_path / "data")
    with pytest.raises(DpntkError, match=message) as caught:
        for _ in open_source(path).batches(6):
            pass
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value) or str(tmp_path) in str(caught.value)
