"""Scores of values, against Gaussian numbers that were rounded."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import norm, rankdata

from dpntk.generate.tables.copulas.copula import cell_shares
from dpntk.generate.tables.copulas.normal_scores import NormalScores

ROWS = 200_000


def normal(correlation: float) -> NDArray[np.float64]:
    covariance = [[1, correlation], [correlation, 1]]
    return np.random.default_rng(0).multivariate_normal([0, 0], covariance, ROWS)


def records(*columns: NDArray[np.float64]) -> torch.Tensor:
    return torch.from_numpy(np.stack(columns, axis=1).astype(np.float32))


def test_scores_of_distinct_values_are_those_of_their_ranks() -> None:
    values = np.exp(np.random.default_rng(0).normal(size=1000)) / 50
    made = records(values)
    found = NormalScores.of(0, -1, made)(made).numpy()
    middle = norm.ppf((rankdata(values) - 0.5) / len(values))
    assert found == pytest.approx(middle, abs=0.1)  # the outermost; others far less
    inner = np.abs(middle) < 2
    assert found[inner] == pytest.approx(middle[inner], abs=2e-3)


def test_scores_of_a_rounded_number_are_means_of_what_was_rounded() -> None:
    exact = normal(0.0)[:, 0]
    rounded = (exact > -1).astype(float) + (exact > 0.3) + (exact > 2.5)
    made = records(rounded / 255, np.zeros(ROWS))
    scores = NormalScores.of(0, 1, made)
    for value in range(4):
        at = torch.tensor([[value / 255, 0.0]])
        assert float(scores(at)) == pytest.approx(exact[rounded == value].mean(), abs=0.02)


@pytest.mark.parametrize("correlation", [-0.6, 0.0, 0.3, 0.95])
def test_products_of_scores_follow_from_the_correlation(correlation: float) -> None:
    """Of a number with hundreds of values and one with three, of which one is rare."""
    first, second = normal(correlation).T
    first = np.exp(first / 2).clip(0, 8).round(2) / 8
    second = ((second > 0.2).astype(float) + (second > 2)) / 2
    made = records(first, second)
    scores = [NormalScores.of(place, -1, made) for place in (0, 1)]
    (rows, of_rows), (columns, of_columns) = (each.in_parts() for each in scores)
    assert len(rows) <= 48 < len(scores[0].values)
    assert rows.sum() == pytest.approx(1)
    expected = of_rows @ cell_shares(correlation, rows, columns) @ of_columns
    product = float((scores[0](made).double() * scores[1](made).double()).mean())
    assert expected == pytest.approx(product, abs=0.01)


def test_missing_numbers_have_no_score_and_no_rank() -> None:
    exact = normal(0.0)[:, 0] / 8 + 0.5
    missing = np.random.default_rng(1).random(ROWS) < 0.4
    with_gaps = records(np.where(missing, 0.9, exact), missing.astype(float))
    scores = NormalScores.of(0, 1, with_gaps)
    found = scores(with_gaps).numpy()
    assert np.array_equal(scores.known(with_gaps).numpy(), ~missing)
    assert (found[missing] == 0).all()
    known = records(exact[~missing], np.zeros((~missing).sum()))
    assert np.array_equal(found[~missing], NormalScores.of(0, 1, known)(known).numpy())


def test_a_constant_goes_with_nothing() -> None:
    made = records(np.full(9, 0.5))
    scores = NormalScores.of(0, -1, made)
    assert scores(made).tolist() == [0.0] * 9
    assert float(scores(torch.tensor([[0.7]]))) == 0  # a value that no row had
