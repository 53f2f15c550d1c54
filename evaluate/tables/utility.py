"""How useful synthetic tables are: train on them, test on real ones."""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...common.console import Advance, progress
from ...common.errors import DataError, SchemaError
from .baselines import keep_negatives, some_rows
from .classifiers import TableClassifier, available
from .features import ClassifierInputs, features_of
from .fidelity import Distances, distances
from .scores import MORE_CLASSES, TWO_CLASSES, Scores, score_more_classes, score_two_classes
from .table import Table

MOST_RECORDS: Final = 50_000
CONSTANT: Final = "constant"


@dataclass(frozen=True)
class Task:
    """What is measured on the test records.

    Attributes:
        classes: names of the label's classes; one if there is no label.
        positive: index of the positive class, of two; None otherwise.
        kept_negatives: share of the records of the other class that is kept, in training and test
            parts of the classifiers; 1 but for comparison with published tables.
        most_records: to train classifiers on: more are a random part.
    """

    classes: tuple[str, ...]
    positive: int | None
    kept_negatives: float = 1.0
    most_records: int = MOST_RECORDS

    @property
    def measures(self) -> tuple[str, ...]:
        """What classifiers are scored by; nothing where there is nothing to classify."""
        if len(self.classes) < 2:
            return ()
        return MORE_CLASSES if self.positive is None else TWO_CLASSES

    def for_classifiers(self, table: Table, seed: int) -> Table:
        """The records that classifiers are to see."""
        if self.positive is not None and self.kept_negatives < 1:
            return keep_negatives(table, self.positive, self.kept_negatives, seed)
        return table


@dataclass(frozen=True)
class Run:
    """One training set, measured.

    Attributes:
        records: how many there are.
        usable: how many of them are left for classifiers, once negatives are thinned out.
        trained_with: how many of these the classifiers saw.
        scores: classifier to its scores; empty if there is no label.
        failed: classifier to why it failed; it was counted as a constant.
        distances: from the test records; None for what is no table.
    """

    records: int
    usable: int
    trained_with: int
    scores: Mapping[str, Scores]
    failed: Mapping[str, str] = field(default_factory=dict)
    distances: Distances | None = None

    def mean(self, measure: str) -> float:
        """Mean over the classifiers."""
        return statistics.fmean(scores[measure] for scores in self.scores.values())


@dataclass(frozen=True)
class Row:
    """One row of the table: a training set, or several of the same kind.

    Attributes:
        trained_on: what it is.
        runs: at least one.
    """

    trained_on: str
    runs: tuple[Run, ...]


def task_for(test: Table, positive: str | None, kept_negatives: float, most_records: int) -> Task:
    """Find out what can be measured.

    Args:
        test: real held-out records.
        positive: name of the positive class of two; if None, the rarer one of the test records.
        kept_negatives: share of the other class's records to keep.
        most_records: to train classifiers on.

    Raises:
        SchemaError: the label has no such class, or not two classes.
        DataError: all test records are of one class.
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
    return Task(classes, None, kept_negatives, most_records)


def evaluate_tables(
    training_sets: Mapping[str, Sequence[Table]], test: Table, task: Task, seed: int
) -> list[Row]:
    """Train every classifier on every training set and test it on the same real records.

    Args:
        training_sets: description to tables; several are runs of the same kind, the i-th with the
            seed `seed + i`.
        test: held-out real records.
        task: what to measure.
        seed: of the classifiers and of the draws of records.

    Returns:
        A row for each description, and one for a constant predictor if there is a label.
    """
    kinds = available() if task.measures else {}
    held_out = task.for_classifiers(test, seed)
    rows = []
    steps = sum(map(len, training_sets.values())) * (len(kinds) + 1)
    with progress("evaluating", steps, "steps") as advance:
        for name, tables in training_sets.items():
            runs = []
            for number, table in enumerate(tables, seed):
                usable = task.for_classifiers(table, number)
                train = some_rows(usable, task.most_records, number)
                found = distances(table, test)
                advance(1, f"{name}: one-way distance {found.one_way:.3f}")
                scores, failed = _score_all(kinds, train, held_out, task, number, advance)
                runs.append(Run(len(table), len(usable), len(train), scores, failed, found))
            rows.append(Row(name, tuple(runs)))
    if kinds:
        guess = int(np.bincount(held_out.labels).argmax())
        constant = constant_scores(held_out.labels, guess, task)
        rows.append(Row(CONSTANT, (Run(0, 0, 0, dict.fromkeys(kinds, constant)),)))
    return rows


def _score_all(
    kinds: Mapping[str, TableClassifier],
    train: Table,
    test: Table,
    task: Task,
    seed: int,
    advance: Advance,
) -> tuple[dict[str, Scores], dict[str, str]]:
    """Scores of each classifier, and why some failed."""
    counts = np.bincount(train.labels, minlength=len(task.classes))
    if not kinds:
        return {}, {}
    constant = constant_scores(test.labels, int(counts.argmax()), task)
    if np.count_nonzero(counts) < 2:
        advance(len(kinds), "")
        return dict.fromkeys(kinds, constant), dict.fromkeys(kinds, "rows of one class only")
    seen = features_of(train, test)
    scores, failed = {}, {}
    for name, kind in kinds.items():
        try:
            scores[name] = _score(kind, seen, train.labels, test.labels, task, seed)
        except (ValueError, ArithmeticError, IndexError) as error:  # LinAlgError is a ValueError
            scores[name] = constant
            failed[name] = " ".join(str(error).split())[:200] or type(error).__name__
        advance(1, f"{name}: {' / '.join(f'{value:.3f}' for value in scores[name].values())}")
    return scores, failed


def _score(
    kind: TableClassifier,
    seen: tuple[ClassifierInputs, ClassifierInputs],
    labels: NDArray[np.int64],
    held_out: NDArray[np.int64],
    task: Task,
    seed: int,
) -> Scores:
    train, test = (part.ordered if kind.ordered else part.scaled for part in seen)
    classes, places = np.unique(labels, return_inverse=True)
    model = kind.make(seed)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        # Steps are limited by the protocol, and odd data are the point of measuring.
        warnings.simplefilter("ignore")
        model.fit(train, places)
        predicted = classes[np.asarray(model.predict(test), dtype=np.int64)]
        if task.positive is None:
            return score_more_classes(held_out, predicted)
        scores = _scores_of(model, test) * (1 if classes[1] == task.positive else -1)
    return score_two_classes(held_out == task.positive, scores, predicted == task.positive)


def _scores_of(model: Any, test: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: ANN401 - untyped
    """Larger where the second class is likelier, float64 (n,)."""
    if hasattr(model, "predict_proba"):
        found = model.predict_proba(test)[:, 1]
    else:
        found = model.decision_function(test)
    return np.asarray(found, dtype=np.float64)


def constant_scores(labels: NDArray[np.int64], guess: int, task: Task) -> Scores:
    """Scores of always guessing one class."""
    same = np.full(len(labels), guess)
    if task.positive is None:
        return score_more_classes(labels, same)
    hard = same == task.positive
    return score_two_classes(labels == task.positive, hard.astype(np.float64), hard)
