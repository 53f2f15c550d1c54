"""Every format gives the records that were put into it, and says what is wrong with others."""

from __future__ import annotations

import io
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from dpntk.common.errors import DataError, SchemaError
from dpntk.common.schema.image import ImageSchema
from dpntk.common.schema.origin import Origin
from dpntk.common.sources import Source, open_source
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import TangentOptions, embed
from tests.conftest import SIDE, Command, refused
from tests.helpers.data_sets import (
    IMAGES,
    KINDS,
    LABELS,
    RECORDS,
    encoded,
    idx_bytes,
    joined,
    tar_members,
    write_folder,
    write_idx,
    write_parquet,
    write_tar,
)
from tests.helpers.memory import growth


def read(source: Source, size: int = 6) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    batches = list(source.batches(size))
    assert all(len(batch.records) == size for batch in batches[:-1])
    return joined(batches)


def test_idx_files(tmp_path: Path) -> None:
    write_idx(tmp_path)
    write_idx(tmp_path, IMAGES[:5], LABELS[:5], prefix="t10k")

    source = open_source(tmp_path)
    records, labels = read(source)

    assert len(source) == 20
    assert np.array_equal(records, RECORDS)
    assert np.array_equal(labels, LABELS)
    assert source.schema.classes == ("0", "1", "2")
    assert isinstance(source.schema, ImageSchema)
    assert source.schema.classes_origin is Origin.FROM_DATA
    assert len(open_source(tmp_path, SourceOptions(split="test"))) == 5


def test_declared_classes_are_not_looked_up(tmp_path: Path) -> None:
    schema = open_source(write_idx(tmp_path), SourceOptions(classes=7)).schema
    assert len(schema.classes) == 7
    assert isinstance(schema, ImageSchema)
    assert schema.classes_origin is Origin.DECLARED
    with pytest.raises(SchemaError, match=r"too large, for the labels of 2 classes are 0 to 1"):
        read(open_source(tmp_path, SourceOptions(classes=2)))


@pytest.mark.parametrize("shape", [(SIDE, SIDE), (SIDE, SIDE, 1), (1, SIDE, SIDE), (SIDE * SIDE,)])
def test_npz_files_of_any_layout(tmp_path: Path, shape: tuple[int, ...]) -> None:
    path = tmp_path / "data.npz"
    np.savez_compressed(path, x=IMAGES.reshape(-1, *shape), y=LABELS.astype(np.int32)[:, None])
    records, labels = read(open_source(path))
    assert np.array_equal(records, RECORDS)
    assert np.array_equal(labels, LABELS)


def test_a_folder_with_an_archive_for_each_part(tmp_path: Path) -> None:
    np.savez(tmp_path / "train.npz", x=IMAGES, y=LABELS)
    with pytest.raises(DataError, match=r"holds no test\.npz$"):
        open_source(tmp_path, SourceOptions(split="test"))
    np.savez(tmp_path / "test.npz", x=IMAGES[5:], y=LABELS[5:])

    for split, first in (("train", 0), ("test", 5)):
        records, labels = read(open_source(tmp_path, SourceOptions(split=split)))
        assert np.array_equal(records, RECORDS[first:])
        assert np.array_equal(labels, LABELS[first:])
    np.save(tmp_path / "x.npy", IMAGES)
    with pytest.raises(DataError, match=r"several kinds of data, \.npy files and \.npz archives"):
        open_source(tmp_path)


def test_images_beside_other_data_are_named_if_they_are_only_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compared = SourceOptions(only_compared=True)
    np.savez(tmp_path / "train.npz", x=IMAGES, y=LABELS)
    assert len(open_source(tmp_path, compared)) == len(IMAGES)
    assert "passed over" not in capsys.readouterr().err
    for name in ("0.png", "1.jpg"):
        (tmp_path / name).write_bytes(b"")
    assert len(open_source(tmp_path, compared)) == len(IMAGES)
    said = capsys.readouterr().err
    assert "read the .npz archives, and passed over 2 images beside them" in said


ONE_RECORD: dict[str, Callable[[Path], object]] = {
    "one.parquet": lambda path: write_parquet(path, [encoded(IMAGES[0])], LABELS[:1]),
    "one.tar": lambda path: write_tar(path, tar_members(IMAGES[:1], LABELS[:1])),
    "train.npz": lambda path: np.savez(path, x=IMAGES[:1], y=LABELS[:1]),
    "x.npy": lambda path: np.save(path, IMAGES[:1]),
    "train-images-idx3-ubyte": lambda path: path.write_bytes(idx_bytes(IMAGES[:1])),
    "data_batch_1.bin": lambda path: path.write_bytes(b"0" * 3073),
}


@pytest.mark.parametrize("name", ONE_RECORD)
@pytest.mark.parametrize(
    ("beside", "said"),
    [("", "12 images"), ("cats", "cats/"), ("train", "train/")],
    ids=["images", "class folders", "parts"],
)
def test_one_file_does_not_hide_the_images_beside_it(
    tmp_path: Path, name: str, beside: str, said: str
) -> None:
    (tmp_path / beside).mkdir(exist_ok=True)
    for number, image in enumerate(IMAGES[:12]):
        (tmp_path / beside / f"{number}.png").write_bytes(encoded(image))
    options = SourceOptions(class_names=("cats", "dogs") if beside == "cats" else ("all",))
    assert len(open_source(tmp_path, options)) == 12
    ONE_RECORD[name](tmp_path / name)
    with pytest.raises(DataError, match=f"holds {said} beside .*: move either elsewhere"):
        open_source(tmp_path, options)


def test_arrays_of_a_part_do_not_hide_those_of_the_whole(tmp_path: Path) -> None:
    folder, archive = tmp_path / "data", tmp_path / "data.npz"
    folder.mkdir()
    for names in (("x", "y"), ("x", "y", "x_train", "y_train"), ("x", "x_test")):
        arrays: dict[str, Any] = {name: IMAGES if name[0] == "x" else LABELS for name in names}
        np.savez(archive, **arrays)
        for name, array in arrays.items():
            np.save(folder / name, array)
        for path in (folder, archive):
            if len(names) == 2 and "y" in names:
                assert len(open_source(path)) == len(IMAGES)
                continue
            with pytest.raises(DataError, match=r"holds x and x_t.*: keep either x, or x_train"):
                open_source(path)
        for file in folder.iterdir():
            file.unlink()


def test_npz_with_values_from_0_to_1(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    np.savez(path, x=(IMAGES / 255).astype(np.float32), y=LABELS)
    assert np.array_equal(read(open_source(path))[0], RECORDS)


def test_npz_with_both_parts(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    np.savez(path, x_train=IMAGES, y_train=LABELS, x_test=IMAGES[:4], y_test=LABELS[:4])
    assert len(open_source(path)) == 20
    assert len(open_source(path, SourceOptions(split="test"))) == 4


def test_class_folders(tmp_path: Path) -> None:
    source = open_source(write_folder(tmp_path / "data"))
    records, labels = read(source)
    order = np.argsort(LABELS, kind="stable")
    assert source.schema.classes == ("cat", "dog", "eel")
    assert source.schema.from_data == ("number and names of the classes",)
    assert np.array_equal(records, RECORDS[order])
    assert np.array_equal(labels, LABELS[order])


def test_what_is_passed_over_in_class_folders_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may be records; what programs that show folders put there is not."""
    folder = write_folder(tmp_path / "data")
    for name in (".DS_Store", "Thumbs.db"):
        (folder / "cat" / name).write_bytes(b"")
    open_source(folder)
    assert "passed over" not in capsys.readouterr().err
    (folder / "cat" / "patient 7").mkdir()
    (folder / "dog" / "a.gif").write_bytes(b"")
    open_source(folder)
    said = capsys.readouterr().err
    assert "passed over 2 other files or folders beside the images, such as " in said
    assert f"{folder}/cat/patient 7: PNG, JPEG, TIFF, BMP and WebP are read" in said


def test_what_folders_hold_instead_of_images_is_said(tmp_path: Path) -> None:
    """Pictures in another format, or a folder deeper: nobody would call that an empty folder."""
    (tmp_path / "data" / "cat" / "left").mkdir(parents=True)
    folder = tmp_path / "data"
    for name in ("a.gif", "b.dcm", "c.heic"):
        (folder / "cat" / name).write_bytes(b"")
    held = (
        f" (but 4 other files or folders, such as {folder}/cat/left; PNG, JPEG, "
        "TIFF, BMP and WebP are read)"
    )
    for options, begins in (
        (SourceOptions(), f"{folder}/cat: a class folder without an image"),
        (SourceOptions(class_names=("cat",)), f"{folder}: no class folder holds an image"),
    ):
        with pytest.raises(DataError) as refusal:
            open_source(folder, options)
        assert str(refusal.value).startswith(begins)
        assert held in str(refusal.value)
    (folder / "cat" / "left").rmdir()
    with pytest.raises(
        DataError, match=r"nothing to read \(but 3 other .*, such as .*c\.heic; PNG"
    ):
        open_source(folder / "cat")


def test_what_is_named_like_an_image_is_a_file(tmp_path: Path) -> None:
    """To read a pipe would be to wait for ever."""
    folder = write_folder(tmp_path / "data")
    os.mkfifo(folder / "cat" / "x.png")
    with pytest.raises(DataError, match=r"x\.png: not a file: replace or remove it"):
        open_source(folder)


def test_class_folders_in_two_parts(tmp_path: Path) -> None:
    write_folder(tmp_path / "train")
    write_folder(tmp_path / "test")
    (tmp_path / "test" / "cat").rename(tmp_path / "test" / "ape")
    assert open_source(tmp_path).schema.classes == ("cat", "dog", "eel")
    with pytest.raises(DataError, match="ape is not one of the classes cat, dog, eel"):
        open_source(tmp_path, SourceOptions(split="test", class_names=("cat", "dog", "eel")))


def test_a_folder_of_no_class_is_told_some_of_them(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "data")
    names = ("cat", "eel, moray", *map(str, range(298)))
    with pytest.raises(DataError) as refusal:
        open_source(folder, SourceOptions(class_names=names))
    said = str(refusal.value)
    assert said.startswith(f'{folder}/dog: dog is not one of the classes cat, "eel, moray", 0, 1,')
    assert said.endswith(", 17 and 280 more")


def test_a_train_part_alone(tmp_path: Path) -> None:
    write_folder(tmp_path / "train")
    assert open_source(tmp_path).schema.classes == ("cat", "dog", "eel")


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_class_named_train_is_a_class_if_declared(tmp_path: Path, is_folder: bool) -> None:
    """Without the other classes, which may have one image each, it would be read as a part."""
    write_folder(tmp_path)
    (tmp_path / "cat").rename(tmp_path / "train")
    if is_folder:
        write_folder(tmp_path / "train" / "more")
    with pytest.raises(DataError, match=r"train/ looks like .* but dog/ beside .*class_names$"):
        open_source(tmp_path)
    declared = SourceOptions(class_names=("dog", "eel", "train"))
    records, labels = read(open_source(tmp_path, declared))
    assert len(records) == len(IMAGES)
    assert set(labels.tolist()) == {0, 1, 2}


def test_declared_classes_with_names_of_parts_are_read_without_other_classes(
    tmp_path: Path,
) -> None:
    write_folder(tmp_path)
    for name, part in (("cat", "train"), ("dog", "test")):
        (tmp_path / name).rename(tmp_path / part)
    declared = SourceOptions(class_names=("eel", "test", "train"))
    with_others = read(open_source(tmp_path, declared))[1]
    shutil.rmtree(tmp_path / "eel")
    alone = read(open_source(tmp_path, declared))[1]
    assert sorted(alone) == [label for label in sorted(with_others) if label]


def test_no_folder_decides_whether_others_with_labels_beside_are_read(tmp_path: Path) -> None:
    """With `other/`, all would be read, and without its only image `train/` alone."""
    for name in ("train", "test", "other"):
        write_folder(tmp_path / name)
    labels = tmp_path / "labels.csv"
    labels.write_text("file,label\n")
    with pytest.raises(DataError, match=r"test/ looks like .*, or, to read both, rename test$"):
        open_source(tmp_path, SourceOptions(labels=labels))


@pytest.mark.parametrize("parts", [("train", "val"), ("Test", "Train", "Validation")])
def test_one_of_several_parts_is_read_and_the_others_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], parts: tuple[str, ...]
) -> None:
    for part in parts:
        write_folder(tmp_path / part)
    source = open_source(tmp_path)
    assert source.schema.classes == ("cat", "dog", "eel")
    said = " ".join(capsys.readouterr().err.split())
    chosen = next(part for part in parts if part.lower() == "train")
    others = " and ".join(part for part in parts if part != chosen)
    assert f"read {tmp_path / chosen}, and passed over {others} beside it" in said


@pytest.mark.parametrize(
    ("part", "split", "said"),
    [
        ("train", "test", "holds no test/; there is train: give .*/train$"),
        ("train val", "test", "holds no test/; there are train and val: give .*/val$"),
        ("dev test", "train", "holds no train/; there are dev and test: give .*$"),
    ],
)
def test_a_part_that_is_not_there_is_missed(
    tmp_path: Path, part: str, split: str, said: str
) -> None:
    for name in part.split():
        write_folder(tmp_path / name)
    with pytest.raises(DataError, match=said):
        open_source(tmp_path, SourceOptions(split=split))


def test_labels_follow_the_expected_classes_even_if_one_is_missing(tmp_path: Path) -> None:
    write_folder(tmp_path)
    for file in (tmp_path / "cat").iterdir():
        file.unlink()
    (tmp_path / "cat").rmdir()
    _, labels = read(open_source(tmp_path, SourceOptions(class_names=("cat", "dog", "eel"))))
    assert set(labels.tolist()) == {1, 2}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_the_records_in_order(tmp_path: Path, kind: str) -> None:
    source = open_source(KINDS[kind](tmp_path / "data"), SourceOptions(classes=3))
    records, labels = read(source)
    order = np.argsort(LABELS, kind="stable") if kind == "folder" else np.arange(20)
    assert len(source) == 20
    assert len(source.schema.classes) == 3
    # That there are three is declared; what they are called only the folders say.
    assert source.schema.from_data == (
        ("number and names of the classes",) if kind == "folder" else ()
    )
    assert np.array_equal(records, RECORDS[order])
    assert np.array_equal(labels, LABELS[order])
    assert records.dtype == np.uint8
    assert labels.dtype == np.int64


@pytest.mark.parametrize("kind", KINDS)
def test_classes_without_a_record_can_be_declared(tmp_path: Path, kind: str) -> None:
    names = ("cat", "dog", "eel", "yak")
    path = KINDS[kind](tmp_path / "data")
    if kind == "folder":
        (path / "yak").mkdir()
        with pytest.raises(DataError, match=r"yak: a class folder without .* class_names"):
            open_source(path)
        (path / "yak").rmdir()
        with pytest.raises(SchemaError, match=r"name 3 classes, but 5 are declared: .*_names"):
            open_source(path, SourceOptions(classes=5))
        (path / "yak").mkdir()
    with_it = open_source(path, SourceOptions(class_names=names))
    assert with_it.schema.classes == names
    assert with_it.schema.from_data == ()
    assert isinstance(with_it.schema, ImageSchema)
    assert with_it.schema.classes_origin is Origin.DECLARED
    _, labels = read(with_it)
    assert set(labels.tolist()) == {0, 1, 2}
    with pytest.raises((SchemaError, DataError), match=r"eel is not one of|labels of 2 classes"):
        read(open_source(path, SourceOptions(class_names=("cat", "dog"))))
    with pytest.raises(SchemaError, match=r"class_names names 4 classes, but classes .* 3"):
        open_source(path, SourceOptions(class_names=names, classes=3))


def test_numbered_class_folders_are_declared_by_their_number(tmp_path: Path) -> None:
    write_folder(tmp_path)
    for number, name in enumerate(("cat", "dog", "eel")):
        (tmp_path / name).rename(tmp_path / str(number))
    source = open_source(tmp_path, SourceOptions(classes=12))
    assert source.schema.classes == tuple(map(str, range(12)))
    assert source.schema.from_data == ()
    assert open_source(tmp_path).schema.from_data == ("number and names of the classes",)


def test_a_folder_with_another_name_beside_numbered_ones_is_refused(tmp_path: Path) -> None:
    """It would decide that none of them was declared."""
    for index, image in enumerate(IMAGES[:4]):
        (tmp_path / str(index % 2)).mkdir(exist_ok=True)
        (tmp_path / str(index % 2) / f"{index}.png").write_bytes(encoded(image))
    declared = SourceOptions(classes=3)
    assert open_source(tmp_path, declared).schema.classes == ("0", "1", "2")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "9.png").write_bytes(encoded(IMAGES[4]))
    with pytest.raises(SchemaError, match="declares the classes 0 to 2, and 0 is one of"):
        open_source(tmp_path, declared)


def test_class_folders_need_an_image_somewhere(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    with pytest.raises(DataError, match="no class folder holds an image"):
        open_source(tmp_path, SourceOptions(class_names=("cat", "dog")))


@pytest.mark.parametrize("kind", KINDS)
def test_images_are_resized_one_by_one(tmp_path: Path, kind: str) -> None:
    large = np.repeat(np.repeat(IMAGES, 2, axis=1), 3, axis=2)  # 16 x 24
    if kind == "parquet lists":  # which are square
        large = np.repeat(np.repeat(IMAGES, 3, axis=1), 3, axis=2)
    path = KINDS[kind](tmp_path / "data", large, np.zeros_like(LABELS))
    if kind != "parquet lists":
        with pytest.raises(SchemaError, match=r"16x24 pixels are not square: image_size=16"):
            open_source(path)
    source = open_source(path, SourceOptions(image_size=8))
    expected = [np.asarray(Image.fromarray(i).resize((8, 8), 2)).ravel() for i in large]
    assert isinstance(source.schema, ImageSchema)
    assert source.schema.side_origin is Origin.DECLARED
    assert np.array_equal(read(source)[0], np.stack(expected))


@pytest.mark.parametrize("kind", KINDS)
def test_memory_does_not_grow_with_the_number_of_records(tmp_path: Path, kind: str) -> None:
    """Beside the list of what lies where, which takes a few bytes for each record."""

    def reading(count: int) -> Callable[[], None]:
        images = np.zeros((count, 32, 32), np.uint8)
        path = KINDS[kind](tmp_path / f"{count}", images, np.arange(count) % 3)

        def read_all() -> None:
            for _ in open_source(path).batches(16):
                pass

        return read_all

    reading(100)()  # some libraries are loaded now
    few, many = 1_000, 4_000  # of which a few hundred are read ahead
    allowed = (many - few) * 32 * 32 / 4
    assert growth(reading(few), reading(many), allowed) < allowed


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
            some, their_labels = joined(batches)
            assert np.array_equal(some, records[start:stop])
            assert np.array_equal(their_labels, labels[start:stop])


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
    with pytest.raises(SchemaError, match=r"record \d+ has a label that is too large") as caught:
        read(open_source(path, SourceOptions(classes=2)))
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("kind", ["idx", "npy", "parquet shards", "tar shards"])
def test_files_may_lie_in_folders_of_their_split(tmp_path: Path, kind: str) -> None:
    (tmp_path / "test").mkdir()
    KINDS[kind](tmp_path / "train")
    assert len(open_source(tmp_path)) == 20


def test_jpeg_images(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    content = encoded(IMAGES[3], "JPEG")
    (tmp_path / "a" / "0.jpeg").write_bytes(content)
    expected = np.asarray(Image.open(io.BytesIO(content)))
    assert np.array_equal(read(open_source(tmp_path))[0], expected.reshape(1, -1))


def test_files_are_sorted_by_the_bytes_of_their_names(tmp_path: Path) -> None:
    """And so everywhere alike, whatever the file system or the locale gives first."""
    (tmp_path / "a").mkdir()
    names = ["10", "2", "B", "a", "\u00e9", "\uffee", "\U0001f600"]
    for index in (3, 6, 0, 2, 5, 1, 4):
        Image.new("L", (8, 8), color=index).save(tmp_path / "a" / f"{names[index]}.png")
    records, _ = read(open_source(tmp_path))
    assert records[:, 0].tolist() == [0, 1, 2, 3, 4, 5, 6]


def test_every_kind_is_embedded_to_the_same_bits(tmp_path: Path) -> None:
    sums = {
        kind: embed(
            writer(tmp_path / kind.replace(" ", "-")),
            TangentOptions(width=5, front="pixels"),
            SourceOptions(classes=3),
        )
        for kind, writer in KINDS.items()
    }
    for kind, embedding in sums.items():
        assert np.array_equal(embedding.sums, sums["idx"].sums), kind
        assert np.array_equal(embedding.counts, np.bincount(LABELS)), kind


def test_standard_input_is_refused_by_the_command(dpntk: Command) -> None:
    refused(dpntk("embed", "-"), "error: -: standard input is no source")
