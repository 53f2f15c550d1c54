"""How well one learns from a distilled set of rows by its own kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..distilled import Points
from .scores import Scores, score_more_classes, score_two_classes
from .table import Table
from .utility import Row, Run, Task

KERNEL_REGRESSION: Final = "kernel regression"


def regression_row(name: str, sets: Sequence[Points], test: Table, task: Task, seed: int) -> Row:
    """Score kernel regression from points as they are, before they were made rows.

    Args:
        name: of the row.
        sets: several are runs of the same kind.
        test: held-out real records.
        task: what to measure.
        seed: of the draw of records.
    """
    held_out = task.for_classifiers(test, seed)
    runs = []
    for points in sets:
        scores = {KERNEL_REGRESSION: _scores(points, held_out, task)}
        runs.append(Run(points.count, points.count, points.count, scores))
    return Row(name, tuple(runs))


def _scores(points: Points, test: Table, task: Task) -> Scores:
    outputs = points.outputs(test.records())
    predicted = outputs.argmax(axis=1)
    if task.positive is None:
        return score_more_classes(test.labels, predicted)
    positive = task.positive
    return score_two_classes(test.labels == positive, outputs[:, positive], predicted == positive)
