"""A common protocol: how useful images are by DPImageBench (Gong et al., arXiv 2503.14681).

- The sensitive records are 55,000 of the 60,000 training images, the first part of torch's
  `random_split` with seed 0; delta is 1 / (n ln n). From them 60,000 images are made with the
  default settings, by way of the files that users have.
- 55,000 of these, in an order by seed 0, train ResNet-110, WRN-40-4 (dropout .3) and ResNeXt-29 (8
  groups, 4 times as wide) for 50 epochs: values 2 x - 1, batches of 256, Adam with .01, times .2
  every 20 epochs. The average of their weights is scored (.9999, less in the first steps).
- The epoch is chosen that best classifies the other 5,000 training images. These are real images
  without protection, so no guarantee covers the choice. The published rows were chosen in this way,
  with almost no noise if any. That is why this table stands apart from all others here: somebody
  who has only a release cannot choose like this.
- The figure is the mean of the three on the 10,000 test images.

The published row of DP-NTK (quoted in the table) embeds a single batch of records: the loop over
them in that benchmark's code ends after the first. Rows of DP-SGD (DP-GAN, DPDM, DP-FETA, FETA-Pro)
are for adding or removing a record; ours are for exchanging one unless --adjacency says otherwise,
which needs more noise.

This needs a CUDA device. With --bfloat16 layers compute in that precision, in about two thirds of
the time; rows say so. With --small the same is done with a small CNN and 5 epochs, times .2 every
2, on a processor; that figure serves only to compare our own with each other. Finished networks are
kept in benchmarks/results/dpimagebench.json, and images that networks still have to learn from in a
folder, so an interrupted table can be resumed; the table is a section of
benchmarks/results/README.md.

Run: python -m benchmarks.dpimagebench NAME=FOLDER [NAME=FOLDER ...] [--small | --bfloat16]
     [--seeds N] [--epsilons E ...] [--adjacency A] [--device auto|cpu|cuda] [--made FOLDER]
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import TensorDataset, random_split

from dpntk.common.adjacency import Adjacency
from dpntk.common.errors import DataError, DpntkError
from dpntk.common.runtime.device import choose_device
from dpntk.common.schema.image import pictures
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import TangentOptions, embed
from dpntk.evaluate.images.records import LabelledImages, read_real

from .images import CLASSES, SEPARATOR, Run, through_files
from .material.best_epoch import Protocol, accuracy_of
from .material.named import named_folder
from .material.networks import NETWORKS, small_network
from .material.records import training_part
from .published import load
from .sections import Results, finished, keep, rows_over_seeds, table_head, table_row

RESULTS = Path(__file__).parent / "results/dpimagebench.json"
VALIDATION, TRAINED_ON = 5_000, 55_000
FULL, HALF, SMALL = "full", "full, in bfloat16", "small"
TITLE: Final = "DPImageBench's protocol"
"""Of the published figures, in published.toml."""
MEAN: Final = "mean of three"
PROTOCOLS = {
    FULL: Protocol(NETWORKS, epochs=50, every=20),
    HALF: Protocol(NETWORKS, epochs=50, every=20, bfloat16=True),
    SMALL: Protocol({"small CNN": small_network}, epochs=5, every=2),
}
SCORES = (*dict.fromkeys(name for each in PROTOCOLS.values() for name in each.networks), MEAN)


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
            if run.method != SMALL and protocol.networks.keys() <= result.keys():
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
        *table_head("data", "epsilon", "adjacency", "method", "seeds", *SCORES, "s"),
    ]
    quoted = quoted_rows(published)
    rows = rows_over_seeds(results, SCORES, SEPARATOR)
    known = sorted({row[:2] for row in rows}, key=lambda row: (row[0], float(row[1])))
    for data, epsilon in known:
        for method, cell in quoted.get((data, epsilon), []):
            empty = [""] * (len(SCORES) - 1)
            cells = [data, epsilon, "", method, "", *empty, cell, ""]
            lines.append(table_row(cells))
        for row in sorted(row for row in rows if row[:2] == (data, epsilon)):
            cells = rows[row]
            cells[3] = f"dpntk, {cells[3]}"
            lines.append(table_row(cells))
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing, and write results and table after every network."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=named_folder, nargs="+", metavar="NAME=FOLDER")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--small", action="store_true", help="a small CNN, for a processor")
    size.add_argument("--bfloat16", action="store_true", help="layers in half the precision")
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
    method = SMALL if chosen.small else HALF if chosen.bfloat16 else FULL
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
