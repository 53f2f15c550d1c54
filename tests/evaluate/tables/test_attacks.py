"""What attackers find in tables: much where rows are copied, nothing where they are not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpntk.common.errors import DataError
from dpntk.evaluate.tables import attacks
from dpntk.evaluate.tables.attacks import (
    ATTACK_HIGH,
    ATTACK_LOW,
    CLOSEST,
    CLOSEST_OF_OTHERS,
    METHODS,
    NEARER,
    Attackers,
    points_of,
)
from tests.helpers.rows import drawn, numbers, table


def test_rows_are_points_whose_distances_add_up_over_columns() -> None:
    points = points_of(table([0, 50, math.nan], [0, 0, -1], [0, 1, 1]))
    squared = ((points[:, None] - points) ** 2).sum(axis=2)
    assert squared[0, 1] == pytest.approx(0.25 + 1)  # half the range, another label
    assert squared[0, 2] == pytest.approx(1 + 1 + 1)  # missing, another job, another label
    assert points_of(numbers([-5, 99])).tolist() == points_of(numbers([0, 9])).tolist()


def test_copied_rows_are_found_wherever_they_are() -> None:
    uniform = np.random.default_rng(0).uniform(0, 9, (4, 3, 1000))
    held_out = numbers(*np.concatenate([uniform[1], uniform[2]], axis=1).tolist())
    attackers = Attackers.with_rows(numbers(*uniform[0].tolist()), held_out, seed=3)
    fine = attackers.figures_of(numbers(*uniform[3].tolist()))
    assert list(fine) == list(METHODS)
    assert fine[ATTACK_LOW] < 0.5 < fine[ATTACK_HIGH]
    assert fine[NEARER] == pytest.approx(0.5, abs=0.06)
    assert fine[CLOSEST] == pytest.approx(fine[CLOSEST_OF_OTHERS], rel=0.3)
    half = np.concatenate([uniform[3], uniform[0]], axis=1)  # copies at the end
    copied = attackers.figures_of(numbers(*half.tolist()))
    assert copied[ATTACK_LOW] > 0.6
    assert copied[NEARER] > 0.7
    assert copied[CLOSEST] == 0 < copied[CLOSEST_OF_OTHERS]


def test_attackers_know_different_rows_and_not_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    ages = table([float(i) for i in range(90)], [0] * 90, [0] * 90)
    others = table([float(i) for i in range(100)], [1] * 100, [0] * 100)
    found = Attackers.with_rows(ages, others, seed=0)
    parts = [part.columns["age"].tolist() for part in (found.outsiders, found.population)]
    assert len(found.members) == len(set(parts[0] + parts[1])) / 2 == 50
    monkeypatch.setattr(attacks, "_MOST_VALUES", 11 * 26)  # a row is of 2 + 5 + 4 values
    assert len(Attackers.with_rows(ages, others, seed=0).members) == 26
    with pytest.raises(DataError, match="20 members and 40 test rows, but there are 90 and 39"):
        Attackers.with_rows(ages, drawn(39, 0), seed=0)
