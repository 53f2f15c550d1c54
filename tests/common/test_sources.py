"""Every format gives the records that were put into it, and says what is wrong with others."""

from __future__ import annotations

import gzip
import os
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from dpntk.common.errors import DataError, DpntkError, SchemaError
from dpntk.common.schema import Origin
from dpntk.common.sources import Source, open_source
from tests.conftest import SIDE
from tests.data_sets import (
    IMAGES,
    KINDS,
    LABELS,
    RECORDS,
    idx_bytes,
    write_folder,
    write_idx,
)


def read(source: Source, size: int = 6) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    batches = list(source.batches(size))
    assert all(len(batch.records) == size for batch in batches[:-1])
    return (
        np.concatenate([batch.records for batch in batches]),
        np.concatenate([batch.labels for batch in batches]),
    )


def test_idx_files(tmp_path: Path) -> None:
    write_idx(tmp_path)
    write_idx(tmp_path, IMAGES[:5], LABELS[:5], prefix="t10k")

    source = open_source(tmp_path)
    records, labels = read(source)

    assert len(source) == 20
    assert np.array_equal(records, RECORDS)
    assert np.array_equal(labels, LABELS)
    assert source.schema.classes == ("0", "1", "2")
    assert source.schema.classes_origin is Origin.FROM_DATA
    assert len(open_source(tmp_path, split="test")) == 5


def test_declared_classes_are_not_looked_up(tmp_path: Path) -> None:
    schema = open_source(write_idx(tmp_path), class_count=7).schema
    assert len(schema.classes) == 7
    assert schema.classes_origin is Origin.DECLARED
    with pytest.raises(SchemaError, match=r"has label 2, but the labels of 2 classes are 0 to 1"):
        read(open_source(tmp_path, class_count=2))


@pytest.mark.parametrize("shape", [(SIDE, SIDE), (SIDE, SIDE, 1), (1, SIDE, SIDE), (SIDE * SIDE,)])
def test_npz_files_of_any_layout(tmp_path: Path, shape: tuple[int, ...]) -> None:
    path = tmp_path / "data.npz"
    np.savez_compressed(path, x=IMAGES.reshape(-1, *shape), y=LABELS.astype(np.int32)[:, None])
    records, labels = read(open_source(path))
    assert np.array_equal(records, RECORDS)
    assert np.array_equal(labels, LABELS)


def test_npz_with_values_from_0_to_1(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    np.savez(path, x=(IMAGES / 255).astype(np.float32), y=LABELS)
    assert np.array_equal(read(open_source(path))[0], RECORDS)


def test_npz_with_both_parts(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    np.savez(path, x_train=IMAGES, y_train=LABELS, x_test=IMAGES[:4], y_test=LABELS[:4])
    assert len(open_source(path)) == 20
    assert len(open_source(path, split="test")) == 4


def test_class_folders(tmp_path: Path) -> None:
    source = open_source(write_folder(tmp_path / "data"))
    records, labels = read(source)
    order = np.argsort(LABELS, kind="stable")
    assert source.schema.classes == ("cat", "dog", "eel")
    assert source.schema.from_data == ()
    assert np.array_equal(records, RECORDS[order])
    assert np.array_equal(labels, LABELS[order])


def test_class_folders_in_two_parts(tmp_path: Path) -> None:
    write_folder(tmp_path / "train")
    write_folder(tmp_path / "test")
    (tmp_path / "test" / "cat").rename(tmp_path / "test" / "ape")
    assert open_source(tmp_path).schema.classes == ("cat", "dog", "eel")
    with pytest.raises(DataError, match="ape is not one of the classes cat, dog, eel"):
        open_source(tmp_path, split="test", class_names=("cat", "dog", "eel"))


def test_a_train_part_alone(tmp_path: Path) -> None:
    write_folder(tmp_path / "train")
    assert open_source(tmp_path).schema.classes == ("cat", "dog", "eel")


def test_a_class_named_train_is_a_class(tmp_path: Path) -> None:
    write_folder(tmp_path)
    (tmp_path / "cat").rename(tmp_path / "train")
    assert open_source(tmp_path).schema.classes == ("dog", "eel", "train")


def test_labels_follow_the_expected_classes_even_if_one_is_missing(tmp_path: Path) -> None:
    write_folder(tmp_path)
    for file in (tmp_path / "cat").iterdir():
        file.unlink()
    (tmp_path / "cat").rmdir()
    _, labels = read(open_source(tmp_path, class_names=("cat", "dog", "eel")))
    assert set(labels.tolist()) == {1, 2}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_the_records_in_order(tmp_path: Path, kind: str) -> None:
    source = open_source(KINDS[kind](tmp_path / "data"), class_count=3)
    records, labels = read(source)
    order = np.argsort(LABELS, kind="stable") if kind == "folder" else np.arange(20)
    assert len(source) == 20
    assert len(source.schema.classes) == 3
    assert source.schema.from_data == ()
    assert np.array_equal(records, RECORDS[order])
    assert np.array_equal(labels, LABELS[order])
    assert records.dtype == np.uint8
    assert labels.dtype == np.int64


@pytest.mark.parametrize("kind", KINDS)
def test_images_are_resized_one_by_one(tmp_path: Path, kind: str) -> None:
    large = np.repeat(np.repeat(IMAGES, 2, axis=1), 3, axis=2)  # 16 x 24
    if kind == "parquet lists":  # which are square
        large = np.repeat(np.repeat(IMAGES, 3, axis=1), 3, axis=2)
    path = KINDS[kind](tmp_path / "data", large, np.zeros_like(LABELS))
    if kind != "parquet lists":
        with pytest.raises(SchemaError, match=r"16x24 pixels are not square: --image-size 16"):
            open_source(path)
    source = open_source(path, image_size=8)
    expected = [np.asarray(Image.fromarray(i).resize((8, 8), 2)).ravel() for i in large]
    assert source.schema.side_origin is Origin.DECLARED
    assert np.array_equal(read(source)[0], np.stack(expected))


def test_colour_is_read_as_grey(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a").mkdir()
    image = Image.fromarray(IMAGES[3]).convert("RGB")
    image.save(tmp_path / "a" / "0.png")
    records, _ = read(open_source(tmp_path))
    assert np.array_equal(records[0], RECORDS[3])
    assert "shades of grey" in capfd.readouterr().err


def test_memory_does_not_grow_with_the_number_of_records(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        path = tmp_path / f"{count}.npz"
        np.savez(path, x=np.zeros((count, 32, 32), np.uint8), y=np.zeros(count, np.int64))
        tracemalloc.start()
        for _ in open_source(path).batches(64):
            pass
        _, highest = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return highest

    small, large = peak(2_000), peak(20_000)
    assert large < 1.1 * small + 2 * 8 * (1 << 16)  # a piece of labels beside


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
    (write_idx(folder) / "train-labels-idx1-ubyte").unlink()
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


def npz(folder: Path, **arrays: object) -> Path:
    path = folder.with_suffix(".npz")
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return path


def bad_npz_lengths(folder: Path) -> Path:
    return npz(folder, x=IMAGES, y=LABELS[:-1])


def bad_npz_names(folder: Path) -> Path:
    return npz(folder, images=IMAGES, y=LABELS)


def bad_npz_objects(folder: Path) -> Path:
    return npz(folder, x=IMAGES, y=np.array([{}] * len(LABELS), dtype=object))


def bad_npz_range(folder: Path) -> Path:
    return npz(folder, x=IMAGES.astype(np.float32), y=LABELS)


def bad_npz_nan(folder: Path) -> Path:
    values = IMAGES / 255
    values[7, 1, 1] = np.nan
    return npz(folder, x=values, y=LABELS)


def bad_npz_label(folder: Path) -> Path:
    labels = LABELS.copy()
    labels[11] = -1
    return npz(folder, x=IMAGES, y=labels)


def bad_npz_cut(folder: Path) -> Path:
    path = npz(folder, x=IMAGES, y=LABELS)
    path.write_bytes(path.read_bytes()[:-100])
    return path


def bad_npz_columns(folder: Path) -> Path:
    return npz(folder, x=np.asfortranarray(IMAGES), y=LABELS)


def bad_npz_empty(folder: Path) -> Path:
    return npz(folder, x=IMAGES[:0], y=LABELS[:0])


def bad_kind(folder: Path) -> Path:
    path = folder.with_suffix(".csv")
    path.write_text("a,b\n1,2\n")
    return path


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (bad_missing, "there is no such file or folder"),
        (bad_empty_folder, "neither class folders with images, nor IDX files"),
        (bad_class_folder, "fox: a class folder without a PNG or JPEG file"),
        (bad_png_cut, "99.png: damaged"),
        (bad_png_cut_early, "99.png: damaged"),
        (bad_jpeg_cut, "99.jpg: damaged"),
        (bad_png_text, "00a.png: not a whole PNG or JPEG image"),
        (bad_png_size, r"99.png is 8x9 pixels but .* is 8x8: --image-size 8 resizes every image"),
        (bad_png_depth, "99.png: pixels of kind I;16: 8 bits a channel"),
        (bad_idx_cut, "ends after 18 of 20 items"),
        (bad_gzip_cut, "cut short"),
        (bad_gzip_damaged, "damaged"),
        (bad_idx_long, "goes on after the 20 items"),
        (bad_idx_counts, "holds 20 images but train-labels-idx1-ubyte holds 19 labels"),
        (bad_idx_magic, "not an IDX file"),
        (bad_idx_missing, "no IDX file of train labels"),
        (bad_npz_lengths, "x holds 20 images but y holds 19 labels"),
        (bad_npz_names, "holds no array named x"),
        (bad_npz_objects, "y holds Python objects"),
        (bad_npz_range, r"record 0 has a value outside \[0, 1\]|record 1 has a value"),
        (bad_npz_nan, r"record 7 has a value outside \[0, 1\]"),
        (bad_npz_label, "record 11 has label -1"),
        (bad_npz_cut, "not a whole .npz archive"),
        (bad_npz_columns, "stored by columns"),
        (bad_npz_empty, "no records"),
        (bad_kind, "not a kind of file that dpntk reads"),
    ],
)
def test_bad_data_is_one_clear_line(tmp_path: Path, make: object, message: str) -> None:
    assert callable(make)
    path = make(tmp_path / "data")
    with pytest.raises(DpntkError, match=message) as caught:
        read(open_source(path))
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_range_holds_the_same_records_as_the_whole(tmp_path: Path, kind: str) -> None:
    source = open_source(KINDS[kind](tmp_path / "data"))
    records, labels = read(source)
    for start, stop in [(0, 20), (0, 7), (7, 20), (5, 18), (19, 20), (6, 6), (13, None), (3, 99)]:
        batches = list(source.batches(4, start, stop))
        wanted = len(range(*slice(start, stop).indices(20)))
        assert [len(b.labels) for b in batches] == [
            min(4, wanted - done) for done in range(0, wanted, 4)
        ]
        if batches:
            assert np.array_equal(np.concatenate([b.records for b in batches]), records[start:stop])
            assert np.array_equal(np.concatenate([b.labels for b in batches]), labels[start:stop])


@pytest.mark.parametrize("kind", KINDS)
def test_a_fingerprint_changes_with_the_data_and_not_with_their_place(
    tmp_path: Path, kind: str
) -> None:
    path = KINDS[kind](tmp_path / "data")
    before = open_source(path).fingerprint()
    assert len(bytes.fromhex(before)) == 32
    (tmp_path / "elsewhere").mkdir()
    moved = path.rename(tmp_path / "elsewhere" / path.name)
    assert open_source(moved).fingerprint() == before
    for file in [moved] if moved.is_file() else sorted(f for f in moved.rglob("*") if f.is_file()):
        times = file.stat()
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns + 1))
        assert open_source(moved).fingerprint() != before
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert open_source(moved).fingerprint() == before


@pytest.mark.parametrize("kind", KINDS)
def test_stopping_early_leaves_nothing_open(tmp_path: Path, kind: str) -> None:
    source = open_source(KINDS[kind](tmp_path / "data"))
    before = set(os.listdir("/dev/fd")), threading.active_count()
    batches = source.batches(3)
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert (set(os.listdir("/dev/fd")), threading.active_count()) == before


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"folder"}))  # where labels are names
def test_a_label_beyond_the_declared_classes_is_refused(tmp_path: Path, kind: str) -> None:
    path = KINDS[kind](tmp_path / "data")
    with pytest.raises(SchemaError, match=r"record \d+ has label 2, but the labels of 2") as caught:
        read(open_source(path, class_count=2))
    assert str(tmp_path) in str(caught.value)
