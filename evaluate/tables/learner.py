"""Classifiers and regressions with their settings."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

XGBOOST: Final = "XGBoost"


@dataclass(frozen=True)
class Learner:
    """A kind of classifier or regression with its settings.

    Attributes:
        make: takes a seed, gives an estimator with scikit-learn's methods.
        settings: in words.
        ordered: whether it gets numbers and indices of categories (trees), not scaled and one-hot
            features.
        needs: the optional package that it comes with, if any.
    """

    make: Callable[[int], Any]
    settings: str
    ordered: bool = False
    needs: str | None = None


def installed(kinds: Mapping[str, Learner]) -> dict[str, Learner]:
    """The learners whose package is installed: XGBoost is optional."""
    return {
        name: kind
        for name, kind in kinds.items()
        if kind.needs is None or importlib.util.find_spec(kind.needs) is not None
    }
