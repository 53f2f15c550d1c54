"""What the choices in the image generator are worth: one table, for one release.

The first records of the training part are embedded and released once (replace-one, delta 1e-5).
Every variant trains a generator on that release, and classifiers that learn from its images are
tested on the last records of the training part. The test part is not read, so these figures may be
used to make choices. Single runs on MNIST differ by about .005.

Run: python -m benchmarks.ablations.images FOLDER TABLE [--epsilon E] [--held-out N] [--records N]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np

from dpntk.common.sources import open_source
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import embed, save_embedding
from dpntk.evaluate.images.classifiers import CLASSIFIERS
from dpntk.evaluate.images.records import LabelledImages
from dpntk.evaluate.images.utility import measure
from dpntk.generate import TrainingSettings
from dpntk.generate.images import training
from dpntk.generate.images.distances import whitening
from dpntk.generate.images.generators import conditional as generator
from dpntk.generate.images.generators import deformations
from dpntk.generate.images.sampling import sample
from dpntk.release import PrivacyParameters, Release, open_release, release

SEED = 0


@dataclass(frozen=True)
class Variant:
    """What differs from the defaults.

    Attributes:
        settings: of `TrainingSettings`.
        spec: of `GeneratorSpec`.
        constants: module and name to value.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    spec: Mapping[str, int] = field(default_factory=dict)
    constants: Mapping[tuple[ModuleType, str], float] = field(default_factory=dict)


WITH_FLOWS = generator, deformations
TABLES: dict[str, dict[str, Variant]] = {
    "steps": {
        f"{steps} steps": Variant({"steps": steps}) for steps in (50, 100, 200, 400, 700, 1500)
    },
    "training": {
        "default": Variant(),
        "learning rate .005": Variant({"learning_rate": 0.005}),
        "learning rate .02": Variant({"learning_rate": 0.02}),
        "batches of 150": Variant({"batch": 150}),
    },
    "templates": {
        "16 factors, 8 flows of 5 x 5": Variant(),
        "8 factors": Variant(spec={"factors": 8}),
        "24 factors": Variant(spec={"factors": 24}),
        "8 factors, 16 flows": Variant(spec={"factors": 8, "flows": 16}),
        "24 factors, 12 flows": Variant(spec={"factors": 24, "flows": 12}),
        "flows of 4 x 4": Variant(constants={(m, "FLOW_GRID"): 4 for m in WITH_FLOWS}),
        "flows of 7 x 7": Variant(constants={(m, "FLOW_GRID"): 7 for m in WITH_FLOWS}),
        "next to no shared deformations": Variant(
            constants={
                (deformations, name): 1e-4 for name in ("_TURN", "_STRETCH", "_SHIFT", "_BEND")
            }
        ),
        "flows twice as large at the start": Variant(constants={(generator, "_FLOW_SCALE"): 0.06}),
        "24 factors, no flows": Variant(spec={"factors": 24, "flows": 0}),
    },
    "whitening": {
        f"t of {t:g} times the noise": Variant(constants={(whitening, "_SMOOTHING"): t})
        for t in (5, 50, 500, 2000, 20_000, 1e9)
    },
}


def split(folder: Path, held_out: int) -> tuple[LabelledImages, LabelledImages]:
    """The training part of a data set, but for its last records, and those."""
    source = open_source(folder)
    batches = list(source.batches(4096))
    pixels = np.concatenate([batch.records for batch in batches])
    labels = np.concatenate([batch.labels for batch in batches])
    names = source.schema.classes
    return (
        LabelledImages(pixels[:-held_out], labels[:-held_out], names, {}),
        LabelledImages(pixels[-held_out:], labels[-held_out:], names, {}),
    )


def released(records: LabelledImages, epsilon: float) -> Release:
    """A release of records, by way of the files that users have."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        images = records.pixels.reshape(-1, records.side, records.side)
        np.savez(folder / "records.npz", x=images, y=records.labels)
        embedding = embed(folder / "records.npz", source=SourceOptions(classes=records.classes))
        save_embedding(embedding, folder / "embedding.h5")
        release(folder / "embedding.h5", folder / "release.h5", PrivacyParameters(epsilon))
        return open_release(folder / "release.h5").release


def made(release: Release, variant: Variant, count: int) -> LabelledImages:
    """Records of the generator that a variant trains."""
    with ExitStack() as stack:
        for (module, name), value in variant.constants.items():
            stack.enter_context(patch.object(module, name, value))
        spec = partial(generator.GeneratorSpec, **variant.spec)
        stack.enter_context(patch.object(training, "GeneratorSpec", spec))
        settings = TrainingSettings(**{"seed": SEED, **variant.settings})
        trained = training.train(release, settings).generator
        images, labels = sample(trained, count, release.class_weights, SEED)
    return LabelledImages(images.reshape(count, -1), labels, release.schema.classes, {})


def show(name: str, records: LabelledImages, test: LabelledImages) -> None:
    """Print a row: the accuracies of classifiers that learn from some records."""
    (row,) = measure({name: records}, test, SEED)
    accuracies = [f"{accuracy:.3f}" for accuracy in row.accuracy.values()]
    print(f"| {name} | {' | '.join(accuracies)} |", flush=True)


def main() -> None:
    """Print a table as Markdown, row by row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--held-out", type=int, default=10_000)
    parser.add_argument("--records", type=int, default=30_000)
    arguments = parser.parse_args()
    train, test = split(arguments.folder, arguments.held_out)
    release = released(train, arguments.epsilon)
    print(f"| epsilon {arguments.epsilon:g} | {' | '.join(CLASSIFIERS)} |")
    print("|---" * (1 + len(CLASSIFIERS)) + "|", flush=True)
    show("the records", train, test)
    for name, variant in TABLES[arguments.table].items():
        show(name, made(release, variant, arguments.records), test)


if __name__ == "__main__":
    main()
