"""Mistakes of a distillation that would make an epsilon untrue, each caught by a test."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

import _pytest.outcomes
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from dpntk.common.errors import DpntkError
from dpntk.common.sources import open_source
from dpntk.release.distill import descent, mechanism, optimiser, products
from dpntk.release.distill import ledger as distilled_ledger
from dpntk.release.distill.gradients import Coefficients, SupportLoss
from dpntk.release.distill.optimiser import State
from dpntk.release.distill.products import SlicedMatrix
from dpntk.release.distill.progress import RunFolder
from dpntk.release.mechanism import subsampled_gaussian as sampled_gaussian
from dpntk.release.mechanism.discrete_gaussian import discrete_gaussian
from tests.release.distill import test_distill as path_tests
from tests.release.distill import test_gradients as gradient_tests
from tests.release.distill import test_mechanism as mechanism_tests
from tests.release.mechanism import test_subsampled_gaussian as accountant_tests
from tests.release.test_mutants import everywhere

Plant = Callable[[pytest.MonkeyPatch], None]


def shuffled_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each record once in an epoch, dealt out in batches of one size."""

    def deal(records: int, rate: float) -> NDArray[np.int64]:
        size = max(1, round(rate * records))
        if not deck:
            order = np.random.default_rng().permutation(records)
            deck.extend(np.sort(order[i : i + size]) for i in range(0, records, size))
        return deck.pop()

    deck: list[NDArray[np.int64]] = []
    monkeypatch.setattr(descent, "poisson_sample", deal)


def start_from_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the public code of the paper does for MNIST."""
    right = RunFolder.resume

    def resume(self: RunFolder, start: State) -> State:
        images = open_source(self.path.parent / "images")
        batch = next(iter(images.batches(len(start.points))))
        return replace(right(self, start), points=np.floor(batch.records / 4.0) / 64)

    monkeypatch.setattr(RunFolder, "resume", resume)


def one_record_not_clipped(monkeypatch: pytest.MonkeyPatch) -> None:
    right = mechanism.clip_weights

    def all_but_the_first(
        loss: SupportLoss, found: Coefficients, longest: float, unit: float
    ) -> torch.Tensor:
        weights = right(loss, found, longest, unit)
        weights[0] = 1 / unit
        return weights

    everywhere(monkeypatch, right, all_but_the_first)


def clipped_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest gradient of a batch decides for all of them."""
    right = SupportLoss.norms

    def longest(self: SupportLoss, found: Coefficients, *slices: int) -> tuple[Any, Any]:
        squares, sizes = right(self, found, *slices)
        return torch.full_like(squares, float(squares.amax())), sizes

    monkeypatch.setattr(SupportLoss, "norms", longest)


def only_the_part_of_the_record_is_clipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forgets that the loss depends on the support points through the inverse as well."""
    right = SupportLoss.norms

    def part(self: SupportLoss, found: Coefficients, *slices: int) -> tuple[Any, Any]:
        nothing = {name: getattr(found, name) * 0 for name in ("own", "u", "v", "residual")}
        return right(self, replace(found, **nothing), *slices)

    monkeypatch.setattr(SupportLoss, "norms", part)


def classes_do_not_mix(monkeypatch: pytest.MonkeyPatch) -> None:
    """Norms forget the pairs of different classes."""
    right = torch.combinations

    def equal(classes: torch.Tensor, **options: Any) -> torch.Tensor:  # noqa: ANN401
        pairs = right(classes, **options)
        return pairs[pairs[:, 0] == pairs[:, 1]]

    monkeypatch.setattr(torch, "combinations", equal)


def slices_are_taken_for_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "relative_error", lambda parameters, slices: 0.0)


def sliced_sums_are_taken_for_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for those over pairs of classes, whose errors are usually larger."""
    right = SlicedMatrix.truncation_error

    def error(self: SlicedMatrix, left: torch.Tensor, *slices: int | None) -> torch.Tensor:
        rows, columns = self._parts[0].shape
        return right(self, left, *slices) * (0.0 if slices and rows == columns else 1.0)

    monkeypatch.setattr(SlicedMatrix, "truncation_error", error)


def norms_are_taken_for_rounded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SupportLoss, "_rounding", lambda _: 0.0)


def company_decides_which_bound_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """If one record needs the better bound, all get it."""

    def all_or_none(condition: torch.Tensor, *rest: Any) -> Any:  # noqa: ANN401
        if not rest:
            condition = torch.full_like(condition, bool(condition.any()))
        return right(condition, *rest)

    right = torch.where
    monkeypatch.setattr(torch, "where", all_or_none)


def noise_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[tuple[int, int], NDArray[np.int64]] = {}

    def again(size: int, sigma: int) -> NDArray[np.int64]:
        if (size, sigma) not in drawn:
            drawn[size, sigma] = discrete_gaussian(size, sigma)
        return drawn[size, sigma]

    monkeypatch.setattr(mechanism, "discrete_gaussian", again)


def one_draw_for_all_points(monkeypatch: pytest.MonkeyPatch) -> None:
    def shared(size: int, sigma: int) -> NDArray[np.int64]:
        return np.resize(discrete_gaussian(30, sigma), size)

    monkeypatch.setattr(mechanism, "discrete_gaussian", shared)


def noise_for_the_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Divides by the number of records in the batch, which is not public, before the noise."""

    def smaller(size: int, sigma: int) -> NDArray[np.int64]:
        return discrete_gaussian(size, max(1, sigma // 40))

    monkeypatch.setattr(mechanism, "discrete_gaussian", smaller)


def resumed_step_applied_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The step that was lost is taken again."""
    right = RunFolder.resume

    def uncounted(self: RunFolder, start: State) -> State:
        state = right(self, start)
        return replace(state, begun=min(state.begun, state.taken))

    monkeypatch.setattr(RunFolder, "resume", uncounted)


def gradient_applied_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an interruption the latest gradient moves the points once more."""
    right_resume, right_descend = RunFolder.resume, optimiser.descend
    latest: list[tuple[Any, ...]] = []

    def descend(state: State, *rest: Any) -> State:  # noqa: ANN401
        latest[:] = [rest]
        return right_descend(state, *rest)

    def resume(self: RunFolder, start: State) -> State:
        state = right_resume(self, start)
        return right_descend(state, *latest[0]) if latest and state.begun else state

    monkeypatch.setattr(descent, "descend", descend)
    monkeypatch.setattr(RunFolder, "resume", resume)


def step_counted_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    right = RunFolder.begin_step

    def later(self: RunFolder, state: State) -> State:
        return replace(state, begun=state.begun + 1)

    def save(self: RunFolder, state: State) -> None:
        right(self, replace(state, begun=state.begun - 1))
        right_save(self, state)

    right_save = RunFolder.save
    monkeypatch.setattr(RunFolder, "begin_step", later)
    monkeypatch.setattr(RunFolder, "save", save)


def rate_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise for batches of half the size."""
    right = sampled_gaussian.sampled_multiplier

    def optimistic(epsilon: float, delta: float, rate: float, *rest: Any) -> Any:  # noqa: ANN401
        return replace(right(epsilon, delta, rate / 2, *rest), sampling_prob=rate)

    everywhere(monkeypatch, right, optimistic)


def exchange_taken_for_addition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise for a record more or less, whatever was asked for."""
    right = sampled_gaussian.sampled_multiplier

    def half(epsilon: float, delta: float, rate: float, steps: int, *_: Any) -> Any:  # noqa: ANN401
        return right(epsilon, delta, rate, steps)

    everywhere(monkeypatch, right, half)


def company_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ordinary products of matrices: a record's last bits depend on its place in the batch."""
    right = SlicedMatrix.__init__

    def keep(self: SlicedMatrix, matrix: torch.Tensor, slices: int = 3) -> None:
        right(self, matrix, slices)
        matrices[self] = matrix

    matrices: dict[SlicedMatrix, torch.Tensor] = {}
    monkeypatch.setattr(SlicedMatrix, "__init__", keep)
    monkeypatch.setattr(
        SlicedMatrix, "left_multiplied", lambda self, left, _=None: left @ matrices[self]
    )


def rounding_of_transforms_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampled_gaussian, "_LOST_PER_STEP", 0.0)


def nobody_waits_for_the_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distilled_ledger, "locked", contextlib.nullcontext)


def bound_without_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    right = mechanism.clip_weights

    class Exact:
        def __init__(self, loss: SupportLoss) -> None:
            self.loss, self.first = loss, loss.first

        def norms(self, found: Coefficients, *slices: int) -> tuple[torch.Tensor, torch.Tensor]:
            squares, error = self.loss.norms(found, *slices)
            return squares, torch.zeros_like(error)

    def careless(loss: SupportLoss, *rest: Any) -> torch.Tensor:  # noqa: ANN401
        return right(cast("SupportLoss", Exact(loss)), *rest)

    everywhere(monkeypatch, right, careless)


@dataclass(frozen=True)
class Mutant:
    """A mistake, and the test that must fail with it in place.

    Attributes:
        plant: puts the mistake in place.
        caught_by: the test.
        parameters: of that test; its fixtures are found by name.
    """

    plant: Plant
    caught_by: Callable[..., None]
    parameters: dict[str, Any] = field(default_factory=dict)


interrupted = {"die_at": 3, "die_after_noise": True}
MUTANTS = [
    Mutant(shuffled_epochs, path_tests.test_batches_are_drawn_anew_at_every_step),
    Mutant(start_from_records, path_tests.test_the_start_is_drawn_without_records),
    Mutant(
        one_record_not_clipped,
        mechanism_tests.test_no_record_contributes_more_than_the_sensitivity,
        {"clip": 0.05, "hostile": False},
    ),
    Mutant(
        clipped_together,
        mechanism_tests.test_the_sum_is_exactly_that_of_its_records_in_any_company,
        {"clip": 0.05},
    ),
    Mutant(
        only_the_part_of_the_record_is_clipped,
        mechanism_tests.test_no_record_contributes_more_than_the_sensitivity,
        {"clip": 0.05, "hostile": False},
    ),
    Mutant(
        classes_do_not_mix,
        gradient_tests.test_the_norm_is_within_its_error,
        {"slices": 2, "points": 9},
    ),
    Mutant(
        slices_are_taken_for_exact,
        gradient_tests.test_the_norm_is_within_its_error,
        {"slices": 1, "points": 50},
    ),
    Mutant(
        sliced_sums_are_taken_for_exact,
        gradient_tests.test_the_norm_is_within_its_error_without_any_rounding,
        {"used": 1, "beside": True},
    ),
    Mutant(
        norms_are_taken_for_rounded_once,
        gradient_tests.test_the_norm_is_within_its_error_without_any_rounding,
        {"used": 3, "beside": False},
    ),
    Mutant(
        company_decides_which_bound_is_enough,
        mechanism_tests.test_whether_a_bound_is_rough_is_decided_by_the_record_alone,
    ),
    Mutant(noise_repeated, path_tests.test_no_two_steps_have_the_same_noise),
    Mutant(
        one_draw_for_all_points, mechanism_tests.test_steps_and_coordinates_have_noise_of_their_own
    ),
    Mutant(
        noise_for_the_mean,
        mechanism_tests.test_the_noise_has_the_size_that_the_accountant_takes_it_for,
        {"multiplier": 0.5},
    ),
    Mutant(
        resumed_step_applied_twice,
        path_tests.test_an_interrupted_run_goes_on_and_counts_every_step_once,
        interrupted,
    ),
    Mutant(
        gradient_applied_twice,
        path_tests.test_an_interrupted_run_goes_on_and_counts_every_step_once,
        interrupted,
    ),
    Mutant(
        step_counted_afterwards, path_tests.test_a_step_is_on_the_disk_before_its_batch_is_drawn
    ),
    Mutant(
        rate_forgotten,
        accountant_tests.test_the_noise_is_dp_accountings_within_a_hundredth_and_never_less,
        {"epsilon": 0.3, "rate": 0.1, "steps": 50},
    ),
    Mutant(
        exchange_taken_for_addition,
        path_tests.test_a_record_that_is_exchanged_can_be_what_is_hidden,
    ),
    Mutant(
        rounding_of_transforms_forgotten,
        accountant_tests.test_what_transforms_lose_is_never_a_gain,
    ),
    Mutant(nobody_waits_for_the_ledger, path_tests.test_simultaneous_entries_all_count),
    Mutant(
        bound_without_its_error,
        mechanism_tests.test_a_gradient_is_as_long_as_its_bound_and_not_as_its_norm,
    ),
    Mutant(company_matters, gradient_tests.test_a_records_numbers_do_not_depend_on_its_company),
]


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch, planted: None) -> path_tests.Steps:
    """Watches what the mutant does, so it comes after it."""
    return path_tests.Steps(monkeypatch)


@pytest.fixture
def planted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    request.getfixturevalue("mutant").plant(monkeypatch)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.plant.__name__)
def test_the_mutant_is_caught(
    mutant: Mutant, request: pytest.FixtureRequest, planted: None
) -> None:
    names = inspect.signature(mutant.caught_by).parameters
    fixtures = {
        name: request.getfixturevalue(name) for name in names if name not in mutant.parameters
    }
    with pytest.raises((AssertionError, DpntkError, _pytest.outcomes.Failed)):
        mutant.caught_by(**fixtures, **mutant.parameters)
