"""The picture in README.md: real images on the left, synthetic ones on the right.

Ten of each class, the first ones in the files: none is chosen.

Run: python benchmarks/material/picture.py REAL SYNTHETIC docs/images/mnist.png
REAL is what `dpntk embed` reads, SYNTHETIC a folder that `dpntk generate` wrote.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from dpntk.common.sources import open_source

EACH = 10
GAP = 20
WHITE = 255


def grid(images: NDArray[np.uint8], labels: NDArray[np.int64]) -> NDArray[np.uint8]:
    """A row for each class, dark on light: (rows * side, 10 * side)."""
    chosen = [images[labels == label][:EACH] for label in range(int(labels.max()) + 1)]
    return np.concatenate([WHITE - np.concatenate(list(row), axis=1) for row in chosen])


def real_ones(path: Path) -> NDArray[np.uint8]:
    """Those of a data set."""
    batch = next(open_source(path).batches(1000))
    side = round(batch.records.shape[1] ** 0.5)
    return grid(batch.records.reshape(-1, side, side), batch.labels)


def main() -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for name in ("real", "synthetic", "output"):
        parser.add_argument(name, type=Path)
    arguments = parser.parse_args()
    with np.load(arguments.synthetic / "images.npz") as made:
        right = grid(made["x"], made["y"])
    left = real_ones(arguments.real)
    between = np.full((len(left), GAP), WHITE, dtype=np.uint8)
    Image.fromarray(np.concatenate([left, between, right], axis=1)).save(
        arguments.output, optimize=True
    )


if __name__ == "__main__":
    main()
