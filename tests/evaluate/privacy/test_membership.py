"""A membership attack sees planted copies, and nothing in honest draws."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dpntk.evaluate.privacy.closest_record import distances_to_closest, share_nearer
from dpntk.evaluate.privacy.membership import area, attack

Points = NDArray[np.float64]


def population(rows: int, seed: int) -> Points:
    return np.random.default_rng(seed).standard_normal((rows, 4))


def test_the_area_and_its_interval_are_those_of_all_pairs() -> None:
    """DeLong's variance, by its definition over all pairs of a member and an outsider."""
    random = np.random.default_rng(0)
    members, outsiders = (
        np.round(random.normal(0.5, 1, 40), 1),
        np.round(random.normal(0, 1, 30), 1),
    )
    wins = (members[:, None] > outsiders) + (members[:, None] == outsiders) / 2
    reach = 1.959964 * np.sqrt(
        wins.mean(axis=1).var(ddof=1) / 40 + wins.mean(axis=0).var(ddof=1) / 30
    )
    found = area(members, outsiders)
    expected = wins.mean()
    assert (found.value, found.low, found.high) == pytest.approx(
        (expected, expected - reach, expected + reach)
    )


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    random = np.random.default_rng(1)
    missed = 0
    for _ in range(400):
        found = area(random.standard_normal(60), random.standard_normal(60))
        missed += not found.low <= 0.5 <= found.high
    assert missed / 400 == pytest.approx(0.05, abs=0.03)


@pytest.mark.parametrize(("copies", "least"), [(0.1, 0.52), (1.0, 0.99)])
def test_planted_copies_are_seen_and_honest_draws_are_not(copies: float, least: float) -> None:
    members, outsiders, known = (population(2000, seed) for seed in (1, 2, 3))
    honest = population(2000, 4)
    found = attack(honest, members, outsiders, known)
    assert found.low < 0.5 < found.high
    planted = honest.copy()
    planted[: int(copies * 2000)] = members[: int(copies * 2000)]
    assert attack(planted, members, outsiders, known).low > least
    assert attack(planted, outsiders, members, known).high < 0.5  # the wrong way round


def test_what_is_near_counts_by_what_is_usual_there() -> None:
    """Synthetic records are farther from members, but nearer than the population is."""
    places = 100 * np.arange(40.0)[:, None]
    members, outsiders = places, places + 10_000
    synthetic = np.concatenate([members + 0.5, outsiders + 0.2])
    known = np.concatenate([members + 2, outsiders + 0.1])
    assert attack(synthetic, members, outsiders, known).value == 1


def test_a_copy_is_at_no_distance_and_nearer_than_others() -> None:
    records, others = population(300, 1), population(300, 2)
    assert distances_to_closest(records[:9], records).tolist() == [0] * 9
    assert distances_to_closest(np.zeros((1, 2)), np.array([[3.0, 4], [6, 8]])).tolist() == [5]
    assert share_nearer(records, records, others) == 1
    assert share_nearer(records, others, records) == 0
    assert share_nearer(records, others, others) == 0.5
    assert share_nearer(population(300, 3), records, others) == pytest.approx(0.5, abs=0.1)
