"""The evaluation of images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from ...common.display.console import TextTable
from ..report import Evaluation
from .frechet import FeatureMetric
from .utility import FRECHET, Accuracies


@dataclass(frozen=True, eq=False)
class ImageEvaluation(Evaluation):
    """Accuracies of classifiers trained on synthetic images, and distances of these to real ones.

    Attributes:
        rows: the accuracies for each training set.
        test_records: number of real records that they are measured on.
        seed: of the classifiers.
        classifiers: descriptions of the classifiers.
        provenance: where the synthetic images come from.
        metric: the features of the distances; None if none were measured.
        by_chance: accuracy of always answering the most frequent class; None if there is only one.
    """

    rows: tuple[Accuracies, ...]
    test_records: int
    seed: int
    classifiers: Mapping[str, str]
    provenance: Mapping[str, Any]
    metric: FeatureMetric | None = None
    by_chance: float | None = None

    @property
    def figures(self) -> Mapping[str, Mapping[str, float]]:
        """Accuracies by classifier, and distances by name, for each training set."""
        return {row.trained_on: {**row.accuracy, **row.distances} for row in self.rows}

    def table(self) -> TextTable:
        """Accuracies and distances, one row for each training set."""
        shown = list(self.rows[0].accuracy)
        # Whether they were held out is unknown: no file records which ones were embedded.
        real = f"{self.test_records:,} real records"
        captions = []
        if self.by_chance is not None:
            captions.append(f"always answering the most frequent class: {self.by_chance:.3f}")
        if self.metric is not None:
            captions.append(f"{FRECHET} to these: of {self.metric.name}")
        what = f"accuracy on {real}" if shown else f"distance to {real}"
        table = TextTable(what, caption="; ".join(captions))
        table.add_column(
            "trained on" if shown else "images"
        )  # wrapped if the others leave too little room
        table.add_column("records", right=True, min_width=len("records"))
        for classifier in shown:
            longest = max(map(len, classifier.split()))
            table.add_column(classifier, right=True, min_width=longest)
        for name in self.rows[0].distances:
            table.add_column(name, right=True, min_width=max(map(len, name.split())))
        for row in self.rows:
            table.add_row(
                row.trained_on,
                f"{row.records:,}",
                *(f"{row.accuracy[name]:.3f}" if name in row.accuracy else "" for name in shown),
                *(f"{distance:.4g}" for distance in row.distances.values()),
            )
        return table

    def to_json(self) -> dict[str, Any]:
        """See `Evaluation`."""
        return {
            "measure": "accuracy" if self.classifiers else FRECHET,
            "test_records": self.test_records,
            "seed": self.seed,
            "rows": [
                {"trained_on": row.trained_on, "records": row.records}
                | {**row.accuracy, **row.distances}
                for row in self.rows
            ],
            **({} if self.by_chance is None else {"most_frequent_class": self.by_chance}),
            **({} if self.metric is None else {"metric": self.metric.to_json()}),
            "classifiers": dict(self.classifiers),
            "synthetic": dict(self.provenance),
            "versions": {name: version(name) for name in ("dpntk", "scikit-learn", "torch")},
        }
