"""Where there are few records, pixels beside a network's features say more than these alone."""

from __future__ import annotations

from typing import Final

from .base import FeatureMap
from .ntk.map import TangentFeatures
from .ntk.scattering import Scattering

FEW: Final = 0.03
"""Noise of a class's mean feature in any one direction above which pixels help."""
_NOISE: Final = 5.4
"""Standard deviation of the noise of epsilon 1 on every sum, about: replace-one, delta 1e-5."""


def may_have_pixels(feature_map: FeatureMap) -> bool:
    """Whether it is of images, and a weight of pixels may be added."""
    return isinstance(feature_map, TangentFeatures) and isinstance(feature_map.front, Scattering)


def few_at_epsilon_one(records: int, classes: int) -> bool:
    """Whether a release with epsilon 1 would have more noise than `FEW`, about.

    Args:
        records: how many there are.
        classes: how many classes they are in, about equally many in each.
    """
    return _NOISE * classes / records > FEW
