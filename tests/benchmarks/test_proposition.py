"""Proposition 4.1 on a case where everything is known: the excess falls as it says."""

from __future__ import annotations

from benchmarks.proposition import MADE, excesses


def test_the_excess_is_the_square_of_the_noise() -> None:
    """300 squares of normal variables: chances are below 1e-9 that their mean is so far off."""
    rows = list(excesses((1, 20), (10.0,), releases=300 // MADE))
    for row in rows:
        assert 0.5 < row.measured / row.expected < 1.8
        assert row.measured < row.bound
    few, many = rows
    assert few.noise > 19 * many.noise
    assert few.measured > 100 * many.measured
