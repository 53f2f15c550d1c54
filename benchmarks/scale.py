"""What size costs: processes, memory, reading and checkpoints.

- Two processes against one, one thread each, on 60,000 images of 28x28 pixels: MNIST if a folder
  with it is given, random ones if not. The clock runs from when all processes are loaded to when
  the file is written; the whole commands under torchrun, including loading, are timed beside it.
- Peak memory and speed for 10^4, 10^5 and 10^6 random images, and what checkpoints cost.
- How fast the same records are read and decoded if nothing is computed.

Each measurement has its own processes. Those that are compared take turns, and the best counts,
because others may be using the machine.

Run: python benchmarks/scale.py [FOLDER WITH MNIST] [--turns 3] [--largest 1000000]
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing.synchronize import Barrier
from pathlib import Path

import click
import numpy as np
from PIL import Image
from rich.console import Console
from rich.table import Table

from dpntk.common.runtime.ranks import Ranks
from dpntk.common.runtime.threads import use_threads
from dpntk.common.sources import open_source
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import embed, save_embedding
from dpntk.embed.run import worker as counting
from dpntk.embed.run.checkpoint import Progress, save_progress
from dpntk.embed.run.work_folder import NothingLeft, WorkFolder

SIDE, CLASSES = 28, 10
MNIST_SIZE = 60_000
PNG_FILES = 10_000
CHUNK = 1024
BIN = Path(sys.executable).parent
console = Console()


@dataclass(frozen=True)
class Measured:
    """One process's pass.

    Attributes:
        seconds: from when all processes were loaded to this one's end.
        processor: seconds of processor time in these; what `seconds` would be if nobody else used
            the machine.
        in_checkpoints: seconds of these in which checkpoints were written.
        checkpoints: how many.
        peak: largest resident memory, bytes.
    """

    seconds: float
    processor: float
    in_checkpoints: float
    checkpoints: int
    peak: int


def one_pass(
    data: Path, output: Path, ranks: Ranks, ready: Barrier, interval: float | None
) -> Measured:
    """Embed as the command does, in this process, with one thread."""
    use_threads(1)
    costs: list[float] = []

    def timed(progress: Progress, path: Path, run: str) -> None:
        start = time.perf_counter()
        save_progress(progress, path, run)
        if path.suffix == ".checkpoint":
            costs.append(time.perf_counter() - start)

    counting.__dict__["save_progress"] = timed
    ready.wait()
    start, began = time.perf_counter(), time.process_time()
    with WorkFolder(output, ranks, interval=interval) as work:
        try:
            made = embed(
                data,
                source=SourceOptions(classes=CLASSES),
                carry_out=work.carry_out,
            )
        except NothingLeft:
            pass
        else:
            save_embedding(made, output)
            work.remove()
    seconds, processor = time.perf_counter() - start, time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Measured(seconds, processor, sum(costs), len(costs), peak)


def in_processes(
    data: Path, output: Path, count: int, interval: float | None = None
) -> list[Measured]:
    """Embed with some processes, each fresh, that begin together."""
    context = multiprocessing.get_context("spawn")
    output.unlink(missing_ok=True)
    with context.Manager() as manager, context.Pool(count) as pool:
        ready = manager.Barrier(count)
        ranks = [Ranks(rank, count, rank, count) for rank in range(count)]
        tasks = [(data, output, rank, ready, interval) for rank in ranks]
        return pool.starmap(one_pass, tasks, chunksize=1)


def under_torchrun(data: Path, output: Path, count: int) -> float:
    """Seconds that the whole command takes."""
    output.unlink(missing_ok=True)
    many = ["--standalone", "--nproc-per-node", str(count), "--no-python"]
    launch: list[str | Path] = [BIN / "torchrun", *many] if count > 1 else []
    options = ["--classes", str(CLASSES), "--threads", "1"]
    command = [*launch, BIN / "dpntk", "embed", data, "-o", output, *options]
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603
    return time.perf_counter() - start


def write_idx(folder: Path, count: int) -> Path:
    """Random images about as dark as MNIST's, in IDX files, a piece at a time."""
    folder.mkdir()
    random = np.random.default_rng(0)
    with (folder / "train-images-idx3-ubyte").open("wb") as file:
        file.write(struct.pack(">4B3I", 0, 0, 8, 3, count, SIDE, SIDE))
        for first in range(0, count, 10_000):
            size = (min(10_000, count - first), SIDE, SIDE)
            images = random.integers(0, 256, size, dtype=np.uint8)
            images[random.random(size, dtype=np.float32) < 0.8] = 0
            file.write(images.tobytes())
    labels = random.integers(0, CLASSES, count, dtype=np.uint8)
    header = struct.pack(">4B1I", 0, 0, 8, 1, count)
    (folder / "train-labels-idx1-ubyte").write_bytes(header + labels.tobytes())
    return folder


def write_pngs(folder: Path, idx: Path) -> Path:
    """The first records of an IDX data set as PNG files."""
    batch = next(open_source(idx, SourceOptions(classes=CLASSES)).batches(PNG_FILES))
    for index, (record, label) in enumerate(zip(batch.records, batch.labels.tolist(), strict=True)):
        part = folder / str(label)
        part.mkdir(parents=True, exist_ok=True)
        Image.fromarray(record.reshape(SIDE, SIDE)).save(part / f"{index:06}.png")
    return folder


def write_npz(path: Path, idx: Path) -> Path:
    """An IDX data set as an archive."""
    source = open_source(idx, SourceOptions(classes=CLASSES))
    batch = next(source.batches(len(source)))
    np.savez(path, x=batch.records.reshape(-1, SIDE, SIDE), y=batch.labels)
    return path


def read_only(data: Path) -> float:
    """Seconds to read and decode all records."""
    source = open_source(data, SourceOptions(classes=CLASSES))
    start = time.perf_counter()
    for _ in source.batches(CHUNK):
        pass
    return time.perf_counter() - start


def best(measure: Callable[[], float], turns: int) -> float:
    return min(measure() for _ in range(turns))


def processes(data: Path, room: Path, turns: int) -> None:
    """Two against one."""
    passes: dict[int, list[float]] = {1: [], 2: []}
    processor: dict[int, list[float]] = {1: [], 2: []}
    commands: dict[int, list[float]] = {1: [], 2: []}
    files = set()
    for _ in range(turns):
        for count in (1, 2):
            output = room / f"by-{count}.h5"
            measured = in_processes(data, output, count)
            passes[count].append(max(m.seconds for m in measured))
            processor[count].append(max(m.processor for m in measured))
            files.add(output.read_bytes())
            commands[count].append(under_torchrun(data, output, count))
            files.add(output.read_bytes())
    table = Table(title=f"two processes against one, one thread each, best of {turns}")
    for column in ("", "one, s", "two, s", "speed-up"):
        table.add_column(column, justify="right")
    for name, seconds in (
        ("the pass", passes),
        ("the pass, processor time of the slower", processor),
        ("the command, loading included", commands),
    ):
        one, two = min(seconds[1]), min(seconds[2])
        table.add_row(name, f"{one:.1f}", f"{two:.1f}", f"{one / two:.2f}")
    console.print(table)
    console.print(f"all {4 * turns} files equal to the last bit: {len(files) == 1}")


def sizes(room: Path, largest: int) -> None:
    """Memory, speed and checkpoints as the data grow."""
    table = Table(title="default feature map, one process, one thread")
    for column in ("records", "peak MB", "seconds", "records/s", "checkpoints", "their share"):
        table.add_column(column, justify="right")
    for count in (10_000, 100_000, 1_000_000):
        if count > largest:
            continue
        data = write_idx(room / f"idx-{count}", count)
        # The smallest takes a second: let it write a checkpoint too, so that like is compared.
        interval = 0.5 if count == 10_000 else None
        (measured,) = in_processes(data, room / "size.h5", 1, interval)
        table.add_row(
            f"{count:,}",
            f"{measured.peak / 1e6:,.0f}",
            f"{measured.seconds:.1f}",
            f"{count / measured.seconds:,.0f}",
            str(measured.checkpoints),
            f"{measured.in_checkpoints / measured.seconds:.2%}",
        )
    console.print(table)


def reading(data: Path, room: Path, turns: int) -> None:
    """Embedding against reading and decoding alone."""
    table = Table(title="records/s, default feature map, one thread")
    for column in ("source", "read and decoded", "embedded", "share of the time spent reading"):
        table.add_column(column, justify="right")
    for name, path in (
        ("IDX, as given", data),
        (".npz", write_npz(room / "data.npz", data)),
        ("PNG files", write_pngs(room / "png", data)),
    ):
        count = len(open_source(path, SourceOptions(classes=CLASSES)))
        read = best(partial(read_only, path), turns)
        (measured,) = in_processes(path, room / "reading.h5", 1)
        table.add_row(
            name,
            f"{count / read:,.0f}",
            f"{count / measured.seconds:,.0f}",
            f"{read / measured.seconds:.1%}",
        )
    console.print(table)


@click.command()
@click.argument("mnist", required=False, type=click.Path(path_type=Path, exists=True))
@click.option("--turns", default=3, show_default=True)
@click.option("--largest", default=1_000_000, show_default=True)
def main(mnist: Path | None, turns: int, largest: int) -> None:
    """Measure and print."""
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        room = Path(folder)
        data = mnist or write_idx(room / "idx", MNIST_SIZE)
        processes(data, room, turns)
        reading(data, room, turns)
        sizes(room, largest)


if __name__ == "__main__":
    main()
