"""The evaluation of images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from ...common.console import TextTable
from ..report import Evaluation
from .utility import Accuracies


@dataclass(frozen=True, eq=False)
class ImageEvaluation(Evaluation):
    """Accuracies of classifiers that were trained on synthetic images.

    Attributes:
        rows: the accuracies, training set by training set.
        test_records: how many real ones they are measured on.
        seed: of the classifiers.
        classifiers: what they are, in words.
        provenance: where the synthetic images come from.
    """

    rows: tuple[Accuracies, ...]
    test_records: int
    seed: int
    classifiers: Mapping[str, str]
    provenance: Mapping[str, Any]

    @property
    def figures(self) -> Mapping[str, Mapping[str, float]]:
        """Accuracies by classifier, by what it was trained on."""
        return {row.trained_on: row.accuracy for row in self.rows}

    def table(self) -> TextTable:
        """Accuracies, one row a training set."""
        table = TextTable(f"accuracy on {self.test_records:,} real held-out records")
        table.add_column("trained on")  # wrapped where the others leave too little room
        table.add_column("records", right=True, min_width=len("records"))
        shown = list(self.rows[0].accuracy)
        for classifier in shown:
            longest = max(map(len, classifier.split()))
            table.add_column(classifier, right=True, min_width=longest)
        for row in self.rows:
            table.add_row(
                row.trained_on,
                f"{row.records:,}",
                *(f"{row.accuracy[name]:.3f}" if name in row.accuracy else "" for name in shown),
            )
        return table

    def to_json(self) -> dict[str, Any]:
        """See `Evaluation`."""
        return {
            "measure": "accuracy",
            "test_records": self.test_records,
            "seed": self.seed,
            "rows": [
                {"trained_on": row.trained_on, "records": row.records, **row.accuracy}
                for row in self.rows
            ],
            "classifiers": dict(self.classifiers),
            "synthetic": dict(self.provenance),
            "versions": {name: version(name) for name in ("dpntk", "scikit-learn", "torch")},
        }
