"""What the records hold, looked for in messages, tracebacks and the printed form of objects.

Each of these data sets has one value that nobody but its owner may see, and that makes it
impossible to read. Messages name file, row and column. The command line shows the value to its
owner, unless told not to.
"""

from __future__ import annotations

import signal
import struct
import subprocess
import sys
import traceback
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from PIL import Image
from pyarrow import parquet

from dpntk.common.errors import DataError, DpntkError
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.kinds import ColumnKind
from dpntk.common.schema.csv_format import CsvFormat
from dpntk.common.schema.drafts.draft import Draft
from dpntk.common.schema.drafts.toml import read_draft, save_schema
from dpntk.common.schema.privacy_unit import PrivacyUnit
from dpntk.common.schema.table import TableSchema
from dpntk.common.sources import Batch, open_source
from dpntk.common.sources.options import SourceOptions
from dpntk.common.sources.tables.frames import FrameSource
from dpntk.common.sources.tables.privacy_units import with_bounded_units
from dpntk.embed import Embedding, TangentOptions, embed
from dpntk.embed.inference.schema import draft_schema
from dpntk.embed.run.checkpoint import Progress, Share
from dpntk.embed.sums.totals import Totals
from dpntk.evaluate.images.records import LabelledImages
from dpntk.evaluate.tables.options import TableOptions
from dpntk.evaluate.tables.table import Table
from dpntk.release import Release
from dpntk.release.distill.descent import LabelledRecords
from dpntk.release.distill.optimiser import State
from dpntk.release.mechanism.gaussian import NoisySums
from tests.conftest import Command, Outcome
from tests.helpers.data_sets import IMAGES, LABELS, encoded, tar_members, write_parquet, write_tar
from tests.helpers.processes import RECORDS, embed_arguments, finish, kill_at, start
from tests.helpers.tables import CSV, HEADER, PEOPLE, not_in_utf8

DIAGNOSIS = "hiv-4711"
NUMBER = 471_147


def csv(old: str, new: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        assert old in CSV
        path = folder / "data.csv"
        path.write_text(CSV.replace(old, new))
        return path

    return write


def no_header(folder: Path) -> Path:
    """The first row, and so somebody, stands where the names of the columns should."""
    path = folder / "data.csv"
    path.write_text(f"{HEADER},{DIAGNOSIS}\n1,30,1,low,Ulm,no,x\n")
    return path


def another_separator(folder: Path) -> Path:
    path = folder / "data.csv"
    path.write_text(f"1;30;{DIAGNOSIS}\n" * 3)
    return path


def name_twice(folder: Path) -> Path:
    path = folder / "data.csv"
    path.write_text(f"{DIAGNOSIS},{DIAGNOSIS},1\n" * 3)
    return path


def bytes_of_another_encoding(folder: Path) -> Path:
    path = folder / "data.csv"
    path.write_bytes(CSV.replace("mid", DIAGNOSIS).encode() + b"5,1,1,low,\xfc,no\n")
    return path


def label_in_parquet(folder: Path) -> Path:
    path = folder / "data.parquet"
    columns = pa.table({name: [DIAGNOSIS] for name in HEADER.split(",")})
    parquet.write_table(columns, path)
    return path


def dictionaries_in_parquet(folder: Path) -> Path:
    """A program that writes them makes their keys, which may be anything, names of fields."""
    path = folder / "data.parquet"
    parquet.write_table(pa.table({name: [{DIAGNOSIS: 1}] for name in HEADER.split(",")}), path)
    return path


def another_encoding_in_parquet(folder: Path) -> Path:
    path = folder / "data.parquet"
    text = not_in_utf8(DIAGNOSIS.encode())
    parquet.write_table(pa.table(dict.fromkeys(HEADER.split(","), text)), path)
    return path


TABLES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "a number that is none": (csv("2,41,", f"2,{DIAGNOSIS},"), DIAGNOSIS),
    "no whole number": (csv("2,41,", f"2,{NUMBER}.5,"), f"{NUMBER}.5"),
    "infinite": (csv(",1000,", ",-inf,"), "-inf"),
    "no category": (csv(",mid,", f",{DIAGNOSIS},"), DIAGNOSIS),
    "no class": (csv("Ulm,no", f"Ulm,{DIAGNOSIS}"), DIAGNOSIS),
    "a value too many": (csv("2,41,", f"2,{DIAGNOSIS},41,"), DIAGNOSIS),
    "no header": (no_header, DIAGNOSIS),
    "another separator": (another_separator, DIAGNOSIS),
    "a name twice": (name_twice, DIAGNOSIS),
    "another encoding": (bytes_of_another_encoding, "xfc"),
    "a column of texts": (label_in_parquet, DIAGNOSIS),
    "dictionaries": (dictionaries_in_parquet, DIAGNOSIS),
    "another encoding in Parquet": (another_encoding_in_parquet, DIAGNOSIS),
}
SHOWN_TO_NOBODY = {
    "a value too many",
    "another encoding",
    "dictionaries",
    "another encoding in Parquet",
}
"""Of these the place says enough."""


def huge_label(folder: Path) -> Path:
    labels = LABELS.copy()
    labels[3] = NUMBER
    np.savez(folder / "data.npz", x=IMAGES, y=labels)
    return folder / "data.npz"


def negative_label(folder: Path) -> Path:
    np.savez(folder / "data.npz", x=IMAGES, y=LABELS - NUMBER)
    return folder / "data.npz"


def label_beyond_the_classes(folder: Path) -> Path:
    labels = LABELS.tolist()
    labels[3] = 4711
    images = [encoded(image) for image in IMAGES]
    return write_parquet(folder / "data.parquet", images, labels)


def label_of_a_shard(folder: Path) -> Path:
    members = [*tar_members(), ("z.cls", DIAGNOSIS.encode()), ("z.png", encoded(IMAGES[0]))]
    return write_tar(folder / "data.tar", members)


IMAGE_SETS: dict[str, tuple[Callable[[Path], Path], str, tuple[str, ...]]] = {
    "huge": (huge_label, str(NUMBER), ()),
    "negative": (negative_label, str(NUMBER - 2), ("--classes", "3")),
    "beyond": (label_beyond_the_classes, "4711", ("--classes", "3")),
    "in a shard": (label_of_a_shard, DIAGNOSIS, ()),
}


def last_line(outcome: Outcome) -> str:
    """The error that a command ends with, behind its notices."""
    assert outcome.code == 1
    line = outcome.stderr.splitlines()[-1]
    assert line.startswith("error: ")
    return line


def require_silent(error: DpntkError, value: str, names: str) -> None:
    """Assert that a log with the whole traceback would name the file and not quote the value."""
    assert names in str(error)
    for text in (str(error), repr(error), "".join(traceback.format_exception(error))):
        # The lines of our own code and of this file are no secret.
        logged = "\n".join(line for line in text.splitlines() if not line.startswith("    "))
        assert value not in logged


@pytest.mark.parametrize("kind", TABLES)
def test_an_error_about_a_table_quotes_no_value(dpntk: Command, tmp_path: Path, kind: str) -> None:
    make, value = TABLES[kind]
    path = make(tmp_path)
    with pytest.raises(DpntkError) as caught:
        list(open_source(path, SourceOptions(schema=PEOPLE)).batches(3))
    require_silent(caught.value, value, path.name)
    (tmp_path / "s.toml").write_text(Draft(PEOPLE).to_toml())
    arguments = ("embed", path, "--schema", "s.toml", "--width", "2")
    assert (value in last_line(dpntk(*arguments))) is (kind not in SHOWN_TO_NOBODY)
    assert value not in last_line(dpntk(*arguments, "--quiet-values"))


@pytest.mark.parametrize("kind", IMAGE_SETS)
def test_an_error_about_images_quotes_no_label(dpntk: Command, tmp_path: Path, kind: str) -> None:
    make, value, classes = IMAGE_SETS[kind]
    path = make(tmp_path)
    with pytest.raises(DpntkError) as caught:
        list(open_source(path, SourceOptions(classes=3 if classes else None)).batches(3))
    require_silent(caught.value, value, path.name)
    distill = ("distill", path, "--eps", 1, "--delta", 1e-3, "--per-class", 1, "--steps", 1)
    for command in (("embed", path, "--width", 2), distill):
        assert value in last_line(dpntk(*command, *classes))
        quiet = last_line(dpntk(*command, *classes, "--quiet-values"))
        assert path.name in quiet
        assert value not in quiet


def test_a_draft_quotes_no_value(
    dpntk: Command, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither for a column that it leaves out nor for a label that it cannot take."""
    path = tmp_path / "data.parquet"
    large = [float(NUMBER) * 2.0**53 + n * 2.0**53 for n in range(30)]
    columns = {"x": list(range(30)), "large": large, "limit": [float("inf"), NUMBER * 1.0] * 15}
    parquet.write_table(pa.table(columns), path)
    draft_schema(path, csv=CsvFormat())
    said = capfd.readouterr().err
    assert said.count("it is left out") == 1
    assert "left out, because they hold infinite numbers" in said
    assert str(NUMBER) not in said
    assert f"{large[0]:g}"[:6] not in said
    assert "'inf'" not in said
    with pytest.raises(DpntkError) as caught:
        draft_schema(path, "limit", csv=CsvFormat())
    require_silent(caught.value, "'inf'", path.name)
    label = ("schema", path, "--label", "limit")
    assert "'inf'" in last_line(dpntk(*label))
    assert "'inf'" not in last_line(dpntk(*label, "--quiet-values"))


def test_a_draft_quotes_no_key_of_dictionaries(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for number, key in enumerate((DIAGNOSIS, str(NUMBER))):
        visits = pa.table({"visits": [{key: 1}, {key: 2}], "ward": ["a", "b"]})
        parquet.write_table(visits, tmp_path / f"{number}.parquet")
    assert draft_schema(tmp_path, csv=CsvFormat()).stated.left_out == ("visits",)
    said = capfd.readouterr().err
    assert "visits" in said
    assert DIAGNOSIS not in said


KINDS_OF_COLUMNS = {
    "of numbers": Column("x", ColumnKind.CONTINUOUS, "float64", 0.0, 1.0),
    "of categories": Column("x", ColumnKind.CATEGORICAL, "string", categories=("a", "b")),
    "of dates": Column("x", ColumnKind.DATE, "date32", 0, 366),
    "of durations": Column("x", ColumnKind.DURATION, "duration[s]", 0, 366),
}


@pytest.mark.parametrize("kind", KINDS_OF_COLUMNS)
def test_keys_of_dictionaries_in_memory_are_not_quoted(kind: str) -> None:
    frame = pd.DataFrame({"x": [{DIAGNOSIS: 1}]})
    with pytest.raises(DpntkError) as caught:
        FrameSource.open(frame, TableSchema((KINDS_OF_COLUMNS[kind],))).values()
    require_silent(caught.value, DIAGNOSIS, "column 'x' is struct, n")


def test_keys_of_dictionaries_that_say_whose_a_row_is_are_not_quoted() -> None:
    column = KINDS_OF_COLUMNS["of numbers"]
    schema = TableSchema((column,), left_out=("person",), privacy_unit=PrivacyUnit("person", 1))
    frame = pd.DataFrame({"x": [0.5], "person": [{DIAGNOSIS: 1}]})
    with pytest.raises(DpntkError) as caught:
        with_bounded_units(FrameSource.open(frame, schema))
    require_silent(caught.value, DIAGNOSIS, "column 'person' is struct")


def test_keys_of_dictionaries_in_place_of_labels_are_not_quoted(tmp_path: Path) -> None:
    labels = pa.array([{DIAGNOSIS: 1}] * len(IMAGES))
    path = tmp_path / "data.parquet"
    images = [encoded(image) for image in IMAGES]
    parquet.write_table(pa.table({"image": images, "label": labels}), path)
    with pytest.raises(DpntkError) as caught:
        open_source(path, SourceOptions())
    require_silent(caught.value, DIAGNOSIS, "the column label is struct")


def test_a_schema_with_looked_up_values_quotes_none(dpntk: Command, tmp_path: Path) -> None:
    text = Draft(PEOPLE, unconfirmed=("age",)).to_toml().replace("lower = 0\n", "lower = 471147\n")
    path = tmp_path / "s.toml"
    path.write_text(text)
    with pytest.raises(DpntkError) as caught:
        read_draft(path)
    require_silent(caught.value, str(NUMBER), "s.toml: column 'age'")


def test_evaluate_is_quiet_as_well(dpntk: Command, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(Draft(PEOPLE).to_toml())
    (tmp_path / "synthetic.csv").write_text(CSV)
    path = csv("2,41,", f"2,{DIAGNOSIS},")(tmp_path)
    arguments = ("evaluate", "synthetic.csv", "--schema", "s.toml", "--test", path)
    assert DIAGNOSIS in last_line(dpntk(*arguments))
    quiet = last_line(dpntk(*arguments, "--quiet-values"))
    assert "row 2, column 'age'" in quiet
    assert DIAGNOSIS not in quiet


def test_a_bug_is_quiet_as_well(
    dpntk: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a library says of a value that nobody has thought of."""

    def fail(*_: object, **__: object) -> None:
        raise ValueError(f"could not convert string to float: {DIAGNOSIS!r}")

    monkeypatch.setattr("dpntk.embed.commands.running.embed", fail)
    assert DIAGNOSIS in last_line(dpntk("embed", tmp_path))
    quiet = last_line(dpntk("embed", tmp_path, "--quiet-values"))
    assert "ValueError; this is a bug" in quiet
    assert DIAGNOSIS not in quiet


def odd_exif() -> bytes:
    """Marks of a camera whose second entry says that it goes on where the file has ended."""
    entries = struct.pack("<HHII", 0x10F, 2, 500, 40) + struct.pack("<HHIHH", 0x112, 3, 1, 6, 0)
    return b"Exif\0\0II*\0" + struct.pack("<IH", 8, 2) + entries + bytes(4) + DIAGNOSIS.encode()


def test_what_a_library_warns_of_reaches_no_terminal(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    image = Image.fromarray(IMAGES[0])
    image.save(tmp_path / "images" / "a.jpg", exif=odd_exif())
    program = (
        "import sys; from dpntk.common.sources import open_source\n"
        "list(open_source(sys.argv[1]).batches(1)); print('read')"
    )
    said = subprocess.run(
        [sys.executable, "-c", program, "images"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert said.stdout == "read\n"
    assert "Warning" not in said.stderr
    assert "Tag" not in said.stderr


def test_objects_say_what_they_are_and_not_how_much(
    embedding: Embedding, small_release: Release
) -> None:
    """In a console, a log, or the traceback of somebody else's program."""
    sums, labels = np.full((5, 3), NUMBER), np.full(3, NUMBER)
    values = np.full((3, 64), NUMBER % 256, np.uint8)
    totals = Totals(sums, labels)
    all_counted = Share(1, 1, 0, 3 * NUMBER)
    embedding.sums[:] = NUMBER
    small_release.embedding[:] = NUMBER
    points = sums.astype(np.float64)
    state = State(points, points, points, points, NUMBER, NUMBER)
    for words, sensitive in {
        "Totals(sums=int64 (5, 3), counts=int64 (3,))": totals,
        "totals=Totals(sums=int64 (5, 3)": Progress(all_counted, 3 * NUMBER, totals),
        f"Embedding(sums=int64 {embedding.sums.shape}": embedding,
        "NoisySums(sums=int64 (5, 3)": NoisySums(sums, labels),
        "Batch(records=uint8 (3, 64), labels=int64 (3,))": Batch(values, labels),
        "LabelledImages(pixels=uint8 (3, 64), labels=int64 (3,)": LabelledImages(
            values, labels, ("a",), {}
        ),
        "LabelledRecords(values=uint8 (3, 64), labels=int64 (3,))": LabelledRecords(values, labels),
        "Table(schema=TableSchema, columns=dict": Table(PEOPLE, {"age": labels}, {}),
        "State(points=float64 (5, 3), momentum=float64 (5, 3)": state,
        "Draft(stated=TableSchema, unconfirmed=tuple": Draft(
            TableSchema((Column("a", ColumnKind.INTEGER, "int64", 0, NUMBER),)), ("a",)
        ),
        "Release(embedding=float32 (67, 1), class_weights=float64 (1,)": small_release,
    }.items():
        said = repr(sensitive)
        assert words in said
        assert str(NUMBER) not in said
        assert str(NUMBER % 256) not in said


def test_options_and_sources_that_hold_records_show_none(tmp_path: Path) -> None:
    """Rows that were given with options, and labels that stand in a file beside images."""
    rows = pd.DataFrame({"age": [NUMBER], "diagnosis": [DIAGNOSIS]})
    options = TableOptions(target="age", members=rows)
    assert "target='age'" in repr(options)
    folder = tmp_path / "images"
    folder.mkdir()
    for place, image in enumerate(IMAGES):
        Image.fromarray(image).save(folder / f"{place}.png")
    lines = [f"{place}.png,{DIAGNOSIS if place else 'none'}" for place in range(len(IMAGES))]
    (tmp_path / "labels.csv").write_text("\n".join(["file,label", *lines]) + "\n")
    declared = SourceOptions(labels=tmp_path / "labels.csv", class_names=(DIAGNOSIS, "none"))
    source = open_source(folder, declared)
    assert "ImageFolderSource(" in repr(source)
    shown = repr(source).replace(repr(source.schema), "")  # the names of its classes go out
    for said in (repr(options), shown):
        assert DIAGNOSIS not in said
        assert str(NUMBER) not in said


def test_notes_that_a_log_keeps_count_no_records(dpntk: Command, tmp_path: Path) -> None:
    """A single row that is left out, clipped or unlisted is one person's; so are their numbers."""
    unit = PrivacyUnit("person", 2)
    schema = TableSchema(
        (
            Column.integer("age", 0, 99),
            Column.categorical("town", ["Bonn", "Ulm", "other"], other="other"),
            Column.boolean("ill", ["no", "yes"]),
        ),
        label="ill",
        left_out=("person",),
        constraints=("age >= 18",),
        privacy_unit=unit,
    )
    save_schema(schema, tmp_path / "s.toml")
    rows = ["person,age,town,ill", "a,20,Ulm,no", "a,30,Ulm,no", "a,40,Bonn,no", "A,120,Ulm,no"]
    (tmp_path / "t.csv").write_text("\n".join([*rows, "b,3,Rom,no", ""]))
    line = (
        "embed",
        tmp_path / "t.csv",
        "--schema",
        tmp_path / "s.toml",
        "--width",
        2,
        "--overwrite",
    )
    told, quiet = (dpntk(*line, *more).stderr for more in ((), ("--quiet-values",)))
    for said, instead in (
        ("1 row left out", "some rows left out"),
        ("1 value differs from another one", "some values differ from another one"),
        ("age: beyond its bounds in 1 row", "age: beyond its bounds in some rows"),
        ("town: in no category in 1 row", "town: in no category in some rows"),
        ("'age >= 18': broken by 1 row", "'age >= 18': broken by some rows"),
        ("no record is of 1 class of 2", "no record is of some classes of 2"),
        ("embedded 4 rows", "embedded some rows"),
    ):
        assert said in " ".join(told.split())
        assert instead in " ".join(quiet.split())
        assert said not in " ".join(quiet.split())


def chunk(name: bytes, content: bytes = b"") -> bytes:
    """A part of a PNG file."""
    check = zlib.crc32(name + content)
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", check)


def png_of(*parts: bytes) -> bytes:
    """A grey PNG file of 8x8 pixels with these parts behind its header."""
    size = chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0))
    return b"".join([b"\x89PNG\r\n\x1a\n", size, *parts, chunk(b"IEND")])


@pytest.mark.parametrize("before", [True, False])
def test_what_a_decoder_says_of_an_image_is_in_no_traceback(tmp_path: Path, before: bool) -> None:
    """Pillow names the part that it does not understand, in whose place there may be anything."""
    pixels = zlib.compress(b"\0" + bytes(8) * 9)
    secret = struct.pack(">I", 4) + b"P@SS" + bytes(8)
    parts = [secret, chunk(b"IDAT", pixels)]
    if not before:
        parts = [chunk(b"IDAT", pixels[:5]), secret, chunk(b"IDAT", pixels[5:])]
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1.png").write_bytes(png_of(chunk(b"IDAT", zlib.compress(bytes(72)))))
    (tmp_path / "a" / "2.png").write_bytes(png_of(*parts))
    with pytest.raises(DataError) as caught:
        embed(tmp_path, TangentOptions(width=2), SourceOptions(class_names=("a",)))
    require_silent(caught.value, "P@SS", "2.png")


def test_what_a_log_keeps_of_an_interrupted_pass_counts_no_records(
    dpntk: Command, many_records: Path, tmp_path: Path
) -> None:
    for quiet in (True, False):
        output = tmp_path / f"{quiet}.h5"
        line = embed_arguments(many_records, output, *(["--quiet-values"] if quiet else []))
        killed = start(line, prepare=kill_at("dpntk.embed.run.worker.save_progress", 3))
        assert finish(killed) == -signal.SIGKILL
        again = dpntk(*line)
        assert again.code == 0, again.stderr
        said = f"of {RECORDS:,} records, which were counted before"
        assert (said in again.stderr) is not quiet
        assert ("going on after some records" in again.stderr) is quiet
        assert (f"{RECORDS:,}" in again.stdout + again.stderr) is not quiet
