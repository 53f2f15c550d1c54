"""The regressions that predict a numeric column from the others.

There are a linear one and two of trees: what is lost for one kind is not always lost for the other.
Nothing is tuned on real rows.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import RidgeCV

from .learner import XGBOOST, Learner


def _xgboost(seed: int) -> Any:  # noqa: ANN401 - as untyped as scikit-learn
    xgboost = importlib.import_module("xgboost")
    return xgboost.XGBRegressor(max_depth=3, learning_rate=0.1, n_jobs=1, random_state=seed)


REGRESSIONS: Final[dict[str, Learner]] = {
    "ridge": Learner(
        lambda _: RidgeCV(alphas=np.logspace(-2, 5, 15)),
        "penalty of 15 from 0.01 to 100,000 by leave-one-out on the rows that it learns from",
    ),
    "random forest": Learner(
        lambda seed: RandomForestRegressor(n_estimators=100, min_samples_leaf=5, random_state=seed),
        "100 trees, at least 5 rows in a leaf",
        ordered=True,
    ),
    XGBOOST: Learner(
        _xgboost, "100 trees of depth 3, learning rate 0.1", ordered=True, needs="xgboost"
    ),
}
