"""Features of a batch as outer products, which makes their means cheap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from .base import FeatureMatrix, Features
from .joint_image import Beside
from .tangent import Gradients


@dataclass(frozen=True, eq=False)
class Factors:
    """Features of a batch, or a block of their coordinates, as outer products.

    Attributes:
        left: (c, b, l).
        right: (c, b, r); the features are left x right, flattened to l r coordinates.
        place: these coordinates in the whole feature.
        whole: whether to keep all coordinates of the right factor, without choosing principal
            directions.
    """

    left: Tensor
    right: Tensor
    place: slice
    whole: bool = False


def factors_of(features: Features) -> Sequence[Factors]:
    """Write features as outer products; those without this structure get a left factor of 1."""
    if isinstance(features, FeatureMatrix):
        return [replace(_plain(features.values, 0), whole=features.whole)]
    if isinstance(features, Beside):
        first = [replace(p, left=features.weight * p.left) for p in factors_of(features.first)]
        second = _plain(features.second.values, first[-1].place.stop)
        return [*first, replace(second, whole=features.second.whole)]
    if not isinstance(features, Gradients):
        raise TypeError(f"no factors of {features!r} are known")
    norm, root = features.norm[..., None], math.sqrt(features.outputs)
    parts: list[Factors] = []
    for layer in features.layers:
        start, delta = parts[-1].place.stop if parts else 0, layer.delta / norm
        if layer.inputs is not None:
            size = delta.shape[-1] * layer.inputs.shape[-1]
            parts.append(Factors(delta, layer.inputs, slice(start, start + size)))
            start += size
        parts.append(_plain(delta, start))  # a convolution's weights and biases, or biases alone
    parts.append(_plain(root * features.last / norm, parts[-1].place.stop))
    return [*parts, _plain(root / norm, parts[-1].place.stop)]


def _plain(values: Tensor, start: int) -> Factors:
    place = slice(start, start + values.shape[-1])
    return Factors(torch.ones_like(values[..., :1]), values, place)
