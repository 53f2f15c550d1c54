"""How useful the synthetic images are: one table, by the same code for all.

Every run: embed, release (delta 1e-5), generate 60,000 records with the default settings, train
the classifiers of `dpntk evaluate` on them, and test these on the real test images. The seed
applies to features, training and classifiers; the noise has none. Nothing is chosen by these
figures: the same settings serve all data sets and epsilons. Finished runs are kept in
benchmarks/results/images.json, so an interrupted table can be resumed; the table is written to
benchmarks/results/README.md.

With --metric-module the Frechet distance to the real test images is recorded beside the accuracies,
in features of each given module (`material/public_module.py`, `material/learned_module.py` for
digits), and once for each data set the distance of the real training images. Distances are
comparable only within one module, so each column is for one module, identified by the first digits
of its SHA-256. Runs that were finished without it stay as they are.

Run: python -m benchmarks.images NAME=FOLDER [NAME=FOLDER ...] [--seeds N] [--epsilons E ...]
     [--adjacencies A ...] [--methods M ...] [--metric-module FILE ...]
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpntk.common.adjacency import Adjacency
from dpntk.common.errors import DpntkError
from dpntk.common.sources import open_source
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import (
    Embedding,
    FourierOptions,
    HermiteOptions,
    TangentOptions,
    embed,
    save_embedding,
)
from dpntk.evaluate.images.classifiers import CLASSIFIERS
from dpntk.evaluate.images.frechet import FeatureMetric, Gaussian
from dpntk.evaluate.images.records import LabelledImages, read_real, read_synthetic
from dpntk.evaluate.images.utility import FRECHET, measure
from dpntk.generate import generate
from dpntk.generate.fit.recipe import PEARL
from dpntk.generate.pipeline import chosen_settings
from dpntk.release import OpenedRelease, PrivacyParameters, open_release, release

from .baselines.gaussian import gaussian_records
from .material.named import named_folder
from .material.records import training_part
from .sections import Results, finished, keep, rows_over_seeds, table_head, table_row

RESULTS = Path(__file__).parent / "results/images.json"
RECORDS, CLASSES = 60_000, 10
SEPARATOR = " | "
PURE_NOISE, PERMUTED = "control: pure noise", "control: permuted labels"
REAL = "real training images"
"""Not a method: their distance is that of what is as good as it can be."""


@dataclass(frozen=True)
class Run:
    """One line of results/images.json: what was run, and with which seed."""

    data: str
    epsilon: float
    adjacency: Adjacency
    method: str
    seed: int

    @property
    def key(self) -> str:
        """Its name in results/images.json."""
        return SEPARATOR.join((*self.row, str(self.seed)))

    @property
    def row(self) -> tuple[str, ...]:
        """All but the seed: the first cells of its row in the table."""
        return self.data, f"{self.epsilon:g}", self.adjacency.value, self.method


def through_files(
    embedding: Embedding,
    run: Run,
    change: Callable[[OpenedRelease], OpenedRelease] = lambda opened: opened,
    delta: float | None = None,
    **chosen: str,
) -> LabelledImages:
    """Synthetic records, by way of the files that users have, with some choices of stage three."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_embedding(embedding, folder / "embedding.h5")
        parameters = PrivacyParameters(run.epsilon, delta, run.adjacency)
        release(folder / "embedding.h5", folder / "release.h5", parameters)
        opened = change(open_release(folder / "release.h5"))
        settings = chosen_settings(opened, {"seed": run.seed, **chosen})
        generate(opened, folder / "synthetic", count=RECORDS, settings=settings)
        return read_synthetic(folder / "synthetic")


def pure_noise_in(opened: OpenedRelease, seed: int) -> OpenedRelease:
    """A release of nothing but as much noise as there is in this one."""
    made = opened.release
    drawn = np.random.default_rng(seed).standard_normal(made.embedding.shape)
    noise: NDArray[np.float32] = (drawn * made.noise_per_coordinate).astype(np.float32)
    return replace(opened, release=replace(made, embedding=noise))


def default(data: Path, run: Run) -> LabelledImages:
    """What a user gets who chooses nothing."""
    return through_files(
        embed(data, TangentOptions(seed=run.seed), SourceOptions(classes=CLASSES)), run
    )


def pixels(data: Path, run: Run) -> LabelledImages:
    """The tangent kernel without a front."""
    embedding = embed(
        data,
        TangentOptions(seed=run.seed, front="pixels", width=800),
        SourceOptions(classes=CLASSES),
    )
    return through_files(embedding, run)


def rff(data: Path, run: Run) -> LabelledImages:
    """Random Fourier features: DP-MERF."""
    embedding = embed(data, FourierOptions(seed=run.seed), SourceOptions(classes=CLASSES))
    return through_files(embedding, run)


def pearl(data: Path, run: Run) -> LabelledImages:
    """Random Fourier features that an opponent weighs: PEARL."""
    embedding = embed(data, FourierOptions(seed=run.seed), SourceOptions(classes=CLASSES))
    return through_files(embedding, run, objective=PEARL)


def hermite(data: Path, run: Run) -> LabelledImages:
    """Hermite features: DP-HP."""
    embedding = embed(data, HermiteOptions(seed=run.seed), SourceOptions(classes=CLASSES))
    return through_files(embedding, run)


def gaussian(data: Path, run: Run) -> LabelledImages:
    """The yardstick: the mean and covariance of each class, and no training."""
    source = open_source(data, SourceOptions(classes=CLASSES))
    batches = list(source.batches(4096))
    return gaussian_records(
        np.concatenate([batch.records for batch in batches]),
        np.concatenate([batch.labels for batch in batches]),
        source.schema.classes,
        epsilon=run.epsilon,
        adjacency=run.adjacency,
        count=RECORDS,
        seed=run.seed,
    )


def pure_noise(data: Path, run: Run) -> LabelledImages:
    """A control: a release that holds nothing but its noise; to be at chance."""
    embedding = embed(data, TangentOptions(seed=run.seed), SourceOptions(classes=CLASSES))
    return through_files(embedding, run, lambda opened: pure_noise_in(opened, run.seed))


def permuted_labels(data: Path, run: Run) -> LabelledImages:
    """A control: the labels are permuted before embedding; to be at chance."""
    source = open_source(data, SourceOptions(classes=CLASSES))
    batches = list(source.batches(4096))
    records = np.concatenate([batch.records for batch in batches])
    labels = np.concatenate([batch.labels for batch in batches])
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "permuted.npz"
        side = math.isqrt(records.shape[1])
        images = records.reshape(-1, side, side)
        np.savez(path, x=images, y=np.random.default_rng(run.seed).permutation(labels))
        embedding = embed(path, TangentOptions(seed=run.seed), SourceOptions(classes=CLASSES))
    return through_files(embedding, run)


METHODS: dict[str, Callable[[Path, Run], LabelledImages]] = {
    "default": default,
    "ntk, pixels": pixels,
    "rff (DP-MERF)": rff,
    "rff, reweighted (PEARL)": pearl,
    "hermite (DP-HP)": hermite,
    "Gaussian": gaussian,
    PURE_NOISE: pure_noise,
    PERMUTED: permuted_labels,
}


_ABOUT_DISTANCES = (
    "Distances are from the synthetic images to the test images, in features of the module whose",
    "SHA-256 begins so; how they were made is said in `docs/results.md`.",
)


@dataclass(frozen=True)
class Distances:
    """Distances to the real test images of one data set.

    Attributes:
        metric: what they are measured in.
        test: the Gaussian of these images.
    """

    metric: FeatureMetric
    test: Gaussian

    @classmethod
    def of(cls, module: Path, test: LabelledImages) -> Distances:
        """In features of a module.

        Raises:
            ModuleError: it cannot be used.
        """
        metric = FeatureMetric.of_module(module, test.shape)
        return cls(metric, Gaussian.of(metric.features_of(test)))

    @property
    def name(self) -> str:
        """The score's name, by which those of other modules are kept apart."""
        return f"{FRECHET}, {(self.metric.module or self.metric.name)[:8]}"

    def to(self, images: LabelledImages) -> dict[str, float]:
        """How far images are, by the score's name."""
        return {self.name: self.test.distance(Gaussian.of(self.metric.features_of(images)))}


def result_of(data: Path, run: Run, distances: Sequence[Distances] = ()) -> dict[str, float]:
    """The accuracies of a run, the seconds that it took to make the records, and how far they are.

    Args:
        data: where records are.
        run: what is run.
        distances: to measure.
    """
    start = time.perf_counter()
    synthetic = METHODS[run.method](data, run)
    seconds = time.perf_counter() - start
    (row,) = measure({"synthetic": synthetic}, read_real(data, "test", synthetic), run.seed)
    far = {name: value for each in distances for name, value in each.to(synthetic).items()}
    return {**row.accuracy, **far, "seconds": round(seconds, 1)}


def table(results: dict[str, dict[str, float]]) -> str:
    """All finished runs as Markdown: mean and standard deviation over the seeds."""
    far = sorted({name for run in results.values() for name in run if name.startswith(FRECHET)})
    scores = [*CLASSIFIERS, *far]
    lines = [
        "# Synthetic images",
        "",
        "Accuracy on the real test images of classifiers trained on 60,000 synthetic ones: mean",
        "and standard deviation over the seeds; delta 1e-5. Seconds to embed, release and",
        "generate. Written by `benchmarks/images.py`; all rows with the same settings.",
        *(_ABOUT_DISTANCES if far else ()),
        "",
        *table_head("data", "epsilon", "adjacency", "method", "seeds", *scores, "s"),
    ]
    rows = rows_over_seeds(results, scores, SEPARATOR)
    order = {method: number for number, method in enumerate((*METHODS, REAL))}
    for row in sorted(rows, key=lambda row: (row[0], float(row[1]), row[2], order[row[3]])):
        cells = rows[row]
        if row[3] == REAL:  # without noise, and nobody made them
            cells = [row[0], "", "", REAL, "", *cells[5:-1], ""]
        lines.append(table_row(cells))
    return "\n".join(lines) + "\n"


def wanted(arguments: argparse.Namespace, names: list[str]) -> Iterator[Run]:
    """The runs that were asked for, the first seed of everything first."""
    for seed in range(arguments.seeds):
        for parts in itertools.product(names, arguments.epsilons, arguments.adjacencies):
            for method in arguments.methods:
                yield Run(*parts, method, seed)


def distances_of(
    name: str, folder: Path, chosen: argparse.Namespace, results: Results
) -> list[Distances]:
    """Distances of a data set; those of its training images are kept, if they are not known yet."""
    train = training_part(folder)
    test = read_real(folder, "test", train)
    distances = [Distances.of(module, test) for module in chosen.metric_module]
    key = Run(name, math.inf, Adjacency.REPLACE_ONE, REAL, 0).key
    for each in distances:
        if each.name not in results.get(key, {}):
            results[key] = {**results.get(key, {}), **each.to(train), "seconds": 0.0}
            keep(results, RESULTS, table(results))
    return distances


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing, and write results and table after every run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=named_folder, nargs="+", metavar="NAME=FOLDER")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 0.2, 10.0])
    parser.add_argument(
        "--adjacencies", type=Adjacency, nargs="+", default=[Adjacency.REPLACE_ONE],
        metavar="|".join(adjacency.value for adjacency in Adjacency),
    )  # fmt: skip
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--metric-module", type=Path, nargs="+", default=[], metavar="FILE")
    chosen = parser.parse_args(arguments)
    folders = dict(chosen.data)
    results = finished(RESULTS)
    far: dict[str, list[Distances]] = {}
    if chosen.metric_module:
        try:
            far = {name: distances_of(name, folders[name], chosen, results) for name in folders}
        except DpntkError as error:
            sys.exit(f"images: {error}")
    for run in wanted(chosen, list(folders)):
        if run.key not in results:
            results[run.key] = result_of(folders[run.data], run, far.get(run.data, ()))
            keep(results, RESULTS, table(results))
        print(run.key, results[run.key], flush=True)


if __name__ == "__main__":
    main()
