"""What could be learnt of images from a release that has not been made, by simulation.

The images are the handwritten digits that scikit-learn brings along, in the declared size. The
release that so many images would have is read as plainly as it can be: one is of the class whose
mean feature its own is most like. Noise hides other images about where it hides digits, because it
depends on numbers of records and classes alone; what a generator learns from images that noise
leaves in sight only these can tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from ...common.features.base import FeatureMap
from ...common.features.joint_image import JointImageFeatures
from ...common.features.ntk.map import TangentFeatures
from ...common.schema.classes import numbered
from ...common.schema.image import ImageSchema
from ...common.schema.origin import Origin
from ...embed.exact.grid import DEFAULT_CAPACITY, Grid
from ...embed.exact.registry import exact_map
from ...embed.feature_options import FeatureOptions
from ...embed.sums.accumulate import ClassSums
from .forecast import Figure, Floats, Forecast, Forecasts
from .plan import Plan

_KINDS: Final = 10
"""Digits."""
_TESTS: Final = 200
_RUNS: Final = 6
_WIDTH: Final = 40
"""Of a network that takes a second; noise in one direction is the same in all of them."""
_SEED: Final = 0


def forecast_of_images(
    schema: ImageSchema, feature_map: FeatureMap, plans: Sequence[Plan]
) -> Forecasts | None:
    """Simulate releases of digits.

    Guarantee:
        Reads no record and spends nothing: all follows from the form of the images, the plans,
        scikit-learn's digits, and a fixed seed. (The noise is a simulation's, and no release's.)

    Args:
        schema: of the images.
        feature_map: of their releases; digits are embedded by one of its kind.
        plans: of releases of so many images with different epsilons.

    Returns:
        None if there is one class, if there are more classes than digits, or if the features are
        not those of a random network.
    """
    classes = len(schema.classes)
    weight = feature_map.weight if isinstance(feature_map, JointImageFeatures) else None
    of_a_network = weight is not None or isinstance(feature_map, TangentFeatures)
    if not (plans and of_a_network and 2 <= classes <= _KINDS):
        return None
    signal, noise, labels = _likeness(
        schema.side, schema.channels, classes, weight, plans[0].records
    )

    def accuracies(blur: float) -> list[float]:
        """Of every run."""
        right = (signal + blur * noise).argmax(axis=2) == labels
        return [float(of_run.mean()) for of_run in right]

    return Forecasts(
        at=tuple(
            Forecast(plan.parameters.epsilon, None, Figure.of(accuracies(plan.blur)))
            for plan in plans
        ),
        correlation=None,
        without_noise=accuracies(0.0)[0],
        by_chance=1 / classes,
    )


@cache
def _likeness(
    side: int, channels: int, classes: int, weight: float | None, records: int
) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """How like digits are to the mean features of classes, and what noise of length 1 adds.

    Args:
        side: height and width of an image.
        channels: of an image.
        classes: how many kinds of digits there are.
        weight: of the pixels beside the features; None without.
        records: how many digits the means are of, or fewer if there are not so many.

    Returns:
        Inner products (n, c), those with noise (runs, n, c), and the classes (n,).
    """
    digits, labels = _digits(side, channels, classes)
    numbers = np.random.default_rng(_SEED)
    order = numbers.permutation(len(digits))
    tests, seen = order[:_TESTS], order[_TESTS:][:records]
    schema = ImageSchema(side, numbered(classes), Origin.DECLARED, Origin.DECLARED, channels)
    feature_map = FeatureOptions(width=_WIDTH, pixels=weight).draw(schema)
    grid = Grid.for_capacity(schema.levels, DEFAULT_CAPACITY)
    sums = ClassSums(feature_map, classes, grid)
    for start in range(0, len(seen), sums.chunk_size):
        chunk = seen[start : start + sums.chunk_size]
        sums.add(digits[chunk], labels[chunk])
    means = sums.sums / sums.counts.clip(1)
    noise = numbers.standard_normal((feature_map.dimension, _RUNS * classes), dtype=np.float32)
    exact = exact_map(feature_map, grid, torch.device("cpu"))
    features = exact.features(torch.from_numpy(digits[tests]).double())
    feature = torch.zeros(feature_map.dimension, dtype=torch.int64)
    signal, added = np.zeros((len(tests), classes)), np.zeros((len(tests), _RUNS * classes))
    for row in range(len(tests)):
        features.add_to(feature.zero_(), slice(row, row + 1))
        direction = feature.numpy() * grid.unit
        signal[row] = direction @ means * grid.unit
        added[row] = direction.astype(np.float32) @ noise
    runs = added.reshape(len(tests), _RUNS, classes).transpose(1, 0, 2)
    return signal, runs, labels[tests]


def _digits(side: int, channels: int, classes: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Scikit-learn's digits as records of a size, and their classes."""
    from sklearn.datasets import load_digits  # a second that a plan of a table does without

    known = load_digits()
    kept = known.target < classes
    grey = np.rint(known.images[kept] / known.images.max() * 255).astype(np.uint8)
    resized = [np.asarray(Image.fromarray(one).resize((side, side))) for one in grey]
    records = np.stack(resized).reshape(len(grey), -1)
    return np.tile(records, (1, channels)), known.target[kept].astype(np.int64)
