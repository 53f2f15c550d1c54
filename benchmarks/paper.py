"""Table 1 of the DP-NTK paper and its pictures, by the paper's own system and by ours.

Table 1 (Yang et al., arXiv 2303.01687): widths 100, 400, 800 and 1000 at epsilon 10; beside it
width 800 at epsilon .2, 1 and 10 and without noise. Every run: embed, release (replace-one, delta
1e-5), generate as many images as there are records, train two classifiers of `dpntk evaluate` on
them, and test these on the real test images. Methods:

- "paper": tangent features of `fc_1l_norm` on the pixels, and the recipe `paper`: convolutional
  generator, plain distance, code 5, 2,000 steps of 5,000 records, unless --steps and --batch name
  what a processor has time for;
- "default": what a user who chooses nothing gets, on the same release.

The seed applies to features, training and classifiers; the noise has none. Finished runs are kept
in benchmarks/results/paper.json, so an interrupted table can be resumed; the table is a section of
benchmarks/results/README.md, and `benchmarks/published.py` puts it beside the printed figures.
--pictures writes, for each data set, ten images of each class of every run beside real ones.

--quick goes through every step with few records, steps and runs, and keeps nothing.

Run: python -m benchmarks.paper NAME=FOLDER [NAME=FOLDER ...] [--seeds N] [--batch N]
     [--steps N] [--widths W ...] [--epsilons E ...] [--methods M ...] [--pictures FOLDER] [--quick]
"""

from __future__ import annotations

import argparse
import itertools
import math
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from dpntk.common.features.ntk.presets import LEARNING_RATE, PRESETS
from dpntk.common.sources import open_source
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import TangentOptions, embed, save_embedding
from dpntk.evaluate.images.classifiers import CLASSIFIERS
from dpntk.evaluate.images.records import LabelledImages, read_real, read_synthetic
from dpntk.generate import TrainingSettings, generate
from dpntk.generate.fit.recipe import CONSTANT, CONVOLUTIONAL, PLAIN, ComposedSettings
from dpntk.generate.images.training import usual_settings
from dpntk.release import PrivacyParameters, Release, open_release, release

from .images import CLASSES, SEPARATOR
from .material.named import named_folder
from .material.picture import EACH, GAP, WHITE
from .sections import finished, keep, rows_over_seeds, table_head, table_row

RESULTS: Final = Path(__file__).parent / "results/paper.json"
PAPER, DEFAULT = "paper", "default"
WIDTHS: Final = (100, 400, 800, 1000)
EPSILONS: Final = (0.2, 1.0, 10.0, math.inf)
SCORES: Final = ("logistic regression", "MLP")
_ROW: Final = PRESETS["mnist"]


@dataclass(frozen=True)
class Run:
    """One line of results/paper.json."""

    data: str
    width: int
    epsilon: float
    method: str
    batch: int
    steps: int
    seed: int

    @property
    def key(self) -> str:
        """Its name there."""
        settings = f"{self.width}", f"{self.epsilon:g}", self.method, f"{self.batch} x {self.steps}"
        return SEPARATOR.join((self.data, *settings, str(self.seed)))

    def settings(self, made: Release, steps: int | None) -> TrainingSettings:
        """How the generator is trained."""
        if self.method == DEFAULT:
            usual = replace(usual_settings(made), seed=self.seed)
            return usual if steps is None else replace(usual, steps=steps)
        return ComposedSettings(
            steps=self.steps if steps is None else steps,
            batch=self.batch,
            seed=self.seed,
            learning_rate=LEARNING_RATE,
            generator=CONVOLUTIONAL,
            objective=PLAIN,
            code=_ROW.code,
            schedule=CONSTANT,
        )


@dataclass(frozen=True)
class Scale:
    """How much is done.

    Attributes:
        records: to embed and to make at the most; all if None.
        steps: of training; those of the method if None.
    """

    records: int | None = None
    steps: int | None = None


FULL: Final = Scale()
QUICK: Final = Scale(records=300, steps=3)


def synthetic(data: Path, run: Run, scale: Scale) -> LabelledImages:
    """The images of a run, by way of the files that users have."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        features = TangentOptions(arch=_ROW.arch, width=run.width, front="pixels", seed=run.seed)
        source = SourceOptions(classes=CLASSES)
        records = data
        if scale.records is not None:
            records = folder / "some.npz"
            batch = next(open_source(data, source).batches(scale.records))
            side = math.isqrt(batch.records.shape[1])
            np.savez(records, x=batch.records.reshape(-1, side, side), y=batch.labels)
        save_embedding(embed(records, features, source), folder / "embedding.h5")
        without_noise = math.isinf(run.epsilon)
        parameters = PrivacyParameters(run.epsilon, not_private=without_noise)
        release(folder / "embedding.h5", folder / "release.h5", parameters)
        opened = open_release(folder / "release.h5")
        settings = run.settings(opened.release, scale.steps)
        generate(opened, folder / "synthetic", settings=settings)
        return read_synthetic(folder / "synthetic")


def wanted(
    names: list[str], methods: list[str], cells: list[tuple[int, float]], batch: int, steps: int
) -> Iterator[Run]:
    """All runs of one seed, which is 0."""
    own = TrainingSettings()
    for name, (width, epsilon), method in itertools.product(names, cells, methods):
        said = (batch, steps) if method == PAPER else (own.batch, own.steps)
        yield Run(name, width, epsilon, method, *said, seed=0)


def cells_of(widths: list[int], epsilons: list[float]) -> list[tuple[int, float]]:
    """Table 1, and the printed width at the other epsilons."""
    printed = int(_ROW.width)
    return [(width, 10.0) for width in widths] + [(printed, e) for e in epsilons if e != 10]


def table(results: dict[str, dict[str, float]]) -> str:
    """All finished runs as Markdown: mean and standard deviation over the seeds."""
    lines = [
        "# The paper's own system",
        "",
        "Accuracy on the real test images of logistic regression and MLP, trained on synthetic",
        "ones; `fc_1l_norm` on the pixels, delta 1e-5, mean and standard deviation over the seeds.",
        "Batch x steps: printed are 5000 x 2000. Written by `benchmarks/paper.py`.",
        "",
        *table_head("data", "width", "epsilon", "method", "batch x steps", "seeds", *SCORES, "s"),
    ]
    rows = rows_over_seeds(results, SCORES, SEPARATOR)
    for row in sorted(rows, key=lambda row: (row[0], int(row[1]), float(row[2]), row[3:])):
        lines.append(table_row(rows[row]))
    return "\n".join(lines) + "\n"


def picture(shown: list[LabelledImages], path: Path) -> None:
    """Ten images of each class of several sets, dark on light and side by side."""
    parts: list[NDArray[np.uint8]] = []
    for images in shown:
        side, classes = images.side, images.classes
        sheet = np.full((classes, EACH, side, side), WHITE, dtype=np.uint8)
        for label in range(classes):
            some = images.pixels[images.labels == label][:EACH]
            sheet[label, : len(some)] = WHITE - some.reshape(-1, side, side)
        made = sheet.swapaxes(1, 2).reshape(classes * side, EACH * side)
        parts += [made, np.full((len(made), GAP), WHITE, dtype=np.uint8)]
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.concatenate(parts[:-1], axis=1)).save(path, optimize=True)


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing, and write results and table after every run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data", type=named_folder, nargs="+", metavar="NAME=FOLDER")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=_ROW.batch)
    parser.add_argument("--steps", type=int, default=_ROW.steps)
    parser.add_argument("--widths", type=int, nargs="+", default=list(WIDTHS))
    parser.add_argument("--epsilons", type=float, nargs="+", default=list(EPSILONS))
    parser.add_argument("--methods", nargs="+", choices=(PAPER, DEFAULT), default=[PAPER, DEFAULT])
    parser.add_argument("--pictures", type=Path)
    parser.add_argument("--quick", action="store_true")
    said = parser.parse_args(arguments)
    folders = dict(said.data)
    cells = [(100, 10.0)] if said.quick else cells_of(said.widths, said.epsilons)
    one_seed = list(wanted(list(folders), said.methods, cells, said.batch, said.steps))
    seeds = range(1 if said.quick else said.seeds)
    runs = [replace(run, seed=seed) for seed in seeds for run in one_seed]
    results = {} if said.quick else finished(RESULTS)
    shown: dict[str, list[LabelledImages]] = {}
    for run in runs:
        data, drawn = folders[run.data], said.pictures is not None and run.seed == 0
        if run.key not in results or drawn:
            start = time.perf_counter()
            made = synthetic(data, run, QUICK if said.quick else FULL)
            seconds = round(time.perf_counter() - start, 1)
            test = read_real(data, "test", made)
            if drawn:
                shown.setdefault(run.data, [test]).append(made)
            scores = {score: CLASSIFIERS[score].score(made, test, run.seed) for score in SCORES}
            results[run.key] = {**scores, "seconds": seconds}
            if not said.quick:
                keep(results, RESULTS, table(results))
        print(run.key, results[run.key], flush=True)
    for name, images in shown.items():
        picture(images, said.pictures / f"{name}.png")
    if said.quick:
        print(table(results))


if __name__ == "__main__":
    main()
