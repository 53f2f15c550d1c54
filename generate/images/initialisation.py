"""The mean image of each class, read off a release."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...common.features.ntk.layers import Linear
from ...common.features.ntk.map import TangentFeatures
from ...release.file.model import Release

_RELIABLE = 3.0
"""A mean is trusted where its denominator is this many times its noise."""


def class_means(release: Release) -> NDArray[np.float32]:
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
        float32 (c, record size), values 0..1; a class that drowns in noise, or a map that does not
        begin with a linear layer, gets the even grey 0.5.
    """
    feature_map, classes = release.feature_map, len(release.schema.classes)
    means = np.full((classes, feature_map.record_size), 0.5)
    if not isinstance(feature_map, TangentFeatures) or not isinstance(
        feature_map.layers[0], Linear
    ):
        # Other maps do not give them away so directly.
        return means.astype(np.float32)
    blocks, noise = feature_map.blocks, release.noise_per_coordinate
    deltas = release.embedding[blocks["bias_1"]].astype(np.float64)
    hidden = release.embedding[blocks["weight_1"]].reshape(len(deltas), -1, classes)
    if len(feature_map.affine) == 1:
        towards = np.tile(feature_map.readout.astype(np.float64)[:, None], classes)
        own_noise = 0.0
    else:
        towards = deltas
        own_noise = len(deltas) * noise**2  # of a noisy vector's square
    # What the front adds comes after the record's own values.
    weighted = np.einsum("wc,wxc->cx", towards, hidden[:, : feature_map.record_size])
    weights = (towards * deltas).sum(axis=0) - own_noise
    reliable = weights > _RELIABLE * noise * np.linalg.norm(towards, axis=0)
    means[reliable] = weighted[reliable] / weights[reliable, None]
    return means.clip(0.0, 1.0).astype(np.float32)
