"""Everybody's protocol: how useful images are by DPImageBench (Gong et al., arXiv 2503.14681).

- Sensitive are 55,000 of the 60,000 training images, the first part of torch's `random_split` with
  seed 0; delta is 1 / (n ln n). Of them 60,000 images are made with the default settings, by way of
  the files that users have.
- 55,000 of these, in an order by seed 0, train ResNet-110, WRN-40-4 (dropout .3) and ResNeXt-29 (8
  groups, 4 times as wide) for 50 epochs: values 2 x - 1, batches of 256, Adam with .01, times .2
  every 20 epochs. Scored is the average of their weights (.9999, less in the first steps).
- Of the epochs the one is taken that tells the other 5,000 training images apart best. These are
  real images as they are, so the choice is outside of any guarantee. The published rows were chosen
  so, with next to no noise if any, and that is why this table stands apart from all others here:
  whoever has a release alone cannot choose so.
- The figure is the mean of the three on the 10,000 test images.

The published row of DP-NTK (quoted in the table) embeds a single batch of records: the loop over
them in that benchmark's code ends after the first. Rows of DP-SGD (DP-GAN, DPDM, DP-FETA, FETA-Pro)
are for adding or removing a record; ours are for exchanging one unless --adjacency says otherwise,
which asks for more noise.

This needs a CUDA device. With --small the same is done with a small CNN and 5 epochs, times .2
every 2, on a processor; that is another figure, to compare ours with ours. Finished networks are
kept in benchmarks/results/dpimagebench.json, and images that networks still have to learn from in a
folder, so an interrupted table is gone on with; the table is a section of
benchmarks/results/README.md.

Run: python -m benchmarks.dpimagebench NAME=FOLDER [NAME=FOLDER ...] [--small] [--seeds N]
     [--epsilons E ...] [--adjacency A] [--device auto|cpu|cuda] [--made FOLDER]
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim.lr_scheduler import StepLR
from torch.optim.swa_utils import AveragedModel
from torch.utils.data import TensorDataset, random_split

from dpntk.common.adjacency import Adjacency
from dpntk.common.errors import DataError, DpntkError
from dpntk.common.runtime.device import choose_device
from dpntk.common.schema.image import pictures
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import TangentOptions, embed
from dpntk.evaluate.images.records import LabelledImages, read_real

from .images import CLASSES, SEPARATOR, Run, through_files
from .material.named import named_folder
from .material.networks import NETWORKS, small_network
from .material.records import training_part
from .published import load
from .sections import Results, finished, keep, rows_over_seeds

RESULTS = Path(__file__).parent / "results/dpimagebench.json"
VALIDATION, TRAINED_ON = 5_000, 55_000
FULL, SMALL = "full", "small"
TITLE: Final = "DPImageBench's protocol"
"""Of the published figures, in published.toml."""
MEAN: Final = "mean of three"
_AT_ONCE = 1_000
Many = tuple[Tensor, ...] | list[Tensor]


@dataclass(frozen=True)
class Protocol:
    """How classifiers learn.

    Attributes:
        networks: to train, each from channels and classes.
        epochs: passes over the training images.
        every: so many epochs the learning rate falls.
        factor: by which it falls.
        learning_rate: that Adam begins with.
        batch: images in a step.
        decay: of the averaged weights.
    """

    networks: Mapping[str, Callable[[int, int], nn.Module]]
    epochs: int
    every: int
    factor: float = 0.2
    learning_rate: float = 0.01
    batch: int = 256
    decay: float = 0.9999


PROTOCOLS = {
    FULL: Protocol(NETWORKS, epochs=50, every=20),
    SMALL: Protocol({"small CNN": small_network}, epochs=5, every=2),
}
SCORES = (*(name for protocol in PROTOCOLS.values() for name in protocol.networks), MEAN)


@dataclass(frozen=True)
class Examples:
    """Images as networks get them.

    Attributes:
        images: float32 (n, channels, side, side), -1..1.
        labels: int64 (n,).
    """

    images: Tensor
    labels: Tensor

    @classmethod
    def of(cls, records: LabelledImages, device: torch.device) -> Examples:
        """Records, on a device."""
        images = torch.from_numpy(records.images()).view(-1, *records.shape)
        return cls((2 * images - 1).to(device), torch.from_numpy(records.labels).to(device))


def split(count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which of the training images are sensitive, and which the epoch is chosen by.

    Args:
        count: of training images.

    Raises:
        DataError: there are not more than are chosen by.
    """
    if count <= VALIDATION:
        raise DataError(
            f"there are {count:,} training images, and {VALIDATION:,} of them would be kept to "
            "choose the epoch by: the protocol needs more"
        )
    generator = torch.Generator().manual_seed(0)
    places = TensorDataset(torch.arange(count))
    sensitive, validation = (
        np.array(part.indices, dtype=np.int64)
        for part in random_split(places, [count - VALIDATION, VALIDATION], generator)
    )
    return sensitive, validation


def delta_of(count: int) -> float:
    """The delta of so many sensitive records: 1 / (n ln n)."""
    return 1 / (count * math.log(count))


def at_places(records: LabelledImages, places: NDArray[np.int64]) -> LabelledImages:
    """Records at these places, in this order."""
    return replace(records, pixels=records.pixels[places], labels=records.labels[places])


def made(sensitive: LabelledImages, run: Run) -> LabelledImages:
    """Synthetic images of a release of these records, with the default settings."""
    with tempfile.TemporaryDirectory() as name:
        data = Path(name) / "sensitive.npz"
        np.savez(data, x=pictures(sensitive.pixels, sensitive.channels), y=sensitive.labels)
        embedding = embed(data, TangentOptions(seed=run.seed), SourceOptions(classes=CLASSES))
    return through_files(embedding, run, delta=delta_of(len(sensitive)))


def trained_on(synthetic: LabelledImages) -> LabelledImages:
    """Those of the synthetic images that train: the first ones in an order by seed 0."""
    order = np.random.default_rng(0).permutation(len(synthetic))
    return at_places(synthetic, order[:TRAINED_ON])


def averaged(network: nn.Module, decay: float) -> AveragedModel:
    """A network with the average of the weights that another one has had; to update every step.

    It begins with the weights that are there. After step t they count for d and those of the step
    for 1 - d, where d is (1 + t) / (10 + t), but at most the decay. Statistics of normalisations
    are not averaged: they are those of the network now.
    """
    steps = itertools.count(1)  # torch counts on the card, which would be waited for

    def move(so_far: Many, now: Many, _: Tensor | int) -> None:
        step = next(steps)
        share = min(decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(so_far, now, 1 - share)  # all at once, as torch's own averages do

    copy = AveragedModel(network, multi_avg_fn=move)
    copy.update_parameters(network)  # the first one copies
    return copy


def optimiser_of(network: nn.Module, protocol: Protocol) -> tuple[torch.optim.Adam, StepLR]:
    """The optimiser, and what lowers its learning rate after epochs."""
    optimiser = torch.optim.Adam(network.parameters(), lr=protocol.learning_rate)
    return optimiser, StepLR(optimiser, protocol.every, protocol.factor)


def epochs(network: nn.Module, train: Examples, protocol: Protocol) -> Iterator[nn.Module]:
    """Train a network; after each epoch, one with its averaged weights."""
    optimiser, schedule = optimiser_of(network, protocol)
    average = averaged(network, protocol.decay)
    for _ in range(protocol.epochs):
        network.train()
        order = torch.randperm(len(train.labels)).to(train.labels.device)
        for part in order.split(protocol.batch):
            guesses = network(train.images[part])
            loss = nn.functional.cross_entropy(guesses, train.labels[part])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            average.update_parameters(network)
        schedule.step()
        yield average.eval()


@torch.inference_mode()
def share_right(network: nn.Module, on: Examples) -> float:
    """The share of images that a network gives to their class."""
    guesses = [network(part).argmax(dim=1) for part in on.images.split(_AT_ONCE)]
    return (torch.cat(guesses) == on.labels).double().mean().item()


def picked(after_each: Iterator[nn.Module], validation: Examples, test: Examples) -> float:
    """The accuracy on test images after the epoch that is best on others; after the last of such.

    Args:
        after_each: the network after each epoch.
        validation: to choose by.
        test: to report of.
    """
    best, reported = -1.0, 0.0
    for network in after_each:
        reached = share_right(network, validation)
        if reached >= best:
            best, reported = reached, share_right(network, test)
    return reported


def accuracy_of(
    make: Callable[[int, int], nn.Module],
    train: LabelledImages,
    validation: LabelledImages,
    test: LabelledImages,
    protocol: Protocol,
    *,
    seed: int,
    device: torch.device,
) -> float:
    """Train a network by the protocol; the accuracy that is reported of it.

    Args:
        make: the network.
        train: synthetic images.
        validation: real ones to choose the epoch by.
        test: real ones to report of.
        protocol: how it learns.
        seed: of weights, batches and dropout.
        device: to compute on.
    """
    cards = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=cards):
        torch.manual_seed(seed)
        network = make(train.channels, train.classes).to(device)
        # Cards convolve faster with the channels of a pixel side by side.
        network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        learned, chosen, told = (Examples.of(part, device) for part in (train, validation, test))
        return picked(epochs(network, learned, protocol), chosen, told)


def images_of(path: Path, like: LabelledImages) -> LabelledImages:
    """Synthetic images that were kept."""
    with np.load(path) as kept:
        return replace(like, pixels=kept["x"], labels=kept["y"])


def run_all(
    run: Run,
    sensitive: LabelledImages,
    validation: LabelledImages,
    test: LabelledImages,
    folder: Path,
    device: torch.device,
    result: dict[str, float],
) -> Iterator[dict[str, float]]:
    """What is known of a run, each time that more is known.

    Args:
        run: its method is the name of a protocol.
        sensitive: records.
        validation: see `accuracy_of`.
        test: likewise.
        folder: for images that networks still have to learn from.
        device: to compute on.
        result: what is known already; empty if nothing.
    """
    protocol = PROTOCOLS[run.method]
    if protocol.networks.keys() <= result.keys():
        return
    kept = folder / f"{run.key.replace(SEPARATOR, ', ')}.npz"
    if not result or not kept.exists():  # networks of one row learn from one release
        start = time.perf_counter()
        synthetic = made(sensitive, run)
        result = {"seconds": round(time.perf_counter() - start, 1)}
        yield result  # nothing of another release is known from here on
        folder.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(".part.npz")
        np.savez(part, x=synthetic.pixels, y=synthetic.labels)
        part.replace(kept)
    train = trained_on(images_of(kept, sensitive))
    for name, make in protocol.networks.items():
        if name not in result:
            reached = accuracy_of(
                make, train, validation, test, protocol, seed=run.seed, device=device
            )
            result = {**result, name: reached}
            if run.method == FULL and protocol.networks.keys() <= result.keys():
                result[MEAN] = statistics.fmean(result[each] for each in protocol.networks)
            yield result
    kept.unlink()


def quoted_rows(published: Mapping[str, Any]) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """What others reached, by data and epsilon: each method with its source, and the figure."""
    (table,) = (table for table in published["tables"] if table["title"] == TITLE)
    rows: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for row in table["rows"]:
        for column, cell in zip(table["columns"], row.get("cells", []), strict=False):
            if cell:
                data, epsilon = column["key"].split(SEPARATOR)
                method = f"{row['method']} (quoted: {row['source']})"
                rows.setdefault((data, epsilon), []).append((method, f"{float(cell):.3f}"))
    return rows


def section(results: Results, published: Mapping[str, Any]) -> str:
    """All finished networks as Markdown: mean and standard deviation over the seeds.

    Args:
        results: of runs.
        published: what published.toml says.
    """
    lines = [
        "# Synthetic images by DPImageBench's protocol",
        "",
        f"Accuracy on the real test images of networks that learn from {TRAINED_ON:,} of 60,000",
        "synthetic ones, which were made of 55,000 records, delta 1 / (n ln n): mean and standard",
        f"deviation over the seeds. The epoch is picked by {VALIDATION:,} real images, which is",
        "outside of any guarantee, so figures are not to be compared with those of other tables.",
        '"small" is a small CNN and 5 epochs, to compare ours with ours. Quoted rows are out of',
        "`published.toml`. Seconds to embed, release and generate. Written by",
        "`benchmarks/dpimagebench.py`.",
        "",
        f"| data | epsilon | adjacency | method | seeds | {' | '.join(SCORES)} | s |",
        "|---|---|---|---|---|" + "---|" * (len(SCORES) + 1),
    ]
    quoted = quoted_rows(published)
    rows = rows_over_seeds(results, SCORES, SEPARATOR)
    known = sorted({row[:2] for row in rows}, key=lambda row: (row[0], float(row[1])))
    for data, epsilon in known:
        for method, cell in quoted.get((data, epsilon), []):
            empty = [""] * (len(SCORES) - 1)
            cells = [data, epsilon, "", method, "", *empty, cell, ""]
            lines.append(f"| {' | '.join(cells)} |")
        for row in sorted(row for row in rows if row[:2] == (data, epsilon)):
            cells = rows[row]
            cells[3] = f"dpntk, {cells[3]}"
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing, and write results and table after every network."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=named_folder, nargs="+", metavar="NAME=FOLDER")
    parser.add_argument("--small", action="store_true", help="a small CNN, for a processor")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 10.0])
    parser.add_argument(
        "--adjacency", type=Adjacency, default=Adjacency.REPLACE_ONE,
        metavar="|".join(adjacency.value for adjacency in Adjacency),
    )  # fmt: skip
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument("--made", type=Path, default=Path("build/dpimagebench"))
    chosen = parser.parse_args(arguments)
    try:
        device = choose_device(chosen.device)
        if chosen.device == "auto" and device.type == "cpu" and not chosen.small:
            parser.error(
                "the whole protocol takes days on a processor, and there is no CUDA device: "
                "--small does it with a small CNN, --device cpu all the same"
            )
        measure(chosen, device)
    except DpntkError as error:
        sys.exit(f"dpimagebench: {error}")


def measure(chosen: argparse.Namespace, device: torch.device) -> None:
    """All runs that were asked for, the first seed of everything first."""
    published, _ = load()
    results = finished(RESULTS)
    method = SMALL if chosen.small else FULL
    for seed, (name, data), epsilon in itertools.product(
        range(chosen.seeds), chosen.data, chosen.epsilons
    ):
        run = Run(name, epsilon, chosen.adjacency, method, seed)
        real = training_part(data)
        sensitive, validation = (at_places(real, places) for places in split(len(real)))
        test = read_real(data, "test", real)
        known = results.get(run.key, {})
        for result in run_all(run, sensitive, validation, test, chosen.made, device, known):
            results[run.key] = result
            keep(results, RESULTS, section(results, published))
        print(run.key, results[run.key], flush=True)


if __name__ == "__main__":
    main()
