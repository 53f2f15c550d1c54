"""Scores are as computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

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
from dpntk.evaluate.tables.task import Task
from tests.helpers.rows import SCHEMA

TWO = Task(SCHEMA.classes, positive=1)


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


def test_scores_of_numbers_as_computed_by_hand() -> None:
    """Squared errors 0, 1, 4 where those of the mean are 1, 0, 1."""
    found = score_numbers(np.array([1.0, 2, 3]), np.array([1.0, 1, 5]))
    assert found == pytest.approx({R2: 1 - 5 / 2, RMSE: math.sqrt(5 / 3)})
