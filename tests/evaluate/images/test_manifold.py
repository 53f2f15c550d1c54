"""Precision and recall are their definitions, and say what they are meant to say."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dpntk.evaluate.images.manifold import Manifold


def plainly(made: NDArray[np.float64], real: NDArray[np.float64]) -> float:
    """The share of `made` in a ball of `real`, pair by pair."""
    within = 0
    for point in made:
        for centre in real:
            radius = sorted(np.linalg.norm(real - centre, axis=1))[3]
            if np.linalg.norm(point - centre) <= radius:
                within += 1
                break
    return within / len(made)


def test_it_is_the_definition() -> None:
    random = np.random.default_rng(0)
    made, real = random.normal(0, 1.5, (60, 4)), random.normal(0, 1, (50, 4))
    share = Manifold.of(real).share_within(made)
    assert 0.1 < share < 0.9
    assert share == plainly(made, real)


def test_a_part_is_precise_and_a_whole_is_recalled() -> None:
    """Of two heaps one alone has precision 1 and recall 1/2; what lies elsewhere has neither."""
    random = np.random.default_rng(1)
    heap = random.normal(0, 1, (200, 3))
    both = Manifold.of(np.concatenate([heap, random.normal(50, 1, (200, 3))]))
    one = Manifold.of(heap + 1e-3)
    assert both.share_within(one.points) == 1
    assert one.share_within(both.points) == pytest.approx(0.5)
    assert both.share_within(heap - 100) == 0


def test_images_that_are_all_the_same_have_balls_of_nothing() -> None:
    same = Manifold.of(np.ones((5, 3)))
    assert same.radii.tolist() == [0.0] * 5
    assert same.share_within(np.ones((2, 3))) == 1
    assert same.share_within(np.full((2, 3), 1.5)) == 0
    assert Manifold.of(np.array([[0.0], [2.0]])).radii.tolist() == [2.0, 2.0]
