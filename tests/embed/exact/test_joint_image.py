"""Pixels beside a network's features: right, exact, and no longer than 1, for whatever bytes."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
import torch

from dpntk.common.adjacency import Adjacency
from dpntk.common.errors import SchemaError
from dpntk.common.features.base import sensitivity, weights_digest
from dpntk.common.features.joint_image import JointImageFeatures
from dpntk.common.features.ntk.map import TangentFeatures
from dpntk.common.features.registry import feature_map_from_spec
from dpntk.common.schema.classes import numbered
from dpntk.common.schema.image import ImageSchema
from dpntk.common.schema.origin import Origin
from dpntk.embed import TangentOptions
from dpntk.embed.exact.grid import DEFAULT_CAPACITY, Grid
from dpntk.embed.exact.registry import exact_map
from dpntk.generate.kernels.registry import kernel_of
from tests.conftest import draw_records
from tests.helpers.sums import require_the_same_sums_in_any_order, sums_of
from tests.helpers.tables import PEOPLE

GRID = Grid.for_capacity(255, DEFAULT_CAPACITY)
SCHEMA = ImageSchema(8, numbered(3), Origin.DECLARED, Origin.DECLARED)
DRAWN = TangentOptions(width=13, pixels=0.8).draw(SCHEMA)
assert isinstance(DRAWN, JointImageFeatures)
JOINT: JointImageFeatures = DRAWN


def test_the_pixels_of_a_record_are_a_direction_with_a_constant() -> None:
    records, labels = draw_records(50)
    for record, label in zip(records, labels, strict=True):
        sums = sums_of(JOINT, GRID, record[None], label[None])
        added = [int(value) for value in sums[JOINT.main.dimension :, label]]
        extended = [*map(int, record), JOINT.pixels.constant]
        assert JOINT.pixels.constant == 255 * 8 // 10
        length = math.hypot(*extended)
        wanted = 0.8 * GRID.units_per_one / length
        assert all(
            0 <= value * wanted - q < 2 + q * 2.0**-39
            for value, q in zip(extended, added, strict=True)
        )


def test_no_record_whatever_has_a_part_longer_than_its_weight() -> None:
    """In whole numbers: the squares of what any bytes add to the pixels' sums are at most b^2."""
    records, _ = draw_records(200)
    exact = exact_map(JOINT, GRID, torch.device("cpu")).features(torch.from_numpy(records).double())
    most = Fraction(0.8) ** 2 * Fraction(GRID.units_per_one) ** 2
    for index in range(len(records)):
        column = torch.zeros(JOINT.dimension, dtype=torch.int64)
        exact.add_to(column, slice(index, index + 1))
        square = sum(int(value) ** 2 for value in column[JOINT.main.dimension :])
        assert most * (1 - Fraction(1, 2**12)) < square <= most
    norms = exact.norms()
    assert norms.max() <= GRID.units_per_one
    assert norms.min() > GRID.units_per_one * (1 - 2.0**-12)


def test_sums_do_not_depend_on_order_or_chunks() -> None:
    require_the_same_sums_in_any_order(JOINT, GRID, *draw_records(300))


def test_stage_three_sees_the_same_features() -> None:
    records, _ = draw_records(12)
    batch = torch.from_numpy(records).double() / 255
    seen = kernel_of(JOINT, torch.device("cpu"), torch.float64).features(batch[None])
    exact = exact_map(JOINT, GRID, torch.device("cpu")).features(torch.from_numpy(records).double())
    written = torch.zeros(12, JOINT.dimension, dtype=torch.int64)
    for index in range(12):
        exact.add_to(written[index], slice(index, index + 1))
    values = written.double() / GRID.units_per_one
    # The front's outputs are rounded in the exact form alone.
    assert torch.allclose(seen.gram()[0], values @ values.T, atol=2e-3)
    towards = torch.randn(1, JOINT.dimension, dtype=torch.float64)
    assert torch.allclose(seen.inner(towards)[0], values @ towards[0], atol=5e-2)


def test_it_is_not_negative_and_travels_as_json_and_weights() -> None:
    assert JOINT.nonnegative
    assert sensitivity(JOINT, Adjacency.REPLACE_ONE, count_weight=0) == math.sqrt(2)
    again = feature_map_from_spec(JOINT.spec(), JOINT.weights())
    assert again.spec() == JOINT.spec()
    assert weights_digest(again) == weights_digest(JOINT)


@pytest.mark.parametrize(
    "change",
    [
        {"weight": 0.0},
        {"weight": 1.0},
        {"weight": 1},
        {"weight": float("nan")},
        {"weight": "much"},
        {"tangent": {}},
        {"tangent": 3},
        {"surprise": 1},
    ],
)
def test_other_documents_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(SchemaError):
        feature_map_from_spec({**JOINT.spec(), **change}, JOINT.weights())


def test_pixels_go_with_images_and_a_network() -> None:
    with pytest.raises(SchemaError, match=r"pixels=0\.5: it goes with images, and this is a table"):
        TangentOptions(pixels=0.5).draw(PEOPLE)
    for options in (TangentOptions(pixels=0.0), TangentOptions(front="pixels")):
        assert isinstance(options.draw(SCHEMA), TangentFeatures)
    left_open = TangentOptions().draw(SCHEMA)
    assert isinstance(left_open, JointImageFeatures)
    assert left_open.weight is None
    again = feature_map_from_spec(left_open.spec(), left_open.weights())
    assert again.spec() == left_open.spec()
