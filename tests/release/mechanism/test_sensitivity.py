"""No neighbouring data set is further away than the bound, and the bound is tight.

Distances are taken in whole numbers, of exactly what the noise is added to.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from dpntk.common.adjacency import Adjacency
from dpntk.common.features.base import FeatureMap
from dpntk.common.features.hermite import HermiteFeatures
from dpntk.common.features.ntk.architectures import fc_1l
from dpntk.common.features.ntk.map import TangentFeatures
from dpntk.common.features.ntk.scattering import Pixels
from dpntk.common.features.rff import RandomFourierFeatures
from dpntk.embed.exact.grid import Grid
from dpntk.embed.sums.accumulate import ClassSums
from dpntk.release.mechanism.gaussian import NoiseScale, calibrate, no_noise
from tests.conftest import CLASSES

INPUTS = 64
GRID = Grid.for_capacity(255, 2**20)
MAP = TangentFeatures.draw(Pixels(INPUTS), fc_1l(9), outputs=CLASSES, levels=255, seed=8)
WAVE = RandomFourierFeatures.draw(INPUTS, frequencies=1, length_scale=0.5, levels=255, seed=8)
WAVES = RandomFourierFeatures.draw(INPUTS, frequencies=9, length_scale=2.0, levels=255, seed=8)
HERMITE = HermiteFeatures.draw(INPUTS, levels=255, seed=8)

records = arrays(
    np.uint8, INPUTS, elements=st.sampled_from([0, 0, 0, 1, 100, 254, 255])
) | st.sampled_from([np.zeros(INPUTS, np.uint8), np.full(INPUTS, 255, np.uint8)])
labelled = st.tuples(records, st.integers(0, CLASSES - 1))
Labelled = tuple[NDArray[np.uint8], int]


def scale_for(adjacency: Adjacency, weight: float, feature_map: FeatureMap = MAP) -> NoiseScale:
    still = no_noise(feature_map, GRID.units_per_one, adjacency=adjacency, count_weight=weight)
    return calibrate(still, epsilon=1.0, delta=1e-5)


def released_integers(
    data: list[Labelled], scale: NoiseScale, feature_map: FeatureMap
) -> NDArray[np.object_]:
    """The vector that the noise is added to, as Python's whole numbers."""
    sums = ClassSums(feature_map, CLASSES, GRID)
    for record, label in data:
        sums.add(record[None], np.array([label]))
    counts = [int(count) * scale.count_weight for count in sums.counts]
    return np.array([*sums.sums.ravel().tolist(), *counts], dtype=object)


def squared_distance(
    first: list[Labelled],
    second: list[Labelled],
    scale: NoiseScale,
    feature_map: FeatureMap = MAP,
) -> int:
    one, other = (released_integers(data, scale, feature_map) for data in (first, second))
    difference = one - other
    return int((difference**2).sum())


@settings(deadline=None, max_examples=60)
@given(st.lists(labelled, max_size=3), labelled, labelled, st.sampled_from([0.0, 0.25, 1.0]))
def test_exchanging_a_record_stays_within_the_bound(
    others: list[Labelled], one: Labelled, another: Labelled, weight: float
) -> None:
    scale = scale_for(Adjacency.REPLACE_ONE, weight)
    distance = squared_distance([*others, one], [*others, another], scale)
    assert distance <= scale.sensitivity**2


@settings(deadline=None, max_examples=60)
@given(st.lists(labelled, max_size=3), labelled, st.sampled_from([0.0, 0.25, 1.0]))
def test_removing_a_record_stays_within_the_bound(
    others: list[Labelled], one: Labelled, weight: float
) -> None:
    scale = scale_for(Adjacency.ADD_REMOVE, weight)
    # taken from the front, so that all others move
    assert squared_distance([one, *others], others, scale) <= scale.sensitivity**2


@pytest.mark.parametrize("weight", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_the_bound_is_reached_within_a_hundredth(adjacency: Adjacency, weight: float) -> None:
    scale = scale_for(adjacency, weight)
    dark = np.zeros(INPUTS, np.uint8)
    far = [] if adjacency is Adjacency.ADD_REMOVE else [(dark, 1)]
    reached = math.sqrt(squared_distance([(dark, 0)], far, scale))
    assert 0.99 * scale.sensitivity < reached <= scale.sensitivity


def opposite_records() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Two records half a turn apart under the one frequency of `WAVE`."""
    turns = WAVE.turns[0].astype(np.float64)
    bright = np.zeros(INPUTS, np.uint8)
    left = 0.5
    for place in np.argsort(-turns):
        bright[place] = max(0, min(255, round(left / turns[place]))) if turns[place] > 0 else 0
        left -= bright[place] * turns[place]
    assert abs(left) < 0.01
    return np.zeros(INPUTS, np.uint8), bright


@pytest.mark.parametrize("weight", [0.0, 0.25, 1.0])
def test_a_map_that_is_not_nonnegative_needs_the_full_distance(weight: float) -> None:
    """Opposite features of one class are 2 apart, and the counts do not change."""
    scale = scale_for(Adjacency.REPLACE_ONE, weight, WAVE)
    dark, bright = opposite_records()
    reached = math.sqrt(squared_distance([(dark, 0)], [(bright, 0)], scale, WAVE))
    assert 0.99 * scale.sensitivity < reached <= scale.sensitivity


OTHER_MAPS = [WAVES, HERMITE]


@pytest.mark.parametrize("feature_map", OTHER_MAPS)
@settings(deadline=None, max_examples=40)
@given(st.lists(labelled, max_size=3), labelled, labelled, st.sampled_from(list(Adjacency)))
def test_neighbours_stay_within_the_bound_of_other_maps(
    feature_map: FeatureMap,
    others: list[Labelled],
    one: Labelled,
    another: Labelled,
    adjacency: Adjacency,
) -> None:
    scale = scale_for(adjacency, 0.25, feature_map)
    neighbour = [*others, another] if adjacency is Adjacency.REPLACE_ONE else others
    distance = squared_distance([one, *others], neighbour, scale, feature_map)
    assert distance <= scale.sensitivity**2


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_the_bound_of_hermite_features_is_reached_within_a_hundredth(adjacency: Adjacency) -> None:
    scale = scale_for(adjacency, 1.0, HERMITE)
    dark = np.zeros(INPUTS, np.uint8)
    far = [] if adjacency is Adjacency.ADD_REMOVE else [(dark, 1)]
    reached = math.sqrt(squared_distance([(dark, 0)], far, scale, HERMITE))
    assert 0.99 * scale.sensitivity < reached <= scale.sensitivity


def test_a_bound_without_its_factor_would_be_caught() -> None:
    """The pair above tells sqrt(2) from 1, and a forgotten count from a counted one."""
    scale = scale_for(Adjacency.REPLACE_ONE, 1.0)
    dark = np.zeros(INPUTS, np.uint8)
    reached = math.sqrt(squared_distance([(dark, 0)], [(dark, 1)], scale))
    assert reached > 1.4 * scale_for(Adjacency.ADD_REMOVE, 1.0).sensitivity
    assert reached > 1.4 * scale_for(Adjacency.REPLACE_ONE, 0.0).sensitivity
