"""Gradients by coefficients equal those of automatic differentiation."""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction

import pytest
import torch

from dpntk.release.distill.gradients import Coefficients
from dpntk.release.distill.products import SlicedMatrix
from tests.helpers.problems import (
    beside_records,
    draw_problem,
    exact_squares,
    plain_gradients,
    written_out,
)

SIZES = [(40, 9, 30, 3), (5, 2, 8, 2), (17, 40, 12, 10)]


@pytest.mark.parametrize(("records", "points", "inputs", "classes"), SIZES)
def test_gradients_and_norms_equal_the_oracle(
    records: int, points: int, inputs: int, classes: int
) -> None:
    problem = draw_problem(records, points, inputs, classes)
    expected = plain_gradients(problem)
    loss = problem.loss
    found = loss.coefficients(problem.values, problem.record_targets)
    assert (written_out(problem, loss, found) - expected).abs().max() < 1e-9
    squares, _ = loss.norms(found)
    assert (squares.sqrt() - expected.flatten(1).norm(dim=1)).abs().max() < 1e-9


@pytest.mark.parametrize("slices", [1, 2, 3])
@pytest.mark.parametrize("points", [9, 50, 150])
def test_the_norm_is_within_its_error(slices: int, points: int) -> None:
    """Of the coefficients as they are; with more points than values, so that they cancel."""
    problem = draw_problem(100, points, 20)
    loss = problem.loss_of(slices)
    found = loss.coefficients(problem.values, problem.record_targets)
    squares, error = loss.norms(found)
    expected = written_out(problem, loss, found).flatten(1).square().sum(1)
    assert ((squares - expected).abs() <= error + 1e-12 * expected).all()
    if slices == 2:
        assert (error < 1e-6 * expected).all()  # what clipping loses by it


@pytest.mark.parametrize("used", [1, 2, 3])
@pytest.mark.parametrize("beside", [False, True])
def test_the_norm_is_within_its_error_without_any_rounding(beside: bool, used: int) -> None:
    """Of exact fractions. The errors of slices count most with one, those of rounding with three.

    Beside a support point the record's own coefficients are large, and their products with others
    are what is sliced most coarsely.
    """
    problem = draw_problem(14, 5, 8)
    problem = beside_records(problem) if beside else problem
    loss = problem.loss_of(max(used, 2))
    found = loss.coefficients(problem.values, problem.record_targets)
    squares, error = (each.tolist() for each in loss.norms(found, used))
    for exact, computed, bound in zip(
        exact_squares(problem, loss, found), squares, error, strict=True
    ):
        assert abs(Fraction(computed) - exact) <= Fraction(bound)


def test_a_records_numbers_do_not_depend_on_its_company() -> None:
    """To the last bit: alone, and at every place in a batch."""
    problem = draw_problem(64, 33, 50)
    loss = problem.loss
    whole = loss.coefficients(problem.values, problem.record_targets)
    norms = loss.norms(whole)
    for index in range(0, 64, 7):
        row = slice(index, index + 1)
        alone = loss.coefficients(problem.values[row], problem.record_targets[row])
        for field in fields(Coefficients):
            assert torch.equal(getattr(whole, field.name)[row], getattr(alone, field.name))
        for of_whole, of_alone in zip(norms, loss.norms(alone), strict=True):
            assert torch.equal(of_whole[row], of_alone)


def test_products_are_close_and_each_row_is_its_own() -> None:
    random = torch.Generator().manual_seed(0)
    left = torch.randn(100, 37, generator=random, dtype=torch.float64)
    left *= torch.logspace(-9, 9, 100, dtype=torch.float64)[:, None]
    right = torch.randn(37, 11, generator=random, dtype=torch.float64)
    sliced = SlicedMatrix(right)
    found = sliced.left_multiplied(left)
    assert ((found - left @ right).abs() <= 1e-13 * left.abs().amax(1, keepdim=True)).all()
    alone = [sliced.left_multiplied(left[i : i + 1]) for i in range(100)]
    assert torch.equal(torch.cat(alone), found)
