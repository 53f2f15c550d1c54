"""Mistakes of a distillation that would make an epsilon untrue, each caught by a test."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import _pytest.outcomes
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from dpntk.common.errors import DpntkError
from dpntk.common.sources import open_source
from dpntk.release.distill import descent, mechanism, optimiser
from dpntk.release.distill import ledger as distilled_ledger
from dpntk.release.distill.class_means import ClassMeans
from dpntk.release.distill.gradients import Contributions
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

    def all_but_the_first(found: Contributions, clip_norm: float) -> torch.Tensor:
        weights = right(found, clip_norm)
        weights[0] = float(weights[0] > 0)
        return weights

    everywhere(monkeypatch, right, all_but_the_first)


def clipped_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest share of a batch decides for all of them."""
    right = mechanism._longest

    def longest(found: Contributions) -> torch.Tensor:
        bounds = right(found)
        return torch.full_like(bounds, float(bounds.amax()))

    monkeypatch.setattr(mechanism, "_longest", longest)


def only_the_part_of_the_record_is_clipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forgets that the loss depends on the support points through the inverse as well."""
    right = mechanism._longest

    def part(found: Contributions) -> torch.Tensor:
        return right(replace(found, own=found.own * 0, seen=found.seen * 0))

    monkeypatch.setattr(mechanism, "_longest", part)


def record_and_rest_are_taken_for_orthogonal(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(values: torch.Tensor) -> torch.Tensor:
        return values.sum(-1) * 0

    monkeypatch.setattr(mechanism, "sum_in_fixed_order", nothing)


def norms_are_taken_for_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mechanism, "_ROUNDINGS", 0.0)


def rounding_to_integers_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mechanism, "_rounding", lambda found: 0.0 * found.own[:, 0])


def class_means_of_whole_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bright records count for more."""

    def whole(
        _: ClassMeans, pixels: torch.Tensor, targets: torch.Tensor, length: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        typical = 128 * pixels.shape[1] ** 0.5
        return (targets > 0).double(), (pixels * (length / typical)).round_()

    monkeypatch.setattr(ClassMeans, "whole", whole)


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
    right = sampled_gaussian.calibrate_sampled_gaussian

    def optimistic(epsilon: float, delta: float, rate: float, *rest: Any) -> Any:  # noqa: ANN401
        return replace(right(epsilon, delta, rate / 2, *rest), sampling_prob=rate)

    everywhere(monkeypatch, right, optimistic)


def exchange_taken_for_addition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise for a record more or less, whatever was asked for."""
    right = sampled_gaussian.calibrate_sampled_gaussian

    def half(epsilon: float, delta: float, rate: float, steps: int, *_: Any) -> Any:  # noqa: ANN401
        return right(epsilon, delta, rate, steps)

    everywhere(monkeypatch, right, half)


def company_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ordinary products of matrices: a record's last bits depend on its place in the batch."""
    right = SlicedMatrix.__init__

    def keep(self: SlicedMatrix, matrix: torch.Tensor, slices: int = 2) -> None:
        right(self, matrix, slices)
        matrices[self] = matrix

    matrices: dict[SlicedMatrix, torch.Tensor] = {}
    monkeypatch.setattr(SlicedMatrix, "__init__", keep)
    monkeypatch.setattr(SlicedMatrix, "left_multiplied", lambda self, left: left @ matrices[self])


def rounding_of_transforms_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampled_gaussian, "_LOST_PER_STEP", 0.0)


def nobody_waits_for_the_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distilled_ledger, "locked", contextlib.nullcontext)


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


no_longer = mechanism_tests.test_no_record_contributes_more_than_the_sensitivity
hostile = {"hostile": True, "points": 9}
interrupted = {"die_at": 3, "die_after_noise": True}
MUTANTS = [
    Mutant(shuffled_epochs, path_tests.test_batches_are_drawn_anew_at_every_step),
    Mutant(start_from_records, path_tests.test_the_start_is_drawn_without_records),
    Mutant(one_record_not_clipped, no_longer, {"clip": 0.05, "hostile": False, "points": 9}),
    Mutant(
        clipped_together,
        mechanism_tests.test_the_sum_is_exactly_that_of_its_records_in_any_company,
        {"clip": 0.05},
    ),
    Mutant(only_the_part_of_the_record_is_clipped, no_longer, hostile | {"clip": 0.05}),
    Mutant(record_and_rest_are_taken_for_orthogonal, no_longer, hostile | {"clip": 0.05}),
    Mutant(
        norms_are_taken_for_exact,
        mechanism_tests.test_a_norm_that_is_a_small_difference_is_not_taken_for_smaller,
    ),
    Mutant(rounding_to_integers_is_forgotten, no_longer, hostile | {"clip": 0.05}),
    Mutant(
        class_means_of_whole_records,
        mechanism_tests.test_class_means_contribute_a_record_of_length_one,
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
