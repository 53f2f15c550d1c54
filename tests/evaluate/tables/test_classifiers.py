"""Published settings are the papers', and what is not installed is left out."""

from __future__ import annotations

import importlib.util
from dataclasses import replace

import pytest

from dpntk.evaluate.tables.baselines import INDEPENDENT, independent_columns
from dpntk.evaluate.tables.classifiers import CLASSIFIERS, PUBLISHED
from dpntk.evaluate.tables.learner import XGBOOST, installed
from dpntk.evaluate.tables.report import TableEvaluation
from dpntk.evaluate.tables.task import Task
from dpntk.evaluate.tables.utility import evaluate_tables
from tests.helpers.rows import SCHEMA, drawn

TWO = Task(SCHEMA.classes, positive=1)


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
