"""What the exact embedding costs, beside what it replaces.

One run measures, at the same (double) precision, on records of MNIST's shape and a network of
width 800, in turns so that a busy machine disturbs all alike:

- the closed form in exact integers, as `dpntk embed` uses it;
- `torch.func.vmap(grad)`, which makes a gradient of d = 628,801 numbers for every record;
- a loop of `torch.autograd.grad`, one record at a time;
- one plain forward and backward pass of the same network, the least that any method could cost.

Run: python benchmarks/embed.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from torch import Tensor

from dpntk.common.architectures import fc_1l
from dpntk.common.front import Pixels
from dpntk.common.ntk import TangentFeatures
from dpntk.embed.accumulate import ClassSums
from dpntk.embed.grid import DEFAULT_CAPACITY, Grid
from dpntk.embed.reference import features, features_one_by_one, network_of

SIDE, WIDTH, CLASSES = 28, 800, 10
RECORDS = 4096
ORACLE_RECORDS = 128
VMAP_BATCH = 32
TURNS = 5


def by_vmap(feature_map: TangentFeatures, records: Tensor, labels: Tensor) -> Tensor:
    """Class sums (d, c) by per-record gradients of a batch at a time."""
    sums = torch.zeros(feature_map.dimension, CLASSES, dtype=torch.float64)
    for part, part_labels in zip(records.split(VMAP_BATCH), labels.split(VMAP_BATCH), strict=True):
        one_hot = torch.nn.functional.one_hot(part_labels, CLASSES).double()
        sums.addmm_(features(feature_map, part).T, one_hot)
    return sums


def by_loop(
    feature_map: TangentFeatures, records: Tensor, labels: Tensor, *, rows: bool = False
) -> Tensor:
    """Class sums (d, c) by one backward pass for each record.

    The published code adds each feature to a column of the d x c matrix. With `rows` the sums lie
    class by class in memory, which spares the loop most of its memory traffic.
    """
    shape = (CLASSES, feature_map.dimension) if rows else (feature_map.dimension, CLASSES)
    sums = torch.zeros(shape, dtype=torch.float64)
    for feature, label in zip(
        features_one_by_one(feature_map, records), labels.tolist(), strict=True
    ):
        sums[(label,) if rows else (slice(None), label)] += feature
    return sums.T if rows else sums


def plain_pass(network: torch.nn.Module, records: NDArray[np.uint8]) -> None:
    """One forward and backward pass, from the same bytes as the closed form begins with."""
    network.zero_grad()
    network(torch.from_numpy(records).double() / 255).sum().backward()


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    random = np.random.default_rng(0)
    records = random.integers(0, 256, (RECORDS, SIDE * SIDE), dtype=np.uint8)
    records[random.random(records.shape) < 0.8] = 0  # about as dark as MNIST
    labels = random.integers(0, CLASSES, RECORDS)
    feature_map = TangentFeatures.draw(
        Pixels(SIDE * SIDE), fc_1l(WIDTH), outputs=CLASSES, levels=255, seed=0
    )
    grid = Grid.for_capacity(255, DEFAULT_CAPACITY)
    network = network_of(feature_map)
    few, few_labels = records[:ORACLE_RECORDS], labels[:ORACLE_RECORDS]
    values, targets = torch.from_numpy(few).double() / 255, torch.from_numpy(few_labels)

    exact = ClassSums(feature_map, CLASSES, grid)
    exact.add(few, few_labels)
    oracle = by_vmap(feature_map, values, targets).numpy()
    difference = float(np.abs(exact.sums * grid.unit - oracle).max()) / ORACLE_RECORDS

    sink = ClassSums(feature_map, CLASSES, grid)
    actions: dict[str, tuple[Callable[[], object], int]] = {
        "exact closed form": (lambda: sink.add(records, labels), RECORDS),
        "plain forward and backward": (lambda: plain_pass(network, records), RECORDS),
        "vmap(grad)": (lambda: by_vmap(feature_map, values, targets), ORACLE_RECORDS),
        "loop of autograd.grad": (
            lambda: by_loop(feature_map, values, targets), ORACLE_RECORDS,
        ),
        "the same, sums class by class": (
            lambda: by_loop(feature_map, values, targets, rows=True), ORACLE_RECORDS,
        ),
    }  # fmt: skip
    spent: dict[str, list[float]] = {name: [] for name in actions}
    for turn in range(TURNS + 1):
        for name, (action, count) in actions.items():
            taken = seconds(action) / count
            if turn:  # the first turn warms up
                spent[name].append(taken)

    closed = spent["exact closed form"]
    table = Table(title=f"one record of {SIDE}x{SIDE}, width {WIDTH}, float64, {TURNS} turns")
    for column in ("method", "microseconds a record", "times the closed form (median of turns)"):
        table.add_column(column)
    for name, times in spent.items():
        ratio = statistics.median(t / c for t, c in zip(times, closed, strict=True))
        table.add_row(name, f"{statistics.median(times) * 1e6:.1f}", f"{ratio:.2f}")
    console = Console()
    console.print(table)
    plain = statistics.median(
        c / p for c, p in zip(closed, spent["plain forward and backward"], strict=True)
    )
    console.print(f"the closed form takes {plain:.2f} times the plain pass")
    console.print(f"largest difference of a mean embedding from vmap(grad): {difference:.1e}")


if __name__ == "__main__":
    main()
