"""The nearest shares to numbers that are none."""

from __future__ import annotations

import numpy as np
import pytest

from dpntk.common.numerics.simplex import to_simplex


def test_projection_is_the_nearest_point_of_the_simplex() -> None:
    assert to_simplex(np.array([0.5, 0.3, 0.2])) == pytest.approx([0.5, 0.3, 0.2])
    assert to_simplex(np.array([1.2, 0.0, -0.5])) == pytest.approx([1.0, 0.0, 0.0])
    assert to_simplex(np.array([0.7, 0.5, -0.9])) == pytest.approx([0.6, 0.4, 0.0])
