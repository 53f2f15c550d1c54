"""The evaluation as a table for people and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from ...common.console import TextTable
from ...common.storage.atomic import SENSITIVE_MODE, write_atomically
from .records import Records
from .utility import Accuracies

REPORT_BEGINS: Final = b'{\n  "measure": '
"""Beginning of `evaluation.json`, of images and of tables alike."""


def as_table(rows: Sequence[Accuracies], test: Records) -> TextTable:
    """Accuracies, one row a training set."""
    table = TextTable(f"accuracy on {len(test):,} real held-out records")
    table.add_column("trained on")  # wrapped where the others leave too little room
    table.add_column("records", right=True, min_width=len("records"))
    shown = list(rows[0].accuracy)
    for classifier in shown:
        longest = max(map(len, classifier.split()))
        table.add_column(classifier, right=True, min_width=longest)
    for row in rows:
        table.add_row(
            row.trained_on,
            f"{row.records:,}",
            *(f"{row.accuracy[name]:.3f}" if name in row.accuracy else "" for name in shown),
        )
    return table


def write_report(
    path: Path,
    rows: Sequence[Accuracies],
    synthetic: Records,
    test: Records,
    seed: int,
    classifiers: Mapping[str, str],
) -> None:
    """Write `evaluation.json`, exact figures of real records: readable by its owner alone (0600).

    Args:
        path: where.
        rows: the accuracies.
        synthetic: the records that they are of.
        test: the real records.
        seed: of the classifiers.
        classifiers: what they are, in words.

    Raises:
        OutputError: it cannot be written.
    """
    document: dict[str, Any] = {
        "measure": "accuracy",
        "test_records": len(test),
        "seed": seed,
        "rows": [
            {"trained_on": row.trained_on, "records": row.records, **row.accuracy} for row in rows
        ],
        "classifiers": dict(classifiers),
        "synthetic": synthetic.provenance,
        "versions": {name: version(name) for name in ("dpntk", "scikit-learn", "torch")},
    }
    content = json.dumps(document, indent=2).encode() + b"\n"
    write_atomically(path, content, mode=SENSITIVE_MODE)
