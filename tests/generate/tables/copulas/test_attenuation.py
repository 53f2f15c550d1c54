"""Numbers whose halves go together as those of Gaussian ones do, and within these or not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpntk.common.features.moments import MomentFeatures
from dpntk.generate.tables.copulas.attenuation import (
    ProductEvidence,
    attenuated,
    weak_factor,
)
from dpntk.generate.tables.copulas.normal_scores import NormalScores
from dpntk.generate.tables.dependence.product_departures import (
    Departure,
    ReleasedMoments,
    mean_products,
)

ROWS = 60_000
MARK = 3
FEATURES = MomentFeatures(((0, -1), (1, -1), (2, MARK)), (), MARK + 1)
CORRELATIONS = torch.tensor([[1, 0.5, 0.3], [0.5, 1, -0.4], [0.3, -0.4, 1]], dtype=torch.float64)
PAIRS = list(itertools.combinations(range(3), 2))


def numbers(gaussian: NDArray[np.float64]) -> Tensor:
    """Skewed, even, and of few values with every fourth missing; of Gaussian numbers' ranks."""
    first, second, third = gaussian.T
    skewed = (np.exp(first / 2) / 8).clip(0, 1)
    even = np.argsort(np.argsort(second)) / len(second)
    few = ((third > -0.5).astype(float) + (third > 0.7)) / 2
    missing = np.random.default_rng(7).random(len(few)) < 0.25
    made = np.stack([skewed, even, np.where(missing, 0, few), missing], axis=1)
    return torch.from_numpy(made.astype(np.float32))


def gaussian() -> NDArray[np.float64]:
    return np.random.default_rng(0).multivariate_normal(np.zeros(3), CORRELATIONS.numpy(), ROWS)


def within_halves_independent() -> NDArray[np.float64]:
    """Numbers of the same halves, of which nothing else goes together."""
    found, random = gaussian(), np.random.default_rng(1)
    for column in found.T:
        for side in (column > 0, column <= 0):
            column[side] = random.permutation(column[side])
    return found


def evidence(rows: Tensor, noise: float = 0.0) -> ProductEvidence:
    """Of rows, with noise on every product that is there twice."""
    alone = rows.clone()
    random = np.random.default_rng(2)
    for places in ([0], [1], [2, MARK]):
        alone[:, places] = rows[random.permutation(ROWS)][:, places]
    z = ReleasedMoments(FEATURES, np.eye(FEATURES.factors), 0.0).factors(rows).double()
    drawn = random.standard_normal((FEATURES.factors, FEATURES.factors))
    noisy = mean_products(z, z).numpy() + noise * (drawn + drawn.T) / np.sqrt(2)
    possible = FEATURES.possible.numpy()
    released = ReleasedMoments(FEATURES, possible @ noisy @ possible, noise)
    return ProductEvidence(released, Departure.of(released, alone), alone)


def scores_of(rows: Tensor) -> list[NormalScores]:
    return [
        NormalScores.of(0, -1, rows),
        NormalScores.of(1, -1, rows),
        NormalScores.of(2, MARK, rows),
    ]


def test_products_of_a_copula_are_as_expected() -> None:
    """Of numbers of any distribution, and of missing ones, which go with nothing."""
    seen = evidence(numbers(gaussian()))
    r, expected, found, noise = seen.of_pairs(CORRELATIONS, scores_of(seen.records))
    assert r.tolist() == pytest.approx([float(CORRELATIONS[pair]) for pair in PAIRS])
    assert found == pytest.approx(expected, abs=0.02)
    assert np.abs(expected).min() > 0.15
    assert (noise == 0).all()
    _, nothing, _, _ = seen.of_pairs(torch.eye(3, dtype=torch.float64), scores_of(seen.records))
    assert (nothing == 0).all()


def test_what_goes_together_within_halves_is_told_from_what_does_not() -> None:
    for made, least, most in ((gaussian(), 1.0, 1.0), (within_halves_independent(), 0.5, 0.9)):
        rows = numbers(made)
        seen = evidence(rows, noise=1e-6)
        scores = scores_of(seen.records)
        found = attenuated(CORRELATIONS, scores, seen)
        factor = weak_factor(*seen.of_pairs(CORRELATIONS, scores))
        assert least <= factor <= most
        off_diagonal = ~torch.eye(3, dtype=torch.bool)
        kept = (found / CORRELATIONS)[off_diagonal]
        assert torch.allclose(kept, factor + (1 - factor) * CORRELATIONS[off_diagonal] ** 2)
        assert torch.equal(found.diagonal(), torch.ones(3, dtype=torch.float64))
    assert attenuated(CORRELATIONS, scores, None) is CORRELATIONS


def test_the_factor_is_1_unless_products_are_smaller_beyond_doubt() -> None:
    nothing = np.zeros(0)
    assert weak_factor(nothing, nothing, nothing, nothing) == 1.0
    r, expected = np.full(400, 0.5), np.full(400, 0.2)
    seen = expected * (0.6 + 0.4 * r**2)
    by_noise = [weak_factor(r, expected, seen, np.full(400, each)) for each in (1e-9, 0.04, 2.0)]
    weak = expected[0] * (1 - r[0] ** 2)
    deviations = [np.sqrt(each + (0.25 * expected[0]) ** 2) / weak / 20 for each in (1e-9, 0.04)]
    assert by_noise == pytest.approx([0.6 + 2 * each for each in deviations] + [1.0])
    surely = np.full(400, 1e-9)
    assert weak_factor(r, expected, np.zeros(400), surely) == 0.4
    assert weak_factor(r, expected, 3 * expected, surely) == 1.0
    # What is strong says little of what is weak, which is as expected.
    r, expected = np.repeat([0.99, 0.3], 20), np.repeat([0.9, 0.3], 20)
    seen = expected * np.repeat([0.9, 1.0], 20)
    assert weak_factor(r, expected, seen, np.full(40, 1e-4)) == 1.0
    assert weak_factor(r, expected, seen - expected * np.repeat([0, 0.5], 20), surely[:40]) < 0.8
