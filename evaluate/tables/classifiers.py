"""The twelve classifiers that DP-MERF, DP-HP and DP-NTK are compared with.

Their settings are those of DP-MERF's code (Harder, Adamczewski, Park 2021), the same for all data;
the later papers took the best of several for each data set, on the test part. The settings are
fixed, so that figures of different releases can be compared.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from .learner import XGBOOST, Learner


def _xgboost(seed: int, **more: float) -> Any:  # noqa: ANN401 - as untyped as scikit-learn
    xgboost = importlib.import_module("xgboost")
    return xgboost.XGBClassifier(
        max_depth=3, learning_rate=0.1, base_score=0.5, n_jobs=1, random_state=seed, **more
    )


CLASSIFIERS: Final[dict[str, Learner]] = {
    "logistic regression": Learner(
        lambda seed: LogisticRegression(max_iter=5000, random_state=seed),
        "L2 penalty 1, at most 5,000 steps of L-BFGS",
    ),
    "Gaussian naive Bayes": Learner(lambda _: GaussianNB(), "defaults"),
    "Bernoulli naive Bayes": Learner(
        lambda _: BernoulliNB(alpha=0.02), "alpha 0.02; features above 0 count as 1"
    ),
    "linear SVM": Learner(
        lambda seed: LinearSVC(loss="hinge", tol=1e-8, max_iter=1000, random_state=seed),
        "hinge loss, C 1, at most 1,000 rounds (10,000 in the papers)",
    ),
    "decision tree": Learner(
        lambda seed: DecisionTreeClassifier(class_weight="balanced", random_state=seed),
        "Gini, balanced classes",
        ordered=True,
    ),
    "LDA": Learner(
        lambda _: LinearDiscriminantAnalysis(solver="eigen", tol=1e-8, shrinkage=0.5),
        "eigenvalue solver, shrinkage 0.5",
    ),
    "AdaBoost": Learner(
        lambda seed: AdaBoostClassifier(n_estimators=100, random_state=seed),
        "100 stumps, SAMME (SAMME.R in the papers, which scikit-learn no longer has)",
        ordered=True,
    ),
    "bagging": Learner(
        lambda seed: BaggingClassifier(max_samples=0.1, n_estimators=20, random_state=seed),
        "20 trees, each on a tenth of the records",
        ordered=True,
    ),
    "random forest": Learner(
        lambda seed: RandomForestClassifier(
            n_estimators=100, class_weight="balanced", random_state=seed
        ),
        "100 trees, balanced classes",
        ordered=True,
    ),
    "gradient boosting": Learner(
        lambda seed: GradientBoostingClassifier(subsample=0.1, n_estimators=50, random_state=seed),
        "50 trees of depth 3, each on a tenth of the records",
        ordered=True,
    ),
    "MLP": Learner(
        lambda seed: MLPClassifier(random_state=seed),
        "one hidden layer of 100 ReLU units, Adam, at most 200 epochs",
    ),
    XGBOOST: Learner(
        _xgboost,
        "100 trees of depth 3, learning rate 0.1, base score 0.5: the defaults of the papers' time",
        ordered=True,
        needs="xgboost",
    ),
}
"""The twelve, in the papers' order."""

PUBLISHED: Final[dict[str, Learner]] = {
    **CLASSIFIERS,
    "Bernoulli naive Bayes": Learner(
        lambda _: BernoulliNB(binarize=0.5), "features above 0.5 count as 1"
    ),
    "linear SVM": Learner(
        lambda seed: LinearSVC(loss="hinge", tol=1e-8, max_iter=10_000, random_state=seed),
        "hinge loss, C 1, at most 10,000 rounds",
    ),
    "AdaBoost": Learner(
        lambda seed: AdaBoostClassifier(n_estimators=1000, learning_rate=0.7, random_state=seed),
        "1,000 stumps, learning rate 0.7, SAMME (the paper: SAMME.R)",
        ordered=True,
    ),
    XGBOOST: Learner(
        lambda seed: _xgboost(seed, n_estimators=50, colsample_bytree=0.1),
        "50 trees of depth 3, each on a tenth of the columns, learning rate 0.1, base score 0.5",
        ordered=True,
        needs="xgboost",
    ),
}
"""The same with the settings of DP-KIP's table 7 (Vinaroz and Park, arXiv 2301.13389)."""
