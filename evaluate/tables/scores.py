"""Scores of classifiers and regressions."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, f1_score, r2_score, roc_auc_score

ROC: Final = "ROC"
PRC: Final = "PRC"
HARD_ROC: Final = "ROC hard"
HARD_PRC: Final = "PRC hard"
F1_WEIGHTED: Final = "F1 weighted"
F1_MACRO: Final = "F1 macro"
R2: Final = "R2"
RMSE: Final = "RMSE"

TWO_CLASSES: Final = (ROC, PRC, HARD_ROC, HARD_PRC)
MORE_CLASSES: Final = (F1_WEIGHTED, F1_MACRO)
NUMBERS: Final = (R2, RMSE)

MEANING: Final = {
    ROC: "area under the receiver operating characteristic, from scores",
    PRC: "average precision of the positive class (area under the precision-recall curve), from "
    "scores",
    HARD_ROC: "the same as ROC from predicted labels, as the papers have it",
    HARD_PRC: "the same as PRC from predicted labels, as the papers have it",
    F1_WEIGHTED: "F1 of each class, weighted by its share of the test records",
    F1_MACRO: "mean over the classes of the test records of their F1",
    R2: "coefficient of determination: 1 if all is explained, 0 for the test records' mean, less "
    "for what is worse",
    RMSE: "root of the mean squared error, in the target's own unit; the smaller the better",
}

Scores = dict[str, float]


def score_two_classes(
    positive: NDArray[np.bool_], scores: NDArray[np.float64], predicted: NDArray[np.bool_]
) -> Scores:
    """Score a classifier of two classes.

    Args:
        positive: bool (n,), whether each test record is of the positive class; both classes occur.
        scores: float64 (n,), larger if the positive class is more likely.
        predicted: bool (n,), the prediction.
    """
    return {
        ROC: float(roc_auc_score(positive, scores)),
        PRC: float(average_precision_score(positive, scores)),
        HARD_ROC: float(roc_auc_score(positive, predicted)),
        HARD_PRC: float(average_precision_score(positive, predicted)),
    }


def score_more_classes(labels: NDArray[np.int64], predicted: NDArray[np.int64]) -> Scores:
    """Score a classifier of more classes.

    Args:
        labels: int64 (n,), the class of each test record.
        predicted: int64 (n,), the predicted one.
    """
    classes = np.unique(labels)
    each = f1_score(labels, predicted, labels=classes, average=None, zero_division=0.0)
    weights = (labels[:, None] == classes).mean(axis=0)
    return {F1_WEIGHTED: float(each @ weights), F1_MACRO: float(each.mean())}


def score_numbers(truth: NDArray[np.float64], predicted: NDArray[np.float64]) -> Scores:
    """Score a regression.

    Args:
        truth: float64 (n,), the number of each test record.
        predicted: float64 (n,), the predicted one.
    """
    error = float(np.sqrt(np.mean((truth - predicted) ** 2)))
    return {R2: float(r2_score(truth, predicted)), RMSE: error}
