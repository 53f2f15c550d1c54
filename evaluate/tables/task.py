"""The prediction task on a table, and its scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...common.arguments import argument
from ...common.errors import DataError, SchemaError
from ...common.schema.table import TableSchema
from .baselines import keep_negatives, rows_of
from .options import MOST_RECORDS
from .scores import (
    MORE_CLASSES,
    NUMBERS,
    TWO_CLASSES,
    Scores,
    score_more_classes,
    score_numbers,
    score_two_classes,
)
from .table import Table


@dataclass(frozen=True)
class Task:
    """What is measured on the test records.

    Attributes:
        classes: names of the label's classes; one if there is no label.
        positive: index of the positive class of two; None otherwise.
        kept_negatives: share of the other class's records that is kept, in training and test parts
            of the classifiers; below 1 only for comparison with published tables.
        most_records: largest number of records to train classifiers on; a random part of more.
        target: a numeric column to predict; None for the label.
        published: whether classifiers have the settings of published tables, not the usual ones.
    """

    classes: tuple[str, ...]
    positive: int | None
    kept_negatives: float = 1.0
    most_records: int = MOST_RECORDS
    target: str | None = None
    published: bool = False

    @property
    def measures(self) -> tuple[str, ...]:
        """The names of the scores; empty if there is nothing to predict."""
        if self.target is not None:
            return NUMBERS
        if len(self.classes) < 2:
            return ()
        return MORE_CLASSES if self.positive is None else TWO_CLASSES

    def usable(self, table: Table, seed: int) -> Table:
        """The records that can be used for the task."""
        if self.target is not None:
            return rows_of(table, np.flatnonzero(~np.isnan(self.truth(table))))
        if self.positive is not None and self.kept_negatives < 1:
            return keep_negatives(table, self.positive, self.kept_negatives, seed)
        return table

    def truth(self, table: Table) -> NDArray[Any]:
        """The values to predict: classes int64 (n,), or numbers float64 (n,)."""
        return table.labels if self.target is None else table.columns[self.target]

    def guess(self, truth: NDArray[Any]) -> float:
        """A constant prediction: the most frequent class, or the mean."""
        if self.target is None:
            listed = truth[truth >= 0]
            return int(np.bincount(listed, minlength=len(self.classes)).argmax())
        return float(truth.mean()) if len(truth) else 0.0

    def constant_scores(self, truth: NDArray[Any], guess: float) -> Scores:
        """Scores of a constant prediction.

        Args:
            truth: of the test records.
            guess: a class, or a number.
        """
        same = np.full(len(truth), guess)
        if self.target is not None:
            return score_numbers(truth, same)
        if self.positive is None:
            return score_more_classes(truth, same)
        hard = same == self.positive
        return score_two_classes(truth == self.positive, hard.astype(np.float64), hard)


def with_target(schema: TableSchema, target: str) -> TableSchema:
    """The schema with another column in place of the label.

    Args:
        schema: of the rows.
        target: name of a column: one of categories becomes the label, a numeric one stays a column.

    Raises:
        SchemaError: there is no such column, or it cannot be a label.
    """
    column = next((one for one in schema.columns if one.name == target), None)
    if column is None:
        there = ", ".join(one.name for one in schema.columns)
        named = argument("target", target)
        raise SchemaError(f"{named}: there is no such column; columns are {there}")
    if len(schema.columns) < 2:
        raise SchemaError(f"target {target!r}: there is no other column to predict it from")
    return replace(schema, label=None if column.kind.numeric else target)


def task_for(
    test: Table,
    positive: str | None,
    kept_negatives: float,
    most_records: int,
    target: str | None = None,
) -> Task:
    """Choose the task for the test records.

    Args:
        test: real held-out records, under the schema of `with_target`.
        positive: name of the positive class of two; if None, the rarer one among the test records.
        kept_negatives: share of the other class's records to keep.
        most_records: largest number of records to train classifiers on.
        target: the column to predict in place of the label.

    Raises:
        SchemaError: the label has no such class, or not two classes.
        DataError: all test records are of one class, or have the same number.
    """
    classes = test.schema.classes
    if len(classes) == 2:
        counts = np.bincount(test.labels, minlength=2)
        if not counts.all():
            raise DataError("all test records are of one class: nothing can be classified")
        if positive is not None and positive not in classes:
            raise SchemaError(f"no class {positive!r}: the label has {' and '.join(classes)}")
        index = int(np.argmin(counts)) if positive is None else classes.index(positive)
        if int(counts[1 - index] * kept_negatives) == 0:
            raise DataError("no test record of the other class is left: keep a larger share")
        return Task(classes, index, kept_negatives, most_records)
    if positive is not None or kept_negatives < 1:
        found = "there is no label" if test.schema.label is None else f"it has {len(classes)}"
        raise SchemaError(
            f"a positive class and kept negatives need a label with two classes, but {found}"
        )
    if len(classes) > 2 and len(np.unique(test.labels)) < 2:
        raise DataError("all test records are of one class: nothing can be classified")
    if target is None or test.schema.label == target:
        return Task(classes, None, kept_negatives, most_records)
    task = Task(classes, None, kept_negatives, most_records, target)
    if len(np.unique(task.truth(task.usable(test, 0)))) < 2:
        raise DataError(f"target {target!r}: no two test records differ: nothing can be predicted")
    return task
