"""How useful synthetic records are: train on them, test on real ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...common.console import progress
from .classifiers import CLASSIFIERS, Classifier
from .records import LabelledImages


@dataclass(frozen=True)
class Accuracies:
    """One row of the table.

    Attributes:
        trained_on: what the classifiers were trained on.
        records: how many of them.
        accuracy: classifier to its accuracy on the held-out real records.
    """

    trained_on: str
    records: int
    accuracy: Mapping[str, float]


def measure(
    training_sets: Mapping[str, LabelledImages],
    test: LabelledImages,
    seed: int,
    for_the_first: Mapping[str, Classifier] | None = None,
) -> list[Accuracies]:
    """Train every classifier on every training set and test it on the same real records.

    Args:
        training_sets: description to records.
        test: held-out real records.
        seed: of the classifiers.
        for_the_first: classifiers that have a meaning for the first training set only.
    """
    rows = []
    further = dict(for_the_first or {})
    total = len(training_sets) * len(CLASSIFIERS) + len(further)
    with progress("evaluating", total, "classifiers") as advance:
        for name, train in training_sets.items():
            accuracy = {}
            for classifier, score in {**CLASSIFIERS, **further}.items():
                advance(0, f"{classifier} on {name}")
                accuracy[classifier] = score(train, test, seed)
                advance(1, f"{classifier} on {name}: {accuracy[classifier]:.3f}")
            rows.append(Accuracies(name, len(train), accuracy))
            further = {}
    return rows
