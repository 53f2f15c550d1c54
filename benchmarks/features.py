"""What each feature map costs, beside one plain forward and backward pass of the same network.

One run measures, on records of MNIST's shape, in turns so that a busy machine disturbs all alike:

- embedding: exact class sums in float64, as `dpntk embed` makes them, against a plain pass in
  float64;
- a step of stage three: the distance of a batch from a release and its gradient with respect to
  the records, in float32, against a plain pass in float32 (the generator's own cost apart).

A plain pass goes from the records through the front and the network to the gradients of the
network's weights; random Fourier features have none, so theirs is compared with the product of
records and frequencies alone.

Run: python benchmarks/features.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from dpntk.common.feature_map import FeatureMap
from dpntk.common.front import make_front
from dpntk.common.ntk import OneHiddenLayerNTK
from dpntk.common.rff import RandomFourierFeatures
from dpntk.embed.accumulate import ClassSums
from dpntk.embed.grid import DEFAULT_CAPACITY, Grid
from dpntk.embed.reference import network_of
from dpntk.generate.front import SmoothFront
from dpntk.generate.kernels import kernel_of

SIDE, CLASSES, LEVELS = 28, 10, 255
RECORDS, BATCH, TURNS = 2048, 400, 7
CPU = torch.device("cpu")


def maps() -> dict[str, FeatureMap]:
    """The maps to be measured, by name."""

    def tangent(front: str, width: int) -> OneHiddenLayerNTK:
        return OneHiddenLayerNTK.draw(
            make_front(front, SIDE), width=width, outputs=CLASSES, levels=LEVELS, seed=0
        )

    return {
        "fc_1l 800, pixels": tangent("pixels", 800),
        "fc_1l 400, scattering": tangent("scattering", 400),
        "rff 5000": RandomFourierFeatures.draw(
            SIDE**2, frequencies=5000, length_scale=10.25, levels=LEVELS, seed=0
        ),
    }


def plain_pass(feature_map: FeatureMap, records: Tensor) -> Callable[[], object]:
    """One forward and backward pass at the records' precision."""
    if isinstance(feature_map, RandomFourierFeatures):
        frequencies = torch.from_numpy(feature_map.turns).to(records.dtype).T.contiguous()
        return lambda: records @ frequencies
    assert isinstance(feature_map, OneHiddenLayerNTK)
    front = SmoothFront(feature_map.front, CPU, records.dtype)
    network = network_of(feature_map).to(records.dtype)

    def run() -> None:
        network.zero_grad()
        network(front(records[None])[0]).sum().backward()

    return run


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def medians(actions: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Median time of each, the actions taking turns; the first turn warms up."""
    spent: dict[str, list[float]] = {name: [] for name in actions}
    for turn in range(TURNS + 1):
        for name, action in actions.items():
            taken = seconds(action)
            if turn:
                spent[name].append(taken)
    return {name: statistics.median(times) for name, times in spent.items()}


def measure(feature_map: FeatureMap) -> tuple[float, float, float, float]:
    """Seconds for embedding, its plain pass, a step of stage three, and its plain pass."""
    random = np.random.default_rng(0)
    records = random.integers(0, 256, (RECORDS, SIDE**2), dtype=np.uint8)
    records[random.random(records.shape) < 0.8] = 0  # about as dark as MNIST
    labels = random.integers(0, CLASSES, RECORDS)
    sums = ClassSums(feature_map, CLASSES, Grid.for_capacity(LEVELS, DEFAULT_CAPACITY))
    chunk = min(sums.chunk_size, RECORDS)

    def embed() -> None:
        for start in range(0, RECORDS, chunk):
            sums.add(records[start : start + chunk], labels[start : start + chunk])

    values = torch.from_numpy(records).double() / LEVELS
    kernel = kernel_of(feature_map, CPU)
    matrix = torch.randn(CLASSES, feature_map.dimension)
    batch = values[:BATCH].float()

    def step() -> None:
        inputs = batch.view(CLASSES, -1, SIDE**2).clone().requires_grad_()
        features = kernel.features(inputs)
        (features.gram().sum() - 2 * features.inner(matrix).sum()).backward()

    times = medians(
        {
            "embed": embed,
            "plain": plain_pass(feature_map, values),
            "step": step,
            "plain step": plain_pass(feature_map, batch),
        }
    )
    return times["embed"], times["plain"], times["step"], times["plain step"]


def main() -> None:
    """Measure and print."""
    table = Table(title=f"{SIDE}x{SIDE}, {TURNS} turns, {torch.get_num_threads()} threads")
    for column in (
        "map", "dimension", "embedding, us a record", "times plain",
        f"step of {BATCH}, ms", "times plain",
    ):  # fmt: skip
        table.add_column(column, justify="right")
    for name, feature_map in maps().items():
        embed, plain, step, plain_step = measure(feature_map)
        table.add_row(
            name,
            f"{feature_map.dimension:,}",
            f"{embed / RECORDS * 1e6:.1f}",
            f"{embed / plain:.2f}",
            f"{step * 1e3:.1f}",
            f"{step / plain_step:.2f}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
