"""A report says what has lost its dependence."""

from __future__ import annotations

from dpntk.evaluate.tables.baselines import INDEPENDENT, independent_columns
from dpntk.evaluate.tables.fidelity.associations import ASSOCIATIONS
from dpntk.evaluate.tables.report import notes
from dpntk.evaluate.tables.task import Task
from dpntk.evaluate.tables.utility import evaluate_tables
from tests.helpers.rows import SCHEMA, drawn

TWO = Task(SCHEMA.classes, positive=1)


def test_what_has_lost_its_dependence_is_said(two_kinds: None) -> None:
    train, test = drawn(1000, 14), drawn(1000, 15)
    kinds = {"good": [train], "bad": [independent_columns(test, 1)]}
    kinds[f"{INDEPENDENT} good"] = [independent_columns(train, 2)]
    rows = evaluate_tables(kinds, test, TWO, seed=0)
    (said,) = (note for note in notes(rows, TWO) if "lost" in note)
    assert said.startswith(
        f"bad: columns have lost most of how they go together ({ASSOCIATIONS.name}"
    )
