"""Labels that are texts, that begin at 1, have gaps, or are stored as other numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyarrow import parquet

from dpntk.common.errors import DataError, SchemaError
from dpntk.common.schema.image import ImageSchema
from dpntk.common.schema.origin import Origin
from dpntk.common.sources import InMemoryData, SourceOptions, open_source
from tests.helpers.data_sets import IMAGES, KINDS, LABELS, encoded, joined

NAMES = np.array(["eel", "cat", "dog, wild"])
TEXTS = NAMES[LABELS]
NUMBERED = sorted(KINDS.keys() - {"folder"})  # where labels are names


def classes_of(data: Path | InMemoryData, options: SourceOptions) -> tuple[list[str], ImageSchema]:
    """The name of each record's class, in order."""
    source = open_source(data, options)
    assert isinstance(source.schema, ImageSchema)
    _, labels = joined(source.batches(7))
    return [source.schema.classes[label] for label in labels], source.schema


def with_texts(folder: Path, kind: str) -> Path | InMemoryData:
    match kind:
        case "npz":
            np.savez(folder / "x.npz", x=IMAGES, y=TEXTS)
            return folder / "x.npz"
        case "npy":
            np.save(folder / "x.npy", IMAGES)
            np.save(folder / "y.npy", TEXTS[:, None])
            return folder
        case "held":
            return IMAGES, TEXTS.tolist()
        case "objects":
            return IMAGES, TEXTS.astype(object)
        case _:
            column = pa.array(TEXTS.tolist())
            column = column.dictionary_encode() if kind == "categories" else column
            images = [encoded(image) for image in IMAGES]
            columns = {"id": range(20), "note": TEXTS, "image": images, "label": column}
            parquet.write_table(pa.table(columns), folder / "x.parquet", row_group_size=6)
            return folder / "x.parquet"


@pytest.mark.parametrize("kind", ["npz", "npy", "held", "objects", "parquet", "categories"])
def test_texts_are_the_names_of_classes(tmp_path: Path, kind: str) -> None:
    data = with_texts(tmp_path, kind)
    names, schema = classes_of(data, SourceOptions())
    assert names == TEXTS.tolist()
    assert schema.classes == ("cat", "dog, wild", "eel")
    assert schema.from_data == ("number and names of the classes",)
    declared = SourceOptions(class_names=("fox", "eel", "dog, wild", "cat"))
    names, schema = classes_of(data, declared)
    assert names == TEXTS.tolist()
    assert schema.classes == declared.class_names
    assert schema.classes_origin is Origin.DECLARED


def test_texts_that_are_of_no_class_are_named_without_their_value(tmp_path: Path) -> None:
    data = with_texts(tmp_path, "npz")
    at = int(np.flatnonzero(TEXTS == "eel")[0])
    with pytest.raises(SchemaError) as refusal:
        classes_of(data, SourceOptions(class_names=("cat", "dog, wild")))
    assert f"x.npz: y: record {at} has a label that is none of the classes cat, " in str(
        refusal.value
    )
    assert "eel" not in str(refusal.value)
    assert refusal.value.value == "eel"
    with pytest.raises(SchemaError, match="classes=3 does not say which: name all classes with"):
        open_source(data, SourceOptions(classes=3))


def test_texts_that_are_numbers_can_be_counted(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=IMAGES, y=LABELS.astype(str))
    names, schema = classes_of(tmp_path / "x.npz", SourceOptions(classes=4))
    assert names == LABELS.astype(str).tolist()
    assert schema.from_data == ()


@pytest.mark.parametrize("kind", NUMBERED)
@pytest.mark.parametrize("numbers", [(1, 2, 3), (3, 200, 7)], ids=["from 1", "with gaps"])
def test_numbers_that_are_named_are_those_classes(
    tmp_path: Path, kind: str, numbers: tuple[int, ...]
) -> None:
    labels = np.array(numbers)[LABELS]
    path = KINDS[kind](tmp_path / "data", IMAGES, labels)
    names, schema = classes_of(path, SourceOptions(class_names=tuple(map(str, numbers))))
    assert names == labels.astype(str).tolist()
    assert len(schema.classes) == 3
    assert schema.from_data == ()
    with pytest.raises(SchemaError, match="label that is none of the classes 1, 3"):
        classes_of(path, SourceOptions(class_names=("1", "3")))


def test_numbers_below_0_can_be_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=IMAGES, y=np.where(LABELS == 1, 1, -1))
    names, _ = classes_of(tmp_path / "x.npz", SourceOptions(class_names=("-1", "1")))
    assert names == np.where(LABELS == 1, "1", "-1").tolist()


@pytest.mark.parametrize("kind", NUMBERED)
def test_other_names_are_of_numbers_in_their_order(tmp_path: Path, kind: str) -> None:
    """As they have always been: also 0 to 2, and names of which one is no number or its own."""
    path = KINDS[kind](tmp_path / "data")
    for declared in (("0", "1", "2"), ("0", "x", "2"), ("x", "01", "two")):
        names, _ = classes_of(path, SourceOptions(class_names=declared))
        assert names == [declared[label] for label in LABELS]


@pytest.mark.parametrize("kind", NUMBERED)
@pytest.mark.parametrize(
    "declared",
    [
        ("x", "1", "0"),
        ("1.0", "0.0", "x"),
        ("true", "false", "x"),
        ("x", "0", "y"),
        ("01", "02", "x"),
        ("+1", "x", "y"),
        ("x", ".5", "y"),
        ("x", "y", "inf"),
    ],
)
def test_numbers_are_refused_where_they_would_be_another_class_as_texts(
    tmp_path: Path, kind: str, declared: tuple[str, ...]
) -> None:
    """One label that is a text makes texts of all, but for formats that have no texts."""
    path = KINDS[kind](tmp_path / "data")
    options = SourceOptions(class_names=declared)
    if kind.startswith(("idx", "tar")):
        names, _ = classes_of(path, options)
        assert names == [declared[label] for label in LABELS]
        return
    with pytest.raises(SchemaError, match="store labels as texts"):
        open_source(path, options)


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.bool_, np.int8, np.uint16, np.int32, np.uint64]
)
def test_labels_of_other_types(tmp_path: Path, dtype: type[np.generic]) -> None:
    labels: NDArray[np.generic] = (LABELS % 2).astype(dtype)
    np.savez(tmp_path / "x.npz", x=IMAGES, y=labels)
    images = [encoded(image) for image in IMAGES]
    parquet.write_table(pa.table({"x": images, "target": labels}), tmp_path / "x.parquet")
    for name in ("x.npz", "x.parquet"):
        for options in (SourceOptions(), SourceOptions(classes=2)):
            names, _ = classes_of(tmp_path / name, options)
            assert names == (LABELS % 2).astype(str).tolist()


def test_a_label_that_is_too_large_for_64_bits_is_not_said_to_be_below_0() -> None:
    labels = np.array([0, 1, 2**64 - 1], np.uint64)
    for options in (SourceOptions(), SourceOptions(classes=2)):
        with pytest.raises(SchemaError, match="too large"):
            classes_of((IMAGES[:3], labels), options)
    with pytest.raises(SchemaError, match="none of the classes 3, -1"):
        classes_of((IMAGES[2:3], labels[2:]), SourceOptions(class_names=("3", "-1")))


@pytest.mark.parametrize("wrong", [0.5, np.nan, np.inf])
def test_a_label_that_is_not_whole_is_named(tmp_path: Path, wrong: float) -> None:
    labels = LABELS.astype(float)
    labels[13] = wrong
    np.savez(tmp_path / "x.npz", x=IMAGES, y=labels)
    with pytest.raises(DataError, match=r"record 13 has a label that is no whole number"):
        classes_of(tmp_path / "x.npz", SourceOptions(classes=3))
    with pytest.raises(DataError, match="has a label that is no whole number"):
        open_source(tmp_path / "x.npz")


@pytest.mark.parametrize(("dtype", "exact"), [(np.float64, 2**53), (np.float32, 2**24)])
def test_floats_that_may_have_rounded_other_labels_are_refused(
    dtype: type[np.generic], exact: int
) -> None:
    """One label that is a fraction, or lacks, makes floats of all."""
    classes = SourceOptions(class_names=("0", str(exact - 1), str(exact), str(exact + 1)))
    labels = np.array([exact + 1, 0, exact - 1])
    names, _ = classes_of((IMAGES[:3], labels), classes)
    assert names == [str(exact + 1), "0", str(exact - 1)]
    with pytest.raises(DataError, match=f"record 0 has a label so large that {dtype.__name__} r"):
        classes_of((IMAGES[:3], labels.astype(dtype)), classes)
    assert classes_of((IMAGES[1:3], labels[1:].astype(dtype)), classes)[0] == names[1:]


def test_more_texts_than_there_may_be_classes_are_hardly_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpntk.common.sources.images.labels.MOST_CLASSES", 2)
    with pytest.raises(SchemaError, match="more than 2 different texts: is it the column"):
        open_source(with_texts(tmp_path, "npz"))
