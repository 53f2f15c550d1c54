"""What is seen of how columns go together is what is there, with as much noise as is said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from dpntk.common.features.moments import MomentFeatures
from dpntk.generate.tables.dependence.product_departures import (
    Departure,
    ReleasedMoments,
    mean_products,
)

INPUTS = 40
YES_NO, OTHER, OF_THREE = 10, 20, 30
FEATURES = MomentFeatures(((0, -1), (1, -1)), ((YES_NO, 2), (OTHER, 2), (OF_THREE, 3)), INPUTS)
NUMBER, YES, ANSWERS, THREE = 1, 3, slice(3, 7), slice(7, 10)
ROWS = 2_000


def rows(together: bool, seed: int = 0) -> Tensor:
    """A number and two answers that go together, and a number and a category that do not."""
    random = np.random.default_rng(seed)
    hidden = random.standard_normal((ROWS, 3))
    if together:
        hidden[:, 1:] = 0.6 * hidden[:, :1] + 0.8 * hidden[:, 1:]
    made = np.zeros((ROWS, INPUTS), dtype=np.float32)
    made[:, 0] = (0.5 + hidden[:, 0] / 8).clip(0, 1)
    made[:, 1] = random.random(ROWS)
    for place, values, least in ((YES_NO, hidden[:, 1], 0.4), (OTHER, hidden[:, 2], -0.2)):
        made[np.arange(ROWS), place + (values > least)] = 1
    made[np.arange(ROWS), OF_THREE + random.integers(3, size=ROWS)] = 1
    return torch.from_numpy(made)


def released(made: Tensor, noise: float = 0.0, seed: int = 0) -> ReleasedMoments:
    """Of rows, with noise on every product that is there twice."""
    z = ReleasedMoments(FEATURES, np.eye(FEATURES.factors), 0.0).factors(made).double()
    drawn = np.random.default_rng(seed).standard_normal((FEATURES.factors, FEATURES.factors))
    possible = FEATURES.possible.numpy()
    noisy = mean_products(z, z).numpy() + noise * (drawn + drawn.T) / np.sqrt(2)
    return ReleasedMoments(FEATURES, possible @ noisy @ possible, noise)


def test_what_is_lacking_is_how_columns_go_together() -> None:
    """Without noise, against correlations as NumPy has them; |z|^2 makes them differ a little."""
    exact = released(rows(True))
    found = Departure.of(exact, rows(False))
    z = exact.factors(rows(True)).double().numpy()
    truth = np.corrcoef(z[:, 1:].T)
    assert found.difference[1:, 1:][found.changeable[1:, 1:]].numpy() == pytest.approx(
        truth[found.changeable[1:, 1:].numpy()], abs=0.08
    )
    assert abs(truth[NUMBER - 1, YES - 1]) > 0.4
    assert not found.changeable[0].any()  # nothing changes what goes with the constant
    assert not found.changeable[ANSWERS, ANSWERS].diagonal(1)[0]  # nor what a column is with itself


def test_products_of_rare_categories_are_known_as_such() -> None:
    """Of a category of a hundredth, squares are a fifth of those of one of a half."""
    made = rows(False)
    made[:, YES_NO : YES_NO + 2] = torch.tensor([0.0, 1.0])
    made[: len(made) // 100, YES_NO : YES_NO + 2] = torch.tensor([1.0, 0.0])
    found = Departure.of(released(made), made).frequency
    assert found[NUMBER, NUMBER] == 1
    assert float(found[NUMBER, YES]) == pytest.approx((0.01 * 0.99) ** 0.5, rel=0.02)
    assert torch.equal(found, torch.outer(found[NUMBER], found[NUMBER]))


def test_noise_on_it_is_as_large_as_is_said() -> None:
    """Over 500 draws, of columns that are independent."""
    apart, noise = rows(False), 0.01
    made = [Departure.of(released(apart, noise, seed), apart) for seed in range(500)]
    free = made[0].changeable
    drawn = torch.stack([each.difference for each in made])[:, free]
    said = torch.stack([each.noise for each in made])[:, free].mean(dim=0)
    assert 0.003 < float(said.min()) < float(said.max()) < 0.1  # and hardly any is cut off
    assert (drawn.square().mean(dim=0) / said).numpy() == pytest.approx(1, abs=0.25)


def test_two_columns_of_two_answers_have_a_quarter_of_the_noise_left() -> None:
    """Of what is released of them, and nothing less of two numbers."""
    answers = replace(FEATURES, numbers=((0, -1),), categories=((YES_NO, 2), (OTHER, 2)))
    possible = answers.possible
    assert possible.diagonal()[1] == 1
    apart = torch.eye(2, dtype=torch.float64) - 0.5
    difference = torch.tensor([1.0, -1.0], dtype=torch.float64) / 2**0.5
    for place in (slice(2, 4), slice(4, 6)):
        # What tells the answers apart stays as it is; of what they add up to nothing is left.
        assert torch.allclose(apart @ possible[place, place] @ apart, apart)
        assert torch.allclose(possible[place, place] @ difference, difference)
    found = Departure.of(released(rows(True), 1e-3), rows(False))
    of_answers = found.projection_factor[3:5, 5:7]
    assert (of_answers > 3.5).all()
    assert found.projection_factor[1, 2] == pytest.approx(1, abs=0.3)


def test_products_of_a_pair_count_for_its_degrees_of_freedom() -> None:
    """Two answers and two of the others by each other; two numbers by each of them; and both."""
    grouped = Departure.of(released(rows(False)), rows(False)).grouped
    # Of products with the constant nothing is to be learnt.
    found = [[each for each in kind.freedom.tolist() if each] for kind in grouped]
    assert found == [pytest.approx(each) for each in ([1, 2, 2], [1, 1, 2, 1, 1, 2], [1])]
