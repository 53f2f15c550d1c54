"""What all classes say of one: against Gaussian laws, and with classes that are alike or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpntk.generate.tables.dependence.product_departures import Departure
from dpntk.generate.tables.dependence.product_pooling import PooledProducts, pooled_products

COLUMNS = 24
FREE = ~torch.eye(COLUMNS, dtype=torch.bool)


def departure(
    difference: NDArray[np.float64],
    noise: float,
    projection_factor: float = 1.0,
    *,
    column: Tensor | None = None,
) -> Departure:
    """Of columns of one entry each, or these, with a variance of the noise."""
    column = torch.arange(len(difference)) if column is None else column
    each, pairs = torch.ones(len(difference)), torch.ones(difference.shape, dtype=torch.float64)
    seen = torch.from_numpy(difference)
    return Departure(
        each,
        each,
        1.0,
        seen,
        noise=noise * pairs,
        projection_factor=projection_factor * pairs,
        changeable=column[:, None] != column,
        frequency=pairs,
        column=column,
        is_number=torch.zeros_like(column, dtype=torch.bool),
    )


def believed(found: PooledProducts) -> NDArray[np.float64]:
    """What a ridge leaves of it, where all is linear."""
    left: NDArray[np.float64] = (found.difference / (1 + found.ridge)).numpy()
    return left


def seen(truth: NDArray[np.float64], noise: float, seed: int) -> NDArray[np.float64]:
    """Symmetric, with noise of this variance."""
    drawn = np.random.default_rng(seed).standard_normal(truth.shape) * np.sqrt(noise / 2)
    found: NDArray[np.float64] = truth + drawn + drawn.T
    return found


def truth(seed: int) -> NDArray[np.float64]:
    """Products of columns of a class, of variance .04."""
    return seen(np.zeros((COLUMNS, COLUMNS)), 0.04, seed)


def of_class(
    own: Departure, others: Sequence[Departure], *, of_numbers: bool = False
) -> NDArray[np.float64]:
    all_numbers = torch.full((COLUMNS,), of_numbers)
    own, *others = (replace(each, is_number=all_numbers) for each in (own, *others))
    return believed(pooled_products(own, others))


def error(found: NDArray[np.float64], true: NDArray[np.float64]) -> float:
    return float(np.square(found - true)[FREE.numpy()].mean())


def symmetric(drawn: NDArray[np.float64]) -> NDArray[np.float64]:
    upper = np.triu(drawn, 1)
    found: NDArray[np.float64] = upper + upper.T
    return found


@pytest.mark.parametrize("classes", [1, 2])
def test_pairs_that_are_nearly_independent_are_not_believed_because_others_depend(
    classes: int,
) -> None:
    """One pair in twenty depends strongly. Numbers share a variance all the same."""
    random = np.random.default_rng(0)
    strong = random.random((COLUMNS, COLUMNS)) < 0.05
    true = symmetric(random.standard_normal(strong.shape) * np.where(strong, 0.5, 0.01))
    looks = [departure(seen(true, 0.02, seed), 0.02) for seed in range(1, 1 + classes)]
    alike, apart = (
        error(of_class(looks[0], looks[1:], of_numbers=numbers), true) for numbers in (True, False)
    )
    assert apart < 0.65 * alike


def test_products_of_rare_categories_are_held_back_further() -> None:
    """Columns of twelve categories, most of them rare, whose products vary with frequency."""
    random = np.random.default_rng(0)
    usual = np.resize(0.5 ** np.arange(12), COLUMNS)
    frequency = np.outer(usual, usual)
    column = torch.arange(COLUMNS) // 12
    between = (column[:, None] != column).numpy()
    true = symmetric(random.standard_normal(frequency.shape) * np.sqrt(0.1 * frequency)) * between
    own = departure(seen(true, 0.01, 1), 0.01, column=column)

    def error_if(expected: Departure) -> float:
        found = believed(pooled_products(expected, []))
        return float(np.square(found - true)[between].mean())

    known = replace(own, frequency=torch.from_numpy(frequency))
    assert error_if(known) < 0.6 * error_if(own)


def test_frequency_may_be_a_unit() -> None:
    """Differences and noise in other units are believed nearly as they are in their own."""
    random = np.random.default_rng(0)
    units = random.uniform(0.1, 1.0, COLUMNS)
    scale = np.outer(units, units)
    plain = [departure(seen(truth(0), 0.02, seed), 0.02) for seed in (1, 2)]
    scaled = [
        replace(
            each,
            difference=each.difference * torch.from_numpy(scale),
            noise=each.noise * torch.from_numpy(np.square(scale)),
            frequency=torch.from_numpy(np.square(scale)),
        )
        for each in plain
    ]
    small = max(float(each.difference.abs().max()) for each in scaled)
    assert small < 1  # nothing is cut off
    found, in_own = of_class(scaled[0], scaled[1:]) / scale, of_class(plain[0], plain[1:])
    assert error(found, in_own) < 0.01 * error(in_own, truth(0))


def test_a_pair_of_many_products_is_told_from_noise_by_all_of_them() -> None:
    """One of 15 pairs, of four categories each, varies four times as much as the noise."""
    noise = 0.02
    pair = np.zeros((COLUMNS, COLUMNS))
    pair[:4, 4:8] = 1
    drawn = np.random.default_rng(0).choice([-1, 1], size=pair.shape)
    true = symmetric(drawn * np.sqrt(4 * noise) * pair)
    own = departure(seen(true, noise, 1), noise, column=torch.arange(COLUMNS) // 4)
    found = believed(pooled_products(own, []))
    left = np.square(found - true)[pair > 0].mean()
    assert left < 1.1 * noise * 4 / 5  # what is left if the variance is known


def few_strong(seed: int) -> NDArray[np.float64]:
    """Products of which one in ten is far larger than the others."""
    random = np.random.default_rng(seed)
    strong = np.triu(random.random((COLUMNS, COLUMNS)) < 0.1, 1)
    deviations = np.where(strong | strong.T, np.sqrt(0.1), 0.01)
    return symmetric(random.standard_normal(strong.shape) * deviations)


def test_a_class_of_few_is_told_by_those_like_it() -> None:
    """Its own products have 4 times as much noise as they vary, those of the other hardly any."""
    true = truth(0)
    few, many = departure(seen(true, 0.16, 1), 0.16), departure(seen(true, 0.004, 2), 0.004)
    alone, together = (error(of_class(few, others), true) for others in ([], [many]))
    assert 0.025 < alone < 0.04  # by itself a fifth of what there is would be seen
    assert together < 0.01
    # And a class that is known by itself loses nothing.
    assert error(of_class(many, [few]), true) < 1.1 * error(of_class(many, []), true)


def test_a_class_of_few_is_also_told_which_pairs_are_strong() -> None:
    ratios = []
    for seed in range(3):
        true = few_strong(seed)
        few = departure(seen(true, 0.16, seed + 1), 0.16)
        many = departure(seen(true, 0.004, seed + 2), 0.004)
        ratios.append(error(of_class(few, [many]), true) / error(of_class(many, []), true))
    assert np.mean(ratios) < 2.5


@pytest.mark.parametrize("sign", [0.0, -1.0], ids=["unlike", "opposite"])
def test_classes_that_are_not_alike_stay_apart(sign: float) -> None:
    true = truth(0)
    other = sign * true + (1 + sign) * truth(3)
    few, many = departure(seen(true, 0.02, 1), 0.02), departure(seen(other, 0.004, 2), 0.004)
    alone, together = (error(of_class(few, others), true) for others in ([], [many]))
    assert together < 1.1 * alone


def test_a_class_whose_columns_alone_go_together_keeps_what_is_its_own() -> None:
    """In the other, which is known far better, all are independent."""
    true, nothing = truth(0), np.zeros((COLUMNS, COLUMNS))
    few, many = departure(seen(true, 0.02, 1), 0.02), departure(seen(nothing, 0.001, 2), 0.001)
    alone, together = (error(of_class(few, others), true) for others in ([], [many]))
    assert together < 1.3 * alone < 0.025


@pytest.mark.parametrize("of_numbers", [True, False])
def test_a_class_in_which_nothing_varies_says_nothing(of_numbers: bool) -> None:
    own = departure(seen(truth(0), 0.02, 1), 0.02)
    constant = replace(own, changeable=torch.zeros_like(own.changeable))
    alone, beside = (of_class(own, others, of_numbers=of_numbers) for others in ([], [constant]))
    assert beside == pytest.approx(alone)


@pytest.mark.parametrize(("of_numbers", "least"), [(False, 0.001), (True, 0.006)])
def test_of_noise_alone_hardly_anything_is_believed(of_numbers: bool, least: float) -> None:
    nothing = np.zeros((COLUMNS, COLUMNS))
    classes = [departure(seen(nothing, 0.1, seed), 0.1) for seed in range(3)]
    found = of_class(classes[0], classes[1:], of_numbers=of_numbers)
    assert error(found, nothing) < least


def test_classes_whose_strong_pairs_are_others_stay_apart() -> None:
    ratios = []
    for seed in range(3):
        true, other = few_strong(seed), few_strong(seed + 10)
        few = departure(seen(true, 0.02, seed), 0.02)
        many = departure(seen(other, 0.004, seed + 10), 0.004)
        ratios.append(error(of_class(few, [many]), true) / error(of_class(few, []), true))
    assert np.mean(ratios) < 1.3


def test_what_was_taken_off_holds_coefficients_back() -> None:
    """Of indicators that act as one, each as far as if no noise had been taken off."""
    true = truth(0)
    plain, left = (
        pooled_products(departure(seen(true, 0.02, 1), 0.02, times), []) for times in (1, 4)
    )
    assert torch.equal(left.difference, plain.difference)
    assert torch.allclose(left.ridge, 4 * plain.ridge)
