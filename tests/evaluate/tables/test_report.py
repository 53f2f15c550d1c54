"""A report says what has lost its dependence."""

from __future__ import annotations

import numpy as np

from dpntk.evaluate.tables.baselines import INDEPENDENT, independent_columns
from dpntk.evaluate.tables.fidelity.associations import ASSOCIATIONS
from dpntk.evaluate.tables.fidelity.correlations import CORRELATIONS
from dpntk.evaluate.tables.report import notes
from dpntk.evaluate.tables.task import Task
from dpntk.evaluate.tables.utility import evaluate_tables
from tests.helpers.rows import SCHEMA, drawn, numbers

TWO = Task(SCHEMA.classes, positive=1)


def test_what_has_lost_its_dependence_is_said(two_kinds: None) -> None:
    train, test = drawn(1000, 14), drawn(1000, 15)
    kinds = {"good": [train], "bad": [independent_columns(test, 1)]}
    kinds[f"{INDEPENDENT} good"] = [independent_columns(train, 2)]
    rows = evaluate_tables(kinds, test, TWO, seed=0)
    (said,) = (note for note in notes(rows, TWO, 1000) if "lost" in note)
    assert said.startswith(
        f"bad: columns have lost most of how they go together ({ASSOCIATIONS.name}"
    )


def test_columns_that_had_nothing_to_lose_have_not_lost_it() -> None:
    """Their correlations are those that chance makes of few rows."""
    random = np.random.default_rng(0)
    train, test, shuffled = (numbers(*random.uniform(0, 9, (5, 400))) for _ in range(3))
    kinds = {"good": [train], f"{INDEPENDENT} good": [shuffled]}
    rows = evaluate_tables(kinds, test, Task(test.schema.classes, positive=None), seed=0)
    for row in rows:
        measured = row.runs[0].distances
        assert measured is not None
        assert 0.02 < measured.figures[CORRELATIONS.name] < 0.1
    assert not any("lost" in note for note in notes(rows, TWO, 400))
