"""The mean image of each class, read off a release."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...common.features.base import FeatureMap
from ...common.features.joint_image import JointImageFeatures
from ...common.features.ntk.layers import Linear
from ...common.features.ntk.map import TangentFeatures
from ...common.features.pixels import PixelFeatures
from ...release.file.model import Release

_RELIABLE = 3.0
"""A mean is trusted where its denominator is this many times its noise."""

_ALIKE = 0.1
"""Mean weights of records differ by about this from class to class, relative to their mean."""

_LEAST = 1e-6
"""Less noise than this, of which a release may have none, is taken for it."""


@dataclass(frozen=True, eq=False)
class NoisyMeans:
    """Mean images with the noise of the release on them.

    Attributes:
        values: float64 (c, record size), in units of a record's values 0..1, but not bound to them.
        noise: standard deviation of the noise on each value of a mean, float64 (c,); infinite
            where nothing is known of it.
    """

    values: NDArray[np.float64]
    noise: NDArray[np.float64]


def noisy_means(release: Release) -> NoisyMeans | None:
    """Mean image of each class, as the released matrix implies it.

    If the first layer is linear, its block holds sum_i delta_i x_i^T / ||.||_i, and that of its
    biases sum_i delta_i / ||.||_i. Multiplied by a vector u, the first becomes a sum of the
    records, each weighted by <u, delta_i> / ||.||_i, and the second the sum of these weights: their
    ratio is a weighted mean record, with little noise because all units contribute. With one hidden
    layer u is the readout, which makes every weight positive. With more, it is the class's own sum
    of deltas, to which most deltas of the class are inclined.

    Guarantee:
        Post-processing: reads the release alone.

    Returns:
        None for a map that does not begin with a linear layer: others do not give them away so
        directly. A class that is lost in noise has the even grey 0.5.
    """
    feature_map = release.feature_map
    if isinstance(feature_map, PixelFeatures):
        return _of_pixels(release, feature_map)
    if isinstance(feature_map, JointImageFeatures):
        first = _of_network(release, feature_map.main)
        return _together(_of_pixels(release, feature_map.pixels), first)
    return _of_network(release, feature_map)


def _of_network(release: Release, feature_map: FeatureMap) -> NoisyMeans | None:
    """Means by a network's part of the matrix, which comes first."""
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
        own_noise = len(deltas) * noise**2  # of a noisy vector's square
    # What the front adds comes after the record's own values.
    weighted = np.einsum("wc,wxc->cx", towards, hidden[:, : feature_map.record_size])
    weights = (towards * deltas).sum(axis=0) - own_noise
    doubt = noise * np.linalg.norm(towards, axis=0)
    if len(feature_map.affine) == 1 and weights.sum() > _RELIABLE * float(np.hypot.reduce(doubt)):
        # No record's weight is negative, and the mean ones of all classes are nearly alike.
        usual = release.class_weights * weights.sum()
        kept = (_ALIKE * usual) ** 2 / ((_ALIKE * usual) ** 2 + doubt**2)
        weights, doubt = usual + kept * (weights - usual), np.sqrt(kept) * doubt
    reliable = weights > _RELIABLE * doubt
    values, deviation = np.full(weighted.shape, 0.5), np.full(classes, np.inf)
    values[reliable] = weighted[reliable] / weights[reliable, None]
    deviation[reliable] = noise * np.linalg.norm(towards, axis=0)[reliable] / weights[reliable]
    return NoisyMeans(values, deviation)


def _of_pixels(release: Release, feature_map: PixelFeatures) -> NoisyMeans:
    """Means by the pixels, which stand alone or come last.

    They are (x, s) / ||(x, s)||. The constant's mean says how long images are: that of all classes
    together, where it is known best, and within what images can be, whatever the noise makes of it.
    """
    rows = slice(-feature_map.dimension, None)
    pixels = release.embedding[rows].T.astype(np.float64)
    noise = release.noise_per_coordinate
    together = min(max(float(pixels[:, -1].sum()), feature_map.constant_of_white), 1.0)
    per_unit = feature_map.constant / feature_map.levels / together / release.class_weights
    return NoisyMeans(pixels[:, :-1] * per_unit[:, None], noise * per_unit)


def _together(one: NoisyMeans | None, other: NoisyMeans | None) -> NoisyMeans | None:
    """What two parts of a release say, each as far as its noise allows."""
    if one is None or other is None:
        return one or other
    precise = [np.maximum(means.noise, _LEAST) ** -2.0 for means in (one, other)]
    total = precise[0] + precise[1]
    values = precise[0][:, None] * one.values + precise[1][:, None] * other.values
    return NoisyMeans(values / total[:, None], total**-0.5)
