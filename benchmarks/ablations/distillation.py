"""What the settings of `dpntk distill` are worth: one table, for a data set of images.

Every variant distils the training part without its last records at the same epsilon (add-remove,
delta 1e-5), and kernel regression from the points is tested on these last records. The test part is
not read. Single runs on MNIST differ by about .005.

Run: python -m benchmarks.ablations.distillation FOLDER TABLE [--epsilon E] [--held-out N]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from dpntk.common.sources import open_source
from dpntk.common.sources.options import SourceOptions
from dpntk.evaluate.images.distilled import classifiers_of
from dpntk.evaluate.images.records import LabelledImages, read_synthetic
from dpntk.generate import generate
from dpntk.release.distill import Settings, distill

from .images import split

TABLES: dict[str, dict[str, Settings]] = {
    "10-per-class": {
        "clip .01, no smoothing": Settings(steps=200, clip_norm=0.01, smoothing=0.0),
        "clip .01, 1 pixel": Settings(steps=200, clip_norm=0.01, smoothing=1.0),
        "batches of 3,000": Settings(
            steps=200, clip_norm=0.01, smoothing=1.0, sampling_prob=1 / 20
        ),
        "ridge .01": Settings(steps=200, clip_norm=0.01, smoothing=1.0, ridge=1e-2),
        "ridge .1": Settings(steps=200, clip_norm=0.01, smoothing=1.0, ridge=1e-1),
        "clip .3": Settings(steps=200, smoothing=1.0),
        "clip 1": Settings(steps=200, clip_norm=1.0, smoothing=1.0),
        "clip .5, learning rate .04": Settings(
            steps=200, clip_norm=0.5, smoothing=1.0, learning_rate=0.04
        ),
        "clip .5, 400 steps": Settings(steps=400, clip_norm=0.5, smoothing=1.0),
        "batches of 500, ridge .0001": Settings(sampling_prob=1 / 120, ridge=1e-4),
        "default": Settings(),
    },
    "50-per-class": {
        "60 steps, clip .3": Settings(50, steps=60),
        "60 steps, clip 1.5": Settings(50, steps=60, clip_norm=1.5),
        "60 steps, clip 1.5, learning rate .03": Settings(
            50, steps=60, clip_norm=1.5, learning_rate=0.03
        ),
        "200 steps, clip 1": Settings(50, steps=200, clip_norm=1.0),
    },
}


def accuracy(
    train: LabelledImages, test: LabelledImages, settings: Settings, epsilon: float
) -> float:
    """The accuracy of kernel regression from the points that some settings find."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        images = train.pixels.reshape(-1, train.side, train.side)
        np.savez(folder / "records.npz", x=images, y=train.labels)
        source = open_source(folder / "records.npz", SourceOptions(classes=train.classes))
        output, ledger = folder / "release.h5", folder / "ledger.json"
        distill(source, output, ledger, epsilon=epsilon, settings=settings)
        generate(output, folder / "synthetic")
        records = read_synthetic(folder / "synthetic")
        classifiers = classifiers_of(folder / "synthetic", records)
        return classifiers["kernel regression"](records, test, 0)


def main() -> None:
    """Print a table as Markdown, row by row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--held-out", type=int, default=10_000)
    arguments = parser.parse_args()
    train, test = split(arguments.folder, arguments.held_out)
    print(f"| epsilon {arguments.epsilon:g} | accuracy |\n|---|---|", flush=True)
    for name, settings in TABLES[arguments.table].items():
        print(f"| {name} | {accuracy(train, test, settings, arguments.epsilon):.3f} |", flush=True)


if __name__ == "__main__":
    main()
