"""Small files that claim to be large, and names that lead to what never ends or never begins."""

from __future__ import annotations

import bz2
import io
import json
import os
import resource
import signal
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from numpy.typing import ArrayLike, DTypeLike, NDArray
from pyarrow import parquet
from safetensors.torch import save

from dpntk.common.errors import DataError, GeneratorError
from dpntk.common.schema.drafts.draft import Draft
from dpntk.common.storage.synthetic_folder import IMAGES, PARQUET, POINTS, PROVENANCE
from dpntk.evaluate.images.records import read_synthetic
from dpntk.evaluate.tables.table import read_synthetic_table
from dpntk.generate import load_generator
from dpntk.generate.output.generator_file import serialise
from tests.conftest import Command, draw_records, refused
from tests.helpers.tables import PEOPLE, people

ROOM = 3 << 30
"""Bytes that a command may take beside what this process has: more than it should."""
PATIENCE = 120
"""Seconds until a command that waits for nothing is stopped; none needs more than a few."""


@pytest.fixture(autouse=True)
def limits() -> Iterator[None]:
    """What an attack can take of this machine if nothing else stops it."""

    def give_up(*_: object) -> None:
        pytest.fail("the command takes too long")  # which no handler of errors stops

    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + ROOM, before[1]))
    earlier = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(PATIENCE)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, earlier)
    resource.setrlimit(resource.RLIMIT_AS, before)


def header(shape: tuple[int, ...], dtype: str = "|u1") -> bytes:
    """The first bytes of an .npy file."""
    content = io.BytesIO()
    described = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(content, described)
    return content.getvalue()


def zeros(mebibytes: int, begin: bytes) -> bytes:
    """`begin` and then zeros, deflated: 1 KiB for each MiB, in no time."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    start = packer.compress(begin) + packer.flush(zlib.Z_FULL_FLUSH)
    piece = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return start + piece * mebibytes + packer.flush()


def archive(members: dict[str, tuple[bytes, int, int]]) -> bytes:
    """A zip archive of (content as it is stored, size that it claims, kind of compression)."""
    content, directory = b"", b""
    for name, (stored, size, kind) in members.items():
        known = struct.pack("<HHHHHIIIHH", 20, 0, kind, 0, 0, 0, len(stored), size, len(name), 0)
        directory += b"PK\1\2" + struct.pack("<H", 20) + known
        directory += struct.pack("<HHHII", 0, 0, 0, 0, len(content)) + name.encode()
        content += b"PK\3\4" + known + name.encode() + stored
    end = (0, 0, len(members), len(members), len(directory), len(content), 0)
    return content + directory + b"PK\5\6" + struct.pack("<HHHHIIH", *end)


def labels(count: int) -> tuple[bytes, int, int]:
    """A member that holds labels 0, 1, 0, 1, ..."""
    stored = header((count,), "<i8") + (np.arange(count) % 2).astype("<i8").tobytes()
    return stored, len(stored), zipfile.ZIP_STORED


def deflated(content: bytes, size: int) -> tuple[bytes, int, int]:
    return content, size, zipfile.ZIP_DEFLATED


def an_honest_bomb() -> bytes:
    """1.5 GiB of zeros, in 1.6 MB."""
    count = 24 << 14
    begin = header((count, 64, 64))
    return archive(
        {
            "x.npy": deflated(zeros(1536, begin), len(begin) + (1536 << 20)),
            "y.npy": labels(count),
        }
    )


def more_than_deflate_can() -> bytes:
    begin = header((1 << 40, 8, 8))
    member = deflated(zeros(1, begin), (1 << 32) - 2)
    return archive({"x.npy": member, "y.npy": labels(1)})


def more_than_the_archive_says() -> bytes:
    begin = header((1 << 40, 8, 8))
    member = deflated(zeros(1, begin), len(begin) + (1 << 20))
    return archive({"x.npy": member, "y.npy": labels(1)})


def an_endless_header() -> bytes:
    """That announces 2 GiB, of which 1.5 GiB are there."""
    begin = b"\x93NUMPY\2\0" + struct.pack("<I", 2 << 30)
    member = deflated(zeros(1536, begin), len(begin) + (1536 << 20))
    return archive({"x.npy": member, "y.npy": labels(1)})


def compressed_otherwise() -> bytes:
    """A kind of compression of which a byte may stand for a million."""
    content = header((4096, 64, 64)) + bytes(4096 * 64 * 64)
    member = bz2.compress(content), len(content), zipfile.ZIP_BZIP2
    return archive({"x.npy": member, "y.npy": labels(4096)})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (an_honest_bomb, "that unpack to"),
        (more_than_deflate_can, "x cannot be as large as the archive says"),
        (more_than_the_archive_says, "x is cut short"),
        (an_endless_header, "not a whole .npz archive"),
        (compressed_otherwise, "compressed as NumPy does not do it"),
    ],
)
def test_images_are_no_more_than_such_a_file_can_hold(
    tmp_path: Path, make: Callable[[], bytes], words: str
) -> None:
    path = tmp_path / IMAGES
    path.write_bytes(make())
    assert path.stat().st_size < 1 << 23
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DataError, match=words):
        read_synthetic(tmp_path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 19  # in KiB


def synthetic_points(folder: Path, points: NDArray[Any], classes: ArrayLike) -> None:
    """A folder as `dpntk generate` writes it from a distilled set."""
    folder.mkdir()
    records, _ = draw_records(4)
    np.savez(folder / IMAGES, x=records.reshape(-1, 8, 8), y=[0, 1, 0, 1])
    np.savez_compressed(folder / POINTS, x=points, y=classes)
    kernel = {"bias_variance": 0.01, "centre": 0, "ridge": 1e-3, "levels": 256}
    document = {"classes": ["a", "b"], "kernel": kernel, "release": {"private": True}}
    (folder / PROVENANCE).write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("shape", "dtype", "words"),
    [
        ((47_000, 64), np.float32, "47,000 points: a regression is fitted to 8,192"),
        ((4, 1 << 20), np.float32, "damaged"),
        ((4, 64), np.float64, "damaged"),
    ],
)
def test_points_are_no_more_than_a_regression_takes(
    dpntk: Command, tmp_path: Path, shape: tuple[int, int], dtype: DTypeLike, words: str
) -> None:
    synthetic_points(tmp_path / "synthetic", np.zeros(shape, dtype), np.arange(shape[0]) % 2)
    assert (tmp_path / "synthetic" / POINTS).stat().st_size < 1 << 18
    records, _ = draw_records(4)
    np.savez(tmp_path / "test.npz", x=records.reshape(-1, 8, 8), y=[0, 1, 0, 1])
    refused(dpntk("evaluate", "--test", "test.npz"), POINTS, words)


def test_a_table_is_no_more_than_such_a_file_can_hold(tmp_path: Path) -> None:
    """10 million rows, all the same, in a few kilobytes each million."""
    rows = {
        "id": 1, "age": 30, "pay": 1.0, "grade": "low", "town": "Ulm", "ill": "no",
    }  # fmt: skip
    many = 1_000_000
    columns = {
        name: pa.DictionaryArray.from_arrays(pa.array(np.zeros(many, np.int8)), pa.array([value]))
        for name, value in rows.items()
    }
    table = pa.table(columns)
    path = tmp_path / PARQUET
    with parquet.ParquetWriter(path, table.schema) as writer:
        for _ in range(10):
            writer.write_table(table)
    (tmp_path / PROVENANCE).write_text(json.dumps({"schema": PEOPLE.to_json()}))
    assert path.stat().st_size < 1 << 20
    with pytest.raises(DataError, match="that unpack to"):
        read_synthetic_table(tmp_path)


def one_long_value_for_all_rows() -> pa.Array:
    return pa.DictionaryArray.from_arrays(np.zeros(60_000, np.int8), ["Ulm" * 400_000])


def a_very_long_value() -> pa.Array:
    return pa.array(["Ulm", "Ulm" * 100_000_000])


def a_very_long_list() -> pa.Array:
    return pa.array([None, np.zeros(80_000_000, np.int64)])


@pytest.mark.parametrize("make", [one_long_value_for_all_rows, a_very_long_value, a_very_long_list])
def test_a_table_takes_no_more_memory_than_its_rows_explain(
    tmp_path: Path, make: Callable[[], pa.Array]
) -> None:
    town = make()
    same = {"age": 30, "pay": 1.0, "grade": "low", "ill": "no"}
    rows = {name: pa.array([value] * len(town)) for name, value in same.items()} | {"town": town}
    path = tmp_path / PARQUET
    parquet.write_table(pa.table(rows), path, compression="zstd")
    (tmp_path / PROVENANCE).write_text(json.dumps({"schema": PEOPLE.to_json()}))
    assert path.stat().st_size < 1 << 18
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DataError, match="far more memory than it has bytes"):
        read_synthetic_table(tmp_path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 19  # in KiB


@pytest.mark.parametrize(
    ("spec", "weights"),
    [
        (
            {"side": 2000, "classes": 1, "factors": 1, "flows": 1},
            {"template": (1, 1, 2000**2), "factors": (1, 1, 2000**2), "flows": (1, 1, 2, 5, 5)},
        ),
        (
            {"side": 64, "classes": 1, "factors": 1, "flows": 50_000},
            {"template": (1, 1, 64**2), "factors": (1, 1, 64**2), "flows": (1, 50_000, 2, 5, 5)},
        ),
    ],
    ids=["large images", "many flows"],
)
def test_a_generator_makes_images_that_can_be(
    tmp_path: Path, spec: dict[str, int], weights: dict[str, tuple[int, ...]]
) -> None:
    description = {"spec": spec, "classes": ["a"], "class_weights": [1.0], "origin": {}}
    tensors = {name: torch.zeros(shape) for name, shape in weights.items()}
    path = tmp_path / "generator.safetensors"
    path.write_bytes(serialise(description, tensors))
    with pytest.raises(GeneratorError, match="description is out of range"):
        load_generator(path)


def test_a_table_generator_has_a_code_that_can_be(tmp_path: Path) -> None:
    description = {
        "kind": "table", "spec": {"code": 60_000, "width": 1}, "schema": PEOPLE.to_json(),
        "class_weights": [0.5, 0.5], "origin": {},
    }  # fmt: skip
    path = tmp_path / "generator.safetensors"
    path.write_bytes(save({"none": torch.zeros(1)}, {"dpntk": json.dumps(description)}))
    with pytest.raises(GeneratorError, match="description is out of range"):
        load_generator(path)


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_link_to_zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def a_large_hole(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


TRAPS = (a_pipe, a_link_to_zeros)


@pytest.mark.parametrize("trap", [*TRAPS, a_large_hole])
@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("release.h5", ("generate",)),
        ("release.h5", ("inspect",)),
        ("release.h5", ("verify",)),
        ("theirs.pub", ("verify", "honest.h5", "--key", "theirs.pub")),
        ("theirs.pub", ("trust", "add", "them", "theirs.pub")),
        ("key", ("release", "--eps", "1", "--delta", "1e-3", "--key", "key")),
        ("generator.safetensors", ("generate", "--from", "generator.safetensors")),
        ("synthetic/provenance.json", ("evaluate", "--test", "images")),
        ("schema.toml", ("embed", "a.csv", "--schema", "schema.toml")),
        ("module.pt", ("embed", "images", "--features", "perceptual", "--module", "module.pt",
                       "--module-is-public", "-o", "new.h5")),
        ("images.ledger.json", ("budget", "images")),
        ("images/a/000.png", ("embed", "images", "-o", "new.h5")),
    ],
)  # fmt: skip
def test_only_files_of_an_honest_size_are_read(
    dpntk: Command,
    folder: Path,
    embedding_file: Path,
    tmp_path: Path,
    name: str,
    command: tuple[str, ...],
    trap: Callable[[Path], None],
) -> None:
    assert dpntk("release", "--eps", "1", "--delta", "1e-3", "-o", "honest.h5").code == 0
    synthetic_points(tmp_path / "synthetic", np.zeros((4, 64), np.float32), [0, 1, 0, 1])
    (tmp_path / "a.csv").write_text(people(9))
    (tmp_path / name).unlink(missing_ok=True)
    trap(tmp_path / name)
    outcome = dpntk(*command)
    refused(outcome, Path(name).name)
    assert "bug" not in outcome.stderr
    assert any(
        words in outcome.stderr
        for words in ("not a file", "not a regular file", "most that is read")
    )


@pytest.mark.parametrize("trap", TRAPS)
@pytest.mark.parametrize(
    "name",
    [
        "data.npz", "data.tar", "data.parquet", "data.csv", "data/y.npy",
        "data/train-images-idx3-ubyte", "data/train-images-idx3-ubyte.gz",
    ],
)  # fmt: skip
def test_data_are_files(
    dpntk: Command, tmp_path: Path, name: str, trap: Callable[[Path], None]
) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    if name.endswith("y.npy"):
        np.save(path.with_name("x.npy"), np.zeros((4, 8, 8), np.uint8))
    elif "idx3" in name:
        path.with_name("train-labels-idx1-ubyte").write_bytes(b"\0\0\x08\1\0\0\0\0")
    more: tuple[str, ...] = ()
    if name.endswith(".csv"):
        (tmp_path / "schema.toml").write_text(Draft(PEOPLE).to_toml())
        more = ("--schema", "schema.toml")
    trap(path)
    outcome = dpntk("embed", path if path.parent == tmp_path else path.parent, *more)
    refused(outcome, "data")
    assert "bug" not in outcome.stderr


@pytest.mark.parametrize("trap", [*TRAPS, a_large_hole])
def test_lists_of_signers_are_files(
    dpntk: Command, configuration: Path, tmp_path: Path, trap: Callable[[Path], None]
) -> None:
    assert dpntk("keygen", "-o", tmp_path / "theirs").code == 0
    configuration.mkdir(exist_ok=True)
    trap(configuration / "allowed_signers")
    refused(dpntk("trust", "list"), "allowed_signers")
    refused(dpntk("trust", "add", "them", "theirs.pub"), "allowed_signers")
