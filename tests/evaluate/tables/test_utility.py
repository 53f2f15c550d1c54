"""Figures of tables mean what they say: real rows high, meaningless ones low."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dpntk.common.display.console import Advance
from dpntk.common.errors import DataError
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.kinds import ColumnKind
from dpntk.common.schema.table import TableSchema
from dpntk.evaluate.tables.attacks import METHODS
from dpntk.evaluate.tables.baselines import independent_columns
from dpntk.evaluate.tables.classifiers import CLASSIFIERS
from dpntk.evaluate.tables.fidelity.distances import METRICS, distances
from dpntk.evaluate.tables.learner import XGBOOST, Learner, installed
from dpntk.evaluate.tables.regressions import REGRESSIONS
from dpntk.evaluate.tables.scores import F1_MACRO, F1_WEIGHTED, PRC, R2, RMSE, ROC
from dpntk.evaluate.tables.task import Task, task_for
from dpntk.evaluate.tables.utility import CONSTANT, evaluate_tables
from tests.helpers.rows import AGE, JOB, SCHEMA, drawn, numbers, table

TWO = Task(SCHEMA.classes, positive=1)


def test_rows_score_high_and_independent_columns_at_chance() -> None:
    train, test = drawn(500, 3), drawn(1000, 4)
    kinds = {"real": [train], "independent": [independent_columns(train, 0)]}
    real, chance, constant = evaluate_tables(kinds, test, TWO, seed=0)
    expected = set(installed(CLASSIFIERS))
    assert len(CLASSIFIERS) == 12
    assert set(CLASSIFIERS) - expected <= {XGBOOST}
    assert set(real.runs[0].scores) == set(chance.runs[0].scores) == expected
    assert real.runs[0].failed == {}
    assert min(scores[ROC] for scores in real.runs[0].scores.values()) > 0.7
    assert real.runs[0].mean(ROC) > 0.9
    assert chance.runs[0].mean(ROC) == pytest.approx(0.5, abs=0.2)
    assert constant.trained_on == CONSTANT
    assert constant.runs[0].mean(ROC) == 0.5
    assert constant.runs[0].mean(PRC) == pytest.approx(test.labels.mean())
    assert constant.runs[0].distances is None


def test_scores_are_of_the_positive_class(two_kinds: None) -> None:
    train, test = drawn(600, 5), drawn(600, 6)
    (as_yes, _), (as_no, _) = (
        evaluate_tables({"x": [train]}, test, Task(SCHEMA.classes, positive), 0)
        for positive in (1, 0)
    )
    assert as_yes.runs[0].mean(ROC) == pytest.approx(as_no.runs[0].mean(ROC))
    assert as_yes.runs[0].mean(PRC) != pytest.approx(as_no.runs[0].mean(PRC), abs=1e-3)
    assert as_no.runs[0].mean(PRC) > (test.labels == 0).mean()


def test_same_seed_same_figures_and_runs_have_seeds_of_their_own(two_kinds: None) -> None:
    train, test = drawn(300, 7), drawn(300, 8)
    (first, _), (again, _) = (
        evaluate_tables({"x": [train, train]}, test, TWO, seed=3) for _ in range(2)
    )
    assert first == again
    tree = [run.scores["decision tree"] for run in first.runs]
    (alone, _) = evaluate_tables({"x": [train]}, test, TWO, seed=4)
    assert tree[1] == alone.runs[0].scores["decision tree"]


def test_a_classifier_that_fails_counts_as_a_constant(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        def fit(self, *_: object) -> None:
            raise np.linalg.LinAlgError("singular\nmatrix")

    class Undecided:
        def fit(self, *_: object) -> None: ...

        def predict(self, rows: np.ndarray) -> np.ndarray:
            return np.zeros(len(rows), dtype=np.int64)

        def decision_function(self, rows: np.ndarray) -> np.ndarray:
            return np.full(len(rows), math.nan)

    kinds = {
        "failing": Learner(lambda _: Failing(), ""),
        "undecided": Learner(lambda _: Undecided(), ""),
    }
    monkeypatch.setattr("dpntk.evaluate.tables.utility.installed", lambda _: kinds)
    test = drawn(200, 9)
    row, constant = evaluate_tables({"x": [drawn(100, 10)]}, test, TWO, seed=0)
    assert row.runs[0].scores == constant.runs[0].scores
    assert row.runs[0].failed["failing"] == "singular matrix"
    assert set(row.runs[0].failed) == {"failing", "undecided"}


def test_rows_of_one_class_teach_nothing(two_kinds: None) -> None:
    test = drawn(200, 11)
    one_class = table([1, 2], [0, 1], [0, 0])
    for rate in (1.0, 0.1):  # the latter leaves nothing at all to train on
        task = Task(SCHEMA.classes, 1, rate)
        row, constant = evaluate_tables({"x": [one_class]}, test, task, seed=0)
        assert row.runs[0].mean(ROC) == 0.5
        assert row.runs[0].scores == constant.runs[0].scores
        assert set(row.runs[0].failed) == set(row.runs[0].scores)


def test_more_than_two_classes_and_none(two_kinds: None) -> None:
    label = Column("rich", ColumnKind.ORDINAL, "string", categories=("no", "some", "yes"))
    schema = TableSchema((AGE, JOB, label), "rich")
    train, test = drawn(600, 12, schema), drawn(600, 13, schema)
    task = task_for(test, None, 1.0, 100)
    row, constant = evaluate_tables({"x": [train]}, test, task, seed=0)
    assert row.runs[0].trained_with == 100
    assert set(row.runs[0].scores["decision tree"]) == {F1_WEIGHTED, F1_MACRO}
    assert row.runs[0].mean(F1_WEIGHTED) > constant.runs[0].mean(F1_WEIGHTED) + 0.2

    no_label = TableSchema((AGE, JOB), None)
    some = table([1, 2], [0, 1], [0, 0], no_label)
    (only,) = evaluate_tables({"x": [some]}, some, task_for(some, None, 1.0, 100), seed=0)
    assert only.runs[0].scores == {}
    assert only.runs[0].distances == distances(some, some)


def test_undersampling_is_for_classifiers_only(two_kinds: None) -> None:
    train, test = drawn(400, 14), drawn(400, 15)
    full, thin = (
        evaluate_tables({"x": [train]}, test, Task(SCHEMA.classes, 1, rate), seed=0)
        for rate in (1.0, 0.1)
    )
    negatives = int((train.labels == 0).sum())
    assert thin[0].runs[0].trained_with == 400 - negatives + int(0.1 * negatives)
    assert thin[0].runs[0].distances == full[0].runs[0].distances
    assert thin[1].runs[0].mean(PRC) > full[1].runs[0].mean(PRC)


def test_a_numeric_target_is_learnt_by_regressions() -> None:
    """The target is twice the first column and a little noise; the second says nothing."""
    random = np.random.default_rng(0)
    first, second = random.uniform(0, 4, (2, 600))
    target = 2 * first + 0.1 * random.standard_normal(600)
    target[:50] = math.nan  # rows without it are left out
    rows = numbers(first.tolist(), second.tolist(), target.tolist())
    task = task_for(rows, None, 1.0, 500, "x2")
    kinds = {"real": [rows], "independent": [independent_columns(rows, 0)]}
    real, chance, constant = evaluate_tables(kinds, rows, task, seed=0)
    assert set(REGRESSIONS) - set(real.runs[0].scores) <= {XGBOOST}
    assert (real.runs[0].usable, real.runs[0].trained_with) == (550, 500)
    for name, scores in real.runs[0].scores.items():
        assert scores[R2] > 0.99, name
        assert 0 < scores[RMSE] < 0.3
        assert chance.runs[0].scores[name][R2] < 0.1
    deviation = np.nanstd(target)
    assert constant.runs[0].scores["ridge"] == pytest.approx({R2: 0, RMSE: deviation})
    with pytest.raises(DataError, match="target 'x0': no two test records differ"):
        task_for(numbers([1, 1], [1, 2]), None, 1.0, 100, "x0")


def test_rows_with_one_number_teach_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    test = numbers([1, 2, 3, 4], [1, 2, 3, 5])
    task = task_for(test, None, 1.0, 100, "x1")
    same = numbers([1, 2, 3], [2, 2, math.nan])
    row, constant = evaluate_tables({"x": [same]}, test, task, seed=0)
    assert set(row.runs[0].failed) == set(row.runs[0].scores)
    assert row.runs[0].scores["ridge"][RMSE] > constant.runs[0].scores["ridge"][RMSE]


def test_the_documentation_says_the_settings() -> None:
    text = (Path(__file__).parents[3] / "docs/guide/evaluation.md").read_text()
    for name, kind in [*CLASSIFIERS.items(), *REGRESSIONS.items()]:
        view = "ordered" if kind.ordered else "scaled"
        assert f"| {name} | {kind.settings} | {view} |" in text
    assert [metric.name for metric in METRICS if f"| {metric.name} |" not in text] == []
    assert [name for name in METHODS if f"| {name} |" not in text] == []


def test_several_learn_at_a_time_and_it_is_said_which(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    train, test = drawn(200, 7), drawn(200, 8)
    threads: set[str] = set()
    both = threading.Barrier(2, timeout=60)

    class Waiting:
        def fit(self, *_: object) -> None:
            threads.add(threading.current_thread().name)
            both.wait()  # for the other one, which has to run beside it

        def predict(self, rows: np.ndarray) -> np.ndarray:
            return np.zeros(len(rows), dtype=np.int64)

        def decision_function(self, rows: np.ndarray) -> np.ndarray:
            return rows[:, 0]

    kinds = {name: Learner(lambda _: Waiting(), "") for name in ("first", "second")}
    monkeypatch.setattr("dpntk.evaluate.tables.utility.installed", lambda _: kinds)
    monkeypatch.setattr("dpntk.evaluate.tables.utility.use_threads", lambda: 2)
    said: list[str] = []
    done = 0

    @contextlib.contextmanager
    def recorded(_: str, total: int, __: str) -> Iterator[Advance]:
        def advance(units: int, remark: str = "") -> None:
            nonlocal done
            done += units
            said.append(remark)

        yield advance
        assert done == total

    monkeypatch.setattr("dpntk.evaluate.tables.utility.progress", recorded)
    row, _ = evaluate_tables({"x": [train]}, test, TWO, seed=0)
    assert "x: distances" in said
    assert {"first, second", "second, first"} & set(said)
    assert row.runs[0].failed == {}
    assert list(row.runs[0].scores) == ["first", "second"]
    assert len(threads) == 2


def test_models_of_several_runs_have_seeds_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []

    class Seeded:
        def __init__(self, seed: int) -> None:
            seeds.append(seed)

        def fit(self, *_: object) -> None: ...

        def predict(self, rows: np.ndarray) -> np.ndarray:
            return np.zeros(len(rows), dtype=np.int64)

        def decision_function(self, rows: np.ndarray) -> np.ndarray:
            return np.zeros(len(rows))

    kinds = {"seeded": Learner(Seeded, "")}
    monkeypatch.setattr("dpntk.evaluate.tables.utility.installed", lambda _: kinds)
    train = drawn(50, 1)
    evaluate_tables({"x": [train, train, train]}, drawn(50, 2), TWO, seed=7)
    assert seeds == [7, 8, 9]
