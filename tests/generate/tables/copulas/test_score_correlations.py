"""Correlations by tables and by products: each counts as far as its noise allows."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from dpntk.generate.tables.copulas.score_correlations import combined
from tests.generate.tables.copulas.test_attenuation import (
    CORRELATIONS,
    evidence,
    gaussian,
    numbers,
    scores_of,
)

OFF = ~torch.eye(3, dtype=torch.bool)


def variances(each: float) -> Tensor:
    return torch.full((3, 3), each, dtype=torch.float64).fill_diagonal_(0.0)


def by_tables(error: float) -> Tensor:
    """Correlations that tables say, all of which are off by so much."""
    return torch.where(OFF, CORRELATIONS + error, CORRELATIONS)


@pytest.mark.parametrize(
    ("noise", "trusted", "least", "most"),
    [(1e-7, 0.04, 0.0, 0.1), (1e-7, 1e-6, 0.19, 0.2), (0.05, 0.0025, 0.17, 0.2)],
    ids=["exact products", "exact tables", "noisy products"],
)
def test_what_is_known_better_counts_more(
    noise: float, trusted: float, least: float, most: float
) -> None:
    seen = evidence(numbers(gaussian()), noise)
    found = combined(by_tables(0.2), variances(trusted), scores_of(seen.records), seen)
    error = (found.means - CORRELATIONS).abs()[OFF]
    assert least <= float(error.mean()) <= most
    assert (found.variances[OFF] <= trusted).all()
    assert torch.equal(found.means, found.means.T)
    assert torch.equal(found.means.diagonal(), torch.ones(3, dtype=torch.float64))


def test_products_alone_say_what_no_table_does() -> None:
    seen = evidence(numbers(gaussian()), 1e-7)
    nothing = torch.eye(3, dtype=torch.float64)
    found = combined(nothing, variances(torch.inf), scores_of(seen.records), seen)
    assert torch.allclose(found.means, CORRELATIONS, atol=0.05)


def test_strong_products_are_farther_from_those_of_a_copula() -> None:
    seen = evidence(numbers(gaussian()), 1e-7)
    misfits = [
        float(combined(means, variances(0.01), scores_of(seen.records), seen).misfit[0, 1].sqrt())
        for means in (torch.eye(3, dtype=torch.float64), CORRELATIONS)
    ]
    assert misfits[0] == pytest.approx(0.03)
    assert 0.06 < misfits[1] < 0.12


def test_without_products_tables_are_taken_at_their_word() -> None:
    seen = scores_of(numbers(gaussian()))
    found = combined(CORRELATIONS, variances(0.01), seen, None)
    assert torch.equal(found.means, CORRELATIONS)
    assert not found.misfit.any()
