"""How one image and its label are read depends on these alone, whatever another record holds.

Ordinary images are read as they are, and with one more record whose image or label is nasty, in
many ways of storing them. Either they become the same bytes of the same classes, or the data are
refused. (docs/privacy/proofs.md, statement 3.)
"""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image
from pyarrow import parquet

from dpntk.common.errors import DpntkError
from dpntk.common.schema import Schema
from dpntk.common.sources import InMemoryData, SourceOptions, open_source
from dpntk.common.sources.images import arrays, labels
from tests.helpers.data_sets import idx_bytes, write_tar
from tests.helpers.examples import examples
from tests.helpers.nasty import LABELS

pytestmark = pytest.mark.filterwarnings("ignore")  # of NumPy, about values that it cuts

Read = list[tuple[bytes, str]]
"""The pixels and the class of each record."""
Store = Callable[[list[Any], list[Any], Path], InMemoryData | Path]

SIDE: Final = 8
NOT_HELD: Final = (
    ValueError, TypeError, OverflowError, AttributeError, LookupError, OSError, SyntaxError,
    pa.ArrowException,
)  # fmt: skip
"""What programs raise that cannot store some records."""
FAMILIES: Final[dict[str, tuple[SourceOptions, ...]]] = {
    "bytes": (
        SourceOptions(),
        SourceOptions(image_size=9, invert=True),
        SourceOptions(channels=3, image_size=8, fit="pad"),
        SourceOptions(channels=1, image_size=10, fit="crop", value_range=(0, 255)),
        SourceOptions(channels=1, image_size=8, value_range=(0, 65535)),
    ),
    "binary": (SourceOptions(value_range=(0, 1)), SourceOptions(value_range=(0, 255))),
    "fractions": (SourceOptions(), SourceOptions(image_size=9), SourceOptions(value_range=(0, 1))),
    "black": (SourceOptions(), SourceOptions(value_range=(0, 255))),
    "deep": (SourceOptions(value_range=(0, 65535), invert=True),),
    "huge": (SourceOptions(value_range=(-0.5, 2**53)),),
    "one": (SourceOptions(),),
}
"""Ordinary images, and options with which they can be read."""
NAMES: Final[tuple[tuple[str, ...] | None, ...]] = (
    None, ("a", "b", "c"), ("0", "1", "2"), ("3", "5", "7"), ("1", "0", "2"), ("1", "0", "x"),
    ("x", "2", "1"), ("1.0", "0.0", "3"), ("true", "false", "x"), ("01", "1", "0"),
    ("False", "True", "2"),
)  # fmt: skip


def drawn_array(draw: st.DrawFn, what: str) -> NDArray[Any]:
    random = np.random.default_rng(draw(st.integers(0, 5)))
    shape = (SIDE, SIDE)
    match what:
        case "black":
            return np.zeros(shape, np.uint8)
        case "one":
            return random.permutation(np.eye(SIDE, dtype=np.uint8))
        case "binary":
            return random.integers(0, 2, shape).astype(np.uint8)
        case "bytes":
            return random.integers(0, 256, shape).astype(np.uint8)
        case "fractions":
            return random.random(shape)
        case "deep":
            return random.integers(0, 65536, shape)
        case "signed":
            return random.integers(-9, 9, shape)
        case "huge":
            return 2**53 + random.integers(0, 3, shape)
        case _:
            return np.full(shape, float(what))


def nasty_array(draw: st.DrawFn) -> Any:  # noqa: ANN401
    made = drawn_array(draw, draw(st.sampled_from((*FAMILIES, "signed", "nan", "inf"))))
    match draw(st.sampled_from(("", "", "", "list", "shape", "dtype", "dtype"))):
        case "list":
            return made.tolist()
        case "shape":
            return draw(st.sampled_from((made[..., None], made[None], made.ravel(), made[1:])))
        case "dtype":
            kinds = ("uint8", "int8", "uint16", "int64", "uint64", "float16", "float32", "float64",
                     "longdouble", "bool", "object", "complex64")  # fmt: skip
            return made.astype(draw(st.sampled_from(kinds)))
        case _:
            return made


def drawn_picture(draw: st.DrawFn, what: str) -> bytes:
    image = Image.fromarray(
        drawn_array(draw, "bytes" if what != "deep" else what).astype(np.uint16)
    )
    image = image if what == "deep" else Image.fromarray(drawn_array(draw, "bytes"))
    return _saved(image, draw(st.sampled_from(("PNG", "TIFF"))))


def nasty_picture(draw: st.DrawFn) -> bytes:
    random = np.random.default_rng(draw(st.integers(0, 5)))
    shape = draw(st.sampled_from(((SIDE, SIDE), (SIDE, SIDE), (1, 9), (5, 3))))
    base = Image.fromarray(random.integers(0, 256, (*shape, 3), dtype=np.uint8))
    modes = ("1", "L", "LA", "P", "RGB", "RGBA", "I;16", "I", "F", "CMYK", "YCbCr")
    match draw(st.sampled_from(modes)):
        case "I;16":
            image = Image.fromarray(random.integers(0, 65536, shape).astype(np.uint16))
        case ("I" | "F") as mode:
            image = base.convert("L").convert(mode)
        case mode:
            image = base.convert(mode)
    marks = Image.Exif()
    marks[0x112] = draw(st.sampled_from((0, 3, 6, 99)))
    extra: dict[str, Any] = draw(
        st.sampled_from(
            (
                {},
                {"exif": marks.tobytes()},
                {"icc_profile": bytes(128)},
                {"save_all": True, "append_images": [image]},
                {"transparency": 0},
                {"progressive": True},
            )
        )
    )
    kind = draw(st.sampled_from(("PNG", "JPEG", "TIFF", "BMP", "WEBP", "GIF")))
    try:
        made = _saved(image, kind, **extra)
    except NOT_HELD:
        return b""
    at = draw(st.integers(0, len(made) - 1))
    match draw(st.sampled_from(("", "", "", "cut", "flip", "twice"))):
        case "cut":
            return made[:at]
        case "flip":
            return made[:at] + bytes([made[at] ^ 0x55]) + made[at + 1 :]
        case "twice":
            return made + made
        case _:
            return made


def _saved(image: Image.Image, kind: str, **extra: Any) -> bytes:  # noqa: ANN401
    stream = io.BytesIO()
    image.save(stream, kind, **extra)
    return stream.getvalue()


def lists(images: list[Any], labels: list[Any], _: Path) -> InMemoryData:
    return images, labels


def in_arrays(images: list[Any], labels: list[Any], _: Path) -> InMemoryData:
    return np.array(images), np.array(labels)


def with_series(images: list[Any], labels: list[Any], _: Path) -> InMemoryData:
    return np.array(images), pd.Series(labels)


def with_objects(images: list[Any], labels: list[Any], _: Path) -> InMemoryData:
    return images, np.array(labels, dtype=object)


def with_categories(images: list[Any], labels: list[Any], _: Path) -> InMemoryData:
    return np.stack(images), pd.Series(labels, dtype="category")


def npz(images: list[Any], labels: list[Any], folder: Path) -> Path:
    np.savez(folder / "a.npz", x=np.array(images), y=np.array(labels))
    return folder / "a.npz"


def packed_npz(images: list[Any], labels: list[Any], folder: Path) -> Path:
    np.savez_compressed(folder / "a.npz", x=np.stack(images), y=np.array(labels))
    return folder / "a.npz"


def npy(images: list[Any], labels: list[Any], folder: Path) -> Path:
    np.save(folder / "x.npy", np.array(images))
    np.save(folder / "y.npy", np.array(labels))
    return folder


def parquet_lists(images: list[Any], labels: list[Any], folder: Path) -> Path:
    columns = {"image": [np.ravel(image) for image in images], "label": labels}
    return _parquet(pa.Table.from_pandas(pd.DataFrame(columns)), folder)


def parquet_rows(images: list[Any], labels: list[Any], folder: Path) -> Path:
    nested = [np.asarray(image).tolist() for image in images]
    return _parquet(pa.table({"image": nested, "label": pa.array(labels)}), folder)


def idx(images: list[Any], labels: list[Any], folder: Path) -> Path:
    content = {"images-idx3": np.array(images), "labels-idx1": np.array(labels)}
    for name, values in content.items():
        (folder / f"train-{name}-ubyte").write_bytes(idx_bytes(values.astype(np.uint8)))
    return folder


def class_folders(images: list[bytes], labels: list[Any], folder: Path) -> Path:
    for number, (image, label) in enumerate(zip(images, labels, strict=True)):
        (folder / str(label).strip()).mkdir(exist_ok=True)
        (folder / str(label).strip() / f"{number:02}.png").write_bytes(image)
    return folder


def labelled_folder(images: list[bytes], labels: list[Any], folder: Path) -> Path:
    for number, image in enumerate(images):
        (folder / f"{number:02}.png").write_bytes(image)
    with (folder / "labels.csv").open("w", newline="", encoding="utf-8") as file:
        named = ([f"{number:02}.png", label] for number, label in enumerate(labels))
        csv.writer(file).writerows([["file", "label"], *named])
    return folder


def tar(images: list[bytes], labels: list[Any], folder: Path) -> Path:
    members = []
    for number, (image, label) in enumerate(zip(images, labels, strict=True)):
        kind, text = ("json", json.dumps({"label": label})) if number % 2 else ("cls", str(label))
        members += [(f"{number:02}.png", image), (f"{number:02}.{kind}", text.encode())]
    return write_tar(folder / "a.tar", members)


def parquet_files(images: list[bytes], labels: list[Any], folder: Path) -> Path:
    return _parquet(pa.table({"image": images, "label": pa.array(labels)}), folder)


def parquet_files_by_pandas(images: list[bytes], labels: list[Any], folder: Path) -> Path:
    structs = [{"bytes": image, "path": None} for image in images]
    frame = pd.DataFrame({"image": structs, "label": np.array(labels)})
    return _parquet(pa.Table.from_pandas(frame), folder)


def _parquet(table: pa.Table, folder: Path) -> Path:
    parquet.write_table(table, folder / "a.parquet", row_group_size=2)
    return folder / "a.parquet"


OF_ARRAYS: Final[tuple[Store, ...]] = (
    lists, in_arrays, with_series, with_objects, with_categories, npz, packed_npz, npy,
    parquet_lists, parquet_rows, idx,
)  # fmt: skip
OF_FILES: Final[tuple[Store, ...]] = (
    class_folders, labelled_folder, tar, parquet_files, parquet_files_by_pandas,
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """Ordinary records, and records that are nasty, one of which comes at a place among them."""

    store: Store
    options: SourceOptions
    ordinary: list[tuple[Any, Any]]
    nasty: list[tuple[Any, Any]]
    place: int
    sizes: list[int]


@st.composite
def cases(
    draw: st.DrawFn,
    stores: Sequence[Store] = (*OF_ARRAYS, *OF_FILES),
    families: Sequence[str] = tuple(FAMILIES),
    names: Sequence[tuple[str, ...] | None] = NAMES,
    odd_labels: Sequence[Any] = LABELS,
) -> Case:
    store = draw(st.sampled_from(stores))
    of_arrays = store in OF_ARRAYS
    family = draw(st.sampled_from(families if of_arrays else ("bytes", "bytes", "deep")))
    options = draw(st.sampled_from(FAMILIES[family]))
    declared = draw(st.sampled_from(names))
    if declared is None:
        options = replace(options, classes=3)
    else:
        options = replace(options, class_names=declared)
    whole = [int(name) for name in declared or "012" if name.isdigit()] or [0, 1]
    kinds: list[Sequence[Any]] = [whole, declared or ("0", "1"), [0, 1]]
    if store is not class_folders:
        kinds += [whole, [*map(str, whole)], [*map(float, whole)], [True, False]]
    usual = draw(st.sampled_from(kinds))
    ordinary, nasty = (drawn_array, nasty_array) if of_arrays else (drawn_picture, nasty_picture)

    def odd() -> tuple[Any, Any]:
        if draw(st.booleans()):
            return nasty(draw), draw(st.sampled_from(usual))
        return ordinary(draw, family), draw(st.sampled_from(odd_labels))

    n = draw(st.integers(2, 4))
    return Case(
        store,
        options,
        [(ordinary(draw, family), draw(st.sampled_from(usual))) for _ in range(n)],
        [odd(), odd()],
        draw(st.integers(0, n)),
        [draw(st.sampled_from((1, 2, 50))) for _ in range(3)],
    )


def read(case: Case, records: Sequence[tuple[Any, Any]], size: int) -> tuple[Read, Schema] | None:
    """What an embedding is made of; None if it is refused, or no program stores it."""
    images, labels = map(list, zip(*records, strict=True))
    with tempfile.TemporaryDirectory() as name:
        try:
            data = case.store(images, labels, Path(name))
        except NOT_HELD:
            return None
        options = case.options
        if case.store is labelled_folder:
            options = replace(options, labels=Path(name) / "labels.csv")
        try:
            source = open_source(data, options)
            batches = [*source.batches(size)]
        except DpntkError:
            return None
    found = [
        (record.tobytes(), source.schema.classes[label])
        for batch in batches
        for record, label in zip(batch.records, batch.labels.tolist(), strict=True)
    ]
    if len(found) != len(records):
        return None
    if case.store is class_folders:  # folder by folder
        order = sorted(range(len(found)), key=lambda at: (str(labels[at]).strip().encode(), at))
        found = [found[order.index(at)] for at in range(len(found))]
    return found, source.schema


def compared(case: Case) -> int:
    """How often the ordinary records were read again; a failed assertion if in another way."""
    reference: tuple[Read, Schema] | None = None
    number = 0
    for extra, size in zip(([], case.nasty[:1], case.nasty[1:]), case.sizes, strict=True):
        records = [*case.ordinary[: case.place], *extra, *case.ordinary[case.place :]]
        if (found := read(case, records, size)) is None:
            continue
        if extra:
            del found[0][case.place]
        if reference is None:
            reference = found
            continue
        assert found == reference
        number += 1
    return number


@examples(250)
@given(cases())
def test_one_record_changes_how_no_other_is_read(case: Case) -> None:
    compared(case)


PICTURE: Final = np.eye(SIDE, dtype=np.uint8)
MISTAKES: Final[dict[str, tuple[object, str, Case]]] = {
    "bytes 0 and 1 by the type of their array": (
        arrays, "require_one_meaning",
        Case(
            in_arrays, SourceOptions(classes=2), [(PICTURE, 0), (PICTURE, 1)],
            [(PICTURE.astype(np.float32), 0)], 1, [50] * 3,
        ),
    ),
    "names of other numbers": (
        labels, "_require_one_meaning",
        Case(
            in_arrays, SourceOptions(class_names=("1", "0", "x"), value_range=(0, 255)),
            [(PICTURE, 1), (PICTURE, 0)], [(PICTURE, "x")], 1, [50] * 3,
        ),
    ),
}  # fmt: skip
"""Where a check is that may be left out, and records that show it."""


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, attribute, case = MISTAKES[name]
    compared(case)
    monkeypatch.setattr(module, attribute, lambda *_: None)
    with pytest.raises(AssertionError):
        compared(case)
