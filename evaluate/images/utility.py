"""The utility of synthetic images: train on them, test on real ones, and measure distances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...common.display.console import progress
from .classifiers import CLASSIFIERS, IN_COLOUR, ImageClassifier, linear_on_features
from .frechet import FeatureMetric, Gaussian
from .manifold import MOST_COMPARED, Manifold
from .records import LabelledImages

FRECHET: Final = "Frechet distance"
LINEAR: Final = "linear on features"
"""The classifier that is added if there is a metric module."""


@dataclass(frozen=True)
class Accuracies:
    """One row of the table.

    Attributes:
        trained_on: what the classifiers were trained on.
        records: number of these records.
        accuracy: accuracy of each classifier on the held-out real records; empty if all records are
            of one class.
        distances: distances of these records from the real ones, by name; empty if not requested.
    """

    trained_on: str
    records: int
    accuracy: Mapping[str, float]
    distances: Mapping[str, float] = field(default_factory=dict)


def measure(
    training_sets: Mapping[str, LabelledImages],
    test: LabelledImages,
    seed: int,
    for_the_first: Mapping[str, ImageClassifier] | None = None,
    metric: FeatureMetric | None = None,
) -> list[Accuracies]:
    """Train every classifier on every training set and test it on the same real records.

    Args:
        training_sets: records by their description.
        test: held-out real records.
        seed: of the classifiers.
        for_the_first: classifiers that apply only to the first training set.
        metric: the features of the distances; None to measure none.
    """
    rows = []
    further = dict(for_the_first or {})
    classifiers = {**CLASSIFIERS, **(IN_COLOUR if test.channels > 1 else {})}
    if test.classes < 2:
        classifiers = {}
    real = None if metric is None else metric.features_of(test)
    total = len(training_sets) * len(classifiers) + len(further)
    with progress("evaluating", total, "classifiers") as advance:
        for name, train in training_sets.items():
            accuracy = {}
            for kind, classifier in {**classifiers, **further}.items():
                advance(0, f"{kind} on {name}")
                accuracy[kind] = classifier.score(train, test, seed)
                advance(1, f"{kind} on {name}: {accuracy[kind]:.3f}")
            distances = {}
            if metric is not None and real is not None:
                features = metric.features_of(train)
                distances = _distances(features, real, seed)
                if test.classes > 1 and metric.module is not None:
                    accuracy[LINEAR] = linear_on_features(
                        (features, train.labels), (real, test.labels), seed
                    )
            rows.append(Accuracies(name, len(train), accuracy, distances))
            further = {}
    return rows


def _distances(
    synthetic: NDArray[np.float64], real: NDArray[np.float64], seed: int
) -> dict[str, float]:
    """Distances of images from real ones, by features of both, (n, d) and (m, d)."""
    many, random = min(len(synthetic), len(real), MOST_COMPARED), np.random.default_rng(seed)
    made, held_out = (
        Manifold.of(features[random.choice(len(features), many, replace=False)])
        for features in (synthetic, real)
    )
    return {
        FRECHET: Gaussian.of(synthetic).distance(Gaussian.of(real)),
        "precision": held_out.share_within(made.points),
        "recall": made.share_within(held_out.points),
    }
