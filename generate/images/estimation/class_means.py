"""The mean image of each class, recovered from a release."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....common.features.base import FeatureMap
from ....common.features.joint_image import JointImageFeatures
from ....common.features.ntk.layers import Linear
from ....common.features.ntk.map import TangentFeatures
from ....common.features.pixels import PixelFeatures
from ....release.file.model import Release

_RELIABLE = 3.0
"""A mean is used only if its denominator exceeds this many times its noise."""

_ALIKE = 0.1
"""Typical relative difference of the records' mean weight between classes."""

_LEAST = 1e-6
"""Floor for the noise, since a release may have none."""


@dataclass(frozen=True, eq=False)
class NoisyMeans:
    """Mean images with the noise of the release on them.

    Attributes:
        values: float64 (c, record size), on the scale of a record's values 0..1 but not confined to
            it.
        noise: standard deviation of the noise on each value of a mean, float64 (c,); infinite where
            the mean is unknown.
    """

    values: NDArray[np.float64]
    noise: NDArray[np.float64]


def noisy_means(release: Release) -> NoisyMeans | None:
    """The mean image of each class, as implied by the released matrix.

    If the first layer is linear, its block holds sum_i delta_i x_i^T / ||.||_i, and the block of
    its biases sum_i delta_i / ||.||_i. Multiplied by a vector u, the first becomes a sum of the
    records, each weighted by <u, delta_i> / ||.||_i, and the second the sum of these weights: their
    ratio is a weighted mean record, with little noise because all units contribute. With one hidden
    layer u is the readout, which makes every weight positive. With more layers, it is the class's
    own sum of deltas, with which most deltas of the class have a positive product.

    Guarantee:
        Post-processing: reads the release alone.

    Returns:
        None for a map that does not begin with a linear layer, which does not reveal means so
        directly. A class lost in noise is uniformly grey, 0.5.
    """
    feature_map = release.feature_map
    if isinstance(feature_map, PixelFeatures):
        return _of_pixels(release, feature_map)
    if isinstance(feature_map, JointImageFeatures):
        first = _of_network(release, feature_map.main)
        return _together(_of_pixels(release, feature_map.pixels), first)
    return _of_network(release, feature_map)


def _of_network(release: Release, feature_map: FeatureMap) -> NoisyMeans | None:
    """Means from a network's part of the matrix, which comes first."""
    if not isinstance(feature_map, TangentFeatures) or not isinstance(
        feature_map.layers[0], Linear
    ):
        return None
    matrix, noise = release.embedding, release.noise_per_coordinate
    blocks, classes = feature_map.blocks, matrix.shape[1]
    deltas = matrix[blocks["bias_1"]].astype(np.float64)
    hidden = matrix[blocks["weight_1"]].reshape(len(deltas), -1, classes)
    if len(feature_map.affine) == 1:
        towards = np.tile(feature_map.readout.astype(np.float64)[:, None], classes)
        own_noise = 0.0
    else:
        towards = deltas
        own_noise = len(deltas) * noise**2  # expected squared length of the noise on a delta
    # The front's additions come after the record's own values.
    weighted = np.einsum("wc,wxc->cx", towards, hidden[:, : feature_map.record_size])
    weights = (towards * deltas).sum(axis=0) - own_noise
    doubt = noise * np.linalg.norm(towards, axis=0)
    if len(feature_map.affine) == 1 and weights.sum() > _RELIABLE * float(np.hypot.reduce(doubt)):
        # No record's weight is negative, and the mean weights of all classes are nearly equal.
        usual = release.class_weights * weights.sum()
        kept = (_ALIKE * usual) ** 2 / ((_ALIKE * usual) ** 2 + doubt**2)
        weights, doubt = usual + kept * (weights - usual), np.sqrt(kept) * doubt
    reliable = weights > _RELIABLE * doubt
    values, deviation = np.full(weighted.shape, 0.5), np.full(classes, np.inf)
    values[reliable] = weighted[reliable] / weights[reliable, None]
    deviation[reliable] = noise * np.linalg.norm(towards, axis=0)[reliable] / weights[reliable]
    return NoisyMeans(values, deviation)


def _of_pixels(release: Release, feature_map: PixelFeatures) -> NoisyMeans:
    """Means from pixel features, which stand alone or come last.

    The features are (x, s) / ||(x, s)||, so the mean of the constant s gives the typical length of
    an image. It is taken over all classes together, where it is known best, and clipped to the
    possible range.
    """
    rows = slice(-feature_map.dimension, None)
    pixels = release.embedding[rows].T.astype(np.float64)
    noise = release.noise_per_coordinate
    together = min(max(float(pixels[:, -1].sum()), feature_map.constant_of_white), 1.0)
    per_unit = feature_map.constant / feature_map.levels / together / release.class_weights
    return NoisyMeans(pixels[:, :-1] * per_unit[:, None], noise * per_unit)


def _together(one: NoisyMeans | None, other: NoisyMeans | None) -> NoisyMeans | None:
    """Combine the means from two parts of a release, weighted by their precisions."""
    if one is None or other is None:
        return one or other
    precise = [np.maximum(means.noise, _LEAST) ** -2.0 for means in (one, other)]
    total = precise[0] + precise[1]
    values = precise[0][:, None] * one.values + precise[1][:, None] * other.values
    return NoisyMeans(values / total[:, None], total**-0.5)
