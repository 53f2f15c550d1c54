"""Parquet files: which columns are read, what their metadata say, and any range of rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from dpntk.common.errors import DataError, SchemaError
from dpntk.common.schema.image import ImageSchema
from dpntk.common.schema.origin import Origin
from dpntk.common.sources import open_source
from dpntk.common.sources.options import SourceOptions
from tests.helpers.data_sets import (
    CLASS_NAMES,
    IMAGES,
    LABELS,
    RECORDS,
    encoded,
    fixed_lists,
    joined,
    write_parquet,
)

PNGS = [encoded(image) for image in IMAGES]


def write(path: Path, **columns: object) -> Path:
    parquet.write_table(pa.table(columns), path)
    return path


def pixels(path: Path) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return joined(open_source(path).batches(7))[0]


@pytest.mark.parametrize(
    "images",
    [
        pa.array(PNGS, pa.large_binary()),
        pa.array([{"path": None, "bytes": content} for content in PNGS]),
        pa.array(RECORDS.tolist(), pa.list_(pa.uint8())),
        pa.array(RECORDS.tolist(), pa.large_list(pa.uint8())),
        fixed_lists((RECORDS / 255).astype(np.float32)),
        fixed_lists(RECORDS / 255),
    ],
    ids=lambda images: str(images.type)[:30],
)
def test_every_form_of_an_image_column(tmp_path: Path, images: pa.Array) -> None:
    assert np.array_equal(pixels(write_parquet(tmp_path / "a.parquet", images)), RECORDS)


def test_columns_are_found_by_their_names_or_else_by_their_types(tmp_path: Path) -> None:
    usual = write(tmp_path / "usual.parquet", thumbnail=PNGS[::-1], image=PNGS, age=LABELS + 5,
                  label=LABELS)  # fmt: skip
    single = write(tmp_path / "single.parquet", scan=PNGS, diagnosis=LABELS)
    for path in (usual, single):
        (batch,) = open_source(path).batches(20)
        assert np.array_equal(batch.records, RECORDS)
        assert np.array_equal(batch.labels, LABELS)


@pytest.mark.parametrize(
    "others",
    [
        {"digit": pa.array([*LABELS.tolist()[:-1], None])},
        {"digit": pa.array([*map(float, LABELS.tolist()[:-1]), None])},
        {"digit": pa.array([*map(str, LABELS.tolist()[:-1]), "x"])},
        {"digit": pa.array([*map(str, LABELS.tolist()[:-1]), "x"], pa.string_view())},
        {"digit": pa.array([*map(str, LABELS.tolist()[:-1]), "x"]).dictionary_encode()},
        {"digit": pa.array(LABELS.tolist()).cast(pa.decimal128(20))},
        {"digit": pa.array((LABELS > 0).tolist())},
        {"digit": pa.array(LABELS.tolist()), "age": pa.array(np.arange(20.0))},
        {"digit": pa.array(LABELS.tolist()), "id": pa.array(["n"] * 20)},
    ],
    ids=lambda others: ", ".join(str(values.type) for values in others.values()),
)
def test_whether_there_are_labels_does_not_follow_from_their_type(
    tmp_path: Path, others: dict[str, pa.Array]
) -> None:
    """One missing label makes floats of all, a text makes texts: they must not be one class."""
    path = write(tmp_path / "a.parquet", scan=PNGS, **others)
    if "id" in others or "age" in others or others["digit"].type != pa.int64():
        with pytest.raises(DataError, match="name their column label, or declare one class"):
            open_source(path)
    else:  # whole numbers alone; a missing one is refused where it is read
        with pytest.raises(DataError, match="record 19"):
            list(open_source(path).batches(20))
    (batch,) = open_source(path, SourceOptions(classes=1)).batches(20)
    assert np.array_equal(batch.records, RECORDS)
    assert not batch.labels.any()


def test_class_names_are_read_from_the_metadata(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "a.parquet", PNGS, names=CLASS_NAMES)
    schema = open_source(path).schema
    assert schema.classes == CLASS_NAMES
    assert isinstance(schema, ImageSchema)
    # The usual tool has them from the folders of the images.
    assert schema.classes_origin is Origin.FROM_DATA
    assert open_source(path, SourceOptions(classes=3)).schema == schema
    declared = open_source(path, SourceOptions(classes=3, class_names=CLASS_NAMES)).schema
    assert declared == replace(schema, classes_origin=Origin.DECLARED)
    with pytest.raises(SchemaError, match=r"it names 3 classes, but 4 are declared"):
        open_source(path, SourceOptions(classes=4))
    with pytest.raises(SchemaError, match=r"its classes are cat, dog, eel, not dog, cat, eel"):
        open_source(path, SourceOptions(class_names=("dog", "cat", "eel")))


@pytest.mark.parametrize(
    ("names", "classes", "origin"),
    [
        ("012", None, Origin.FROM_DATA),
        ("012", 3, Origin.DECLARED),
        ("021", 3, Origin.FROM_DATA),  # in which order, nobody has declared
        ("123", 3, Origin.FROM_DATA),
    ],
)
def test_a_number_of_classes_declares_numbers_for_names(
    tmp_path: Path, names: str, classes: int | None, origin: Origin
) -> None:
    path = write_parquet(tmp_path / "a.parquet", PNGS, names=tuple(names))
    schema = open_source(path, SourceOptions(classes=classes)).schema
    assert isinstance(schema, ImageSchema)
    assert (schema.classes, schema.classes_origin) == (tuple(names), origin)


@pytest.mark.parametrize("document", [b"no JSON", b"[]", b'{"info": {"features": []}}'])
def test_metadata_that_are_something_else_are_passed_over(tmp_path: Path, document: bytes) -> None:
    table = pa.table({"image": PNGS, "label": LABELS})
    path = tmp_path / "a.parquet"
    parquet.write_table(table.replace_schema_metadata({"huggingface": document}), path)
    schema = open_source(path).schema
    assert isinstance(schema, ImageSchema)
    assert schema.classes_origin is Origin.FROM_DATA


def test_a_range_reads_its_row_groups_alone(tmp_path: Path) -> None:
    """Damage elsewhere goes unnoticed."""
    path = write_parquet(tmp_path / "a.parquet", fixed_lists(RECORDS), rows=5)
    content = bytearray(path.read_bytes())
    for group in (0, 3):
        begin = parquet.ParquetFile(path).metadata.row_group(group).column(1).data_page_offset
        content[begin : begin + 40] = b"\xff" * 40
    source = open_source(path, SourceOptions(classes=3))
    path.write_bytes(content)
    assert np.array_equal(joined(source.batches(4, 6, 14))[0], RECORDS[6:14])
