"""Images: scikit-learn's digits, released with epsilon 1, and how good the synthetic ones are.

Run: python examples/images.py FOLDER

FOLDER is made. The release is signed with this machine's key, which is made when it is first
needed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from dpntk.embed import SourceOptions, embed, save_embedding
from dpntk.evaluate import evaluate
from dpntk.generate import generate
from dpntk.release import PrivacyParameters, release


def main(folder: Path) -> None:
    """Write the data, then embed, release, generate and evaluate."""
    folder.mkdir(parents=True)
    digits = load_digits()
    images = np.rint(digits.images / 16 * 255).astype(np.uint8)
    np.savez(folder / "train.npz", x=images[:1400], y=digits.target[:1400])
    np.savez(folder / "test.npz", x=images[1400:], y=digits.target[1400:])

    # Sensitive, and never to be shared. The number of classes is declared, not looked up.
    embedding = embed(folder / "train.npz", source=SourceOptions(classes=10))
    save_embedding(embedding, folder / "embedding.h5")

    # May be given to anybody. The embedding's ledger says what was spent.
    release(folder / "embedding.h5", folder / "release.h5", PrivacyParameters(epsilon=1.0))

    # Anywhere, as often as one likes. The defaults take longer and do better on larger data.
    synthetic = generate(folder / "release.h5", folder / "synthetic", settings={"steps": 100})
    images, labels = synthetic.sample(10)  # more of them, in memory
    print(f"{len(labels)} more images of {images.shape[1]} pixels' side")

    print(evaluate(synthetic, test=folder / "test.npz"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
