"""Few images and much noise: ours compared with ten lines of NumPy.

Every run draws a number of records of the training part at random by the seed, embeds and releases
them (replace-one, delta 1e-5) and generates 60,000 synthetic ones. The classifiers of `dpntk
evaluate` that learn from these are tested on the real test images. Methods:

- "default": the default settings;
- "class means": unit-norm images summed by class, with the same noise, divided by a tenth of the
  number of records; 600 copies of each with noise of .15 on every pixel: whatever does worse is
  worth nothing;
- "gaussian": mean and covariance of each class (benchmarks/baselines/gaussian.py);
- "own score": not synthetic data but a diagnosis. It is the share of real test images that the
  default release itself assigns to their class, by <phi(x), released mean of the class>, centred
  and scaled class by class over these images.

Finished runs are kept in benchmarks/results/small_images.json, so an interrupted table can be
resumed; the table is a section of benchmarks/results/README.md.

Run: python -m benchmarks.small_images NAME=FOLDER [NAME=FOLDER ...] [--records N ...]
     [--epsilons E ...] [--seeds N] [--methods M ...] [--picture FILE]
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from numpy.typing import NDArray

from dpntk.common.adjacency import Adjacency
from dpntk.common.ledger import DEFAULT_DELTA
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import Embedding, TangentOptions, embed, save_embedding
from dpntk.evaluate.images.classifiers import CLASSIFIERS
from dpntk.evaluate.images.records import LabelledImages, read_real
from dpntk.evaluate.images.utility import measure
from dpntk.generate.kernels.registry import kernel_of
from dpntk.release import PrivacyParameters, release
from dpntk.release.mechanism.accountant import noise_multiplier

from .baselines.gaussian import gaussian_records
from .images import CLASSES, RECORDS, SEPARATOR, Run, through_files
from .material.named import named_folder
from .material.records import training_part
from .sections import finished, keep, table_head, table_row

RESULTS = Path(__file__).parent / "results/small_images.json"
OWN_SCORE = "own score"
_COPIES, _PIXEL_NOISE, _LENGTH = 600, 0.15, 9.2
"""Copies of a class mean, the noise on their pixels, and how long an image of 28x28 is taken to
be."""
_AT_ONCE = 500


def some_of(records: LabelledImages, count: int, seed: int) -> LabelledImages:
    """So many records in a random order."""
    order = np.random.default_rng(seed).permutation(len(records))[:count]
    return replace(records, pixels=records.pixels[order], labels=records.labels[order])


def class_means(records: LabelledImages, run: Run) -> LabelledImages:
    """Class means with noise, and nothing else."""
    random = np.random.default_rng(run.seed)
    values = records.pixels / 255.0
    values /= np.linalg.norm(values, axis=1, keepdims=True).clip(1e-9)
    sigma = noise_multiplier(run.epsilon, DEFAULT_DELTA) * math.sqrt(2)
    shape = (CLASSES, values.shape[1])
    sums = np.stack([values[records.labels == label].sum(axis=0) for label in range(CLASSES)])
    means = (sums + random.normal(0, sigma, shape)) / (len(records) / CLASSES)
    means *= _LENGTH * records.side / 28
    labels = random.permutation(np.repeat(np.arange(CLASSES), _COPIES))
    drawn = means[labels] + random.normal(0, _PIXEL_NOISE, (len(labels), shape[1]))
    pixels = np.rint(drawn.clip(0, 1) * 255).astype(np.uint8)
    return LabelledImages(pixels, labels, records.class_names, {})


def gaussian(records: LabelledImages, run: Run) -> LabelledImages:
    """The mean and covariance of each class."""
    return gaussian_records(
        records.pixels,
        records.labels,
        records.class_names,
        epsilon=run.epsilon,
        adjacency=run.adjacency,
        count=RECORDS,
        seed=run.seed,
    )


def embedded(records: LabelledImages, run: Run) -> Embedding:
    """The embedding of some records."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "records.npz"
        images = records.pixels.reshape(-1, records.side, records.side)
        np.savez(path, x=images, y=records.labels)
        options = TangentOptions(seed=run.seed)
        return embed(path, options, SourceOptions(classes=CLASSES))


def default(records: LabelledImages, run: Run) -> LabelledImages:
    """What a user gets who chooses nothing."""
    return through_files(embedded(records, run), run)


METHODS: dict[str, Callable[[LabelledImages, Run], LabelledImages]] = {
    "default": default,
    "class means": class_means,
    "gaussian": gaussian,
}


@torch.inference_mode()
def own_score(records: LabelledImages, test: LabelledImages, run: Run) -> float:
    """Share of test images that a release itself gives to their class."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_embedding(embedded(records, run), folder / "embedding.h5")
        parameters = PrivacyParameters(run.epsilon, adjacency=run.adjacency)
        made = release(folder / "embedding.h5", folder / "release.h5", parameters).release
    means = torch.from_numpy(made.embedding.T.copy())
    kernel = kernel_of(made.feature_map, torch.device("cpu"))
    scores = []
    for some in torch.from_numpy(test.images()).split(_AT_ONCE):
        features = kernel.features(some[None])
        scores.append(torch.stack([features.inner(mean[None])[0] for mean in means], dim=1))
    table = torch.cat(scores)
    standard: NDArray[np.float32] = ((table - table.mean(dim=0)) / table.std(dim=0)).numpy()
    return float((standard.argmax(axis=1) == test.labels).mean())


def result_of(some: LabelledImages, test: LabelledImages, run: Run) -> dict[str, float]:
    """The accuracies of a run; of the diagnosis one, by its name."""
    if run.method == OWN_SCORE:
        return {OWN_SCORE: own_score(some, test, run)}
    (row,) = measure({run.method: METHODS[run.method](some, run)}, test, run.seed)
    return dict(row.accuracy)


def section(results: dict[str, dict[str, float]]) -> str:
    """All finished runs as Markdown: means over the seeds."""
    lines = [
        "# Small sets of images",
        "",
        "Few records, or much noise: means over the seeds. What the methods are is said in",
        '`benchmarks/small_images.py`, which writes this. "own score" is a diagnosis: what the',
        "release itself tells of real images.",
        "",
        *table_head("data, records", "epsilon", "method", "seeds", *CLASSIFIERS),
    ]
    runs: dict[tuple[str, float, str], list[dict[str, float]]] = {}
    for key, result in results.items():
        data, noise, _, method, _ = key.split(SEPARATOR)
        runs.setdefault((data, float(noise), method), []).append(result)
    order = {method: number for number, method in enumerate((*METHODS, OWN_SCORE))}
    for data, epsilon, method in sorted(runs, key=lambda row: (row[0], row[1], order[row[2]])):
        found = runs[data, epsilon, method]
        shown = (OWN_SCORE,) if method == OWN_SCORE else CLASSIFIERS
        cells = [f"{statistics.fmean(run[name] for run in found):.3f}" for name in shown]
        cells += [""] * (len(CLASSIFIERS) - len(cells))
        lines.append(table_row([data, f"{epsilon:g}", method, str(len(found)), *cells]))
    return "\n".join(lines) + "\n"


def draw(results: dict[str, dict[str, float]], epsilon: float, path: Path) -> None:
    """Accuracy against the number of records: a row for each data set, a column a classifier."""
    curves: dict[tuple[str, str], dict[int, list[dict[str, float]]]] = {}
    for key, result in results.items():
        data, noise, _, method, _ = key.split(SEPARATOR)
        name, _, count = data.partition(", ")
        if float(noise) == epsilon and method != OWN_SCORE:
            records = curves.setdefault((name, method), {})
            records.setdefault(int(count.replace(",", "")), []).append(result)
    names = sorted({name for name, _ in curves}, reverse=True)
    shape = len(names), len(CLASSIFIERS)
    size = (3.2 * shape[1], 2.6 * shape[0])
    figure, axes = plt.subplots(*shape, figsize=size, sharey="row", sharex=True, squeeze=False)
    for row, name in zip(axes, names, strict=True):
        for place, classifier in zip(row, CLASSIFIERS, strict=True):
            for method in METHODS:
                runs = curves.get((name, method), {})
                counts = sorted(runs)
                found = [[run[classifier] for run in runs[count]] for count in counts]
                means = [statistics.fmean(values) for values in found]
                lowest, highest = [min(v) for v in found], [max(v) for v in found]
                place.plot(counts, means, marker="o", label=method)
                place.fill_between(counts, lowest, highest, alpha=0.2)
            place.set_title(f"{name}, {classifier}", fontsize="medium")
            place.set_xscale("log")
            place.grid(alpha=0.3)
    for place in axes[-1]:
        place.set_xlabel("records")
    for place in axes[:, 0]:
        place.set_ylabel("accuracy")
    axes[0, 0].legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    """Run what is missing, and write results and table after every run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=named_folder, nargs="+", metavar="NAME=FOLDER")
    parser.add_argument("--records", type=int, nargs="+", default=[1_000, 3_000, 10_000])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0])
    parser.add_argument("--seeds", type=int, default=5)
    every = [*METHODS, OWN_SCORE]
    parser.add_argument("--methods", nargs="+", choices=every, default=every)
    parser.add_argument("--picture", type=Path, help="Draw the curves of the first epsilon.")
    arguments = parser.parse_args()
    results = finished(RESULTS)
    for name, folder in arguments.data:
        train = training_part(folder)
        test = read_real(folder, "test", train)
        for seed, count, epsilon, method in itertools.product(
            range(arguments.seeds), arguments.records, arguments.epsilons, arguments.methods
        ):
            run = Run(f"{name}, {count:,}", epsilon, Adjacency.REPLACE_ONE, method, seed)
            if run.key not in results:
                results[run.key] = result_of(some_of(train, count, seed), test, run)
                keep(results, RESULTS, section(results))
            print(run.key, results[run.key], flush=True)
    if arguments.picture:
        draw(results, arguments.epsilons[0], arguments.picture)


if __name__ == "__main__":
    main()
