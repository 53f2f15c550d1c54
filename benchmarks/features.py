"""What each feature map costs, beside one plain forward and backward pass of the same network.

Each map is measured in a process of its own. The alternatives take turns, so that a busy machine
disturbs all alike:

- embedding: exact class sums in float64, as `dpntk embed` makes them, against a plain pass in
  float64 over the whole batch, against `vmap(grad)`, and against a loop of backward passes that
  adds each record's gradient to the sum of its class;
- a step of stage three: the distance of a batch from a release and its gradient with respect to
  the records, in float32, against a plain pass in float32 (without the generator's own cost).

Then follows what limits the embedding: the arithmetic of its products and convolutions for each
record, and the bytes that its operations read and write as if none were in a cache. Both are
compared with what this machine achieves in the same turns, by a product of square matrices in
float64 and by a copy of more than its caches hold. They are given as the share of the embedding's
time that they alone would have taken at that rate. The larger one is the limit; more than 100 % of
copying means that caches helped.

A plain pass goes from the records through the front and the network to the gradients of the
network's weights. Random Fourier features have no network, so theirs is the product of records and
frequencies alone. Widths are those of the DP-NTK paper's table 5.

Run: python benchmarks/features.py [--only NAME] [--device cuda]
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from dpntk.common.features.base import FeatureMap
from dpntk.common.features.ntk.architectures import layers_of
from dpntk.common.features.ntk.layers import Shape
from dpntk.common.features.ntk.map import TangentFeatures
from dpntk.common.features.ntk.scattering import Pixels, Scattering
from dpntk.common.features.rff import RandomFourierFeatures
from dpntk.embed.exact.grid import DEFAULT_CAPACITY, Grid
from dpntk.embed.exact.reference import features, features_one_by_one, network_of
from dpntk.embed.sums.accumulate import ClassSums
from dpntk.generate.kernels.registry import kernel_of
from dpntk.generate.kernels.scattering import SmoothFront

CLASSES, LEVELS, TURNS = 10, 255, 5
MNIST: Shape = (1, 28, 28)
CIFAR: Shape = (3, 32, 32)
ADULT: Shape = (1, 108)
TABLE: dict[str, tuple[str, tuple[int, ...], Shape, int, int]] = {
    # arch, widths, shape, records to embed, records of a step
    "fc_1l 800": ("fc_1l", (800,), MNIST, 2048, 400),
    "fc_2l 3000_200": ("fc_2l", (3000, 200), CIFAR, 2048, 400),
    "cnn_1l 32": ("cnn_1l", (32,), MNIST, 512, 200),
    "cnn_2l 32_256": ("cnn_2l", (32, 256), CIFAR, 32, 20),
    "cnn_2l 30_200, vectors": ("cnn_2l", (30, 200), ADULT, 2048, 400),
}
OTHERS = ("fc_1l 400, scattering", "rff 5000")
SIDE = 28
SQUARE = 1536
"""Rows and columns of the matrices whose product is the machine's arithmetic."""
COPIED = 2**24
"""Numbers in float64 whose copy is the machine's memory."""


NOTHING = {torch.ops.aten.empty, torch.ops.aten.detach}
LOOKUPS = {torch.ops.aten.index, torch.ops.aten.index_select}


@dataclass(frozen=True)
class Figures:
    """Seconds, and the process's largest memory in GiB.

    `vmap` and `loop` are for a record each; None where there is no network. `arithmetic` and
    `moved` are of the embedding, in operations and bytes for a record; `product` and `copying` are
    what the machine does, in operations and bytes a second.
    """

    dimension: int
    records: int
    embed: float
    plain: float
    vmap: float | None
    loop: float | None
    batch: int
    step: float
    plain_step: float
    memory: float
    arithmetic: float
    moved: float
    product: float
    copying: float


class Work(TorchDispatchMode):
    """Counts what operations compute, and what they read and write.

    Attributes:
        arithmetic: floating-point operations of products and convolutions.
        moved: bytes.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.arithmetic = 0
        self.moved = 0

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        given = kwargs or {}
        made = func(*args, **given)
        if func.is_view or func.overloadpacket in NOTHING:
            return made
        if (count := flop_registry.get(func.overloadpacket)) is not None:
            self.arithmetic += count(*args, **given, out_val=made)
        read, written = ([each for each in tree_leaves(of) if isinstance(each, Tensor)]
                         for of in ((args, given), made))  # fmt: skip
        size = sum(each.nbytes for each in written)
        # Of a table no more is read than is taken.
        most = size if func.overloadpacket in LOOKUPS else float("inf")
        self.moved += size + int(sum(min(each.nbytes, most) for each in read))
        return made


def draw(name: str) -> tuple[FeatureMap, int, int]:
    """A map, how many records to embed, and how many a step has."""
    if name == "rff 5000":
        drawn: FeatureMap = RandomFourierFeatures.draw(
            SIDE**2, frequencies=5000, length_scale=10.25, levels=LEVELS, seed=0
        )
        return drawn, 2048, 400
    if name == "fc_1l 400, scattering":
        front = Scattering.standard(SIDE)
        layers = layers_of("fc_1l", (400,), (front.outputs,), "relu")
        drawn = TangentFeatures.draw(front, layers, outputs=CLASSES, levels=LEVELS, seed=0)
        return drawn, 2048, 400
    arch, widths, shape, records, batch = TABLE[name]
    front_ = Pixels(int(np.prod(shape)))
    if arch.startswith("fc"):
        shape = (front_.outputs,)
    drawn = TangentFeatures.draw(
        front_,
        layers_of(arch, widths, shape, "relu"),
        outputs=CLASSES,
        levels=LEVELS,
        seed=0,
        shape=shape,
    )
    return drawn, records, batch


def plain_pass(feature_map: FeatureMap, records: Tensor) -> Callable[[], object]:
    """One forward and backward pass at the records' precision."""
    if isinstance(feature_map, RandomFourierFeatures):
        frequencies = torch.from_numpy(feature_map.turns).to(records).T.contiguous()
        return lambda: records @ frequencies
    assert isinstance(feature_map, TangentFeatures)
    front = SmoothFront(feature_map.front, records.device, records.dtype)
    network = network_of(feature_map).to(records)

    def run() -> None:
        network.zero_grad()
        network(front(records[None])[0]).sum().backward()

    return run


def medians(actions: dict[str, Callable[[], object]], device: torch.device) -> dict[str, float]:
    """Median time of each, the actions taking turns; the first turn warms up."""
    spent: dict[str, list[float]] = {name: [] for name in actions}
    for turn in range(TURNS + 1):
        for name, action in actions.items():
            start = time.perf_counter()
            action()
            if device.type == "cuda":
                torch.cuda.synchronize()
            if turn:
                spent[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in spent.items()}


def measure(name: str, device: torch.device) -> Figures:
    """Measure one map."""
    feature_map, count, batch = draw(name)
    random = np.random.default_rng(0)
    records = random.integers(0, 256, (count, feature_map.record_size), dtype=np.uint8)
    records[random.random(records.shape) < 0.8] = 0  # about as dark as MNIST
    labels = random.integers(0, CLASSES, count)
    sums = ClassSums(feature_map, CLASSES, Grid.for_capacity(LEVELS, DEFAULT_CAPACITY), device)
    chunk = min(sums.chunk_size, count)

    def embed() -> None:
        for start in range(0, count, chunk):
            sums.add(records[start : start + chunk], labels[start : start + chunk])

    values = torch.from_numpy(records).to(device, torch.float64) / LEVELS
    kernel = kernel_of(feature_map, device)
    matrix = torch.randn(CLASSES, feature_map.dimension, device=device)
    some = values[:batch].float()

    def step() -> None:
        inputs = some.view(CLASSES, -1, feature_map.record_size).clone().requires_grad_()
        found = kernel.features(inputs)
        (found.gram().sum() - 2 * found.inner(matrix).sum()).backward()

    square = torch.randn(SQUARE, SQUARE, dtype=torch.float64, device=device)
    source = torch.randn(COPIED, dtype=torch.float64, device=device)
    target = torch.empty_like(source)
    times = medians(
        {
            "product": lambda: square @ square,
            "copying": lambda: target.copy_(source),
            "embed": embed,
            "plain": plain_pass(feature_map, values),
            "step": step,
            "plain step": plain_pass(feature_map, some),
        },
        device,
    )
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    with Work() as work:
        embed()
    slow = slower_ways(feature_map, values, labels)
    return Figures(
        feature_map.dimension,
        count,
        times["embed"],
        times["plain"],
        slow.get("vmap"),
        slow.get("loop"),
        batch,
        times["step"],
        times["plain step"],
        memory,
        work.arithmetic / count,
        work.moved / count,
        2 * SQUARE**3 / times["product"],
        2 * source.nbytes / times["copying"],
    )


def slower_ways(
    feature_map: FeatureMap, values: Tensor, labels: NDArray[np.int64]
) -> dict[str, float]:
    """Seconds for a record by `vmap(grad)` and by a loop; nothing where there is no network.

    Args:
        feature_map: any.
        values: records, as values 0..1, float64 (n, record_size); a few are taken.
        labels: of the records (n,).
    """
    if not isinstance(feature_map, TangentFeatures):
        return {}
    few = 4
    with torch.no_grad():
        front = SmoothFront(feature_map.front, values.device, torch.float64)
        inputs = front(values[None, :few])[0].cpu()

    def one_by_one() -> None:
        total = torch.zeros(CLASSES, feature_map.dimension, dtype=torch.float64)
        found = features_one_by_one(feature_map, inputs)
        for label, phi in zip(labels.tolist(), found, strict=False):
            total[label] += phi

    ways: dict[str, Callable[[], object]] = {
        "vmap": lambda: features(feature_map, inputs),
        "loop": one_by_one,
    }
    spent = medians(ways, torch.device("cpu"))
    return {kind: taken / few for kind, taken in spent.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=[*TABLE, *OTHERS])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", action="store_true", help="print figures and nothing else")
    chosen = parser.parse_args()
    if chosen.json:
        sys.stdout.write(json.dumps(asdict(measure(chosen.only, torch.device(chosen.device)))))
        return
    table = Table(title=f"{TURNS} turns, {torch.get_num_threads()} threads, {chosen.device}")
    for column in (
        "map", "dimension", "embedding, us a record", "times plain", "vmap(grad) is slower",
        "loop is slower", "step, ms", "times plain", "memory, GiB",
    ):  # fmt: skip
        table.add_column(column, justify="right")
    bounds = Table(title="what bounds the embedding")
    for column in (
        "map", "MFLOP a record", "GFLOP/s", "product's", "of the time",
        "KB a record", "GB/s", "copying's", "of the time",
    ):  # fmt: skip
        bounds.add_column(column, justify="right")
    for name in [chosen.only] if chosen.only else [*TABLE, *OTHERS]:
        command = [sys.executable, str(Path(__file__)), "--json", "--only", name]
        done = subprocess.run(  # noqa: S603
            [*command, "--device", chosen.device], check=True, capture_output=True, text=True
        )
        found = Figures(**json.loads(done.stdout))
        each = found.embed / found.records
        table.add_row(
            name,
            f"{found.dimension:,}",
            f"{each * 1e6:.1f}",
            f"{found.embed / found.plain:.2f}",
            f"{found.vmap / each:.0f} x" if found.vmap else "",
            f"{found.loop / each:.0f} x" if found.loop else "",
            f"{found.step * 1e3:.1f}",
            f"{found.step / found.plain_step:.2f}",
            f"{found.memory:.2f}",
        )
        bounds.add_row(
            name,
            f"{found.arithmetic / 1e6:.2f}",
            f"{found.arithmetic / each / 1e9:.1f}",
            f"{found.product / 1e9:.1f}",
            f"{found.arithmetic / each / found.product:.0%}",
            f"{found.moved / 1e3:,.0f}",
            f"{found.moved / each / 1e9:.1f}",
            f"{found.copying / 1e9:.1f}",
            f"{found.moved / each / found.copying:.0%}",
        )
    Console(width=160).print(table)
    Console(width=160).print(bounds)


if __name__ == "__main__":
    main()
