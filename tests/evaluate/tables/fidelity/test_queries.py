"""Questions are answered wrongly by as much as rows differ."""

from __future__ import annotations

import math

import pytest

from dpntk.evaluate.tables.baselines import independent_columns
from dpntk.evaluate.tables.fidelity.queries import query_error
from tests.helpers.rows import drawn, numbers, table


def test_questions_as_computed_by_hand() -> None:
    """Of one number that is 2 and elsewhere 3, every question is about 2 to 2."""
    assert query_error(numbers([2, 2]), numbers([2, 2, 2])) == 0
    assert query_error(numbers([3, 3]), numbers([2, 2, 2])) == 1
    assert query_error(numbers([2, 3, 3, 3]), numbers([2])) == pytest.approx(3 / 4)
    # 1 of two columns in half of the questions, both in the others
    half = query_error(numbers([2, 2], [2, 3]), numbers([2], [2]))
    assert half == pytest.approx(3 / 8, abs=0.03)


def test_ranges_hold_what_is_between_two_rows() -> None:
    """Ends are 0 and 8, between which all is, or the same, where one of two real rows is."""
    assert query_error(numbers([4]), numbers([0, 8])) == pytest.approx(1 / 2 / 2, abs=0.03)


def test_categories_and_missing_values_are_asked_for() -> None:
    real = table([math.nan] * 2, [1, 1], [0, 0])
    assert query_error(real, real) == 0
    assert query_error(table([math.nan] * 2, [1, 1], [1, 1]), real) > 0.3
    assert query_error(table([5, 5], [1, 1], [0, 0]), real) > 0.3


def test_shuffled_columns_answer_worse_than_other_rows() -> None:
    real, others = drawn(3000, 0), drawn(3000, 1)
    assert query_error(others, real) < query_error(independent_columns(real, 0), real) / 2
    assert query_error(others, real) == query_error(others, real)
