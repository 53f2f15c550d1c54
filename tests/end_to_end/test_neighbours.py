"""Data sets that differ in one record: nothing that leaves differs but noise, or it is said.

Each case has a nasty record: the only one of its class, the largest number, the longest text. Its
neighbour has an ordinary one in that place (replace-one), or none (add-remove).
"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from pyarrow import parquet

from dpntk.common.adjacency import Adjacency
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.kinds import ColumnKind, Missing
from dpntk.common.schema.drafts.draft import Draft
from dpntk.common.schema.table import TableSchema
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import pipeline
from dpntk.embed.sums.accumulate import ClassSums
from dpntk.embed.sums.file import Embedding
from dpntk.release import Release
from dpntk.release.publishing import pipeline as publishing
from tests.conftest import SIDE, Command
from tests.helpers import data_sets
from tests.helpers.data_sets import CLASS_NAMES, Images, Labels
from tests.helpers.neighbours import BEYOND, Flow, Owner, Seen, Step, Write, undeclared_differences
from tests.helpers.tables import PEOPLE

Pair = tuple[Write, Write]
Row = dict[str, str]


@dataclass(frozen=True)
class Case:
    """Two neighbours, and what their owner does with them.

    Attributes:
        name: where they come from, and what is nasty.
        flow: what the owner does.
        pair: writes one and the other.
        hides: the adjacencies under which they are neighbours.
        watched: whether all is looked at that shows something, and records are generated.
        refused: words of the refusal that both get, where they are to get one.
    """

    name: str
    flow: Flow
    pair: Callable[[Adjacency], Pair]
    hides: tuple[Adjacency, ...] = tuple(Adjacency)
    watched: bool = False
    refused: str = ""


def neighbours(
    write: Callable[[list[Any], Path], Path],
    records: Sequence[Any] | Images,
    at: int,
    nasty: object,
) -> Callable[[Adjacency], Pair]:
    """Write records with a nasty one at a place, and with the ordinary one or none there."""

    def pair(adjacency: Adjacency) -> Pair:
        one = [*records[:at], nasty, *records[at + 1 :]]
        other = [*records[:at], *records[at + (adjacency is Adjacency.ADD_REMOVE) :]]
        return partial(write, one), partial(write, other)

    return pair


# Images


@dataclass(frozen=True)
class NastyImage:
    """A record, and the labels of those that it is among."""

    name: str
    image: Images
    label: int
    at: int
    labels: tuple[int, ...]

    def among(self, write: data_sets.Writer) -> Callable[[Adjacency], Pair]:
        def written(records: list[tuple[Images, int]], folder: Path) -> Path:
            images, labels = zip(*records, strict=True)
            return write(folder / "data", np.stack(images), np.array(labels))

        ordinary = list(zip(data_sets.IMAGES, self.labels, strict=False))
        return neighbours(written, ordinary, self.at, (self.image, self.label))


WHITE, BLACK = np.full((SIDE, SIDE), 255, np.uint8), np.zeros((SIDE, SIDE), np.uint8)
TWO, GAP = (0,) * 6 + (1,) * 6, (0,) * 6 + (2,) * 6
FIRST = NastyImage("first record, white", WHITE, 0, 0, TWO)
LAST_OF_CLASS = NastyImage("last record of its class, black", BLACK, 0, 5, TWO)
ONLY_OF_LAST = NastyImage("only record of the last class", WHITE, 2, 11, TWO)
ONLY_OF_MIDDLE = NastyImage("only record of a class in the middle", WHITE, 1, 6, GAP)


def write_plain_idx(folder: Path, images: Images, labels: Labels) -> Path:
    folder.mkdir()
    for what, array in (("images-idx3", images), ("labels-idx1", labels.astype(np.uint8))):
        (folder / f"train-{what}-ubyte").write_bytes(data_sets.idx_bytes(array))
    return folder


def write_gzipped_idx(
    folder: Path, images: Images, labels: Labels, level: int = 9, time: float | None = None
) -> Path:
    folder.mkdir()
    for what, array in (("images-idx3", images), ("labels-idx1", labels.astype(np.uint8))):
        packed = gzip.compress(data_sets.idx_bytes(array), level, mtime=time)
        (folder / f"train-{what}-ubyte.gz").write_bytes(packed)
    return folder


def write_named_parquet(folder: Path, images: Images, labels: Labels, *, rows: int = 6) -> Path:
    encoded = [data_sets.encoded(image) for image in images]
    path = folder.with_suffix(".parquet")
    return data_sets.write_parquet(path, encoded, labels, rows=rows, names=CLASS_NAMES)


def write_inferred_parquet(folder: Path, images: Images, labels: Labels) -> Path:
    """As Hugging Face's `datasets` makes it of class folders: it names those that there are."""
    there, places = np.unique(labels, return_inverse=True)
    names = tuple(CLASS_NAMES[label] for label in there)
    encoded = [data_sets.encoded(image) for image in images]
    return data_sets.write_parquet(folder.with_suffix(".parquet"), encoded, places, names=names)


def write_numbered_folder(folder: Path, images: Images, labels: Labels) -> Path:
    data_sets.write_folder(folder, images, labels)
    for number, name in enumerate(CLASS_NAMES):
        if (folder / name).exists():
            (folder / name).rename(folder / str(number))
    return folder


def write_one_image(side: int, folder: Path, channels: tuple[int, ...] = ()) -> Path:
    image = np.zeros((1, side, side, *channels), np.uint8)
    return data_sets.write_folder(folder / "data", image, np.zeros(1, np.int64))


def write_labelled_folder(folder: Path, images: Images, labels: Labels) -> Path:
    """Side by side, with names of classes in a CSV file among them."""
    folder.mkdir()
    rows = ["file,label"]
    for number, (image, label) in enumerate(zip(images, labels, strict=True)):
        (folder / f"{number:02}.png").write_bytes(data_sets.encoded(image))
        rows.append(f"{number:02},{CLASS_NAMES[label]}")
    (folder / "labels.csv").write_text("\n".join(rows))
    return folder


def write_numbered_labels(folder: Path, images: Images, labels: Labels) -> Path:
    """The same with numbers."""
    write_labelled_folder(folder, images, labels)
    text = (folder / "labels.csv").read_text()
    for number, name in enumerate(CLASS_NAMES):
        text = text.replace(name, str(number))
    (folder / "labels.csv").write_text(text)
    return folder


NUMBERED: Final[dict[str, data_sets.Writer]] = {
    "IDX": write_plain_idx,
    "IDX, gzipped": write_gzipped_idx,
    "IDX shards": partial(data_sets.write_idx_shards, ends=(4, 4, 9, 12)),
    "npz": data_sets.write_npz,
    "npz, compressed": data_sets.write_packed_npz,
    "npy": data_sets.write_npy,
    "Parquet, encoded": data_sets.write_parquet_bytes,
    "Parquet, lists": data_sets.write_parquet_lists,
    "Parquet shards": data_sets.write_parquet_shards,
    "tar": data_sets.write_tar_file,
    "tar shards": data_sets.write_tar_shards,
}
SOURCES: Final[dict[str, data_sets.Writer]] = {
    **NUMBERED,
    "Parquet, named": write_named_parquet,
    "class folders": data_sets.write_folder,
}
NAMES: Final = ",".join(CLASS_NAMES)
SMALL: Final = "--front pixels --width 4"
DISTILL: Final = (
    "--eps 2 --delta 1e-3 --sampling-prob 0.8 --steps 3 --per-class 1 --adjacency {adjacency}"
)


def embedded(known: str = "", options: str = SMALL, **more: Any) -> Flow:  # noqa: ANN401
    return Flow(f"embed {{data}} {known}", options, **more)


def of_image_sources() -> Iterator[Case]:
    """Every source, with its classes declared and not."""
    for kind, write in NUMBERED.items():
        for nasty in (FIRST, ONLY_OF_LAST):
            yield Case(
                f"{kind}, classes declared: {nasty.name}",
                embedded("--classes 3"),
                nasty.among(write),
                watched=kind == "npz" and nasty is ONLY_OF_LAST,
            )
        nasty = ONLY_OF_LAST
        yield Case(f"{kind}: {nasty.name}", embedded(), nasty.among(write), watched=kind == "npz")
    for nasty in (FIRST, ONLY_OF_LAST):
        yield Case(f"Parquet, named: {nasty.name}", embedded(), nasty.among(write_named_parquet))
    for nasty in (ONLY_OF_LAST, ONLY_OF_MIDDLE):
        pair = nasty.among(write_inferred_parquet)
        yield Case(f"Parquet, named by folders: {nasty.name}", embedded(), pair)
    for nasty in (FIRST, LAST_OF_CLASS, ONLY_OF_LAST, ONLY_OF_MIDDLE):
        folders = nasty.among(data_sets.write_folder)
        yield Case(
            f"class folders, classes declared: {nasty.name}",
            embedded(f"--class-names {NAMES}"),
            folders,
            watched=nasty is ONLY_OF_LAST,
        )
        yield Case(f"class folders: {nasty.name}", embedded(), folders)
    for known, declared in (("--classes 3", ", declared"), ("", "")):
        yield Case(
            f"class folders with numbers for names{declared}: {ONLY_OF_MIDDLE.name}",
            embedded(known),
            ONLY_OF_MIDDLE.among(write_numbered_folder),
        )
    of_file = "--labels {data}/labels.csv"
    for nasty in (FIRST, ONLY_OF_LAST, ONLY_OF_MIDDLE):
        named, numbered = map(nasty.among, (write_labelled_folder, write_numbered_labels))
        names = f"{of_file} --class-names {NAMES}"
        yield Case(f"labels in a file, classes declared: {nasty.name}", embedded(names), named)
        yield Case(f"labels in a file: {nasty.name}", embedded(of_file), named)
        yield Case(f"numbers in a file, named: {nasty.name}", embedded(names), numbered)
        yield Case(f"numbers in a file: {nasty.name}", embedded(of_file), numbered)
    yield Case(
        "class folders: only record, of another size",
        embedded(),
        lambda _: (partial(write_one_image, SIDE), partial(write_one_image, SIDE + 1)),
        (Adjacency.REPLACE_ONE,),
        refused="declare them with --image-size, and --grey",
    )
    yield Case(
        "class folders: only record, in colour",
        embedded("--image-size 8"),
        lambda _: (partial(write_one_image, SIDE), partial(write_one_image, SIDE, channels=(3,))),
        (Adjacency.REPLACE_ONE,),
        refused="declare them with --image-size, and --grey",
    )
    for kind, write in (("npz", data_sets.write_npz), ("Parquet, named", write_named_parquet)):
        yield Case(
            f"{kind}, classes named: {ONLY_OF_LAST.name}",
            embedded(f"--class-names {NAMES}"),
            ONLY_OF_LAST.among(write),
        )


def of_ways() -> Iterator[Case]:
    """Other feature maps and options of a release; records in two embeddings; distilled sets."""
    npz = ONLY_OF_LAST.among(data_sets.write_npz)
    for options in (
        "--width 4",
        "--arch cnn_1l --width 2",
        "--features rff --frequencies 4",
        "--features hermite",
    ):
        yield Case(f"npz, {options}: white", embedded("--classes 3", options), npz)
    yield Case(
        "npz, classes declared equal: white",
        embedded("--classes 3", release="--eps 1 --class-counts uniform"),
        npz,
    )
    yield Case("parts, merged: white", MERGED, neighbours(write_parts, data_sets.IMAGES, 0, WHITE))
    resized = embedded("--image-size 8 --classes 1")
    large = np.full((11, 9), 200, np.uint8)
    for at, which in ((0, "first"), (7, "another")):
        pair = neighbours(write_tar_of_sizes, data_sets.IMAGES, at, large)
        yield Case(f"tar, resized: {which} image of another size", resized, pair)
    for fit in ("crop", "pad"):
        options = f"--image-size 8 --fit {fit} --value-range 20,190 --invert --classes 1"
        pair = neighbours(write_tar_of_sizes, data_sets.IMAGES, 7, large)
        name = f"tar, {options}: an image of another size, beyond the range"
        yield Case(name, embedded(options), pair, watched=fit == "pad")
    red = np.zeros((SIDE, SIDE, 3), np.uint8)
    red[..., 0] = 255
    for known in ("--grey", "--colour"):
        for at, which in ((0, "first"), (7, "another")):
            pair = neighbours(write_tar_of_sizes, data_sets.IMAGES, at, red)
            flow = embedded(f"{known} --classes 1")
            yield Case(f"tar, {known}: {which} image in colour", flow, pair)
    colours = np.stack([data_sets.IMAGES] * 3, axis=-1)
    yield Case(
        "images without labels, in colour: red",
        embedded(),
        neighbours(write_unlabelled, colours, 7, red),
    )
    too_large = embedded("--classes 3", release="--eps 1 --delta 0.5")
    yield Case("npz: a delta that is too large", too_large, npz, refused="--delta 0.5 is not below")
    for kind, write, known in (
        ("npz, classes declared", data_sets.write_npz, "--classes 3"),
        ("npz", data_sets.write_npz, ""),
        ("class folders, classes declared", data_sets.write_folder, f"--class-names {NAMES}"),
        ("class folders", data_sets.write_folder, ""),
    ):
        for nasty in (FIRST, ONLY_OF_LAST):
            yield Case(
                f"distilled {kind}: {nasty.name}",
                Flow(f"distill {{data}} {known}", DISTILL),
                nasty.among(write),
                watched=kind == "npz, classes declared",
            )


MERGED: Final = Flow(
    "merge p.h5 q.h5",
    "",
    before=tuple(f"embed {part}.npz --classes 1 {SMALL} -o {part}.h5" for part in "pq"),
)


def write_parts(images: list[Images], folder: Path) -> Path:
    for name, part in (("p", images[:9]), ("q", images[9:])):
        np.savez(folder / f"{name}.npz", x=np.stack(part), y=np.zeros(len(part), np.int64))
    return folder / "p.npz"


def write_unlabelled(images: list[Images], folder: Path) -> Path:
    data = folder / "data"
    data.mkdir()
    for number, image in enumerate(images):
        (data / f"{number:02}.png").write_bytes(data_sets.encoded(image))
    return data


def write_tar_of_sizes(images: list[Images], folder: Path) -> Path:
    members = ((f"{n:02}.png", data_sets.encoded(image)) for n, image in enumerate(images))
    labels = ((f"{n:02}.cls", b"0") for n in range(len(images)))
    both = chain.from_iterable(zip(members, labels, strict=True))
    return data_sets.write_tar(folder / "data.tar", both)


# Files: the same records, stored otherwise


def of_files() -> Iterator[Case]:
    """The record is the same, but for how it is stored."""

    def stored(name: str, one: Write, other: Write, known: str) -> Case:
        return Case(name, embedded(known), lambda _: (one, other), (Adjacency.REPLACE_ONE,))

    images, labels = data_sets.IMAGES, data_sets.LABELS

    def as_written(write: data_sets.Writer, name: str, time: int | None, folder: Path) -> Path:
        path = write(folder / name, images, labels)
        if time is not None:
            for file in (path, *path.rglob("*")):
                os.utime(file, (time, time))
        return path

    for kind, write in SOURCES.items():
        yield stored(
            f"{kind}: the data have another name and date",
            partial(as_written, write, "data", None),
            partial(as_written, write, "jones", 1_000_000_000),
            "--classes 3" if kind in NUMBERED else "",
        )
    yield stored(
        "class folders: a file has another name, size and date",
        partial(as_written, data_sets.write_folder, "data", None),
        write_folder_with_an_odd_file,
        "",
    )
    for name, usual, odd in (
        (
            "IDX, gzipped: other headers",
            write_gzipped_idx,
            partial(write_gzipped_idx, level=1, time=1.0),
        ),
        (
            "tar: a member has another name, and more beside its label",
            data_sets.write_tar_file,
            write_odd_tar,
        ),
        ("Parquet: other row groups", write_named_parquet, partial(write_named_parquet, rows=2)),
    ):
        known = "" if usual is write_named_parquet else "--classes 3"
        one, other = (partial(as_written, write, "data", None) for write in (usual, odd))
        yield stored(name, one, other, known)


def write_folder_with_an_odd_file(folder: Path) -> Path:
    path = data_sets.write_folder(folder / "data")
    first = min(path.rglob("*.PNG"))
    said = PngInfo()
    said.add_text("Patient", "Jones" * 99)
    odd = first.with_name("A Jones, 1961.png")
    with Image.open(first) as image:
        image.save(odd, pnginfo=said)
    first.unlink()
    os.utime(odd, (1, 1))
    return path


def write_odd_tar(folder: Path, images: Images, labels: Labels) -> Path:
    (first, *rest) = data_sets.tar_members(images, labels)
    key, name = "some.dir/0000", "some.dir/0000 jones"
    label = json.dumps({"label": int(labels[0]), "patient": "Jones"}).encode()
    odd = [(name + member[len(key) :], content) for member, content in rest
           if member.startswith(key) and not member.endswith(".cls")]  # fmt: skip
    others = [member for member in rest if not member[0].startswith(key)]
    members = [first, *odd, (f"{name}.json", label), *others]
    return data_sets.write_tar(folder.with_suffix(".tar"), members)


# Tables

KNOWN: Final = replace(
    PEOPLE,
    bins=4,
    columns=(
        replace(PEOPLE.columns[0], missing=Missing.INDICATOR),
        *PEOPLE.columns[1:-1],
        Column("ill", ColumnKind.CATEGORICAL, "string", categories=("no", "yes", "maybe")),
    ),
)


def rows(count: int = 24, **other: Callable[[int], str]) -> list[Row]:
    """Ordinary rows: whole numbers, nothing missing; 20 towns, and everybody has an id."""
    usual: dict[str, Callable[[int], str]] = {
        "id": lambda i: f"p{i}",
        "age": lambda i: str(20 + i % 60),
        "pay": lambda i: str(10 * (i % 40)),
        "grade": lambda i: ("low", "mid")[i % 2],
        "town": lambda i: f"town {i % 20}",
        "ill": lambda i: ("no", "yes")[i % 3 == 0],
    }
    return [{name: said(i) for name, said in (usual | other).items()} for i in range(count)]


def write_csv(name: str, records: list[Row], folder: Path) -> Path:
    lines = [",".join(records[0]), *(",".join(row.values()) for row in records)]
    (folder / name).write_text("\n".join(lines) + "\n")
    return folder / name


def write_parquet(records: list[Row], folder: Path) -> Path:
    columns: dict[str, pa.Array] = {}
    for name in records[0]:
        values = pa.array([row[name] or None for row in records], pa.string())
        kind = {"age": pa.int64(), "pay": pa.float64()}.get(name, pa.string())
        columns[name] = values.cast(kind)
    parquet.write_table(pa.table(columns), folder / "a.parquet")
    return folder / "a.parquet"


WRITE_CSV: Final = partial(write_csv, "a.csv")
WRITE_TABLE: Final[dict[str, Callable[[list[Row], Path], Path]]] = {
    "CSV": WRITE_CSV,
    "Parquet": write_parquet,
}


def is_known(schema: TableSchema, private: tuple[str, ...] = ()) -> Step:
    def write(folder: Path) -> None:
        (folder / "schema.toml").write_text(Draft(schema, (), private).to_toml())

    return write


def edited(change: Callable[[str], str]) -> Step:
    """The owner changes the draft."""

    def edit(folder: Path) -> None:
        path = folder / "schema.toml"
        path.write_text(change(path.read_text()))

    return edit


DRAFT: Final = "schema {data} --label ill"
LOOK: Final = "embed {data} --schema schema.toml --private-bounds"
FIND: Final = "bounds --schema schema.toml --eps 5 --adjacency {adjacency}"
"""Of fewer rows than stand out from the noise with less, no bounds would be sought."""
NARROW: Final = "--width 4 --marginals 0"
FOURIER: Final = "--features rff --frequencies 4"
"""Soonest to generate from."""
DECLARED: Final = embedded("--schema schema.toml", NARROW, before=(is_known(KNOWN),))
ACCEPTED: Final = embedded("--schema schema.toml --accept-from-data", NARROW, before=(DRAFT,))
NASTY_ROWS: Final[dict[str, Row]] = {
    "first row": {"id": "first"},
    "largest number": {"age": "1000000000"},
    "smallest number": {"age": "-1000000000"},
    "largest amount": {"pay": "1e9"},
    "only missing number": {"age": ""},
    "only missing text": {"town": ""},
    "only fraction": {"pay": "10.25"},
    "rarest category": {"grade": "high"},
    "unlisted category": {"town": "Atlantis"},
    "longest text": {"id": "x" * 5000},
    "only row of its class": {"ill": "maybe"},
}


def nasty_row(
    name: str, write: Callable[[list[Row], Path], Path] = WRITE_CSV
) -> Callable[[Adjacency], Pair]:
    at = 0 if name == "first row" else 2
    ordinary = rows()
    return neighbours(write, ordinary, at, ordinary[at] | NASTY_ROWS[name])


def of_declared_tables() -> Iterator[Case]:
    """The schema is publicly known."""
    for name in NASTY_ROWS:
        yield Case(f"CSV: {name}", DECLARED, nasty_row(name))
    for name in ("largest amount", "only missing number", "only row of its class"):
        yield Case(f"Parquet: {name}", DECLARED, nasty_row(name, write_parquet))
    unlabelled = replace(DECLARED, before=(is_known(replace(KNOWN, label=None)),))
    for kind, write in WRITE_TABLE.items():
        for name in ("only missing number", "largest number"):
            yield Case(f"{kind}, no label: {name}", unlabelled, nasty_row(name, write))
    spelled = rows(age=lambda i: f"{20 + i}.0")
    yield Case(
        "CSV: only missing number, for which a program writes all others otherwise",
        DECLARED,
        lambda _: (
            partial(WRITE_CSV, [spelled[0] | {"age": ""}, *spelled[1:]]),
            partial(WRITE_CSV, rows()),
        ),
        (Adjacency.REPLACE_ONE,),
    )
    yield Case(
        "CSV: the data have another name",
        DECLARED,
        lambda _: (partial(WRITE_CSV, rows()), partial(write_csv, "jones.csv", rows())),
        (Adjacency.REPLACE_ONE,),
    )
    for options in ("--width 4", "--width 4 --pairs all", "--width 4 --target age", FOURIER):
        yield Case(
            f"CSV, {options}: largest number",
            replace(DECLARED, options=options),
            nasty_row("largest number"),
            watched=options is FOURIER,
        )
    for name in ("largest number", "unlisted category"):
        yield Case(
            f"CSV, pairs that the release chooses: {name}",
            replace(DECLARED, options="--width 4", release="--eps 3000"),
            nasty_row(name),
        )


NASTY_DATES: Final = {
    "latest date": "2999-12-31",
    "earliest date": "1000-01-01",
    "only missing date": "",
    "only time of day": "2001-02-03 10:00",
}


def of_dates() -> Iterator[Case]:
    """A column of dates, of which all is publicly known, or was drafted."""
    ordinary = rows(seen=lambda i: f"2001-02-{i + 1:02}")
    seen = Column("seen", ColumnKind.DATE, "date32", 0, 20_000, missing=Missing.INDICATOR)
    dated = replace(KNOWN, columns=(*KNOWN.columns, seen))
    declared = replace(DECLARED, before=(is_known(dated),))
    for name, date in NASTY_DATES.items():
        pair = neighbours(WRITE_CSV, ordinary, 2, ordinary[2] | {"seen": date})
        if name != "only time of day":  # which is no date
            yield Case(f"CSV: {name}", declared, pair)
        yield Case(f"CSV, draft accepted: {name}", ACCEPTED, pair)


def of_persons() -> Iterator[Case]:
    """All rows of a person are protected together: more than count, and all of them nasty."""
    unit = "--unit id --rows-per-unit 3"
    others = rows(40, id=lambda i: f"p{i % 20}")
    nasty = [NASTY_ROWS[name] for name in NASTY_ROWS if "id" not in NASTY_ROWS[name]]
    own = [row | odd | {"id": "jones"} for row, odd in zip(others, nasty, strict=False)]
    mixed = [*own[:2], *others[:9], *own[2:5], *others[9:], *own[5:]]
    declared = replace(DECLARED, read=f"{DECLARED.read} {unit}")
    known = is_known(KNOWN, private=("age", "pay"))
    found = embedded("--schema bounded.toml", NARROW, before=(known, f"{LOOK} {unit}", FIND))
    for kind, write in WRITE_TABLE.items():

        def pair(_: Adjacency, write: Callable[[list[Row], Path], Path] = write) -> Pair:
            return partial(write, mixed), partial(write, others)

        for way, flow in (("", declared), (", private bounds", found)):
            yield Case(
                f"{kind}, all rows of a person{way}",
                flow,
                pair,
                (Adjacency.ADD_REMOVE,),
                watched=kind == "CSV" and flow is declared,
            )


def of_private_bounds() -> Iterator[Case]:
    """Bounds are found with differential privacy; all else is known, or was drafted."""
    known = is_known(KNOWN, private=("age", "pay"))
    found = embedded("--schema bounded.toml", NARROW, before=(known, LOOK, FIND))
    for name in ("largest number", "smallest number", "only missing number"):
        yield Case(f"CSV, private bounds: {name}", found, nasty_row(name))
    yield Case(
        "CSV, private bounds: only fraction",
        replace(found, options=FOURIER),
        nasty_row("only fraction"),
        watched=True,
    )
    accepted = embedded(
        "--schema bounded.toml --accept-from-data",
        NARROW,
        before=(DRAFT, edited(with_private_bounds), f"{LOOK} --accept-from-data", FIND),
    )
    unconfirmed = replace(
        found, before=(DRAFT, edited(with_private_bounds), edited(confirm_all_else), LOOK, FIND)
    )
    for name in ("only fraction", "only missing number", "largest amount"):
        yield Case(
            f"CSV, private bounds in a draft that is accepted: {name}",
            accepted,
            nasty_row(name),
        )
        yield Case(
            f"CSV, private bounds in a draft, all else confirmed: {name}",
            unconfirmed,
            nasty_row(name),
            refused="not confirmed",
        )


def with_private_bounds(draft: str) -> str:
    return re.sub("lower = .*\nupper = .*\n", 'bounds = "private"\n', draft)


def confirm_all_else(draft: str) -> str:
    return "\n\n".join(
        part if 'bounds = "private"' in part else confirm_all(part) for part in draft.split("\n\n")
    )


def confirm_all(draft: str) -> str:
    return draft.replace("confirmed = false", "confirmed = true")


def confirm_columns(draft: str) -> str:
    return re.sub("^confirmed = false", "confirmed = true", draft, flags=re.MULTILINE)


@dataclass(frozen=True)
class NastyDraft:
    """A row that decides what a draft says of a column, and whether the column is in it at all."""

    name: str
    row: Row
    ordinary: tuple[Row, ...]
    leaves_out: bool = False

    @property
    def pair(self) -> Callable[[Adjacency], Pair]:
        return neighbours(WRITE_CSV, self.ordinary, 2, self.ordinary[2] | self.row)


def nasty_drafts() -> Iterator[NastyDraft]:
    usual = tuple(rows())
    for name, row in NASTY_ROWS.items():
        if name != "first row":
            yield NastyDraft(name, row, usual, leaves_out=name == "unlisted category")
    one_or_two = tuple(rows(age=lambda i: "12"[i % 2]))
    yield NastyDraft("third number of a column", {"age": "7"}, one_or_two)
    yield NastyDraft("only code", {"age": "01"}, one_or_two)
    yield NastyDraft("second number of a column", {"age": "7"}, tuple(rows(age=lambda i: "1")))
    yield NastyDraft("text among numbers", {"age": "old"}, usual, leaves_out=True)
    yield NastyDraft(
        "only value of a column", {"pay": "7"}, tuple(rows(pay=lambda i: "")), leaves_out=True
    )
    many = tuple(rows(1500, town=lambda i: f"town {i % 500}"))
    yield NastyDraft("501st text", {"town": "Atlantis"}, many, leaves_out=True)
    nothing = tuple({n: v for n, v in row.items() if n != "id"} for row in usual)
    yield NastyDraft("21st text, nothing else left out", {"town": "Atlantis"}, nothing, True)


def of_drafts() -> Iterator[Case]:
    """The schema was looked up in the data."""
    for nasty in nasty_drafts():
        watched = nasty.name == "largest number"
        flow = replace(ACCEPTED, options=FOURIER) if watched else ACCEPTED
        yield Case(f"CSV, draft accepted: {nasty.name}", flow, nasty.pair, watched=watched)
    for name in ("only missing number", "only fraction", "only row of its class"):
        pair = nasty_row(name, write_parquet)
        yield Case(f"Parquet, draft accepted: {name}", ACCEPTED, pair)
    confirmed = replace(ACCEPTED, before=(DRAFT, edited(confirm_columns)))
    confirmed = replace(confirmed, read="embed {data} --schema schema.toml")
    for nasty in nasty_drafts():
        if nasty.leaves_out and "id" in nasty.ordinary[0]:
            yield Case(
                f"CSV, columns of the draft confirmed: {nasty.name}",
                confirmed,
                nasty.pair,
                refused="not confirmed",
            )
    # What is publicly known is that of which the first of two data sets is an example.
    public = replace(
        confirmed, before=(DRAFT.replace("{data}", "example.csv"), edited(confirm_all))
    )
    for name in ("largest number", "only missing number", "only fraction", "only row of its class"):
        yield Case(f"CSV, draft confirmed: {name}", public, with_example(nasty_row(name)))


def with_example(pair: Callable[[Adjacency], Pair]) -> Callable[[Adjacency], Pair]:
    def write(data: Write, example: Write, folder: Path) -> Path:
        example(folder).rename(folder / "example.csv")
        return data(folder)

    def with_one(adjacency: Adjacency) -> Pair:
        one, other = pair(adjacency)
        return partial(write, one, one), partial(write, other, one)

    return with_one


def of_distilled_tables() -> Iterator[Case]:
    known = Flow("distill {data} --schema schema.toml", DISTILL, before=DECLARED.before)
    accepted = Flow(
        "distill {data} --schema schema.toml --accept-from-data", DISTILL, before=ACCEPTED.before
    )
    for name in ("largest number", "only missing number", "only row of its class"):
        yield Case(f"distilled CSV: {name}", known, nasty_row(name))
        yield Case(f"distilled CSV, draft accepted: {name}", accepted, nasty_row(name))
    (text,) = (nasty for nasty in nasty_drafts() if nasty.name == "text among numbers")
    yield Case(f"distilled CSV, draft accepted: {text.name}", accepted, text.pair)


CASES: Final = [
    pytest.param(
        case,
        adjacency,
        id=f"{case.name} [{adjacency.value}]",
    )
    for case in chain(
        of_image_sources(),
        of_ways(),
        of_files(),
        of_declared_tables(),
        of_dates(),
        of_persons(),
        of_private_bounds(),
        of_drafts(),
        of_distilled_tables(),
    )
    for adjacency in case.hides
]


@pytest.fixture
def owner(dpntk: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Owner:
    return Owner(dpntk, tmp_path, monkeypatch)


def both(owner: Owner, case: Case, adjacency: Adjacency) -> tuple[Seen, Seen]:
    one, other = (
        owner.seen(name, write, case.flow, adjacency, watched=case.watched)
        for name, write in zip(("one", "other"), case.pair(adjacency), strict=True)
    )
    return one, other


@pytest.mark.parametrize(("case", "adjacency"), CASES)
def test_neighbours_differ_in_nothing_but_noise(
    owner: Owner, case: Case, adjacency: Adjacency
) -> None:
    seen = both(owner, case, adjacency)
    for each in seen:
        if case.refused:
            assert each.refusal is not None
            assert case.refused in each.refusal
        else:
            assert each.refusal is None
    assert undeclared_differences(*seen) == set()


# That the test has eyes: what a mistake might let out, planted


@dataclass(frozen=True)
class Leak:
    """A mistake by which a release would say something of the records.

    Attributes:
        name: what gets out.
        plant: makes a release that says it, of one that does not, its embedding and its data.
        case: in which it is seen.
        adjacency: likewise.
    """

    name: str
    plant: Callable[[Release, Embedding, Path], Release]
    case: str
    adjacency: Adjacency

    def put_in_place(self, monkeypatch: pytest.MonkeyPatch) -> None:
        embeddings: list[Embedding] = []
        places: list[Path] = []
        load, serialise = (vars(publishing)[name] for name in ("load_embedding", "serialise"))
        open_source = vars(pipeline)["open_source"]

        def loaded(path: Path) -> Embedding:
            embeddings.append(load(path))
            return embeddings[-1]

        def opened(path: Path, options: SourceOptions) -> Any:  # noqa: ANN401
            places.append(path)
            return open_source(path, options)

        def leaking(made: Release) -> memoryview:
            content: memoryview = serialise(self.plant(made, embeddings[-1], places[-1]))
            return content

        monkeypatch.setattr(publishing, "load_embedding", loaded)
        monkeypatch.setattr(publishing, "serialise", leaking)
        monkeypatch.setattr(pipeline, "open_source", opened)


def with_count(made: Release, embedding: Embedding, _: Path) -> Release:
    return replace(made, guarantee=replace(made.guarantee, records=embedding.records))


def with_exact_shares(made: Release, embedding: Embedding, _: Path) -> Release:
    counts = np.maximum(embedding.counts, 1)
    return replace(made, class_weights=counts / counts.sum())


def with_exact_sums(made: Release, embedding: Embedding, _: Path) -> Release:
    sums = embedding.sums * (embedding.grid.unit / made.guarantee.records)
    return replace(made, embedding=sums.astype(np.float32))


def with_largest(made: Release, embedding: Embedding, _: Path) -> Release:
    return replace(made, statement=f"{made.statement} Largest: {embedding.sums.max()}.")


def with_room_for_all(made: Release, embedding: Embedding, _: Path) -> Release:
    return replace(made, statement=made.statement + " " * embedding.records)


def with_name(made: Release, _: Embedding, data: Path) -> Release:
    return replace(made, dpntk_version=f"{made.dpntk_version} ({data.name})")


def with_date(made: Release, _: Embedding, data: Path) -> Release:
    newest = max(file.stat().st_mtime for file in (data, *data.rglob("*")))
    return replace(made, created=datetime.fromtimestamp(newest, UTC).isoformat(timespec="seconds"))


ONE_MORE: Final = f"npz, classes declared: {FIRST.name}"
RENAMED: Final = "class folders: the data have another name and date"
LEAKS: Final = (
    Leak("number of records", with_count, ONE_MORE, Adjacency.ADD_REMOVE),
    Leak("exact class weights", with_exact_shares, ONE_MORE, Adjacency.ADD_REMOVE),
    Leak("exact sums", with_exact_sums, ONE_MORE, Adjacency.REPLACE_ONE),
    Leak("largest sum in words", with_largest, "CSV: largest number", Adjacency.REPLACE_ONE),
    Leak("number of records as a size", with_room_for_all, ONE_MORE, Adjacency.ADD_REMOVE),
    Leak("name of the data", with_name, RENAMED, Adjacency.REPLACE_ONE),
    Leak("date of the data", with_date, RENAMED, Adjacency.REPLACE_ONE),
)


def planted(name: str) -> Case:
    (case,) = (param.values[0] for param in CASES if param.id == name)
    assert isinstance(case, Case)
    return replace(case, watched=False)


@pytest.mark.parametrize("leak", LEAKS, ids=lambda leak: leak.name)
def test_what_leaks_is_seen(owner: Owner, leak: Leak, monkeypatch: pytest.MonkeyPatch) -> None:
    leak.put_in_place(monkeypatch)
    case = planted(f"{leak.case} [{leak.adjacency.value}]")
    assert undeclared_differences(*both(owner, case, leak.adjacency))


def test_a_leak_beside_what_is_looked_up_is_seen(
    owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other classes make other releases; what has nothing to do with the classes is still seen."""
    leak = Leak("", with_count, f"npz: {ONLY_OF_LAST.name}", Adjacency.ADD_REMOVE)
    leak.put_in_place(monkeypatch)
    case = planted(f"{leak.case} [{leak.adjacency.value}]")
    assert "attribute m" in undeclared_differences(*both(owner, case, leak.adjacency))


def test_a_record_that_counts_by_its_place_is_seen(
    owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record that is taken away shifts all that come after it."""
    add = ClassSums.add

    def by_place(self: ClassSums, records: NDArray[np.uint8], labels: NDArray[np.int64]) -> None:
        turned = [np.roll(record, place) for place, record in enumerate(records)]
        add(self, np.stack(turned), labels)

    monkeypatch.setattr(ClassSums, "add", by_place)
    case = planted(f"{ONE_MORE} [add-remove]")
    assert BEYOND in undeclared_differences(*both(owner, case, Adjacency.ADD_REMOVE))
