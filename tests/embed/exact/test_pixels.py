"""Pixels alone: right, exact, and no longer than 1, for whatever bytes."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from dpntk.common.adjacency import Adjacency
from dpntk.common.errors import SchemaError
from dpntk.common.features.base import sensitivity, weights_digest
from dpntk.common.features.pixels import PixelFeatures
from dpntk.common.features.registry import feature_map_from_spec
from dpntk.common.schema.classes import numbered
from dpntk.common.schema.image import ImageSchema
from dpntk.common.schema.origin import Origin
from dpntk.embed import PixelOptions
from dpntk.embed.exact.grid import DEFAULT_CAPACITY, Grid
from dpntk.embed.exact.registry import exact_map
from dpntk.embed.feature_options.kinds import options_for
from dpntk.generate.kernels.factors import factors_of
from dpntk.generate.kernels.registry import kernel_of
from tests.conftest import draw_records
from tests.helpers.sums import require_the_same_sums_in_any_order, sums_of
from tests.helpers.tables import PEOPLE

GRID = Grid.for_capacity(255, DEFAULT_CAPACITY)
SCHEMA = ImageSchema(8, numbered(3), Origin.DECLARED, Origin.DECLARED)
PIXELS = PixelOptions().draw(SCHEMA)
CPU = torch.device("cpu")


def written(records: np.ndarray) -> list[list[int]]:
    """What each record adds to the sums of its class."""
    rows = []
    for record in records:
        sums = sums_of(PIXELS, GRID, record[None], np.array([1]))
        rows.append([int(value) for value in sums[:, 1]])
    return rows


def test_a_feature_is_the_direction_of_the_pixels_and_a_constant() -> None:
    records, _ = draw_records(50)
    for record, added in zip(records, written(records), strict=True):
        extended = [*map(int, record), 255 * 8 // 10]
        wanted = GRID.units_per_one / math.hypot(*extended)
        assert all(
            0 <= value * wanted - q < 2 + q * 2.0**-39
            for value, q in zip(extended, added, strict=True)
        )


def test_no_record_whatever_has_a_longer_feature_than_1() -> None:
    """In whole numbers: the squares of what any bytes add are at most those of 1."""
    records, _ = draw_records(200)
    records[:3] = [[0] * 64, [255] * 64, [*[0] * 63, 255]]
    most = Fraction(GRID.units_per_one) ** 2
    for added in written(records):
        assert min(added) >= 0
        assert most * (1 - Fraction(1, 2**12)) < sum(value**2 for value in added) <= most


def test_neighbours_are_no_further_apart_than_the_sensitivity_says() -> None:
    assert sensitivity(PIXELS, Adjacency.REPLACE_ONE, count_weight=0) == math.sqrt(2)
    records, _ = draw_records(30)
    records[:2] = [[*[255] * 32, *[0] * 32], [*[0] * 32, *[255] * 32]]
    rows = [np.array(row, dtype=object) for row in written(records)]
    most = 2 * GRID.units_per_one**2
    apart = [int(((one - other) ** 2).sum()) for one in rows for other in rows]
    assert max(apart) <= most
    assert max(apart) > most * 0.9  # the first two


def test_stage_three_sees_the_same_features_in_all_their_directions() -> None:
    records, _ = draw_records(12)
    batch = torch.from_numpy(records).double() / 255
    seen = kernel_of(PIXELS, CPU, torch.float64).features(batch[None])
    values = torch.tensor(written(records), dtype=torch.float64) / GRID.units_per_one
    assert torch.allclose(seen.gram()[0], values @ values.T, atol=1e-9)
    (factors,) = factors_of(seen)
    assert factors.whole
    assert torch.allclose((factors.left * factors.right)[0], values, atol=1e-9)


def test_sums_do_not_depend_on_order_or_chunks() -> None:
    require_the_same_sums_in_any_order(PIXELS, GRID, *draw_records(300))


def test_it_travels_as_json_without_weights() -> None:
    again = feature_map_from_spec(PIXELS.spec(), PIXELS.weights())
    assert again == PIXELS
    assert weights_digest(again) == weights_digest(PIXELS)
    assert exact_map(again, GRID, CPU).chunk_size > 0


@pytest.mark.parametrize(
    "change",
    [
        {"inputs": 0},
        {"inputs": True},
        {"inputs": 64.0},
        {"inputs": 2**40},
        {"levels": 0},
        {"levels": "255"},
        {"levels": 2**40},
        {"inputs": 2**21, "levels": 2**16},
        {"inputs": 64, "levels": 2**16 + 1},
        {"surprise": 1},
    ],
)
def test_other_documents_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(SchemaError):
        feature_map_from_spec({**PIXELS.spec(), **change}, {})
    with pytest.raises(SchemaError, match="no weights"):
        feature_map_from_spec(PIXELS.spec(), {"turns": np.zeros(3, np.float32)})


def test_they_go_with_images_and_no_network() -> None:
    assert PixelFeatures(64, 255) == PIXELS
    with pytest.raises(SchemaError, match="PixelOptions: they are for images, not for tables"):
        PixelOptions().draw(PEOPLE)
    for options in ({"width": 5}, {"pixels": 0.5}, {"frequencies": 3}, {"marginals": 0.5}):
        with pytest.raises(SchemaError, match=f"{next(iter(options))}=.*: it goes with"):
            options_for("pixels", **options)
