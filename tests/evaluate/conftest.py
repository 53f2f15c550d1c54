"""What tests of evaluation share."""

from __future__ import annotations

import pytest

from dpntk.evaluate.tables.classifiers import CLASSIFIERS


@pytest.fixture
def two_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two classifiers, one of either view, so that a test takes no time."""
    few = {name: CLASSIFIERS[name] for name in ("logistic regression", "decision tree")}
    monkeypatch.setattr("dpntk.evaluate.tables.utility.installed", lambda _: few)
