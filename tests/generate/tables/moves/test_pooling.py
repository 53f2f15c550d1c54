"""What all classes say of one: against Gaussian laws, and with classes that are alike or not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from dpntk.generate.tables.moves.pooling import Look, Pooled, pooled, posterior

ALIKE = 500
"""Numbers that are alike before anything is seen."""


def look(lacking: NDArray[np.float64], noise: float) -> Look:
    """At numbers, with a variance of the noise."""
    seen = torch.from_numpy(lacking)
    return Look(seen, torch.full_like(seen, noise), torch.ones_like(seen))


def believed(found: Pooled) -> NDArray[np.float64]:
    """The mean after one such look."""
    ridge = found.noise / found.variance
    left: NDArray[np.float64] = (found.lacking / (1 + ridge)).numpy()
    return left


def test_the_mean_is_that_of_the_gaussian_law_of_all_classes() -> None:
    """One number and four classes: g + d of each, seen with noise; solved as one system."""
    in_common, own = 0.03, 0.02
    noises = np.array([0.09, 0.01, 0.2, 0.05])
    seen = np.array([0.1, 0.3, -0.2, 0.25])
    between = in_common * np.ones((4, 4)) + own * np.eye(4)
    expected = between @ np.linalg.solve(between + np.diag(noises), seen)
    uncertain = between - between @ np.linalg.solve(between + np.diag(noises), between)
    one = torch.ones(1, dtype=torch.float64)
    found = posterior(
        look(seen[:1], noises[0]),
        [one * value for value in seen[1:]],
        [one / (noise + own) for noise in noises[1:]],
        one * (in_common + own),
        one * in_common,
    )
    assert believed(found)[0] == pytest.approx(expected[0])
    # And after one look with this noise as much is known.
    left = 1 / (1 / found.noise + 1 / (in_common + own))
    assert float(left) == pytest.approx(uncertain[0, 0])


def seen(truth: NDArray[np.float64], noise: float, seed: int) -> NDArray[np.float64]:
    """With noise of this variance."""
    drawn = np.random.default_rng(seed).standard_normal(truth.shape)
    found: NDArray[np.float64] = truth + drawn * np.sqrt(noise)
    return found


def truth(seed: int) -> NDArray[np.float64]:
    """What columns of a class lack, of variance .04."""
    return seen(np.zeros(ALIKE), 0.04, seed)


def of_class(own: Look, others: Sequence[Look]) -> NDArray[np.float64]:
    return believed(pooled(own, others, lambda weighed, weights: weighed.sum() / weights.sum()))


def error(found: NDArray[np.float64], true: NDArray[np.float64]) -> float:
    return float(np.square(found - true).mean())


def test_a_class_of_few_is_told_by_those_like_it() -> None:
    """Its own numbers have 4 times as much noise as they vary, those of the other hardly any."""
    true = truth(0)
    few, many = look(seen(true, 0.16, 1), 0.16), look(seen(true, 0.004, 2), 0.004)
    alone, together = (error(of_class(few, others), true) for others in ([], [many]))
    assert 0.025 < alone < 0.04  # by itself a fifth of what there is would be seen
    assert together < 0.01
    # And a class that is known by itself loses nothing.
    assert error(of_class(many, [few]), true) < 1.1 * error(of_class(many, []), true)


@pytest.mark.parametrize("sign", [0.0, -1.0], ids=["unlike", "opposite"])
def test_classes_that_are_not_alike_stay_apart(sign: float) -> None:
    true = truth(0)
    other = sign * true + (1 + sign) * truth(3)
    few, many = look(seen(true, 0.02, 1), 0.02), look(seen(other, 0.004, 2), 0.004)
    alone, together = (error(of_class(few, others), true) for others in ([], [many]))
    assert together < 1.1 * alone


def test_of_noise_alone_hardly_anything_is_believed() -> None:
    nothing = np.zeros(ALIKE)
    classes = [look(seen(nothing, 0.1, seed), 0.1) for seed in range(3)]
    assert error(of_class(classes[0], classes[1:]), nothing) < 0.001
