"""Score kernel regression from a distilled set of rows, with its own kernel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ...common.sources.tables.frames import Frame
from ..distilled import SupportSet, read_points
from ..provenance import heading_of, is_distilled
from .scores import Scores, score_more_classes, score_two_classes
from .table import Table
from .task import Task
from .utility import Row, Run

KERNEL_REGRESSION: Final = "kernel regression"


def regression_rows(
    folders: Sequence[Path | Frame], tables: Sequence[Table], test: Table, task: Task, seed: int
) -> list[Row]:
    """Score kernel regression from the exact points of distilled sets.

    Args:
        folders: that `dpntk generate` wrote; rows in memory have no points.
        tables: the rows in them; those that are not of distilled sets are skipped.
        test: held-out real records.
        task: what to measure.
        seed: of the draw of records.

    Returns:
        A row for each kind of release, with a run for each set; empty if nothing is classified.

    Raises:
        DataError: points are missing or damaged.
    """
    if not task.measures:
        return []
    held_out = task.usable(test, seed)
    runs: dict[str, list[Run]] = {}
    for folder, table in zip(folders, tables, strict=True):
        if isinstance(folder, Path) and is_distilled(table.provenance):
            size = table.schema.record_size
            points = read_points(folder, table.provenance, len(task.classes), size)
            scores = {KERNEL_REGRESSION: _scores(points, held_out, task)}
            run = Run(points.count, points.count, points.count, scores)
            runs.setdefault(heading_of(table.provenance), []).append(run)
    return [Row(f"{kind}: {KERNEL_REGRESSION}", tuple(some)) for kind, some in runs.items()]


def _scores(points: SupportSet, test: Table, task: Task) -> Scores:
    outputs = points.outputs(test.records())
    predicted = outputs.argmax(axis=1)
    if task.positive is None:
        return score_more_classes(test.labels, predicted)
    positive = task.positive
    return score_two_classes(test.labels == positive, outputs[:, positive], predicted == positive)
