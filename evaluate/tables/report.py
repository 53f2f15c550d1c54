"""The evaluation of tables."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from typing import Any, Final

from ...common.display.console import TextTable
from ..report import REAL, Evaluation
from .attacks import CLOSEST, METHODS, SCOPE
from .baselines import INDEPENDENT
from .classifiers import CLASSIFIERS, PUBLISHED
from .fidelity.associations import ASSOCIATIONS
from .fidelity.correlations import CORRELATIONS
from .fidelity.distances import METRICS
from .learner import XGBOOST
from .points import KERNEL_REGRESSION
from .regressions import REGRESSIONS
from .scores import HARD_ROC, MEANING, ROC
from .task import Task
from .utility import Row, Run

_DEPENDENCE: Final = (CORRELATIONS.name, ASSOCIATIONS.name)
_DIGITS: Final = {metric.name: metric.digits for metric in METRICS}
_NOTEWORTHY: Final = 0.02
"""If independent columns have a smaller error than this, there is no dependence to lose."""
_BY_CHANCE: Final = 1.5
"""The same, in standard errors of a correlation."""
_FAR_OFF: Final = 0.5
"""A column's mean is far off by this many standard deviations, or its deviation by this power of
e."""


@dataclass(frozen=True, eq=False)
class TableEvaluation(Evaluation):
    """Scores of models trained on synthetic tables, and distances of these to real ones.

    Attributes:
        rows: the figures for each training set.
        test_records: number of real records that they are measured on.
        task: what is measured.
        seed: of the classifiers and of all draws.
        provenance: origin of each synthetic table.
    """

    rows: tuple[Row, ...]
    test_records: int
    task: Task
    seed: int
    provenance: tuple[Mapping[str, Any], ...]

    @property
    def figures(self) -> Mapping[str, Mapping[str, float]]:
        """Means and distances by their names, for each training set."""
        return {row.trained_on: figures_of(row, self.rows, self.task) for row in self.rows}

    def table(self) -> TextTable:
        """All figures, one column for each training set: means, distances, and each classifier."""
        rows, task = self.rows, self.task
        grid = TextTable(
            f"measured on {self.test_records:,} real records",
            caption="; ".join(notes(rows, task, self.test_records)),
        )
        grid.add_column(wrap=False)
        for row in rows:
            longest = max(map(len, row.trained_on.split()))
            grid.add_column(row.trained_on, right=True, min_width=longest)
        records = (f"{row.runs[0].records:,}" if row.runs[0].records else "" for row in rows)
        grid.add_row("records", *records)
        for name, value in _figures(rows, task).items():
            if any(figures := [_cell(row, value, _DIGITS.get(name, 3)) for row in rows]):
                if name == CLOSEST:
                    grid.add_section()
                grid.add_row(name, *figures)
        if not task.measures:
            return grid
        grid.add_section()
        shown = task.measures if task.positive is None else (ROC, HARD_ROC)
        grid.add_row(" / ".join(shown))
        for classifier in rows[0].runs[0].scores:
            values = [_score(classifier, measure) for measure in shown]
            cells = (
                " / ".join(_mean_of(row, value) for value in values)
                if classifier in row.runs[0].scores
                else ""
                for row in rows
            )
            grid.add_row(f"  {classifier}", *cells)
        return grid

    def to_json(self) -> dict[str, Any]:
        """See `Evaluation`."""
        rows, task = self.rows, self.task
        used = list(rows[0].runs[0].scores)
        classifiers = PUBLISHED if task.published else CLASSIFIERS
        kinds = classifiers if task.target is None else REGRESSIONS
        return {
            "measure": {name: MEANING[name] for name in task.measures},
            "distances": {metric.name: metric.method for metric in METRICS},
            "attacks": {name: METHODS[name] for name in rows[0].runs[0].attacks},
            "test_records": self.test_records,
            "seed": self.seed,
            "classes": list(task.classes),
            "positive": None if task.positive is None else task.classes[task.positive],
            "target": task.target,
            "kept_negatives": task.kept_negatives,
            "most_training_records": task.most_records,
            "notes": notes(rows, task, self.test_records),
            "rows": [_row(row, rows, task) for row in rows],
            "classifiers": {name: kinds[name].settings for name in used},
            "synthetic": [dict(said) for said in self.provenance],
            "versions": _versions(used),
        }


def notes(rows: Sequence[Row], task: Task, test_records: int) -> list[str]:
    """What a reader of the figures needs to know."""
    found = [*_lost_dependence(rows, test_records), *_lost_moments(rows)]
    if task.measures:
        found.append(f"means over the {'classifiers' if task.target is None else 'regressions'}")
    if task.target is not None:
        found.append(f"target: {task.target}")
    if task.positive is not None:
        found.append(f"positive: {task.classes[task.positive]}")
    if task.kept_negatives < 1:
        found.append(
            f"only {task.kept_negatives:g} of the other class's records kept for training and "
            "test, as published tables did: for comparison only"
        )
    if task.published and task.target is None and task.measures:
        found.append("classifiers with the settings of published tables: for comparison only")
    if any(run.trained_with < run.usable for row in rows for run in row.runs):
        found.append(f"trained on at most {task.most_records:,} records, drawn at random")
    if task.measures and XGBOOST not in rows[0].runs[0].scores:
        found.append("without XGBoost, which is not installed: pip install xgboost-cpu")
    if any(KERNEL_REGRESSION in run.scores for row in rows for run in row.runs):
        found.append("kernel regression is no mean: from the points as they are, by their kernel")
    if any(len(row.runs) > 1 for row in rows):
        found.append("± standard deviation over runs")
    if rows[0].runs[0].attacks:
        found.append(SCOPE)
    failures = {name for row in rows for run in row.runs for name in run.failed}
    if failures:
        found.append(f"failed somewhere, counted as constant there: {', '.join(sorted(failures))}")
    return found


def _lost_dependence(rows: Sequence[Row], test_records: int) -> list[str]:
    """Notes on training sets that are closer to independent columns than to real ones.

    If there are few test records, real training rows also have an error by chance, and synthetic
    rows are excused for that much. If real columns do not depend on each other, the error of
    independent columns is due to chance, and nothing can be lost.
    """
    records = min((run.records for row in rows for run in row.runs if run.records), default=1)
    least = max(_NOTEWORTHY, _BY_CHANCE * (1 / test_records + 1 / records) ** 0.5)
    figures = {row.trained_on: _distances_of(row) for row in rows}
    chance = next((some for name, some in figures.items() if name.startswith(INDEPENDENT)), {})
    real = figures.get(REAL, {})
    lost = []
    for trained_on, found in figures.items():
        if _is_baseline(trained_on):
            continue
        by = []
        for name in _DEPENDENCE:
            if name not in found or chance[name] <= least:
                continue
            to_lose = chance[name] - real.get(name, 0.0)
            if to_lose > _NOTEWORTHY and chance[name] - found[name] < to_lose / 2:
                by.append(
                    f"{name} {found[name]:.3f}, independent columns {chance[name]:.3f}"
                    f"{f', real rows {real[name]:.3f}' if name in real else ''}"
                )
        if by:
            what = "columns have lost most of how they go together"
            lost.append(f"{trained_on}: {what} ({'; '.join(by)})")
    return lost


def _lost_moments(rows: Sequence[Row]) -> list[str]:
    """Notes on numbers whose mean or deviation is far off, and farther than real rows' may be."""
    farthest = {row.trained_on: [run.farthest for run in row.runs if run.farthest] for row in rows}
    by_chance = max((moments.off for moments in farthest.get(REAL, [])), default=0.0)
    found = []
    for trained_on, several in farthest.items():
        if _is_baseline(trained_on) or not several:
            continue
        worst = max(several, key=lambda moments: moments.off)
        if worst.off > max(_FAR_OFF, 2 * by_chance):
            found.append(f"{trained_on}: {worst}")
    return found


def _is_baseline(trained_on: str) -> bool:
    return trained_on == REAL or trained_on.startswith(INDEPENDENT)


def _distances_of(row: Row) -> dict[str, float]:
    values = {metric.name: summary(row, _distance(metric.name)) for metric in METRICS}
    return {name: found[0] for name, found in values.items() if found is not None}


Value = Callable[[Run], float | None]
"""Reads a figure from a run; None if it does not apply."""


def summary(row: Row, value: Value) -> tuple[float, float] | None:
    """Mean and standard deviation over runs (0 for a single one); None if there is no figure."""
    values = [found for run in row.runs if (found := value(run)) is not None]
    if not values:
        return None
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0


def _versions(used: Sequence[str]) -> dict[str, str]:
    found = {name: version(name) for name in ("dpntk", "scikit-learn")}
    if XGBOOST in used:  # it can be installed under several names
        found["xgboost"] = str(import_module("xgboost").__version__)
    return found


def figures_of(row: Row, rows: Sequence[Row], task: Task) -> dict[str, float]:
    """The figures of a training set, and their deviations between runs, by name.

    Args:
        row: the training set.
        rows: all rows of the table.
        task: what was measured.
    """
    figures: dict[str, float] = {}
    for name, value in _figures(rows, task).items():
        if (found := summary(row, value)) is not None:
            figures[name] = found[0]
            if len(row.runs) > 1:
                figures[f"{name} deviation"] = found[1]
    return figures


def _row(row: Row, rows: Sequence[Row], task: Task) -> dict[str, Any]:
    return {
        "trained_on": row.trained_on,
        **figures_of(row, rows, task),
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


def _figures(rows: Sequence[Row], task: Task) -> dict[str, Value]:
    """The functions that read each figure of a training set, by name."""
    found: dict[str, Value] = {name: _mean(name) for name in task.measures}
    if task.positive is not None and XGBOOST in rows[0].runs[0].scores:
        found[f"{XGBOOST} {ROC}"] = _score(XGBOOST, ROC)
    found |= {metric.name: _distance(metric.name) for metric in METRICS}
    found |= {name: _attack(name) for name in METHODS}
    return found


def _cell(row: Row, value: Value, digits: int) -> str:
    found = summary(row, value)
    if found is None:
        return ""
    return " ± ".join(f"{figure:.{digits}f}" for figure in found[: min(2, len(row.runs))])


def _mean_of(row: Row, value: Value) -> str:
    found = summary(row, value)
    return "" if found is None else f"{found[0]:.3f}"


def _mean(measure: str) -> Value:
    return lambda run: run.mean(measure)


def _score(classifier: str, measure: str) -> Value:
    return lambda run: run.scores[classifier][measure] if classifier in run.scores else None


def _distance(metric: str) -> Value:
    return lambda run: run.distances.figures.get(metric) if run.distances else None


def _attack(name: str) -> Value:
    return lambda run: run.attacks.get(name)
