"""A report says what has lost its dependence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpntk.evaluate.report import REAL
from dpntk.evaluate.tables.baselines import INDEPENDENT, independent_columns
from dpntk.evaluate.tables.fidelity.associations import ASSOCIATIONS
from dpntk.evaluate.tables.fidelity.correlations import CORRELATIONS
from dpntk.evaluate.tables.report import notes
from dpntk.evaluate.tables.table import Table
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


def test_what_real_rows_are_off_as_well_is_not_lost() -> None:
    """Of few rows to compare with, real ones are off by more than half of what independent are."""

    def some(rows: int, seed: int) -> Table:
        random = np.random.default_rng(seed)
        common, own = random.normal(size=(1, rows)), random.normal(size=(5, rows))
        return numbers(*(4.5 + common / 2 + own).clip(0, 9))

    test, real = some(60, 100), some(600, 4)
    kinds = {
        "as good as real": [some(600, 1)],
        "shuffled": [independent_columns(some(600, 2), 3)],
        REAL: [real],
        f"{INDEPENDENT} {REAL}": [independent_columns(real, 5)],
    }
    rows = evaluate_tables(kinds, test, Task(test.schema.classes, positive=None), seed=0)
    off = {
        row.trained_on: row.runs[0].distances.figures[CORRELATIONS.name]
        for row in rows
        if row.runs[0].distances is not None
    }
    assert min(off[REAL], off["as good as real"]) > off[f"{INDEPENDENT} {REAL}"] / 2
    (said,) = (note for note in notes(rows, TWO, 60) if "lost" in note)
    assert said.startswith("shuffled: columns have lost most of how they go together")
    assert said.endswith(
        f"independent columns {off[f'{INDEPENDENT} {REAL}']:.3f}, real rows {off[REAL]:.3f})"
    )


def test_numbers_of_which_a_few_rows_have_spoilt_the_mean_are_named() -> None:
    random = np.random.default_rng(0)
    train, test = (numbers(*random.exponential(0.3, (2, 500)).clip(0, 9)) for _ in range(2))
    name = test.schema.columns[0].name
    far = train.columns[name].copy()
    far[:15] = 9.0
    kinds = {
        REAL: [train],
        "good": [numbers(*random.exponential(0.3, (2, 500)).clip(0, 9))],
        "far": [replace(train, columns={**train.columns, name: far})],
        f"{INDEPENDENT} {REAL}": [independent_columns(train, 2)],
    }
    rows = evaluate_tables(kinds, test, Task(test.schema.classes, positive=None), seed=0)
    (said,) = (note for note in notes(rows, TWO, 500) if "has mean" in note)
    real, mean = test.columns[name], far.mean()
    assert said == (
        f"far: {name} has mean {mean:.3g} (real {real.mean():.3g}) and standard deviation "
        f"{far.std():.3g} (real {real.std():.3g})"
    )


def moved(off: float, seed: int) -> Table:
    """Numbers whose mean is off by so many deviations."""
    random = np.random.default_rng(seed)
    columns = (4 + off + random.normal(size=2000)).clip(0, 9), random.uniform(0, 9, 2000)
    return numbers(*np.stack(columns))


def test_moments_are_lost_if_they_are_off_more_than_twice_as_far_as_those_of_real_rows() -> None:
    test = moved(0, 1)
    for of_real, said in ((0.0, True), (1.5, False)):
        real = moved(of_real, 3)
        kinds = {
            "synthetic": [moved(2.5, 2)],
            REAL: [real],
            f"{INDEPENDENT} {REAL}": [independent_columns(real, 4)],
        }
        rows = evaluate_tables(kinds, test, Task(test.schema.classes, positive=None), seed=0)
        found = [note for note in notes(rows, TWO, 2000) if note.startswith("synthetic: ")]
        assert bool(found) == said
