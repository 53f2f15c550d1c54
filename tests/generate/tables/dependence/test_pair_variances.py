"""Prior variances of products: against the best that can be done if they are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpntk.generate.tables.dependence.pair_variances import pair_variances
from dpntk.generate.tables.dependence.product_departures import Departure

NOISE = 0.01
SIZE = 3
"""Entries of each column: a pair has nine products, and four degrees of freedom."""


def departure(
    difference: NDArray[np.float64],
    size: int = SIZE,
    noise: float = NOISE,
    typical: Tensor | None = None,
) -> Departure:
    """Of columns of so many categories, seen with noise of this variance."""
    seen, column = torch.from_numpy(difference), torch.arange(len(difference)) // size
    each, ones = torch.ones(len(seen)), torch.ones_like(seen)
    return Departure(
        each,
        each,
        1.0,
        seen,
        noise=noise * ones,
        projection_factor=ones,
        changeable=column[:, None] != column,
        typical=ones if typical is None else typical,
        column=column,
        is_number=torch.zeros_like(column, dtype=torch.bool),
    )


def gaussian(variances: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """Symmetric, with these variances."""
    upper = np.triu(np.random.default_rng(seed).standard_normal(variances.shape), 1)
    drawn: NDArray[np.float64] = (upper + upper.T) * np.sqrt(variances)
    return drawn


def squares_of(squares: Sequence[float], noise: float = NOISE, size: int = SIZE) -> list[float]:
    """The variances of pairs of which all products have these squares; one column is in all."""
    columns = torch.arange(size * (len(squares) + 1)) // size
    of_column = torch.tensor([0.0, *squares], dtype=torch.float64).sqrt()[columns]
    kind = (columns == 0)[:, None] ^ (columns == 0)
    own = departure(torch.where(kind, of_column[:, None] + of_column, 0.0).numpy(), size, noise)
    found = pair_variances([own], kind)
    assert torch.equal(found, found.T)
    of_each: list[float] = found[0, size::size].tolist()
    return of_each


def error(found: Tensor, own: Departure, true: NDArray[np.float64]) -> float:
    """Mean square of what is left of noise, or lost of departures, if variances are believed."""
    kept = found / (found + own.noise)
    left = kept * own.difference - torch.from_numpy(true)
    return float(left.square()[own.changeable].mean())


def test_few_strong_pairs_do_not_lend_the_others_their_variance() -> None:
    """Not much worse than if each pair's variance were known, where one for all is."""
    columns = 30
    strong = np.triu(np.random.default_rng(0).random((columns, columns)) < 0.1, 1)
    of_pairs = np.where(strong | strong.T, 0.1, 1e-4)
    variances = of_pairs.repeat(SIZE, axis=0).repeat(SIZE, axis=1)
    true = gaussian(variances, 1)
    own = departure(true + gaussian(np.full(true.shape, NOISE), 2))
    found = pair_variances([own], own.changeable)
    best = error(torch.from_numpy(variances), own, true)
    one_for_all = float(own.difference.square()[own.changeable].mean()) - NOISE
    assert error(found, own, true) < 1.5 * best
    assert error(torch.full_like(found, one_for_all), own, true) > 4 * best


@pytest.mark.parametrize("power", [-1.0, 0.0, 1.0])
def test_it_is_learnt_whether_rare_categories_show_more_or_less(power: float) -> None:
    """As good as if it were known, whichever it is."""
    usual = np.resize([1.0, 0.3, 0.05], 12 * SIZE)
    typical = np.outer(usual, usual)
    variances = 0.03 * (typical / 0.1) ** power
    true = gaussian(variances, 1)
    seen = true + gaussian(np.full(true.shape, NOISE), 2)
    own = departure(seen, typical=torch.from_numpy(typical))
    found = pair_variances([own], own.changeable)
    assert error(found, own, true) < 1.1 * error(torch.from_numpy(variances), own, true)


def test_one_rare_category_that_goes_with_others_is_heard_among_many_that_do_not() -> None:
    """There is more noise on its products, and three times as many of the pair show nothing."""
    usual = torch.tensor([1.0, 1.0, 1.0, 0.1], dtype=torch.float64).repeat(6)
    rare, typical = usual < 1, torch.outer(usual, usual)
    here = rare[:, None] ^ rare
    own = departure(torch.where(here, 0.5, 0.0).double().numpy(), 4, typical=typical)
    own = replace(own, noise=1e-4 / typical)
    found = pair_variances([own], own.changeable)
    assert float((found / (found + own.noise))[here & own.changeable].min()) > 0.8


@pytest.mark.parametrize("times", [4.0, 11.0, 50.0])
def test_a_single_pair_has_what_exceeds_the_noise(times: float) -> None:
    """Up to the steps of the candidates."""
    assert squares_of([times * NOISE])[0] == pytest.approx((times - 1) * NOISE, rel=0.35)


def test_a_pair_of_less_than_the_noise_keeps_nothing() -> None:
    assert squares_of([0.8 * NOISE])[0] < 1e-2 * NOISE


def test_without_noise_everything_is_believed() -> None:
    found = squares_of([0.2, 1e-4], noise=1e-12)
    assert found == pytest.approx([0.2, 1e-4], rel=0.35)


def test_more_products_are_believed_sooner() -> None:
    """Twice the noise by chance is not much for a single product, and much for 49."""
    others = [NOISE] * 50 + [10 * NOISE] * 5
    few, many = (squares_of([2 * NOISE, *others], size=size)[0] for size in (1, 8))
    assert few < 0.7 * NOISE < many < 1.5 * NOISE


def test_four_products_of_two_answers_by_two_say_as_much_as_one() -> None:
    """Any of them says what the others are."""
    squares = [2 * NOISE, 5 * NOISE, NOISE]
    assert squares_of(squares, size=2) == pytest.approx(squares_of(squares, size=1))


def test_classes_are_counted_together() -> None:
    """What is not much in one class is in twenty; and a class without products says nothing."""
    columns = 12
    square = np.full((columns, columns), NOISE)
    square[0, 1] = square[1, 0] = 3 * NOISE
    one = departure(np.sqrt(square), 1)
    nothing = replace(one, changeable=torch.zeros_like(one.changeable))
    alone, beside, many = (
        float(pair_variances(classes, one.changeable)[0, 1])
        for classes in ([one], [one, nothing], 20 * [one])
    )
    assert alone == beside < 0.1 * NOISE
    assert many == pytest.approx(2 * NOISE, rel=0.35)
    assert float(pair_variances([nothing], one.changeable)[0, 1]) == 1
