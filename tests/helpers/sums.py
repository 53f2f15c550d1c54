"""Exact class-wise sums of features, and checks that every map's sums have to pass."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from dpntk.common.adjacency import Adjacency
from dpntk.common.features.base import FeatureMap
from dpntk.embed.exact.grid import Grid
from dpntk.embed.sums.accumulate import ClassSums
from dpntk.generate.kernels.registry import kernel_of
from dpntk.release.mechanism.gaussian import no_noise
from tests.conftest import CLASSES

CPU = torch.device("cpu")


def sums_of(
    feature_map: FeatureMap,
    grid: Grid,
    records: NDArray[np.uint8],
    labels: NDArray[np.int64],
    chunk: int = 64,
    device: torch.device = CPU,
) -> NDArray[np.int64]:
    sums = ClassSums(feature_map, CLASSES, grid, device)
    for start in range(0, len(records), chunk):
        sums.add(records[start : start + chunk], labels[start : start + chunk])
    return sums.sums


def require_the_same_sums_in_any_order(
    feature_map: FeatureMap, grid: Grid, records: NDArray[np.uint8], labels: NDArray[np.int64]
) -> None:
    """Check that no bit depends on the records' order, their chunks, or how they are shared out."""
    whole = sums_of(feature_map, grid, records, labels)
    order = np.random.default_rng(1).permutation(len(records))
    for chunk in (1, 7):
        assert np.array_equal(whole, sums_of(feature_map, grid, records, labels, chunk))
        shuffled = sums_of(feature_map, grid, records[order], labels[order], chunk)
        assert np.array_equal(whole, shuffled)
    first, rest = (
        sums_of(feature_map, grid, records[part], labels[part])
        for part in (slice(0, 7), slice(7, None))
    )
    assert np.array_equal(whole, first + rest)


def require_the_noise_to_cover(
    feature_map: FeatureMap, grid: Grid, features: Iterable[Sequence[int]]
) -> int:
    """Check that no two neighbours are further apart than the noise is made for.

    All that gets noise is compared, sums and weighted counts, in whole numbers: any of the records
    is added, or exchanged for any other one, of its class or of another.

    Args:
        feature_map: the map.
        grid: of the sums.
        features: those of some records, in grid units.

    Returns:
        The least inner product of two features, in squared grid units.
    """
    rows = [np.array(row, dtype=object) for row in features]
    longest = sorted(int(row @ row) for row in rows)[-2:]
    products = [int(one @ other) for one, other in itertools.combinations(rows, 2)]
    squares = [int((one - other) @ (one - other)) for one, other in itertools.combinations(rows, 2)]
    for weight in (0.0, 0.25, 1.0):
        scales = {
            adjacency: no_noise(
                feature_map, grid.units_per_one, adjacency=adjacency, count_weight=weight
            )
            for adjacency in Adjacency
        }
        counted = scales[Adjacency.ADD_REMOVE].count_weight ** 2
        exchanged = max(*squares, sum(longest) + 2 * counted)
        assert longest[-1] + counted <= scales[Adjacency.ADD_REMOVE].sensitivity ** 2
        assert exchanged <= scales[Adjacency.REPLACE_ONE].sensitivity ** 2
    return min(products)


def require_the_kernel_of(
    feature_map: FeatureMap,
    records: NDArray[np.uint8],
    features: NDArray[np.float64],
    *,
    within: float,
) -> None:
    """Check that stage three sees the same features.

    Args:
        feature_map: the map.
        records: (12, record size).
        features: those of the records, by definition.
        within: the difference allowed in an inner product.
    """
    seen = kernel_of(feature_map, CPU, torch.float64).features(
        torch.from_numpy(records).double().view(3, 4, -1) / 255
    )
    phi = torch.from_numpy(features).view(3, 4, -1)
    assert torch.allclose(seen.gram(), phi @ phi.mT, atol=within)
    matrix = torch.randn(3, feature_map.dimension, dtype=torch.float64)
    assert torch.allclose(seen.inner(matrix), (phi @ matrix[..., None])[..., 0], atol=within)
