"""Distilled sets: how fast per-record norms are, and how well one learns from the points.

    python -m benchmarks.distill norms [--batch B] [--points M] [--inputs D]
    python -m benchmarks.distill NAME=FOLDER ... [--seeds N] [--epsilons E ...] [--per-class P ...]

The first compares the norms that clipping needs, by coefficients, with `vmap(grad)`. The second
distills training images with the preset of the data set, one seed of the start after the other (the
noise has none), and classifies the real test images by kernel regression from the points, and by
the ConvNet of `dpntk evaluate`. An interrupted run is gone on with, and finished ones are kept in
benchmarks/distilled.json; the table goes to benchmarks/results.md.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from dpntk.common.files import write_atomically
from dpntk.common.sources import open_source
from dpntk.common.threads import use_threads
from dpntk.evaluate import read_real, read_synthetic
from dpntk.evaluate.distilled import classifiers_of
from dpntk.generate.distilled import export_points
from dpntk.release import own_key
from dpntk.release.distill import PRESETS, Settings, distill
from dpntk.release.reader import OpenedDistilled, open_any
from tests.release.distill.problems import draw_problem, plain_gradients

from .sections import put_section, rows_over_seeds

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "distilled.json"
WORK = FOLDER / "distilled"
SCORES = ("kernel regression", "ConvNet")
SEPARATOR = " | "
PRESET_OF = {"MNIST": "mnist", "FashionMNIST": "fashion"}


@dataclass(frozen=True)
class Run:
    """What was run, and with which seed."""

    data: str
    epsilon: float
    per_class: int
    seed: int

    @property
    def key(self) -> str:
        """Its name in distilled.json."""
        return SEPARATOR.join([self.data, f"{self.epsilon:g}", str(self.per_class), str(self.seed)])


def compare_norms(batch: int, points: int, inputs: int) -> None:
    """Print seconds of both ways to the same norms."""
    torch.set_num_threads(1)
    problem = draw_problem(batch, points, inputs, 10)
    start = time.perf_counter()
    expected = plain_gradients(problem).flatten(1).norm(dim=1)
    plain = time.perf_counter() - start
    start = time.perf_counter()
    loss = problem.loss
    found = loss.norms(loss.coefficients(problem.values, problem.record_targets))[0].sqrt()
    by_coefficients = time.perf_counter() - start
    wrong = float((found / expected - 1).abs().max())
    print(
        f"batch {batch}, m {points}, D {inputs}, one thread: vmap(grad) {plain:.2f} s, "
        f"coefficients {by_coefficients:.3f} s, {plain / by_coefficients:.0f} times faster, "
        f"largest relative difference {wrong:.1e}"
    )


def result_of(folder: Path, run: Run) -> dict[str, float]:
    """Distill, or go on with it, and score the points on the real test images."""
    WORK.mkdir(exist_ok=True)
    name = run.key.replace(SEPARATOR, "-")
    output, synthetic = WORK / f"{name}.h5", WORK / name
    preset = PRESETS.get(f"{PRESET_OF.get(run.data)}-{run.per_class}", {})
    settings = Settings(**{**preset, "per_class": run.per_class, "seed": run.seed})
    start = time.perf_counter()
    if not output.exists():
        source = open_source(folder, class_count=10)
        ledger = WORK / f"{name}.ledger.json"
        distill(source, output, ledger, own_key(), epsilon=run.epsilon, settings=settings)
    seconds = time.perf_counter() - start
    opened = open_any(output)
    if not isinstance(opened, OpenedDistilled):
        raise TypeError(f"{output} is no distilled set")
    export_points(opened, synthetic)
    records = read_synthetic(synthetic)
    test = read_real(folder, "test", records)
    scores = classifiers_of(synthetic, records)
    return {"seconds": seconds} | {
        name: score(records, test, run.seed) for name, score in scores.items()
    }


def table(results: dict[str, dict[str, float]]) -> str:
    """All finished runs as Markdown: mean and standard deviation over the seeds."""
    lines = [
        "# Distilled sets",
        "",
        "Accuracy on the real test images of what learns from the points alone: mean and standard",
        "deviation over the seeds; delta 1e-5, add-remove. Written by `benchmarks/distill.py`.",
        "",
        "| data | epsilon | per class | seeds | " + " | ".join(SCORES) + " | s |",
        "|---|---|---|---|" + "---|" * (len(SCORES) + 1),
    ]
    rows = rows_over_seeds(results, SCORES, SEPARATOR)
    for row in sorted(rows, key=lambda row: (row[0], float(row[1]), int(row[2]))):
        lines.append(f"| {' | '.join(rows[row])} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Compare norms, or run what is missing and write results and table after every run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", nargs="+", metavar="norms|NAME=FOLDER")
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--inputs", type=int, default=784)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 10.0])
    parser.add_argument("--per-class", type=int, nargs="+", default=[1, 10])
    arguments = parser.parse_args()
    if arguments.what == ["norms"]:
        compare_norms(arguments.batch, arguments.points, arguments.inputs)
        return
    use_threads()
    folders = dict(entry.split("=", 1) for entry in arguments.what)
    results: dict[str, dict[str, float]] = {}
    if RESULTS.exists():
        results = json.loads(RESULTS.read_text())
    for seed in range(arguments.seeds):
        for per_class in arguments.per_class:
            for epsilon in arguments.epsilons:
                for name, folder in folders.items():
                    run = Run(name, epsilon, per_class, seed)
                    if run.key not in results:
                        results[run.key] = result_of(Path(folder), run)
                        document = json.dumps(results, indent=1, sort_keys=True) + "\n"
                        write_atomically(RESULTS, document.encode())
                        put_section(table(results))
                    print(run.key, results[run.key], flush=True)


if __name__ == "__main__":
    main()
