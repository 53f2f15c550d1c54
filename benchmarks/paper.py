"""Table 1 of the DP-NTK paper and its pictures, by the paper's own system and by ours.

Table 1 (Yang et al., arXiv 2303.01687): widths 100, 400, 800 and 1000 at epsilon 10; beside it
width 800 at epsilon .2, 1 and 10 and without noise. Every run: embed, release (replace-one, delta
1e-5), generate as many images as there are records, train two classifiers of `dpntk evaluate` on
them, and test these on the real test images. Methods:

- "paper": tangent features of `fc_1l` on the pixels, and the recipe `paper`: convolutional
  generator, plain distance, code 5, 2,000 steps. The batch is 500 unless --batch says 5,000, as
  printed, with which a step takes a processor ten times as long;
- "default": what a user gets who chooses nothing, on the same release.

The seed is of features, training and classifiers; the noise has none. Finished runs are kept in
benchmarks/results/paper.json, so an interrupted table is gone on with; the table is a section of
benchmarks/results/README.md, beside what was printed. --pictures writes, for each data set, ten
images of each class of every run beside real ones.

--quick goes the whole way with few records, steps and runs, and keeps nothing.

Run: python -m benchmarks.paper NAME=FOLDER [NAME=FOLDER ...] [--seeds N] [--batch N]
     [--methods M ...] [--pictures FOLDER] [--quick]
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from dpntk.common.features.ntk.presets import LEARNING_RATE, PRESETS
from dpntk.common.sources import open_source
from dpntk.common.sources.options import SourceOptions
from dpntk.common.storage.atomic import write_atomically
from dpntk.embed import FeatureOptions, embed, save_embedding
from dpntk.evaluate.images.classifiers import CLASSIFIERS
from dpntk.evaluate.images.records import LabelledImages, read_real, read_synthetic
from dpntk.generate import TrainingSettings, generate
from dpntk.generate.fit.recipe import CONVOLUTIONAL, PLAIN, ComposedSettings
from dpntk.generate.images.training import usual_settings
from dpntk.release import PrivacyParameters, Release, open_release, release

from .images import CLASSES, SEPARATOR
from .material.picture import EACH, GAP, WHITE
from .sections import put_section

RESULTS: Final = Path(__file__).parent / "results/paper.json"
PAPER, DEFAULT = "paper", "default"
WIDTHS: Final = (100, 400, 800, 1000)
EPSILONS: Final = (0.2, 1.0, 10.0, math.inf)
SCORES: Final = ("logistic regression", "MLP")
PRINTED: Final[Mapping[tuple[str, int, float], tuple[float, float]]] = {
    ("MNIST", 100, 10.0): (0.8423, 0.8824),
    ("MNIST", 400, 10.0): (0.8404, 0.8811),
    ("MNIST", 800, 10.0): (0.84, 0.88),
    ("MNIST", 1000, 10.0): (0.8387, 0.8805),
    ("MNIST", 800, 1.0): (0.8324, 0.8620),
    ("MNIST", 800, 0.2): (0.804, 0.794),
    ("FashionMNIST", 100, 10.0): (0.7640, 0.7773),
    ("FashionMNIST", 400, 10.0): (0.7642, 0.7806),
    ("FashionMNIST", 800, 10.0): (0.7663, 0.7838),
    ("FashionMNIST", 1000, 10.0): (0.7643, 0.7768),
    ("FashionMNIST", 800, 1.0): (0.7596, 0.7645),
    ("FashionMNIST", 800, 0.2): (0.634, 0.694),
}
"""Logistic regression and MLP by data, width and epsilon: tables 1 and 2 of the paper."""
_ROW: Final = PRESETS["mnist"]
_BATCH: Final = 500


@dataclass(frozen=True)
class Run:
    """One line of results/paper.json."""

    data: str
    width: int
    epsilon: float
    method: str
    batch: int
    seed: int

    @property
    def key(self) -> str:
        """Its name there."""
        parts = self.data, f"{self.width}", f"{self.epsilon:g}", self.method, f"{self.batch}"
        return SEPARATOR.join((*parts, str(self.seed)))

    def settings(self, made: Release, steps: int | None) -> TrainingSettings:
        """How the generator is trained."""
        if self.method == DEFAULT:
            usual = replace(usual_settings(made), seed=self.seed)
            return usual if steps is None else replace(usual, steps=steps)
        return ComposedSettings(
            steps=_ROW.steps if steps is None else steps,
            batch=self.batch,
            seed=self.seed,
            learning_rate=LEARNING_RATE,
            generator=CONVOLUTIONAL,
            objective=PLAIN,
            code=_ROW.code,
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
        features = FeatureOptions(seed=run.seed, width=run.width, front="pixels")
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


def wanted(names: list[str], methods: list[str], batch: int, seeds: int) -> Iterator[Run]:
    """Table 1, and width 800 at the other epsilons; the first seed of everything first."""
    cells = [(width, 10.0) for width in WIDTHS]
    cells += [(800, epsilon) for epsilon in EPSILONS if epsilon != 10]
    for seed in range(seeds):
        for name in names:
            for width, epsilon in cells:
                for method in methods:
                    of_method = batch if method == PAPER else TrainingSettings().batch
                    yield Run(name, width, epsilon, method, of_method, seed)


def table(results: Mapping[str, Mapping[str, float]]) -> str:
    """All finished runs as Markdown beside what was printed: means over the seeds."""
    lines = [
        "# The paper's own system",
        "",
        "Logistic regression / MLP on the real test images, trained on synthetic ones; `fc_1l` on",
        "the pixels, delta 1e-5, means over the seeds. Printed: tables 1 and 2 of arXiv 2303.01687",
        "(means of five). Written by `benchmarks/paper.py`.",
        "",
        "| data | width | epsilon | method | batch | seeds | ours | printed | s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    runs: dict[tuple[str, int, float, str, int], list[Mapping[str, float]]] = {}
    for key, result in results.items():
        name, wide, noise, how, many, _ = key.split(SEPARATOR)
        runs.setdefault((name, int(wide), float(noise), how, int(many)), []).append(result)
    for row in sorted(runs):
        data, width, epsilon, method, batch = row
        means = [statistics.fmean(run[score] for run in runs[row]) for score in SCORES]
        seconds = statistics.median(run["seconds"] for run in runs[row])
        printed = PRINTED.get((data, width, epsilon)) if method == PAPER else None
        cells = (
            data, f"{width}", "none" if math.isinf(epsilon) else f"{epsilon:g}", method, f"{batch}",
            f"{len(runs[row])}", _pair(means), "" if printed is None else _pair(printed),
            f"{seconds:.0f}",
        )  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _pair(scores: list[float] | tuple[float, float]) -> str:
    return " / ".join(f"{score:.3f}" for score in scores)


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
    parser.add_argument("data", nargs="+", metavar="NAME=FOLDER")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=_BATCH)
    parser.add_argument("--methods", nargs="+", choices=(PAPER, DEFAULT), default=[PAPER, DEFAULT])
    parser.add_argument("--pictures", type=Path)
    parser.add_argument("--quick", action="store_true")
    said = parser.parse_args(arguments)
    folders = {name: Path(folder) for name, folder in (x.split("=", 1) for x in said.data)}
    runs = list(wanted(list(folders), said.methods, said.batch, said.seeds))
    results: dict[str, dict[str, float]] = {}
    if said.quick:
        runs = [run for run in runs if (run.width, run.epsilon, run.seed) == (100, 10.0, 0)]
    elif RESULTS.exists():
        results = json.loads(RESULTS.read_text())
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
            scores = {score: CLASSIFIERS[score](made, test, run.seed) for score in SCORES}
            results[run.key] = {**scores, "seconds": seconds}
            if not said.quick:
                document = json.dumps(results, indent=1, sort_keys=True) + "\n"
                write_atomically(RESULTS, document.encode())
                put_section(table(results))
        print(run.key, results[run.key], flush=True)
    for name, images in shown.items():
        picture(images, said.pictures / f"{name}.png")
    if said.quick:
        print(table(results))


if __name__ == "__main__":
    main()
