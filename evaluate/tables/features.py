"""The inputs that classifiers get for a row.

Linear models, naive Bayes and the perceptron get numbers standardised by mean and deviation of the
training part, and one-hot categories. Trees, for which only the order of numbers matters, get
numbers as they are and categories as their indices in the schema.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ...common.display.representations import RedactedRepr
from ...common.schema.columns.column import Column
from ...common.schema.columns.kinds import Missing
from .table import Table

_MOST_CATEGORIES: Final = 100
Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class ClassifierInputs(RedactedRepr):
    """Both views of the rows of a table.

    Attributes:
        scaled: float64 (n, d), standardised and one-hot.
        ordered: float64 (n, k), numbers and indices of categories.
    """

    scaled: Matrix
    ordered: Matrix


def features_of(
    train: Table, test: Table, target: str | None = None
) -> tuple[ClassifierInputs, ClassifierInputs]:
    """Both views of the training and test rows, fitted on the training rows alone.

    A missing number is replaced by the mean (0 if there is none), and a further feature indicates
    it. A column's categories beyond the 100 most frequent ones share one feature.

    Args:
        train: rows to train on.
        test: rows to test on.
        target: a column to predict, which is left out, as the label always is.
    """
    parts = (train, test)
    seen = [column for column in train.schema.features if column.name != target]
    numbers = [_numbers(part, seen) for part in parts]
    absent = [_absent(part, seen) for part in parts]
    codes = [_codes(part, seen) for part in parts]
    scaled, hot = numbers, codes
    if numbers[0].shape[1]:
        filler = SimpleImputer(keep_empty_features=True).fit(numbers[0])
        numbers = [filler.transform(part) for part in numbers]
        scaler = StandardScaler().fit(numbers[0])
        scaled = [scaler.transform(part) for part in numbers]
    if codes[0].shape[1]:
        encoder = OneHotEncoder(
            max_categories=_MOST_CATEGORIES,
            handle_unknown="infrequent_if_exist",
            sparse_output=False,
        ).fit(codes[0])
        hot = [encoder.transform(part) for part in codes]
    made = [
        ClassifierInputs(
            np.hstack([scaled[i], absent[i], hot[i]]), np.hstack([numbers[i], absent[i], codes[i]])
        )
        for i in range(2)
    ]
    return made[0], made[1]


def _numbers(table: Table, seen: Sequence[Column]) -> Matrix:
    return _stacked(table, [table.columns[c.name] for c in seen if c.kind.numeric])


def _absent(table: Table, seen: Sequence[Column]) -> Matrix:
    indicated = [column for column in seen if column.missing is Missing.INDICATOR]
    return _stacked(table, [np.isnan(table.columns[column.name]) for column in indicated])


def _codes(table: Table, seen: Sequence[Column]) -> Matrix:
    return _stacked(table, [table.columns[c.name] for c in seen if not c.kind.numeric])


def _stacked(table: Table, columns: list[NDArray[np.generic]]) -> Matrix:
    found = np.empty((len(table), len(columns)))
    for index, values in enumerate(columns):
        found[:, index] = values
    return found
