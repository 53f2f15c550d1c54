"""Examples that hypothesis draws, the same ones in every run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

Case = TypeVar("Case")


def examples(number: int) -> settings:
    """Settings for a number of examples; none is kept or made smaller."""
    return settings(
        max_examples=number,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


def assert_some_fail(
    check: Callable[[Case], object], cases: st.SearchStrategy[Case], number: int
) -> None:
    """Assert that a check fails for at least one of so many examples."""

    @examples(number)
    @given(cases)
    def some(case: Case) -> None:
        check(case)

    with pytest.raises((AssertionError, BaseExceptionGroup)):
        some()
