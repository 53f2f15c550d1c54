"""Gradients from sums of shares equal those of automatic differentiation."""

from __future__ import annotations

from dataclasses import fields

import pytest
import torch

from dpntk.common.errors import BudgetError
from dpntk.release.distill.class_means import ClassMeans
from dpntk.release.distill.gradients import REST, Contributions, require_memory
from dpntk.release.distill.products import SlicedMatrix
from tests.helpers.problems import beside_records, draw_problem, parts_of, plain_gradients

SIZES = [(40, 9, 30, 3), (5, 2, 8, 2), (17, 40, 12, 10)]


@pytest.mark.parametrize(("records", "points", "inputs", "classes"), SIZES)
@pytest.mark.parametrize("beside", [False, True])
def test_the_gradient_from_a_records_shares_equals_the_oracle(
    records: int, points: int, inputs: int, classes: int, beside: bool
) -> None:
    """Of each record by itself; rests are rounded to 2^-13."""
    problem = draw_problem(records, points, inputs, classes)
    problem = beside_records(problem) if beside and records > points + 4 else problem
    loss = problem.loss_of(directions=points, whitened=points)
    shares = loss.shares(problem.values, problem.record_targets)
    parts = parts_of(shares)
    rounding = shares.of_rest.abs() * loss._unit / REST
    for i, expected in enumerate(plain_gradients(problem)):
        wrong = (loss.gradient(*(part[i] for part in parts)) - expected).abs()
        assert (wrong <= rounding[i][:, None] + 1e-5 * expected.abs().max()).all()


@pytest.mark.parametrize(("records", "points", "inputs", "classes"), SIZES)
def test_the_exact_gradient_is_that_of_the_oracle(
    records: int, points: int, inputs: int, classes: int
) -> None:
    problem = draw_problem(records, points, inputs, classes)
    expected = plain_gradients(problem).sum(0)
    found = problem.loss.exact_gradient(problem.values, problem.record_targets)
    assert (found - expected).abs().max() < 1e-9 * expected.abs().max()


def test_few_directions_hold_nearly_all_of_the_gradient() -> None:
    """Fewer than support points; and random ones of the same number hold little."""
    problem = draw_problem(200, 90, 30, 3, seed=1)
    expected = plain_gradients(problem).sum(0)
    loss = problem.loss_of(directions=30, whitened=90)
    shares = loss.shares(problem.values, problem.record_targets)
    assert shares.of_record.shape[1] == loss.shapes[0][0] == 30
    found = loss.gradient(*(part.sum(0) for part in parts_of(shares)))
    random = torch.linalg.qr(torch.randn(90, 30, generator=torch.Generator().manual_seed(0)))[0]
    loss._directions = random.double()
    loss._sliced_directions = SlicedMatrix(loss._directions)
    shares = loss.shares(problem.values, problem.record_targets)
    lost = loss.gradient(*(part.sum(0) for part in parts_of(shares))) - expected
    assert (found - expected).norm() < 0.5 * lost.norm()


def test_the_rest_makes_shares_shorter_than_records_would() -> None:
    """Records that support points explain count little: here they lie beside them."""
    problem = beside_records(draw_problem(40, 9, 30))
    shares = problem.loss.shares(problem.values, problem.record_targets)
    explained = shares.rest.norm(dim=1)[4:13] / shares.record.norm(dim=1)[4:13]
    assert explained.max() < 0.2


def test_so_many_points_that_memory_would_not_do_are_refused() -> None:
    require_memory(8_192)
    with pytest.raises(BudgetError, match=r"8,193 support points are too many.* smaller per_class"):
        require_memory(8_193)


def test_class_means_are_sums_of_records_of_one_length() -> None:
    problem = draw_problem(40, 9, 30, 3)
    means = ClassMeans(problem.points, problem.targets)
    found = means.exact_gradient(problem.values, problem.record_targets)
    labels = problem.record_targets.argmax(1)
    for point in range(9):
        records = problem.values[labels == point % 3]
        expected = (records / records.norm(dim=1, keepdim=True)).sum(0)
        assert (found[point] - expected).abs().max() < 1e-12


def test_a_records_numbers_do_not_depend_on_its_company() -> None:
    """To the last bit: alone, and at every place in a batch."""
    problem = draw_problem(64, 33, 50)
    loss = problem.loss_of(whitened=20)  # and 30 directions
    whole = loss.shares(problem.values, problem.record_targets)
    for index in range(0, 64, 7):
        row = slice(index, index + 1)
        alone = loss.shares(problem.values[row], problem.record_targets[row])
        for field in fields(Contributions):
            assert torch.equal(getattr(whole, field.name)[row], getattr(alone, field.name))


def test_products_are_close_and_each_row_is_its_own() -> None:
    random = torch.Generator().manual_seed(0)
    left = torch.randn(100, 37, generator=random, dtype=torch.float64)
    left *= torch.logspace(-9, 9, 100, dtype=torch.float64)[:, None]
    right = torch.randn(37, 11, generator=random, dtype=torch.float64)
    sliced = SlicedMatrix(right, 3)
    found = sliced.left_multiplied(left)
    assert ((found - left @ right).abs() <= 1e-13 * left.abs().amax(1, keepdim=True)).all()
    alone = [sliced.left_multiplied(left[i : i + 1]) for i in range(100)]
    assert torch.equal(torch.cat(alone), found)
