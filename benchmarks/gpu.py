"""What a GPU gains: embedding, stage three and a whole run, in at most eight minutes.

- Embedding: exact class sums in records a second, from records in memory to sums on the GPU,
  beside one plain forward and backward pass of the same network at the same precision (records
  already on the GPU) and beside copying the records to it.
- Stage three: seconds for a step of training, with 400 and with 5,000 records.
- A whole run on the images in a folder, with default settings, if one is given.
- Peak memory of the device; on a processor, of the process.

Passes are cut off after some seconds, so that slow devices are measured on fewer records.

Run: python benchmarks/gpu.py [FOLDER] [--device cpu] [--quick] [--json FILE]
"""

from __future__ import annotations

import itertools
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Final

import click
import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from dpntk.common.errors import DpntkError
from dpntk.common.features.ntk.architectures import layers_of
from dpntk.common.features.ntk.map import TangentFeatures
from dpntk.common.features.ntk.scattering import Pixels
from dpntk.common.runtime.device import choose_device
from dpntk.common.runtime.uploads import Uploads
from dpntk.embed import TangentOptions, embed, save_embedding
from dpntk.embed.exact.grid import DEFAULT_CAPACITY, Grid
from dpntk.embed.sums.accumulate import ClassSums
from dpntk.generate import generate
from dpntk.generate.fit.settings import TrainingSettings
from dpntk.generate.images.training import train
from dpntk.release import PrivacyParameters, release
from dpntk.release.publishing.pipeline import unrecorded_release

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, it sees its folder alone
from benchmarks.features import CLASSES, LEVELS, draw, plain_pass

COLOUR: Final = "fc_1l 400, colour"
MAPS: Final = ("fc_1l 400, scattering", "fc_1l 800", "fc_2l 3000_200", COLOUR)
BATCHES: Final = (400, 5000)
HELD: Final = 40_000
"""Different records; a pass over more takes them again and again."""
EPSILON, DELTA = 1.0, 1e-5


@dataclass(frozen=True)
class Rates:
    """Records a second.

    Attributes:
        map: what they are embedded by.
        embedding: for each number of records to embed.
        plain: of a plain forward and backward pass.
        copying: to the device; None on a processor, which has records already.
        peak: memory in GiB.
    """

    map: str
    embedding: dict[int, float]
    plain: float
    copying: float | None
    peak: float


def of_name(name: str) -> TangentFeatures:
    """The map of that name."""
    if name == COLOUR:
        size = 3 * 32 * 32
        drawn: object = TangentFeatures.draw(
            Pixels(size), layers_of("fc_1l", (400,), (size,), "relu"),
            outputs=CLASSES, levels=LEVELS, seed=0,
        )  # fmt: skip
    else:
        drawn, *_ = draw(name)
    assert isinstance(drawn, TangentFeatures)
    return drawn


class Device:
    """Where to measure, and for how long at the most."""

    def __init__(self, device: torch.device, seconds: float) -> None:
        self.device = device
        self.seconds = seconds

    def finish(self) -> None:
        """Wait for all that it was given to do."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def rate(
        self,
        action: Callable[[], int],
        most: int | None = None,
        warm_up: Callable[[], object] | None = None,
    ) -> float:
        """Records a second of something that is done again and again, and says of how many."""
        (warm_up or action)()
        self.finish()
        start, done = time.perf_counter(), 0
        while time.perf_counter() - start < self.seconds and (most is None or done < most):
            done += action()
        self.finish()
        return done / (time.perf_counter() - start)

    def peak(self) -> float:
        """Memory in GiB since the last time."""
        if self.device.type != "cuda":
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        most = torch.cuda.max_memory_allocated(self.device) / 2**30
        torch.cuda.reset_peak_memory_stats(self.device)
        return most


def chunks(records: NDArray[np.uint8], size: int) -> Iterator[NDArray[np.uint8]]:
    """Records, from the front again when all were there."""
    return itertools.cycle([records[at : at + size] for at in range(0, len(records), size)])


def rates_of(name: str, on: Device, counts: tuple[int, ...]) -> Rates:
    """Measure a map."""
    feature_map = of_name(name)
    random = np.random.default_rng(0)
    held = min(HELD, max(counts))
    records = random.integers(0, 256, (held, feature_map.record_size), dtype=np.uint8)
    records[random.integers(0, 5, records.shape, dtype=np.uint8) > 0] = 0  # as dark as MNIST
    grid = Grid.for_capacity(LEVELS, DEFAULT_CAPACITY)
    size = min(ClassSums(feature_map, CLASSES, grid, on.device).chunk_size, held)
    labels = random.integers(0, CLASSES, size)
    embedding = {}
    for count in counts:
        some = chunks(records, size)

        def add(sums: ClassSums, some: Iterator[NDArray[np.uint8]] = some) -> int:
            chunk = next(some)
            sums.add(chunk, labels[: len(chunk)])
            return len(chunk)

        # Not the same sums: all together may be more than they hold.
        first, sums = (ClassSums(feature_map, CLASSES, grid, on.device) for _ in range(2))
        embedding[count] = on.rate(partial(add, sums), count, partial(add, first))
    peak = on.peak()
    values = torch.from_numpy(records[:size]).to(on.device, torch.float64) / LEVELS
    run, upload, some = plain_pass(feature_map, values), Uploads(on.device), chunks(records, size)

    def plain() -> int:
        run()
        return size

    def copy() -> int:
        return len(upload(next(some))[0])

    copying = None if on.device.type == "cpu" else on.rate(copy, max(counts))
    return Rates(name, embedding, on.rate(plain), copying, peak)


def step_of(batch: int, on: Device, steps: int) -> float:
    """Seconds for a step of training: of so many more steps, what they take longer.

    Of the features that many records have by default, though these are few.
    """
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (2000, 28, 28), dtype=np.uint8)
    made = unrecorded_release(
        embed((images, random.integers(0, CLASSES, 2000)), TangentOptions(pixels=0.0)),
        PrivacyParameters(EPSILON, DELTA),
    )

    def seconds(count: int) -> float:
        start = time.perf_counter()
        train(made, TrainingSettings(steps=count, batch=batch), device=str(on.device))
        on.finish()
        return time.perf_counter() - start

    seconds(1)
    few, many = (min(seconds(count), seconds(count)) for count in (1, 1 + steps))
    return max(0.0, many - few) / steps


def whole_run(folder: Path, on: Device) -> dict[str, float]:
    """Seconds of each stage, with default settings."""
    taken = {}

    def stage(name: str, action: Callable[[], object]) -> None:
        start = time.perf_counter()
        action()
        taken[name] = time.perf_counter() - start

    with tempfile.TemporaryDirectory() as made:
        sums, out = Path(made, "embedding.h5"), Path(made, "release.h5")
        device = str(on.device)
        stage("embed", lambda: save_embedding(embed(folder, device=device), sums))
        stage("release", lambda: release(sums, out, PrivacyParameters(EPSILON, DELTA)))
        stage("generate", lambda: generate(out, Path(made, "synthetic"), device=device))
    return taken


@click.command(help=__doc__.splitlines()[0])
@click.argument("folder", type=click.Path(path_type=Path), required=False)
@click.option("--device", default="cuda", show_default=True)
@click.option("--quick", is_flag=True, help="A few records and steps: whether it runs at all.")
@click.option("--json", "output", type=click.Path(path_type=Path), default="gpu.json")
def main(folder: Path | None, device: str, quick: bool, output: Path) -> None:
    """Measure, print a table, and write the figures."""
    console = Console(width=120)
    try:
        on = Device(choose_device(device), 0.2 if quick else 12.0)
    except DpntkError:
        console.print(
            f"gpu: nothing was measured: torch {torch.__version__} finds no device "
            f"'{device}' here (--device cpu measures the processor)"
        )
        return
    what = torch.cuda.get_device_name(on.device) if on.device.type == "cuda" else "processor"
    counts = (2000,) if quick else (60_000, 1_000_000)
    table = Table(title=f"{what}, torch {torch.__version__}, {torch.get_num_threads()} threads")
    for column in ("map", *(f"of {count:,}" for count in counts)):
        table.add_column(column, justify="right")
    for column in ("plain pass", "of it", "copying", "peak, GiB"):
        table.add_column(column, justify="right")
    rates = []
    for name in MAPS:
        found = rates_of(name, on, counts)
        rates.append(asdict(found))
        best = max(found.embedding.values())
        each = [f"{rate:,.0f}" for rate in found.embedding.values()]
        share, peak = f"{best / found.plain:.0%}", f"{found.peak:.2f}"
        copying = "" if found.copying is None else f"{found.copying:,.0f}"
        table.add_row(name, *each, f"{found.plain:,.0f}", share, copying, peak)
    console.print(table)
    many = 10 if on.device.type == "cpu" else 100  # so that they take longer than what is before
    steps = {batch: step_of(batch, on, 2 if quick else many) for batch in BATCHES[: 2 - quick]}
    for batch, seconds in steps.items():
        console.print(f"a step of stage three with {batch:,} records: {seconds * 1e3:.1f} ms")
    run = {} if folder is None else whole_run(folder, on)
    if run:
        console.print(", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in run.items()))
    else:
        console.print("no folder with images was given: no whole run")
    figures = {"device": what, "rates": rates, "steps": steps, "run": run, "peak": on.peak()}
    output.write_text(json.dumps(figures, indent=2) + "\n")
    console.print(f"figures: {output}")


if __name__ == "__main__":
    main()
