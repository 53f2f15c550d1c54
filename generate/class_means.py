"""The mean image of each class, read off a release."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..common.ntk import OneHiddenLayerNTK
from ..release.contents import Release

_RELIABLE = 3.0
"""A mean is trusted where its denominator is this many times its noise."""


def class_means(release: Release) -> NDArray[np.float32]:
    """Mean image of each class, as the released matrix implies it.

    The block of the hidden weights holds sum_i delta_i x_i^T / ||.||_i, that of the hidden biases
    sum_i delta_i / ||.||_i. Multiplied by the readout v, the first becomes a sum of the records,
    each weighted by <v, delta_i> / ||.||_i > 0, and the second the sum of these weights: their
    ratio is a weighted mean record, with little noise because all hidden units contribute.

    Guarantee:
        Post-processing: reads the release alone.

    Returns:
        float32 (c, record size), values 0..1; a class that drowns in noise, or a map other
        than the tangent kernel, gets the even grey 0.5.
    """
    feature_map = release.feature_map
    if not isinstance(feature_map, OneHiddenLayerNTK):
        # Other maps do not give them away so directly.
        return np.full((len(release.schema.classes), feature_map.record_size), 0.5, np.float32)
    blocks = feature_map.blocks
    readout = feature_map.readout.astype(np.float64)
    hidden = release.embedding[blocks["hidden"]].reshape(feature_map.width, feature_map.inputs, -1)
    # What the front adds comes after the record's own values.
    weighted = np.einsum("w,wxc->cx", readout, hidden[:, : feature_map.record_size])
    weights = readout @ release.embedding[blocks["bias"]].astype(np.float64)
    noise = release.noise_per_coordinate * math.sqrt(readout @ readout)
    reliable = weights > _RELIABLE * noise
    means = np.full(weighted.shape, 0.5)
    means[reliable] = weighted[reliable] / weights[reliable, None]
    return means.clip(0.0, 1.0).astype(np.float32)
