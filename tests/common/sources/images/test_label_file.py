"""Labels in a CSV file beside images that lie side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from dpntk.common.errors import DataError, SchemaError
from dpntk.common.schema.image import ImageSchema
from dpntk.common.schema.origin import Origin
from dpntk.common.sources import SourceOptions, open_source
from dpntk.embed import TangentOptions, embed
from tests.conftest import Command, refused
from tests.helpers.data_sets import CLASS_NAMES, IMAGES, LABELS, encoded, joined, write_folder

NAMES = [f"{number:02}.png" for number in range(len(IMAGES))]
TEXTS = [CLASS_NAMES[label] for label in LABELS]
LOOKED_UP = ("number and names of the classes",)


def write_images(folder: Path, names: Sequence[str] = NAMES) -> Path:
    for name, image in zip(names, IMAGES, strict=True):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(encoded(image))
    return folder


def write_labels(
    path: Path, names: Sequence[object] = NAMES, labels: Sequence[object] = TEXTS
) -> Path:
    """Backwards, so that nothing is found by its place."""
    rows = [f"{name},{label}" for name, label in zip(names, labels, strict=True)]
    path.write_text("\n".join(["file,label", *reversed(rows)]) + "\n")
    return path


def classes_of(folder: Path, options: SourceOptions) -> tuple[list[str], ImageSchema]:
    """The name of the class of each of `NAMES`, in order."""
    source = open_source(folder, options)
    assert isinstance(source.schema, ImageSchema)
    records, labels = joined(source.batches(7))
    assert np.array_equal(records, IMAGES.reshape(len(IMAGES), -1))
    return [source.schema.classes[label] for label in labels], source.schema


@pytest.mark.parametrize(
    "written",
    [
        lambda name: name,
        lambda name: name.removesuffix(".png"),
        lambda name: f"images/{name}",
        lambda name: f"/home/somebody/images/{name}",
        lambda name: f"C:\\scans\\images\\{name}",
        lambda name: f" {name} ",
    ],
    ids=["as they are", "without suffix", "folder", "path", "of Windows", "blanks"],
)
def test_an_image_has_the_label_of_the_row_with_its_name(
    tmp_path: Path, written: Callable[[str], str]
) -> None:
    file = write_labels(tmp_path / "labels.csv", [written(name) for name in NAMES])
    images = write_images(tmp_path / "images")
    names, schema = classes_of(images, SourceOptions(labels=file))
    assert names == TEXTS
    assert schema.classes == CLASS_NAMES
    assert schema.from_data == LOOKED_UP
    declared = ("fox", *reversed(CLASS_NAMES))
    names, schema = classes_of(images, SourceOptions(labels=str(file), class_names=declared))
    assert names == TEXTS
    assert schema.classes == declared
    assert schema.classes_origin is Origin.DECLARED
    with pytest.raises(SchemaError, match="classes=3 does not say which: name all classes with"):
        open_source(images, SourceOptions(labels=file, classes=3))


def test_the_embedding_is_that_of_class_folders(tmp_path: Path) -> None:
    images = write_images(tmp_path / "images")
    source = SourceOptions(labels=write_labels(images / "labels.csv"))
    options = TangentOptions(width=5)
    found = embed(images, options, source)
    wanted = embed(write_folder(tmp_path / "folders"), options)
    assert found.schema == wanted.schema
    assert np.array_equal(found.sums, wanted.sums)
    assert np.array_equal(found.counts, wanted.counts)


@pytest.mark.parametrize(
    ("header", "row", "given"),
    [
        ("Image Index;age;LABEL", "{name};7;{text}", None),
        ("image_id\tx\tdiagnosis", "{name}\t\t{text}", None),
        ("image,wound", "{name},{text}", None),
        ("scan,class", "{name},{text}", None),
        ('"dx","notes","path"', '"{text}","x, y","{name}"', None),
        ("file,label,scan,wound", "x.png,7,{name},{text}", ("scan", "wound")),
        ("\ufeffscan,wound", "{name},{text}", ("scan", "wound")),
    ],
)
def test_columns_are_found_or_given(
    tmp_path: Path, header: str, row: str, given: tuple[str, str] | None
) -> None:
    rows = [row.format(name=name, text=text) for name, text in zip(NAMES, TEXTS, strict=True)]
    (tmp_path / "labels.csv").write_text("\r\n".join([header, *rows]), "utf-8")
    options = SourceOptions(labels=tmp_path / "labels.csv", label_columns=given)
    names, _ = classes_of(write_images(tmp_path / "images"), options)
    assert names == TEXTS


@pytest.mark.parametrize("written", [str, lambda number: f"{number}.0"], ids=["whole", "floats"])
def test_numbers_are_classes_as_in_arrays(
    tmp_path: Path, written: Callable[[int], str], capsys: pytest.CaptureFixture[str]
) -> None:
    images = write_images(tmp_path / "images")

    def read(numbers: Sequence[int], *names: str) -> tuple[list[str], ImageSchema]:
        labels = [written(numbers[label]) for label in LABELS]
        file = write_labels(tmp_path / "labels.csv", labels=labels)
        return classes_of(images, SourceOptions(labels=file, class_names=names or None))

    names, schema = read((4, 0, 2))
    assert names == [str((4, 0, 2)[label]) for label in LABELS]
    assert schema.classes == ("0", "1", "2", "3", "4")
    assert schema.from_data == LOOKED_UP
    names, schema = read((1, 200, 3), "1", "3", "200")
    assert names == [str((1, 200, 3)[label]) for label in LABELS]
    assert schema.from_data == ()
    capsys.readouterr()
    names, _ = read((0, 1, 2), *CLASS_NAMES)
    assert names == TEXTS
    assert "labels are numbers: 0 is cat, 1 is dog, 2 is eel" in capsys.readouterr().err
    with pytest.raises(SchemaError, match="none of the classes 0, eel, cat"):
        read((0, 1, 2), "0", "eel", "cat")
    declared = SourceOptions(
        labels=write_labels(tmp_path / "labels.csv", labels=LABELS.tolist()), classes=3
    )
    assert classes_of(images, declared)[1].from_data == ()


def test_one_label_changes_how_no_other_is_read(tmp_path: Path) -> None:
    """Where names are declared: as numbers and as texts, and both at once."""
    images = write_images(tmp_path / "images")
    for names in (("1", "0", "cat"), ("cat", "dog", "eel"), ("01", "1", "2")):
        for one, other in ((names[0], names[2]), (names[2], names[1])):
            read = []
            for first in (one, other):
                labels = [first, *[names[1]] * (len(NAMES) - 1)]
                file = write_labels(tmp_path / "labels.csv", labels=labels)
                read.append(classes_of(images, SourceOptions(labels=file, class_names=names))[0])
            assert read[0][1:] == read[1][1:] == [names[1]] * (len(NAMES) - 1)
            assert (read[0][0], read[1][0]) == (one, other)


def test_images_may_lie_in_several_folders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And names of rows say which, where two are alike."""
    names = [f"part_{number > 9:d}/{number % 10:02}.png" for number in range(20)]
    images = write_images(tmp_path / "images", names)
    file = write_labels(tmp_path / "labels.csv", names)
    assert classes_of(images, SourceOptions(labels=file))[0] == TEXTS
    assert "passed over" not in capsys.readouterr().err
    write_labels(file, [Path(name).name for name in names])
    with pytest.raises(DataError, match=r"may mean part_0/09.png or part_1/09.png: write more"):
        open_source(images, SourceOptions(labels=file))


def test_one_file_is_enough_for_both_parts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_images(tmp_path / "train")
    write_images(tmp_path / "test")
    names = [f"{part}/{name}" for part in ("train", "test") for name in NAMES]
    file = write_labels(tmp_path / "labels.csv", names, TEXTS + TEXTS[::-1])
    for part, wanted in (("train", TEXTS), ("test", TEXTS[::-1])):
        found, _ = classes_of(tmp_path, SourceOptions(labels=file, split=part))
        assert found == wanted
        assert f"passed over 20 rows of {file}: no such images" in capsys.readouterr().err


def replaced(at: int, row: str) -> list[str]:
    rows = [f"{name},{text}" for name, text in zip(NAMES, TEXTS, strict=True)]
    return [*rows[:at], *([row] if row else []), *rows[at + 1 :]]


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        (replaced(4, ""), "1 of 20 images have no row, such as images/04.png: add rows for them"),
        (replaced(4, "04.png,"), "row 5 has no label for images/04.png: write one"),
        (replaced(4, "03.png,cat"), "rows 4 and 5 are both of images/03.png: an image has one"),
        (replaced(4, "03,cat"), "rows 4 and 5 are both of images/03.png: an image has one"),
        (replaced(4, "masks/04.png,cat"), "1 of 20 images have no row, such as images/04.png"),
        (replaced(4, "04.png,cat,x"), "row 5 has 3 values, but the header has 2: correct it"),
        (replaced(19, '19.png,"cat'), "row 20 cannot be read, unexpected end of data: close its"),
        (["x,y"], "no row is of an image here, such as images/00.png: names are those of files"),
    ],
)
def test_every_image_needs_one_label(tmp_path: Path, rows: list[str], line: str) -> None:
    images = write_images(tmp_path / "images")
    file = tmp_path / "labels.csv"
    file.write_text("\n".join(["file,label", *rows]))
    with pytest.raises(DataError) as refusal:
        open_source(images, SourceOptions(labels=file))
    assert f"{file}: {line}" in str(refusal.value)


def test_a_row_of_two_images_of_one_name_is_of_neither(tmp_path: Path) -> None:
    images = write_images(tmp_path / "images")
    (images / "04.jpg").write_bytes(encoded(IMAGES[0], "JPEG"))
    file = write_labels(tmp_path / "labels.csv", [name.removesuffix(".png") for name in NAMES])
    with pytest.raises(DataError, match=r"row 16 may mean images/04.jpg or images/04.png"):
        open_source(images, SourceOptions(labels=file))


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("x.csv", b"", "the file is empty"),
        ("x.csv", b"\n\n", "the file is empty"),
        ("x.csv", b"file,label\n\xe9.png,cat", "not a text in UTF-8"),
        ("x.csv", b"00.png,cat\n", "its first line names an image, not columns: put a line such"),
        ("x.csv", b"a,b\n", "cannot be told which column holds names of files: its columns are a"),
        ("x.csv", b"file,a,b\n", "it cannot be told which column holds labels: its columns are"),
        ("x.xlsx", b"PK", "labels are read from a CSV file: save them as one, .csv"),
    ],
)
def test_what_holds_no_labels_is_refused(
    tmp_path: Path, name: str, content: bytes, line: str
) -> None:
    images = write_images(tmp_path / "images")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as refusal:
        open_source(images, SourceOptions(labels=tmp_path / name))
    assert f"{tmp_path / name}: " in str(refusal.value)
    assert line in str(refusal.value)


def test_options_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    file = write_labels(tmp_path / "labels.csv")
    np.savez(tmp_path / "x.npz", x=IMAGES, y=LABELS)
    for data in (tmp_path / "x.npz", (IMAGES, LABELS)):
        with pytest.raises(SchemaError, match="a folder of image files, and these data hold"):
            open_source(data, SourceOptions(labels=file))
    with pytest.raises(SchemaError, match="label_columns means nothing without labels"):
        SourceOptions(label_columns=("file", "label"))
    for odd in ("file,label", ("file",), ("file", 3)):
        with pytest.raises(SchemaError, match="label_columns: two names of columns"):
            SourceOptions(labels=file, label_columns=odd)  # type: ignore[arg-type]
    images = write_images(tmp_path / "images")
    for given, line in ((("file", "dx"), "no column dx"), (("file", "file"), "named twice")):
        with pytest.raises(DataError, match=line):
            open_source(images, SourceOptions(labels=file, label_columns=given))


def test_labels_that_change_are_other_data(tmp_path: Path) -> None:
    images = write_images(tmp_path / "images")
    file = write_labels(tmp_path / "labels.csv")
    options = SourceOptions(labels=file, class_names=CLASS_NAMES)
    before = open_source(images, options)
    fingerprint = before.fingerprint()
    assert before.fingerprint() == open_source(images, options).fingerprint() == fingerprint
    write_labels(file, labels=TEXTS[::-1])
    os.utime(file, ns=(0, 0))
    assert before.fingerprint() != fingerprint


def test_commands_take_labels_from_a_file(dpntk: Command, tmp_path: Path) -> None:
    write_images(tmp_path / "images")
    write_labels(tmp_path / "labels.csv")
    said = dpntk("embed", "images", "--width", 5)
    assert "all are taken to be of one class; to take labels from a CSV file, give --labels" in (
        said.stderr
    )
    said = dpntk("embed", "images", "--labels", "labels.csv", "--width", 5, "-o", "of_file.h5")
    assert said.code == 0
    assert "names of files are its column file, labels label" in said.stderr
    assert "looked up in the data" in said.stderr
    assert dpntk("release", "of_file.h5", "--eps", 50, "--delta", 1e-3).code == 0
    inspected = " ".join(dpntk("inspect", "release.h5").stdout.replace("│", " ").split())
    assert "Looked up in the records: number and names of the classes." in inspected
    assert dpntk("generate", "release.h5", "--steps", 5).code == 0
    refused(dpntk("evaluate", "--test", "images"), "images without labels", "in a CSV file")
    labels = ("--test-labels", "labels.csv")
    both = (*labels, "--baseline", "images", "--baseline-labels", "labels.csv")
    columns = ("--label-columns", "file,label")
    assert dpntk("evaluate", "--test", "images", *both, *columns).code == 0
    assert dpntk("report", "--test", "images", *labels, *columns).code == 0
    odd = dpntk("evaluate", "--test", "images", *labels, "--label-columns", "file")
    refused(odd, "--label-columns", "name two columns")
    odd = dpntk("evaluate", "--test", "images", "--label-columns", "file,label")
    refused(odd, "--label-columns means nothing without --test-labels")
