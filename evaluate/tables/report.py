"""The evaluation of tables as tables for people and as JSON for programs."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.table import Table as Grid

from ...common.files import write_atomically
from .classifiers import CLASSIFIERS, XGBOOST
from .fidelity import METHOD
from .scores import HARD_ROC, MEANING, ROC
from .table import Table
from .utility import Row, Run, Task


def as_tables(rows: Sequence[Row], test: Table, task: Task) -> Iterator[Grid]:
    """Means over classifiers and distances, one row a training set; then each classifier."""
    main = Grid(title=f"measured on {len(test):,} real held-out records")
    main.caption = "; ".join(notes(rows, task))
    main.add_column("trained on", no_wrap=True)
    main.add_column("records", justify="right")
    columns = _columns(rows, task)
    for name in columns:
        main.add_column(name, justify="right")
    for row in rows:
        records = f"{row.runs[0].records:,}" if row.runs[0].records else ""
        main.add_row(row.trained_on, records, *(_cell(row, value) for value in columns.values()))
    yield main
    if not task.measures:
        return
    shown = task.measures if task.positive is None else (ROC, HARD_ROC)
    each = Grid(title=f"{' / '.join(shown)} of each classifier")
    each.add_column("classifier", no_wrap=True)
    for row in rows:
        each.add_column(row.trained_on, justify="right")
    for classifier in rows[0].runs[0].scores:
        values = [_score(classifier, measure) for measure in shown]
        each.add_row(
            classifier,
            *(" / ".join(_cell(row, value, deviations=False) for value in values) for row in rows),
        )
    yield each


def notes(rows: Sequence[Row], task: Task) -> list[str]:
    """What a reader of the figures has to know."""
    found = []
    if task.measures:
        found.append("means over the classifiers")
    if task.positive is not None:
        found.append(f"positive: {task.classes[task.positive]}")
    if task.kept_negatives < 1:
        found.append(
            f"only {task.kept_negatives:g} of the other class's records kept for training and "
            "test, as published tables did: for comparison only"
        )
    if any(run.trained_with < run.usable for row in rows for run in row.runs):
        found.append(f"trained on at most {task.most_records:,} records, drawn at random")
    if task.measures and XGBOOST not in rows[0].runs[0].scores:
        found.append("without XGBoost, which is not installed: pip install 'dpntk[evaluate]'")
    if any(len(row.runs) > 1 for row in rows):
        found.append("± standard deviation over runs")
    failures = {name for row in rows for run in row.runs for name in run.failed}
    if failures:
        found.append(f"failed somewhere, counted as constant there: {', '.join(sorted(failures))}")
    return found


Value = Callable[[Run], float | None]
"""Reads a figure off a run; None where it has no meaning."""


def summary(row: Row, value: Value) -> tuple[float, float] | None:
    """Mean and standard deviation over the runs (0 if there is one); None if there is no figure."""
    values = [found for run in row.runs if (found := value(run)) is not None]
    if not values:
        return None
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0


def write_table_report(
    path: Path, rows: Sequence[Row], synthetic: Sequence[Table], test: Table, task: Task, seed: int
) -> None:
    """Write `evaluation.json`.

    Raises:
        OutputError: it cannot be written.
    """
    used = list(rows[0].runs[0].scores)
    document: dict[str, Any] = {
        "measure": {name: MEANING[name] for name in task.measures},
        "total_variation": METHOD,
        "test_records": len(test),
        "seed": seed,
        "classes": list(task.classes),
        "positive": None if task.positive is None else task.classes[task.positive],
        "kept_negatives": task.kept_negatives,
        "most_training_records": task.most_records,
        "notes": notes(rows, task),
        "rows": [_row(row, rows, task) for row in rows],
        "classifiers": {name: CLASSIFIERS[name].settings for name in used},
        "synthetic": [table.provenance for table in synthetic],
        "versions": _versions(used),
    }
    write_atomically(path, json.dumps(document, indent=2).encode() + b"\n")


def _versions(used: Sequence[str]) -> dict[str, str]:
    found = {name: version(name) for name in ("dpntk", "scikit-learn")}
    if XGBOOST in used:  # installed under one of several names
        found["xgboost"] = str(import_module("xgboost").__version__)
    return found


def _row(row: Row, rows: Sequence[Row], task: Task) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for name, value in _columns(rows, task).items():
        if (found := summary(row, value)) is not None:
            figures[name] = found[0]
            if len(row.runs) > 1:
                figures[f"{name} deviation"] = found[1]
    return {
        "trained_on": row.trained_on,
        **figures,
        "runs": [
            {
                "records": run.records,
                "trained_with": run.trained_with,
                "classifiers": run.scores,
                "failed": run.failed,
                "one_way": None if run.distances is None else run.distances.columns,
            }
            for run in row.runs
        ],
    }


def _columns(rows: Sequence[Row], task: Task) -> dict[str, Value]:
    """Heading to figure of the columns of the main table."""
    found: dict[str, Value] = {name: _mean(name) for name in task.measures}
    if task.positive is not None and XGBOOST in rows[0].runs[0].scores:
        found[f"{XGBOOST} {ROC}"] = _score(XGBOOST, ROC)
    found["TVD 1-way"] = lambda run: run.distances.one_way if run.distances else None
    found["TVD 2-way"] = lambda run: run.distances.two_way if run.distances else None
    return found


def _cell(row: Row, value: Value, *, deviations: bool = True) -> str:
    found = summary(row, value)
    if found is None:
        return ""
    return f"{found[0]:.3f}" + (f" ± {found[1]:.3f}" if deviations and len(row.runs) > 1 else "")


def _mean(measure: str) -> Value:
    return lambda run: run.mean(measure)


def _score(classifier: str, measure: str) -> Value:
    return lambda run: run.scores[classifier][measure]
