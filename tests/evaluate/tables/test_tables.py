"""Figures of tables mean what they say: oracles by hand, real rows high, meaningless ones low."""

from __future__ import annotations

import contextlib
import csv
import importlib.util
import json
import math
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpntk.common.console import Advance
from dpntk.common.errors import DataError, SchemaError
from dpntk.common.schema.column import Column
from dpntk.common.schema.draft import Draft
from dpntk.common.schema.encoding import MISSING
from dpntk.common.schema.kinds import ColumnKind, Missing
from dpntk.common.schema.table import TableSchema
from dpntk.evaluate.tables.attacks import ATTACK, ATTACK_HIGH, ATTACK_LOW, METHODS
from dpntk.evaluate.tables.baselines import (
    INDEPENDENT,
    independent_columns,
    keep_negatives,
    some_rows,
)
from dpntk.evaluate.tables.classifiers import CLASSIFIERS, PUBLISHED
from dpntk.evaluate.tables.features import features_of
from dpntk.evaluate.tables.fidelity.associations import ASSOCIATIONS
from dpntk.evaluate.tables.fidelity.correlations import CORRELATIONS
from dpntk.evaluate.tables.fidelity.distances import METRICS, distances
from dpntk.evaluate.tables.fidelity.marginals import ONE_WAY, TWO_WAY
from dpntk.evaluate.tables.learner import XGBOOST, Learner, installed
from dpntk.evaluate.tables.regressions import REGRESSIONS
from dpntk.evaluate.tables.report import TableEvaluation, notes
from dpntk.evaluate.tables.scores import (
    F1_MACRO,
    F1_WEIGHTED,
    HARD_PRC,
    HARD_ROC,
    PRC,
    R2,
    RMSE,
    ROC,
    score_more_classes,
    score_numbers,
    score_two_classes,
)
from dpntk.evaluate.tables.table import Table, read_real_table, read_synthetic_table
from dpntk.evaluate.tables.task import Task, task_for, with_target
from dpntk.evaluate.tables.utility import CONSTANT, evaluate_tables
from tests.conftest import Command
from tests.helpers.rows import AGE, JOB, LABEL, SCHEMA, drawn, numbers, table

TWO = Task(SCHEMA.classes, positive=1)


@pytest.fixture
def two_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two classifiers, one of either view, so that a test takes no time."""
    few = {name: CLASSIFIERS[name] for name in ("logistic regression", "decision tree")}
    monkeypatch.setattr("dpntk.evaluate.tables.utility.installed", lambda _: few)


def test_scores_of_two_classes_as_computed_by_hand() -> None:
    """Ranked by score the records are + - + -: of four pairs three are in order.

    Precision at the two positives is 1 and 2/3. The prediction calls the first three positive: 2 of
    2 positives and 1 of 2 negatives, and the precision of that group is 2/3.
    """
    positive = np.array([True, False, True, False])
    found = score_two_classes(
        positive, np.array([0.9, 0.8, 0.7, 0.1]), np.array([True, True, True, False])
    )
    assert found == pytest.approx(
        {ROC: 3 / 4, PRC: (1 + 2 / 3) / 2, HARD_ROC: (1 + 1 / 2) / 2, HARD_PRC: 2 / 3}
    )


def test_scores_of_more_classes_as_computed_by_hand() -> None:
    """F1 of the classes is 2/3 (precision 1, recall 1/2), 4/5 (2/3, 1) and 1; shares 2, 2, 1."""
    found = score_more_classes(np.array([0, 0, 1, 1, 2]), np.array([0, 1, 1, 1, 2]))
    assert found[F1_MACRO] == pytest.approx((2 / 3 + 4 / 5 + 1) / 3)
    assert found[F1_WEIGHTED] == pytest.approx((2 * 2 / 3 + 2 * 4 / 5 + 1) / 5)


def test_a_class_that_is_only_predicted_does_not_count_in_the_macro_mean() -> None:
    found = score_more_classes(np.array([0, 0, 1]), np.array([0, 0, 5]))
    assert found[F1_MACRO] == pytest.approx(1 / 2)


def test_constant_scores() -> None:
    labels = np.array([0, 0, 0, 1])
    for guess in (0, 1):
        assert TWO.constant_scores(labels, guess) == {
            ROC: 0.5, PRC: 0.25, HARD_ROC: 0.5, HARD_PRC: 0.25
        }  # fmt: skip
    three = Task(("x", "y", "z"), None)
    found = three.constant_scores(np.array([0, 0, 1, 2]), 0)
    assert found[F1_WEIGHTED] == pytest.approx(1 / 3)  # F1 of class 0 is 2/3, its share 1/2
    assert found[F1_MACRO] == pytest.approx(2 / 9)


def test_independent_columns_keep_marginals_and_nothing_else() -> None:
    rows = drawn(4000, 1)
    shuffled = independent_columns(rows, 0)
    found = distances(shuffled, rows).figures
    assert found[ONE_WAY.name] == 0
    assert found[TWO_WAY.name] > 0.1
    assert found[ASSOCIATIONS.name] > 0.1
    high = shuffled.columns["age"] > 50
    assert shuffled.labels[high].mean() == pytest.approx(shuffled.labels.mean(), abs=0.03)


def test_negatives_are_thinned_out_and_positives_are_not() -> None:
    rows = table([float(i) for i in range(100)], [0] * 100, [i % 4 == 0 for i in range(100)])
    kept = keep_negatives(rows, 1, 0.4, seed=5)
    assert (kept.labels == 1).sum() == 25
    assert (kept.labels == 0).sum() == 30
    ages = kept.columns["age"]
    assert len(set(ages.tolist())) == 55
    assert ((ages % 4 == 0) == (kept.labels == 1)).all()  # columns stay together
    assert len(keep_negatives(rows, 0, 0.4, seed=5)) == 75 + 10


def test_some_rows_are_drawn_without_repeating_any() -> None:
    rows = drawn(50, 2)
    assert some_rows(rows, 50, 0) is rows
    ages = table([float(i) for i in range(50)], [0] * 50, [0] * 50)
    assert len(set(some_rows(ages, 20, 0).columns["age"].tolist())) == 20


def test_features_learn_from_the_training_part_alone() -> None:
    train = table([0, 10, 20, math.nan], [0, 1, 1, MISSING], [0, 0, 1, 1])
    test = table([40, math.nan], [2, 1], [0, 1])
    seen, unseen = features_of(train, test)
    # 0, 10, 20 and the mean 10 have mean 10 and deviation sqrt(50); 40 is 30 above that
    assert seen.scaled[:, 0] == pytest.approx(np.array([-10, 0, 10, 0]) / math.sqrt(50))
    assert unseen.scaled[:, 0] == pytest.approx([30 / math.sqrt(50), 0])
    assert seen.scaled[:, 1].tolist() == [0, 0, 0, 1]
    # missing, a, b: the training part has no c, so a test row of c has no feature of its own
    assert seen.scaled[:, 2:].tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 1], [1, 0, 0]]
    assert unseen.scaled[:, 2:].tolist() == [[0, 0, 0], [0, 0, 1]]
    assert seen.ordered.tolist() == [[0, 0, 0], [10, 0, 1], [20, 0, 1], [10, 1, MISSING]]
    assert unseen.ordered.tolist() == [[40, 0, 2], [10, 1, 1]]


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


def test_the_rarer_class_is_the_positive_one_unless_another_is_named() -> None:
    test = table([1, 2, 3], [0, 0, 0], [1, 1, 0])
    assert task_for(test, None, 1.0, 100).positive == 0
    assert task_for(test, "yes", 1.0, 100).positive == 1
    with pytest.raises(SchemaError, match=r"no class 'maybe': the label has no and yes"):
        task_for(test, "maybe", 1.0, 100)
    with pytest.raises(DataError, match=r"all test records are of one class"):
        task_for(table([1], [0], [1]), None, 1.0, 100)
    with pytest.raises(DataError, match=r"no test record of the other class is left"):
        task_for(test, None, 0.4, 100)
    no_label = table([1], [0], [0], TableSchema((AGE, JOB), None))
    with pytest.raises(SchemaError, match=r"a label with two classes, but there is no label"):
        task_for(no_label, None, 0.4, 100)


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


def test_scores_of_numbers_as_computed_by_hand() -> None:
    """Squared errors 0, 1, 4 where those of the mean are 1, 0, 1."""
    found = score_numbers(np.array([1.0, 2, 3]), np.array([1.0, 1, 5]))
    assert found == pytest.approx({R2: 1 - 5 / 2, RMSE: math.sqrt(5 / 3)})


def test_rows_with_one_number_teach_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    test = numbers([1, 2, 3, 4], [1, 2, 3, 5])
    task = task_for(test, None, 1.0, 100, "x1")
    same = numbers([1, 2, 3], [2, 2, math.nan])
    row, constant = evaluate_tables({"x": [same]}, test, task, seed=0)
    assert set(row.runs[0].failed) == set(row.runs[0].scores)
    assert row.runs[0].scores["ridge"][RMSE] > constant.runs[0].scores["ridge"][RMSE]


def test_any_column_of_categories_can_stand_in_for_the_label() -> None:
    schema = TableSchema((AGE, replace(JOB, missing=Missing.REFUSED), LABEL), "rich")
    assert with_target(schema, "job").classes == ("a", "b", "c")
    assert with_target(schema, "age").label is None
    with pytest.raises(SchemaError, match="target 'pay': there is no column of that name"):
        with_target(schema, "pay")
    with pytest.raises(SchemaError, match="a label cannot be missing"):
        with_target(SCHEMA, "job")
    with pytest.raises(SchemaError, match="target 'age': there is no other column"):
        with_target(TableSchema((AGE,)), "age")


def test_what_has_lost_its_dependence_is_said(two_kinds: None) -> None:
    train, test = drawn(1000, 14), drawn(1000, 15)
    kinds = {"good": [train], "bad": [independent_columns(test, 1)]}
    kinds[f"{INDEPENDENT} good"] = [independent_columns(train, 2)]
    rows = evaluate_tables(kinds, test, TWO, seed=0)
    (said,) = (note for note in notes(rows, TWO) if "lost" in note)
    assert said.startswith(
        f"bad: columns have lost most of how they go together ({ASSOCIATIONS.name}"
    )


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


def test_published_settings_are_the_papers_and_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = {name for name, kind in PUBLISHED.items() if kind is not CLASSIFIERS[name]}
    assert changed == {"Bernoulli naive Bayes", "linear SVM", "AdaBoost", XGBOOST}
    assert list(PUBLISHED) == list(CLASSIFIERS)
    made = {name: PUBLISHED[name].make(0).get_params() for name in sorted(changed - {XGBOOST})}
    assert (made["AdaBoost"]["n_estimators"], made["AdaBoost"]["learning_rate"]) == (1000, 0.7)
    assert made["linear SVM"]["max_iter"] == 10_000
    assert made["Bernoulli naive Bayes"]["binarize"] == 0.5

    kept = ("Bernoulli naive Bayes", "decision tree")
    few = {name: PUBLISHED[name] for name in kept}
    monkeypatch.setattr("dpntk.evaluate.tables.utility.PUBLISHED", few)
    task = replace(TWO, published=True)
    train = drawn(200, 3)
    sets = {"real": [train], f"{INDEPENDENT} real": [independent_columns(train, 2)]}
    rows = evaluate_tables(sets, drawn(200, 4), task, seed=0)
    assert set(rows[0].runs[0].scores) == set(kept)
    document = TableEvaluation(tuple(rows), 200, task, 0, ()).to_json()
    assert document["classifiers"] == {name: PUBLISHED[name].settings for name in kept}
    assert any("settings of published tables" in note for note in document["notes"])


def test_xgboost_is_left_out_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "xgboost" else find(name)
    )
    assert set(CLASSIFIERS) - set(installed(CLASSIFIERS)) == {XGBOOST}


def write(rows: Table, path: Path) -> Path:
    jobs = [*JOB.categories, ""]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["rich", "age", "job"])  # in another order than in the schema
        for age, job, label in zip(
            rows.columns["age"], rows.columns["job"], rows.labels, strict=True
        ):
            shown = "" if math.isnan(age) else f"{age:.0f}"
            writer.writerow([LABEL.categories[label], shown, jobs[job]])
    return path


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with what `dpntk generate` wrote, a test part and a training part."""
    folder = tmp_path / "synthetic"
    folder.mkdir()
    write(drawn(300, 16), folder / "table.csv")
    release = {"private": True, "epsilon": 1.0, "digest": "0" * 64}
    document = {"schema": SCHEMA.to_json(), "release": release}
    (folder / "provenance.json").write_text(json.dumps(document))
    write(drawn(300, 17), tmp_path / "test.csv")
    write(drawn(300, 18), tmp_path / "train.csv")
    (tmp_path / "schema.toml").write_text(Draft(SCHEMA).to_toml())
    return tmp_path


def test_tables_are_read_back(files: Path) -> None:
    found = read_synthetic_table(files / "synthetic")
    original = drawn(300, 16)
    assert found.schema == SCHEMA
    assert found.provenance["release"]["epsilon"] == 1.0
    for name, values in original.columns.items():
        np.testing.assert_array_equal(found.columns[name], values)
    by_file = read_synthetic_table(files / "synthetic" / "table.csv", files / "schema.toml")
    assert distances(by_file, found).figures[TWO_WAY.name] == 0
    assert len(read_real_table(files / "test.csv", "test", SCHEMA)) == 300


def test_the_command_writes_what_it_shows(
    dpntk: Command, files: Path, two_kinds: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    done = dpntk("evaluate", "--test", "test.csv", "--baseline", "train.csv")
    assert done.code == 0, done.stderr
    report = json.loads((files / "evaluation.json").read_text())
    rows = {row["trained_on"]: row for row in report["rows"]}
    assert list(rows) == [
        "synthetic (epsilon 1)", "real", "independent columns of real", "constant"
    ]  # fmt: skip
    real = rows["real"]
    assert real["TVD 1-way"] == distances(drawn(300, 18), drawn(300, 17)).figures[ONE_WAY.name]
    each = [scores[ROC] for scores in real["runs"][0]["classifiers"].values()]
    assert real[ROC] == pytest.approx(sum(each) / len(each))
    for name, row in rows.items():
        assert name in done.stdout
        assert f"{row[ROC]:.3f}" in done.stdout
    assert report["positive"] in ("no", "yes")
    assert any("without XGBoost" in note for note in report["notes"])
    assert "20 bins" in report["distances"]["TVD 2-way"]
    assert set(report["distances"]) == {metric.name for metric in METRICS}
    assert set(real) >= {metric.name for metric in METRICS} - {CORRELATIONS.name}


def test_several_folders_give_a_mean_and_a_deviation(
    dpntk: Command, files: Path, two_kinds: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    arguments = ("--test", "test.csv", "--schema", "schema.toml")
    done = dpntk("evaluate", "train.csv", "test.csv", *arguments)
    assert done.code == 0, done.stderr
    row = json.loads((files / "evaluation.json").read_text())["rows"][0]
    one_way = distances(drawn(300, 18), drawn(300, 17)).figures[ONE_WAY.name]
    assert row["TVD 1-way"] == pytest.approx(one_way / 2)  # the second is the test part itself
    assert row["TVD 1-way deviation"] == pytest.approx(one_way / np.sqrt(2))
    assert f"{one_way / 2:.3f} ± {one_way / np.sqrt(2):.3f}" in done.stdout


def test_attacks_are_shown_beside_controls(
    dpntk: Command, files: Path, two_kinds: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows that were used are found out, and shuffled ones are not."""
    monkeypatch.setenv("COLUMNS", "250")
    baseline = ("--baseline", "train.csv")
    done = dpntk("evaluate", "--test", "test.csv", *baseline, "--members", "train.csv")
    assert done.code == 0, done.stderr
    assert "attacks check the implementation" in " ".join(done.stdout.split())
    report = json.loads((files / "evaluation.json").read_text())
    assert list(report["attacks"]) == list(METHODS)
    ours, real, *_ = report["rows"]
    assert real[ATTACK_LOW] > 0.6  # not more, for the real rows share many values
    assert ours[ATTACK_LOW] < 0.5 < ours[ATTACK_HIGH]
    assert f"{ours[ATTACK]:.3f}" in done.stdout
    assert (files / "evaluation.json").stat().st_mode & 0o777 == 0o600


def test_a_table_without_a_label_and_a_numeric_target(
    dpntk: Command, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    schema = (files / "schema.toml").read_text()
    assert 'label = "rich"' in schema
    (files / "schema.toml").write_text(schema.replace('label = "rich"', ""))
    arguments = ("evaluate", "train.csv", "--test", "test.csv", "--schema", "schema.toml")
    done = dpntk(*arguments)
    assert done.code == 0, done.stderr
    rows = json.loads((files / "evaluation.json").read_text())["rows"]
    assert [row["trained_on"] for row in rows] == ["synthetic", "independent columns of synthetic"]
    assert rows[0][TWO_WAY.name] < rows[1][TWO_WAY.name]
    assert R2 not in rows[0]

    done = dpntk(*arguments, "--target", "age")
    assert done.code == 0, done.stderr
    assert "target: age" in done.stdout
    assert "means over the regressions" in done.stdout
    report = json.loads((files / "evaluation.json").read_text())
    ours, shuffled, constant = report["rows"]
    assert ours[R2] > 0.4 > shuffled[R2]
    assert constant[R2] == pytest.approx(0)
    assert report["measure"].keys() == {R2, RMSE}
    done = dpntk(*arguments, "--target", "rich")
    assert done.code == 0, done.stderr
    assert json.loads((files / "evaluation.json").read_text())["rows"][0][ROC] > 0.7
    for wrong in (("--target", "pay"), ("--target", "age", "--positive", "yes")):
        assert dpntk(*arguments, *wrong).code == 1


def test_undersampled_figures_say_so(
    dpntk: Command, files: Path, two_kinds: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    done = dpntk("evaluate", "--test", "test.csv", "--positive", "yes", "--keep-negatives", "0.4")
    assert done.code == 0, done.stderr
    assert "only 0.4 of the other class's records kept" in done.stdout
    report = json.loads((files / "evaluation.json").read_text())
    assert report["kept_negatives"] == 0.4
    assert any("for comparison only" in note for note in report["notes"])


def test_what_cannot_be_evaluated_is_refused_in_one_line(dpntk: Command, files: Path) -> None:
    def error(*arguments: str) -> str:
        done = dpntk("evaluate", *arguments, "--test", "test.csv")
        assert done.code == 1
        assert done.stderr.count("\n") == 1
        assert not (files / "evaluation.json").exists()
        return done.stderr

    assert "no such folder" in error("missing", "--schema", "schema.toml")
    assert "no class 'rich'" in error("synthetic", "--positive", "rich")
    (files / "schema.toml").rename(files / "known.toml")
    assert "give the schema with --schema" in error("train.csv")
    (files / "synthetic" / "provenance.json").write_text("{")
    assert "damaged" in error("synthetic")
    (files / "synthetic" / "provenance.json").write_text('{"schema": {"kind": "table"}}')
    assert "its schema" in error("synthetic")
    (files / "synthetic" / "table.csv").unlink()
    assert "there is no table.parquet in it" in error("synthetic", "--schema", "known.toml")


def test_the_whole_path(dpntk: Command, files: Path, two_kinds: None) -> None:
    """What the other commands make is evaluated as it is, and its release is recognised."""
    for arguments in (
        ("embed", "train.csv", "--schema", "schema.toml", "--width", "16"),
        ("release", "--eps", "1", "--delta", "1e-3"),
        ("generate", "release.h5", "--steps", "3", "-o", "made"),
    ):
        done = dpntk(*arguments)
        assert done.code == 0, done.stderr
    done = dpntk("evaluate", "made", "--test", "test.csv", "--release", "release.h5")
    assert done.code == 0, done.stderr
    assert "made from release.h5" in done.stderr
    (first, *_) = json.loads((files / "evaluation.json").read_text())["rows"]
    assert first["trained_on"] == "synthetic (epsilon 1)"
    assert first["runs"][0]["records"] == 300
    foreign = dpntk("evaluate", "synthetic", "--test", "test.csv", "--release", "release.h5")
    assert foreign.code == 1
    assert "do not say that they come from release.h5" in foreign.stderr


def test_options_for_tables_are_refused_for_images(dpntk: Command, tmp_path: Path) -> None:
    (tmp_path / "synthetic").mkdir()
    done = dpntk("evaluate", "--test", "x", "--keep-negatives", "0.4")
    assert done.code == 2
    assert "--keep-negatives is for tables" in done.stderr
    done = dpntk("evaluate", "a", "b", "--test", "x")
    assert done.code == 2
    assert "several SYNTHETIC are for tables" in done.stderr
