"""Distilled sets: how fast clipping is, and how well classifiers learn from the points.

    python -m benchmarks.distill clipping [--batch B] [--points M] [--inputs D]
    python -m benchmarks.distill NAME=FOLDER ... [--seeds N] [--epsilons E ...] [--per-class P ...]
                                 [--methods M ...]

The first compares the gradient of a batch without clipping, the noisy one of clipped shares, and
clipped gradients by `vmap(grad)`. The second makes points from training images, one seed after the
other (the noise has none), and classifies the real test images by kernel regression from the
points, and by the ConvNet of `dpntk evaluate`. Points are those of `dpntk distill`, and of `dpntk
generate --points`, from a release under replace-one, all with default options. "distill, no noise"
is `dpntk distill --eps inf --not-private`, which the literature calls KIP. It has no epsilon, so it
is run once, whatever epsilons are named. An interrupted run can be resumed, and finished ones are
kept in benchmarks/results/distilled.json; the table goes to benchmarks/results/README.md.
"""

from __future__ import annotations

import argparse
import itertools
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from dpntk.common.runtime.threads import use_threads
from dpntk.common.sources import open_source
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import TangentOptions, embed, save_embedding
from dpntk.evaluate.images.distilled import classifiers_of
from dpntk.evaluate.images.records import read_real, read_synthetic
from dpntk.generate import PointSettings, generate, load_generator, points_to
from dpntk.release import PrivacyParameters, release
from dpntk.release.distill import Settings, distill
from dpntk.release.distill.mechanism import clipped_sum, exact_gradient, gradient_of, noisy_sums
from dpntk.release.distill.settings import WITHOUT_NOISE
from tests.helpers.problems import draw_problem, plain_gradients

from .material.named import named_folder
from .sections import finished, keep, rows_over_seeds, table_head, table_row

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results/distilled.json"
WORK = FOLDER / "distilled"
SCORES = ("kernel regression", "ConvNet")
SEPARATOR = " | "
CLASSES = 10


@dataclass(frozen=True)
class Run:
    """What was run, and with which seed."""

    data: str
    epsilon: float
    per_class: int
    method: str
    seed: int

    @property
    def key(self) -> str:
        """Its name in results/distilled.json."""
        numbers = f"{self.epsilon:g}", str(self.per_class)
        return SEPARATOR.join([self.data, *numbers, self.method, str(self.seed)])

    def file(self, name: str) -> Path:
        """Where something of it is kept."""
        return WORK / name.format(**asdict(self)).replace(" ", "-")


def compare_clipping(batch: int, points: int, inputs: int) -> None:
    """Print seconds of one step, by each way."""
    torch.set_num_threads(1)
    problem = draw_problem(batch, points, inputs, 10)
    records, targets, centre = problem.records, problem.record_targets, problem.centre

    def by_vmap() -> None:
        gradients = plain_gradients(problem).flatten(1)
        (gradients * (0.3 / gradients.norm(dim=1, keepdim=True)).clamp_max(1)).sum(0)

    ways: dict[str, Callable[[], object]] = {
        "without clipping or noise": lambda: exact_gradient(
            problem.loss, records, targets, centre=centre
        ),
        "clipped shares, without noise": lambda: clipped_sum(
            problem.loss, records, targets, centre=centre, clip_norm=0.3
        ),
        "clipped shares with noise": lambda: gradient_of(
            problem.loss,
            noisy_sums(
                problem.loss, records, targets, centre=centre, clip_norm=0.3, noise_multiplier=2.0
            ),
        ),
        "clipped vmap(grad), without noise": by_vmap,
    }
    for name, way in ways.items():
        start = time.perf_counter()
        way()
        seconds = time.perf_counter() - start
        print(f"batch {batch}, m {points}, D {inputs}, one thread, {name}: {seconds:.3f} s")


def distilled(folder: Path, run: Run, synthetic: Path) -> None:
    """By gradients of the records, noisy or not; an interrupted run is gone on with."""
    output = run.file("{data}-{epsilon}-{per_class}-{seed}.h5")
    not_private = math.isinf(run.epsilon)
    bundle = WITHOUT_NOISE if not_private else {}
    settings = Settings(**{**bundle, "per_class": run.per_class, "seed": run.seed})
    if not output.exists():
        source = open_source(folder, SourceOptions(classes=CLASSES))
        ledger = output.with_suffix(".ledger.json")
        distill(
            source, output, ledger,
            epsilon=run.epsilon, settings=settings, not_private=not_private,
        )  # fmt: skip
    generate(output, synthetic)


def of_a_release(folder: Path, run: Run, synthetic: Path) -> None:
    """From the generator of a release, which points of any number share."""
    trained = run.file("{data}-{epsilon}-{seed}")
    if not trained.exists():
        with tempfile.TemporaryDirectory() as name:
            embedding, output = Path(name) / "embedding.h5", Path(name) / "release.h5"
            save_embedding(
                embed(folder, TangentOptions(seed=run.seed), SourceOptions(classes=CLASSES)),
                embedding,
            )
            opened = release(embedding, output, PrivacyParameters(run.epsilon))
            generate(opened, trained, settings={"seed": run.seed})
    settings = PointSettings(run.per_class, seed=run.seed)
    points_to(synthetic, load_generator(trained), settings)


NO_NOISE = "distill, no noise"
METHODS = {
    "distill, add-remove": distilled,
    NO_NOISE: distilled,
    "generate --points, replace-one": of_a_release,
}


def runs_of(
    names: Sequence[str],
    methods: Sequence[str],
    epsilons: Sequence[float],
    per_class: Sequence[int],
    seeds: int,
) -> Iterator[Run]:
    """All runs that are asked for, seed by seed: what has no noise once, and not for an epsilon."""
    for seed, points in itertools.product(range(seeds), per_class):
        for name, method in itertools.product(names, methods):
            for epsilon in [math.inf] if method == NO_NOISE else epsilons:
                yield Run(name, epsilon, points, method, seed)


def result_of(folder: Path, run: Run) -> dict[str, float]:
    """Make points and score them on the real test images."""
    WORK.mkdir(exist_ok=True)
    synthetic = run.file("{data}-{epsilon}-{per_class}-{method}-{seed}")
    start = time.perf_counter()
    METHODS[run.method](folder, run, synthetic)
    seconds = time.perf_counter() - start
    records = read_synthetic(synthetic)
    test = read_real(folder, "test", records)
    classifiers = classifiers_of(synthetic, records)
    return {"seconds": seconds} | {
        name: classifier.score(records, test, run.seed) for name, classifier in classifiers.items()
    }


def table(results: dict[str, dict[str, float]]) -> str:
    """All finished runs as Markdown: mean and standard deviation over the seeds."""
    lines = [
        "# Distilled sets",
        "",
        "Accuracy on the real test images of what learns from the points alone: mean and standard",
        "deviation over the seeds; delta 1e-5. Seconds to make them, some beside much other work",
        "(where several numbers of points share a generator, its training counts once). What has",
        "no noise is NOT private, its epsilon inf. Written by `benchmarks/distill.py`.",
        "",
        *table_head("data", "epsilon", "per class", "method", "seeds", *SCORES, "s"),
    ]
    rows = rows_over_seeds(results, SCORES, SEPARATOR)
    for row in sorted(rows, key=lambda row: (row[0], float(row[1]), int(row[2]), row[3])):
        lines.append(table_row(rows[row]))
    return "\n".join(lines) + "\n"


def finite(text: str) -> float:
    """An epsilon that a method with noise can have."""
    epsilon = float(text)
    if not 0 < epsilon < math.inf:
        raise argparse.ArgumentTypeError(f"{text}: an epsilon is above 0; inf is '{NO_NOISE}'")
    return epsilon


def main() -> None:
    """Compare ways to clip, or run what is missing and write results and table after every run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", nargs="+", metavar="clipping|NAME=FOLDER")
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--inputs", type=int, default=784)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epsilons", type=finite, nargs="+", default=[1.0, 10.0])
    parser.add_argument("--per-class", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    arguments = parser.parse_args()
    if arguments.what == ["clipping"]:
        compare_clipping(arguments.batch, arguments.points, arguments.inputs)
        return
    use_threads()
    try:
        folders = dict(map(named_folder, arguments.what))
    except argparse.ArgumentTypeError as error:
        parser.error(str(error))
    results = finished(RESULTS)
    for run in runs_of(
        list(folders), arguments.methods, arguments.epsilons, arguments.per_class, arguments.seeds
    ):
        if run.key not in results:
            results[run.key] = result_of(folders[run.data], run)
            keep(results, RESULTS, table(results))
        print(run.key, results[run.key], flush=True)


if __name__ == "__main__":
    main()
