"""The bare speed of reading and decoding, for every kind of data.

The same records of MNIST's shape (and, for the last line, JPEG files of 256x256 pixels that are
resized to 32x32) are written in every form and read in batches as `dpntk embed` reads them, in a
separate process for each measurement. The files have just been written, so they come from the
system's cache: this is the cost of dpntk itself, and a disk can only be slower. Peak memory is
given for a tenth of the records and for all.

Run: python benchmarks/sources.py [RECORDS]
"""

from __future__ import annotations

import gzip
import io
import json
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from PIL import Image
from pyarrow import parquet
from rich.console import Console
from rich.table import Table

from dpntk.common.sources import open_source
from dpntk.common.sources.options import SourceOptions

SIDE, CLASSES = 28, 10
LARGE_SIDE, SMALL_SIDE = 256, 32
BATCH = 2048
SHARDS = 4
VARIETY = 1000
"""So many different images are drawn; writing them again and again is quicker."""

Images = NDArray[np.uint8]
Labels = NDArray[np.int64]


def draw(count: int) -> tuple[Images, Labels]:
    """Images about as dark as MNIST's."""
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (VARIETY, SIDE, SIDE), dtype=np.uint8)
    images[random.random(images.shape) < 0.8] = 0
    return images[np.arange(count) % VARIETY], random.integers(0, CLASSES, count)


def parts(images: Images, labels: Labels) -> Iterator[tuple[int, Images, Labels]]:
    """Shards of about equal size."""
    pairs = zip(np.array_split(images, SHARDS), np.array_split(labels, SHARDS), strict=True)
    for number, (part, part_labels) in enumerate(pairs):
        yield number, part, part_labels


def encoded(images: Images, kind: str = "PNG") -> list[bytes]:
    """All images as files; equal ones are encoded once."""
    contents = []
    for image in images[:VARIETY]:
        content = io.BytesIO()
        Image.fromarray(image).save(content, kind)
        contents.append(content.getvalue())
    return [contents[index % VARIETY] for index in range(len(images))]


def write_idx(folder: Path, images: Images, labels: Labels) -> Path:
    for number, part, part_labels in parts(images, labels):
        for what, array in (("images", part), ("labels", part_labels.astype(np.uint8))):
            sizes = struct.pack(f">{array.ndim}I", *array.shape)
            content = bytes((0, 0, 8, array.ndim)) + sizes + array.tobytes()
            (folder / f"train-{what}-idx{array.ndim}-ubyte.{number:05}").write_bytes(content)
    return folder


def write_idx_gz(folder: Path, images: Images, labels: Labels) -> Path:
    for file in list(write_idx(folder, images, labels).iterdir()):
        file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes(), 6))
        file.unlink()
    return folder


def write_npy(folder: Path, images: Images, labels: Labels) -> Path:
    np.save(folder / "x.npy", images)
    np.save(folder / "y.npy", labels)
    return folder


def write_npz(folder: Path, images: Images, labels: Labels) -> Path:
    np.savez(folder / "data.npz", x=images, y=labels)
    return folder / "data.npz"


def write_packed_npz(folder: Path, images: Images, labels: Labels) -> Path:
    np.savez_compressed(folder / "data.npz", x=images, y=labels)
    return folder / "data.npz"


def write_folder(folder: Path, images: Images, labels: Labels, kind: str = "PNG") -> Path:
    for label in range(CLASSES):
        (folder / str(label)).mkdir()
    contents = zip(encoded(images, kind), labels.tolist(), strict=True)
    for index, (content, label) in enumerate(contents):
        (folder / str(label) / f"{index:08}.{kind.lower()}").write_bytes(content)
    return folder


def write_parquet(folder: Path, images: Images, labels: Labels) -> Path:
    for number, part, part_labels in parts(images, labels):
        table = pa.table({"image": [{"bytes": c} for c in encoded(part)], "label": part_labels})
        parquet.write_table(table, folder / f"{number}.parquet", row_group_size=10_000)
    return folder


def write_parquet_lists(folder: Path, images: Images, labels: Labels) -> Path:
    for number, part, part_labels in parts(images, labels):
        lists = pa.FixedSizeListArray.from_arrays(pa.array(part.ravel()), SIDE * SIDE)
        table = pa.table({"image": lists, "label": part_labels})
        parquet.write_table(table, folder / f"{number}.parquet", row_group_size=10_000)
    return folder


def write_tar(folder: Path, images: Images, labels: Labels) -> Path:
    for number, part, part_labels in parts(images, labels):
        with tarfile.open(folder / f"{number}.tar", "w") as archive:
            contents = zip(encoded(part), part_labels.tolist(), strict=True)
            for index, (content, label) in enumerate(contents):
                for kind, member_content in (("png", content), ("cls", b"%d" % label)):
                    member = tarfile.TarInfo(f"{index:08}.{kind}")
                    member.size = len(member_content)
                    archive.addfile(member, io.BytesIO(member_content))
    return folder


def write_large_jpeg(folder: Path, images: Images, labels: Labels) -> Path:
    """A twentieth of the records, enlarged."""
    count = max(1, len(images) // 20)
    large = np.stack(
        [
            np.asarray(Image.fromarray(image).resize((LARGE_SIDE, LARGE_SIDE)))
            for image in images[: min(count, VARIETY)]
        ]
    )
    return write_folder(folder, large[np.arange(count) % len(large)], labels[:count], "JPEG")


Writer = Callable[[Path, Images, Labels], Path]
KINDS: dict[str, tuple[Writer, int | None]] = {
    "IDX shards": (write_idx, None),
    "IDX shards, gzipped": (write_idx_gz, None),
    ".npy files": (write_npy, None),
    ".npz": (write_npz, None),
    ".npz, compressed": (write_packed_npz, None),
    "class folders, PNG": (write_folder, None),
    "Parquet, PNG": (write_parquet, None),
    "Parquet, lists": (write_parquet_lists, None),
    "tar shards, PNG": (write_tar, None),
    "class folders, JPEG 256x256": (write_large_jpeg, SMALL_SIDE),
}


def measure(path: Path, image_size: int | None) -> dict[str, float]:
    """Read all records once: how many, seconds to open and to read, and peak memory in bytes."""
    began = time.perf_counter()
    source = open_source(path, SourceOptions(image_size=image_size, classes=CLASSES))
    opened = time.perf_counter()
    records = sum(len(batch.labels) for batch in source.batches(BATCH))
    read = time.perf_counter()
    assert records == len(source)
    status = Path("/proc/self/status").read_text()
    peak = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    return {
        "records": records,
        "open": opened - began,
        "read": read - opened,
        "peak": int(peak) * 1024,
    }


def measured(name: str, images: Images, labels: Labels) -> dict[str, float]:
    """Write one kind of data and measure it in a process of its own."""
    write, image_size = KINDS[name]
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), images, labels)
        files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
        command = [sys.executable, __file__, "--measure", str(path), str(image_size or 0)]
        finished = subprocess.run(command, check=True, stdout=subprocess.PIPE)  # noqa: S603
        return {**json.loads(finished.stdout), "bytes": sum(f.stat().st_size for f in files)}


def main(count: int) -> None:
    """Measure and print."""
    images, labels = draw(count)
    table = Table(title=f"{count:,} records of {SIDE}x{SIDE} pixels, in batches of {BATCH}")
    for column in (
        "kind", "records", "MB on disk", "seconds to open", "records per second",
        "peak MB, a tenth", "peak MB",
    ):  # fmt: skip
        table.add_column(column, justify="left" if column == "kind" else "right")
    for name in KINDS:
        few = measured(name, images[: count // 10], labels[: count // 10])
        many = measured(name, images, labels)
        table.add_row(
            name, f"{many['records']:,}", f"{many['bytes'] / 1e6:,.1f}", f"{many['open']:.2f}",
            f"{many['records'] / many['read']:,.0f}", f"{few['peak'] / 1e6:.0f}",
            f"{many['peak'] / 1e6:.0f}",
        )  # fmt: skip
    Console(width=120).print(table)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(Path(sys.argv[2]), int(sys.argv[3]) or None)))
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else 60_000)
