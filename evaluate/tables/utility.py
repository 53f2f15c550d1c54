"""The utility of synthetic tables: train on them, test on real ones."""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.pool import ThreadPool
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from ...common.display.console import Advance, progress
from ...common.runtime.threads import use_threads
from .attacks import Attackers
from .baselines import some_rows
from .classifiers import CLASSIFIERS, PUBLISHED
from .features import ClassifierInputs, features_of
from .fidelity.distances import Distances, distances
from .fidelity.moments import ColumnMoments, farthest_moments
from .learner import Learner, installed
from .regressions import REGRESSIONS
from .scores import Scores, score_more_classes, score_numbers, score_two_classes
from .table import Table
from .task import Task

CONSTANT: Final = "constant"


@dataclass(frozen=True)
class Run:
    """The figures of one training set.

    Attributes:
        records: number of records.
        usable: number of records that can be used for the task.
        trained_with: number of these that the classifiers or regressions were trained on.
        scores: scores of each classifier or regression; empty if there is nothing to predict.
        failed: reason of each failure; a failed one is scored as a constant prediction.
        distances: from the test records; None if the training set is not a table.
        attacks: results of attacks; empty if none were made.
        farthest: the numbers whose moments are farthest off; None if the training set is not a
            table, or has no numbers.
    """

    records: int
    usable: int
    trained_with: int
    scores: Mapping[str, Scores]
    failed: Mapping[str, str] = field(default_factory=dict)
    distances: Distances | None = None
    attacks: Mapping[str, float] = field(default_factory=dict)
    farthest: ColumnMoments | None = None

    def mean(self, measure: str) -> float:
        """Mean over the classifiers or regressions."""
        return statistics.fmean(scores[measure] for scores in self.scores.values())


@dataclass(frozen=True)
class Row:
    """One row of the table: a training set, or several of the same kind.

    Attributes:
        trained_on: description of the training set.
        runs: at least one.
    """

    trained_on: str
    runs: tuple[Run, ...]


def learners_for(task: Task) -> dict[str, Learner]:
    """The models to train: classifiers, regressions, or none."""
    if not task.measures:
        return {}
    if task.target is not None:
        return installed(REGRESSIONS)
    return installed(PUBLISHED if task.published else CLASSIFIERS)


def evaluate_tables(
    training_sets: Mapping[str, Sequence[Table]],
    test: Table,
    task: Task,
    seed: int,
    attackers: Attackers | None = None,
) -> list[Row]:
    """Train all classifiers or regressions on every training set; test on the same real records.

    Args:
        training_sets: tables by description; several are runs of the same kind, the i-th with the
            seed `seed + i`.
        test: held-out real records.
        task: what to measure.
        seed: of the models and of the draws of records.
        attackers: attack each training set to find the records that it was made from; None for no
            attacks.

    Returns:
        A row for each description, and one for a constant prediction if something is predicted.
    """
    kinds = learners_for(task)
    held_out = task.usable(test, seed)
    rows = []
    steps = sum(map(len, training_sets.values())) * (len(kinds) + 1)
    with progress("evaluating", steps, "steps") as advance:
        for name, tables in training_sets.items():
            runs = []
            for number, table in enumerate(tables, seed):
                usable = task.usable(table, number)
                train = some_rows(usable, task.most_records, number)
                advance(0, f"{name}: distances")
                found = distances(table, test)
                seen = {} if attackers is None else attackers.figures_of(table)
                advance(1, name)
                scores, failed = _score_all(kinds, train, held_out, task, number, advance)
                counts = len(table), len(usable), len(train)
                off = farthest_moments(table, test)
                runs.append(Run(*counts, scores, failed, found, seen, off))
            rows.append(Row(name, tuple(runs)))
    if kinds:
        truth = task.truth(held_out)
        constant = task.constant_scores(truth, task.guess(truth))
        rows.append(Row(CONSTANT, (Run(0, 0, 0, dict.fromkeys(kinds, constant)),)))
    return rows


def _score_all(
    kinds: Mapping[str, Learner], train: Table, test: Table, task: Task, seed: int, advance: Advance
) -> tuple[dict[str, Scores], dict[str, str]]:
    """Scores of all models, trained in parallel threads, and reasons of failures."""
    if not kinds:
        return {}, {}
    known, truth = task.truth(train), task.truth(test)
    constant = task.constant_scores(truth, task.guess(known))
    if len(np.unique(known)) < 2:
        advance(len(kinds), "")
        why = "rows of one class only" if task.target is None else "rows with one number only"
        return dict.fromkeys(kinds, constant), dict.fromkeys(kinds, why)
    inputs = features_of(train, test, task.target)
    failed: dict[str, str] = {}
    running: list[str] = []

    def score(name: str) -> tuple[str, Scores]:
        running.append(name)
        advance(0, ", ".join(running))
        try:
            return name, _score(kinds[name], inputs, known, truth, task, seed)
        except (ValueError, ArithmeticError, IndexError) as error:  # LinAlgError is a ValueError
            failed[name] = " ".join(str(error).split())[:200] or type(error).__name__
            return name, constant
        finally:
            running.remove(name)

    scores = {}
    # Threads share the records, and spend nearly all of their time in compiled code without the
    # interpreter's lock; each is limited to one core.
    workers = min(use_threads(), len(kinds))
    with warnings.catch_warnings(), threadpool_limits(1), ThreadPool(workers) as pool:
        # The protocol limits the steps, and unusual data are to be expected.
        warnings.simplefilter("ignore")
        for name, found in pool.imap_unordered(score, kinds):
            scores[name] = found
            advance(1, ", ".join(running))
    return {name: scores[name] for name in kinds}, failed


def _score(
    kind: Learner,
    inputs: tuple[ClassifierInputs, ClassifierInputs],
    known: NDArray[Any],
    truth: NDArray[Any],
    task: Task,
    seed: int,
) -> Scores:
    train, test = (part.ordered if kind.ordered else part.scaled for part in inputs)
    model = kind.make(seed)
    with np.errstate(all="ignore"):
        if task.target is not None:
            model.fit(train, known)
            return score_numbers(truth, np.asarray(model.predict(test), dtype=np.float64))
        classes, places = np.unique(known, return_inverse=True)
        model.fit(train, places)
        predicted = classes[np.asarray(model.predict(test), dtype=np.int64)]
        if task.positive is None:
            return score_more_classes(truth, predicted)
        scores = _scores_of(model, test) * (1 if classes[1] == task.positive else -1)
    return score_two_classes(truth == task.positive, scores, predicted == task.positive)


def _scores_of(model: Any, test: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: ANN401 - untyped
    """Scores that are larger if the second class is more likely, float64 (n,)."""
    if hasattr(model, "predict_proba"):
        found = model.predict_proba(test)[:, 1]
    else:
        found = model.decision_function(test)
    return np.asarray(found, dtype=np.float64)
