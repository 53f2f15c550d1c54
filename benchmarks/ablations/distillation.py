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
        "default": Settings(),
        "100 steps": Settings(steps=100),
        "300 steps": Settings(steps=300),
        "learning rate .015": Settings(learning_rate=0.015),
        "learning rate .03": Settings(learning_rate=0.03),
        "learning rate .03, 1 pixel": Settings(learning_rate=0.03, smoothing=1.0),
        "clip .1": Settings(clip_norm=0.1),
        "clip 1": Settings(clip_norm=1.0),
    },
    "50-per-class": {
        "default": Settings(50),
        "learning rate .03": Settings(50, learning_rate=0.03),
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
        return classifiers["kernel regression"].score(records, test, 0)


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
