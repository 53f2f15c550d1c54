"""Write scikit-learn's digits as a data owner might have them: a folder of PNGs for each class."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits


def main(folder: Path) -> None:
    """Write 1,797 images of 8x8 pixels, a fifth of them as the test part."""
    digits = load_digits()
    pixels = np.rint(digits.images / 16 * 255).astype(np.uint8)
    for index, (image, label) in enumerate(zip(pixels, digits.target, strict=True)):
        part = folder / ("test" if index % 5 == 4 else "train") / str(label)
        part.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(part / f"{index:04}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
