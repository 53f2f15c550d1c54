"""Forecast by simulation what a release of images would reveal, before it is made.

The images are scikit-learn's handwritten digits, in the declared size. A release of as many images
is read in the simplest way: an image is assigned to the class whose mean feature is most similar.
Noise hides other images at about the same epsilon as digits, because it depends only on the numbers
of records and classes. What a generator learns from images that noise does not hide can only be
seen with those images.

Releases with much noise hold pixels, others network features, from which generators learn more at
little noise (docs/ablations.md). Digits differ so clearly that the nearest mean of pixels does no
worse. So if a release holds network features, the better of the two readings counts, at the noise
of that release, and a larger epsilon never shows less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from ...common.features.base import FeatureMap
from ...common.features.joint_image import JointImageFeatures
from ...common.features.ntk.map import TangentFeatures
from ...common.features.pixels import PixelFeatures
from ...common.schema.classes import numbered
from ...common.schema.image import PIXEL_LEVELS, ImageSchema
from ...common.schema.origin import Origin
from ...embed.exact.grid import DEFAULT_CAPACITY, Grid
from ...embed.exact.registry import exact_map
from ...embed.feature_options.tangent import TangentOptions
from ...embed.sums.accumulate import ClassSums
from .forecast import Estimate, Floats, Forecast, Forecasts
from .plan import Plan

_KINDS: Final = 10
"""Digits."""
_TESTS: Final = 200
_RUNS: Final = 6
_WIDTH: Final = 40
"""Width of a network that takes a second; the noise along one direction does not depend on it."""
_EVEN: Final = math.sqrt(0.5)
_SEED: Final = 0


def forecast_of_images(schema: ImageSchema, plans: Sequence[Plan]) -> Forecasts | None:
    """Forecast releases of images by simulation with digits.

    Guarantee:
        Reads no record and spends nothing: everything follows from the form of the images, the
        plans, scikit-learn's digits, and a fixed seed. (The noise is simulated, and is not that of
        a release.)

    Args:
        schema: of the images.
        plans: of releases from as many images each, in increasing order of epsilon.

    Returns:
        None if there is one class, if there are more classes than digits, or if the features are
        not pixels or those of a random network.
    """
    classes = len(schema.classes)
    maps = [known for plan in plans if (known := _map_of(plan.feature_map))]
    if not plans or len(maps) < len(plans) or not 2 <= classes <= _KINDS:
        return None
    parts = _similarity(schema.side, schema.channels, classes, plans[0].records)
    found: list[Forecast] = []
    best, without_noise = Estimate(0.0, 0.0), 0.0
    for plan, (name, weights) in zip(plans, maps, strict=True):
        readings = [Estimate.of(parts.accuracies(weight, plan.blur)) for weight in weights]
        # Noise sometimes helps by chance; less noise must not show less.
        best = max(best, *readings, key=lambda figure: figure.mean)
        exact = [parts.accuracies(weight, 0.0)[0] for weight in weights]
        without_noise = max(without_noise, best.mean, *exact)
        found.append(Forecast(plan.parameters.epsilon, None, best, name))
    return Forecasts(
        at=tuple(found), correlation=None, without_noise=without_noise, by_chance=1 / classes
    )


def _map_of(feature_map: FeatureMap) -> tuple[str, tuple[float, ...]] | None:
    """What a release holds, and the candidate lengths of the pixels in a feature when reading it.

    Returns:
        None if it is not of a random network or of pixels.
    """
    match feature_map:
        case PixelFeatures():
            return "pixels", (1.0,)
        case TangentFeatures():
            return "network features", (0.0, 1.0)
        case JointImageFeatures(weight=float(weight)):
            return "both", (weight,)
    return None


@dataclass(frozen=True, eq=False)
class _Similarity:
    """Similarity of digits to the mean features of classes, by the network and by the pixels.

    Attributes:
        signal: inner products (2, n, c), for parts of length 1.
        noise: change of these by unit noise (2, runs, n, c).
        labels: the classes of the digits (n,).
    """

    signal: Floats
    noise: Floats
    labels: NDArray[np.int64]

    def accuracies(self, weight: float, blur: float) -> list[float]:
        """The accuracy of every run.

        Args:
            weight: length of the pixels in a feature of length 1.
            blur: noise along any one direction.
        """
        lengths = np.array([math.sqrt(1 - weight**2), weight])
        clean = np.tensordot(lengths**2, self.signal, 1)
        noisy = clean + blur * np.tensordot(lengths, self.noise, 1)
        return [float((of_run.argmax(axis=1) == self.labels).mean()) for of_run in noisy]


@cache
def _similarity(side: int, channels: int, classes: int, records: int) -> _Similarity:
    """Embed digits, and compare others with them.

    Args:
        side: height and width of an image.
        channels: of an image.
        classes: number of different digits.
        records: number of digits in the means; all if there are fewer.
    """
    digits, labels = _digits(side, channels, classes)
    numbers = np.random.default_rng(_SEED)
    order = numbers.permutation(len(digits))
    tests, seen = order[:_TESTS], order[_TESTS:][:records]
    schema = ImageSchema(side, numbered(classes), Origin.DECLARED, Origin.DECLARED, channels)
    feature_map = TangentOptions(width=_WIDTH, pixels=_EVEN).draw(schema)
    assert isinstance(feature_map, JointImageFeatures)
    grid = Grid.for_capacity(schema.levels, DEFAULT_CAPACITY)
    sums = ClassSums(feature_map, classes, grid)
    for start in range(0, len(seen), sums.chunk_size):
        chunk = seen[start : start + sums.chunk_size]
        sums.add(digits[chunk], labels[chunk])
    unit = grid.unit / _EVEN  # so that each part has length 1
    means = sums.sums * (unit / sums.counts.clip(1))
    noise = numbers.standard_normal((feature_map.dimension, _RUNS * classes), dtype=np.float32)
    exact = exact_map(feature_map, grid, torch.device("cpu"))
    features = exact.features(torch.from_numpy(digits[tests]).double())
    feature = torch.zeros(feature_map.dimension, dtype=torch.int64)
    border = feature_map.main.dimension
    parts = slice(border), slice(border, None)
    signal, added = np.zeros((2, len(tests), classes)), np.zeros((2, len(tests), _RUNS * classes))
    for row in range(len(tests)):
        features.add_to(feature.zero_(), slice(row, row + 1))
        direction = feature.numpy() * unit
        for of_part, part in enumerate(parts):
            signal[of_part, row] = direction[part] @ means[part]
            added[of_part, row] = direction[part].astype(np.float32) @ noise[part]
    runs = added.reshape(2, len(tests), _RUNS, classes).transpose(0, 2, 1, 3)
    return _Similarity(signal, runs, labels[tests])


def _digits(side: int, channels: int, classes: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Scikit-learn's digits as records of the given size, and their classes."""
    from sklearn.datasets import load_digits  # takes a second, which plans of tables are spared

    known = load_digits()
    kept = known.target < classes
    grey = np.rint(known.images[kept] / known.images.max() * PIXEL_LEVELS).astype(np.uint8)
    resized = [np.asarray(Image.fromarray(one).resize((side, side))) for one in grey]
    records = np.stack(resized).reshape(len(grey), -1)
    return np.tile(records, (1, channels)), known.target[kept].astype(np.int64)
