"""Colour images: how useful synthetic ones are, and how far from real ones; one table.

Every run embeds the training part, releases it (replace-one, delta 1e-5) and generates images with
the default settings. The classifiers of `dpntk evaluate` learn from these and are tested on the
real test images. Distances to the test images are measured in features of the metric module, and
for comparison also for as many real training images. `material/cifar.py` makes CIFAR-10, and
`material/public_module.py` the modules: efficientnet-lite0 for "perceptual", efficientnet-lite2
with --last to measure in.

Embeddings are kept in a folder, since nothing about them is random: only releases differ. Beside
them is a picture of what each run made. Both are sensitive if the images are. The controls are the
default with a release that holds nothing but its noise, and with shuffled labels; both must be at
chance. Finished runs are kept in benchmarks/results/colour.json; the table is a section of
benchmarks/results/README.md.

Run: python -m benchmarks.colour NAME=FOLDER --metric-module FILE [--module FILE] [--seeds N]
     [--epsilons E ...] [--methods M ...] [--embeddings FOLDER]
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from dpntk.common.adjacency import Adjacency
from dpntk.common.schema.image import pictures
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import (
    FeatureOptions,
    FourierOptions,
    PerceptualOptions,
    TangentOptions,
    embed,
    save_embedding,
)
from dpntk.evaluate.images.classifiers import CLASSIFIERS, IN_COLOUR
from dpntk.evaluate.images.frechet import FeatureMetric
from dpntk.evaluate.images.records import LabelledImages, read_real, read_synthetic
from dpntk.evaluate.images.utility import FRECHET, LINEAR, measure
from dpntk.generate import generate
from dpntk.release import OpenedRelease, PrivacyParameters, open_release, release

from .baselines.gaussian import gaussian_records
from .images import PERMUTED, PURE_NOISE, SEPARATOR, Run, pure_noise_in
from .material.named import named_folder
from .material.records import training_part
from .sections import finished, keep, rows_over_seeds, table_head, table_row
from .small_images import some_of

RESULTS = Path(__file__).parent / "results/colour.json"
RECORDS, CLASSES = 10_000, 10
"""Made, and measured; classifiers learn less from fewer, and distances are larger."""
SCORES = (*CLASSIFIERS, *IN_COLOUR, LINEAR, FRECHET, "precision", "recall")
DEFAULT, REAL, GAUSSIAN, PERCEPTUAL = "default", "real", "Gaussian", "perceptual"
MAPS: dict[str, FeatureOptions] = {
    DEFAULT: TangentOptions(),
    "rff (DP-MERF)": FourierOptions(),
    PERCEPTUAL: PerceptualOptions(module_is_public=True, squares=0.6, rectified=True),
}
METHODS = (*MAPS, GAUSSIAN, REAL, PURE_NOISE, PERMUTED)


def embedded(data: Path, method: str, module: Path | None, kept: Path) -> Path:
    """The embedding's file, made if it is not there yet."""
    path = kept / f"{method.split()[0]}.h5"
    if not path.exists():
        options = MAPS[method]
        if isinstance(options, PerceptualOptions):
            options = replace(options, module=module)
        save_embedding(embed(data, options, SourceOptions(classes=CLASSES)), path)
    return path


def permuted(train: LabelledImages, kept: Path) -> Path:
    """The embedding's file of the default, of labels that have nothing to do with the images."""
    path = kept / "permuted.h5"
    if not path.exists():
        with tempfile.TemporaryDirectory() as name:
            data = Path(name) / "permuted.npz"
            labels = np.random.default_rng(0).permutation(train.labels)
            np.savez(data, x=pictures(train.pixels, train.channels), y=labels)
            save_embedding(embed(data, MAPS[DEFAULT], SourceOptions(classes=CLASSES)), path)
    return path


def made(
    embedding: Path,
    run: Run,
    module: Path | None,
    pictures: Path,
    change: Callable[[OpenedRelease], OpenedRelease] = lambda opened: opened,
) -> LabelledImages:
    """Synthetic images, by way of the files that users have; some of them are shown in a folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(embedding, folder / "embedding.h5")  # every run's is the first release
        parameters = PrivacyParameters(run.epsilon, adjacency=run.adjacency)
        release(folder / "embedding.h5", folder / "release.h5", parameters)
        needed = module if run.method == PERCEPTUAL else None
        opened = change(open_release(folder / "release.h5"))
        generate(opened, folder / "synthetic", count=RECORDS, module=needed)
        named = run.key.replace(SEPARATOR, ", ").replace(": ", " ")
        shutil.copy(folder / "synthetic" / "preview.png", pictures / f"{named}.png")
        return read_synthetic(folder / "synthetic")


def images_of(
    run: Run, data: Path, train: LabelledImages, module: Path | None, kept: Path
) -> LabelledImages:
    """What a method makes."""
    if run.method in MAPS:
        return made(embedded(data, run.method, module, kept), run, module, kept)
    if run.method == PURE_NOISE:
        embedding = embedded(data, DEFAULT, module, kept)
        return made(embedding, run, None, kept, lambda opened: pure_noise_in(opened, run.seed))
    if run.method == PERMUTED:
        return made(permuted(train, kept), run, None, kept)
    if run.method == REAL:
        return some_of(train, RECORDS, run.seed)
    drawn = gaussian_records(
        train.pixels, train.labels, train.class_names, epsilon=run.epsilon,
        adjacency=run.adjacency, count=RECORDS, seed=run.seed,
    )  # fmt: skip
    return replace(drawn, channels=train.channels)


def result_of(
    images: LabelledImages, test: LabelledImages, metric: FeatureMetric, seed: int
) -> dict[str, float]:
    """Accuracies of what learns from images, and how far they are from real ones."""
    (row,) = measure({"": images}, test, seed, metric=metric)
    return {**row.accuracy, **row.distances}


def section(results: dict[str, dict[str, float]]) -> str:
    """All finished runs as Markdown: mean and standard deviation over the seeds."""
    lines = [
        "# Synthetic images in colour",
        "",
        f"Accuracy on the real test images of classifiers trained on {RECORDS:,} synthetic ones,",
        "and distances to the test images in features of a public network: mean and standard",
        "deviation over the seeds; delta 1e-5, replace-one. Seconds to release and generate, and",
        "to embed if that was new. Written by `benchmarks/colour.py`.",
        "",
        *table_head("data", "epsilon", "method", "seeds", *SCORES, "s"),
    ]
    rows = rows_over_seeds(results, SCORES, SEPARATOR)
    for row in sorted(rows, key=lambda row: (row[0], float(row[1]), METHODS.index(row[3]))):
        data, epsilon, _, *cells = rows[row]
        lines.append(table_row((data, epsilon, *cells)))
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run what is missing, and write results and table after every run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=named_folder, metavar="NAME=FOLDER")
    parser.add_argument("--metric-module", type=Path, required=True)
    parser.add_argument("--module", type=Path, help=f"of {PERCEPTUAL}")
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 10.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--embeddings", type=Path, default=Path("build/colour"))
    arguments = parser.parse_args()
    name, folder = arguments.data
    arguments.embeddings.mkdir(parents=True, exist_ok=True)
    train = training_part(folder)
    test = read_real(folder, "test", train)
    metric = FeatureMetric.of_module(arguments.metric_module, test.shape)
    results = finished(RESULTS)
    for seed, epsilon, method in itertools.product(
        range(arguments.seeds), arguments.epsilons, arguments.methods
    ):
        run = Run(name, epsilon, Adjacency.REPLACE_ONE, method, seed)
        if run.key not in results:
            start = time.perf_counter()
            images = images_of(run, Path(folder), train, arguments.module, arguments.embeddings)
            seconds = round(time.perf_counter() - start, 1)
            results[run.key] = {**result_of(images, test, metric, seed), "seconds": seconds}
            keep(results, RESULTS, section(results))
        print(run.key, results[run.key], flush=True)


if __name__ == "__main__":
    main()
