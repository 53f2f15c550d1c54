"""Gradients by coefficients equal those of automatic differentiation."""

from __future__ import annotations

import pytest
import torch

from dpntk.distill.products import product
from tests.distill.problems import draw_problem, plain_gradients

SIZES = [(40, 9, 30, 3), (5, 2, 8, 2), (17, 40, 12, 10)]


@pytest.mark.parametrize(("records", "points", "inputs", "classes"), SIZES)
def test_gradients_and_norms_equal_the_oracle(
    records: int, points: int, inputs: int, classes: int
) -> None:
    problem = draw_problem(records, points, inputs, classes)
    expected = plain_gradients(problem)
    found = problem.loss.coefficients(problem.values, problem.record_targets)
    mine = found.of_record[:, :, None] * problem.values[:, None] + found.of_points @ problem.points
    assert (mine - expected).abs().max() < 1e-9
    squares, _ = problem.loss.norms(found)
    assert (squares.sqrt() - expected.flatten(1).norm(dim=1)).abs().max() < 1e-9


@pytest.mark.parametrize("slices", [1, 2, 3])
def test_the_norm_is_within_its_error(slices: int) -> None:
    problem = draw_problem(200, 50, 20)
    found = problem.loss.coefficients(problem.values, problem.record_targets)
    squares, error = problem.loss.norms(found, slices)
    expected = plain_gradients(problem).flatten(1).square().sum(1)
    assert ((squares - expected).abs() <= error + 1e-12 * expected).all()
    if slices == 1:
        assert (error < 1e-2 * expected).all()  # what clipping loses by it


def test_a_records_numbers_do_not_depend_on_its_company() -> None:
    """To the last bit: alone, and at every place in a batch."""
    problem = draw_problem(64, 33, 50)
    loss = problem.loss
    whole = loss.coefficients(problem.values, problem.record_targets)
    for index in range(0, 64, 7):
        row = slice(index, index + 1)
        alone = loss.coefficients(problem.values[row], problem.record_targets[row])
        for name in ("of_record", "of_points", "products", "squares"):
            assert torch.equal(getattr(whole, name)[row], getattr(alone, name))
        for slices in (1, 3):
            of_whole, of_alone = loss.norms(whole, slices), loss.norms(alone, slices)
            assert all(torch.equal(a[row], b) for a, b in zip(of_whole, of_alone, strict=True))


def test_products_are_close_and_each_row_is_its_own() -> None:
    random = torch.Generator().manual_seed(0)
    left = torch.randn(100, 37, generator=random, dtype=torch.float64)
    left *= torch.logspace(-9, 9, 100, dtype=torch.float64)[:, None]
    right = torch.randn(37, 11, generator=random, dtype=torch.float64)
    found = product(left, right)
    assert ((found - left @ right).abs() <= 1e-13 * left.abs().amax(1, keepdim=True)).all()
    assert all(torch.equal(product(left[i : i + 1], right)[0], found[i]) for i in range(100))
