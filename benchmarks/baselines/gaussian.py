"""A yardstick for generators: class-wise mean and covariance, released with the same noise.

A record x is extended by a constant s and scaled to u = (x, s) / ||(x, s)||. Its feature is the
matrix u u^T, of norm 1, and <u u^T, u' u'^T> = <u, u'>^2 >= 0: the mechanism's calibration is that
of any non-negative map. The class-wise sum of features, divided by its corner, is the second moment
of (x, s), with records weighted by 1 / ||(x, s)||^2: mean and covariance can be read off. Samples
are Gaussians of rank 20, cut to 0..1.

A benchmark and no release: sums and noise are in floating point.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpntk.common.adjacency import Adjacency
from dpntk.common.ledger import DEFAULT_DELTA
from dpntk.evaluate.images.records import LabelledImages
from dpntk.release.mechanism.accountant import noise_multiplier

_RANK: Final = 20
_CONSTANT: Final = 0.35
"""s for a record of one value; it grows as the root of their number. For images of 28x28 pixels s
is 9.8, about the length of an image with an eighth of its pixels white."""


def gaussian_records(
    records: NDArray[np.uint8],
    labels: NDArray[np.int64],
    class_names: tuple[str, ...],
    *,
    epsilon: float,
    adjacency: Adjacency,
    count: int,
    seed: int,
) -> LabelledImages:
    """Records drawn from noisy class-wise Gaussians, the same number of each class.

    Args:
        records: uint8 (n, inputs), values 0..255.
        labels: int64 (n,).
        class_names: of all classes, taken to be equally frequent.
        epsilon: of the yardstick's release, at delta 1e-5.
        adjacency: of the same.
        count: how many records to draw.
        seed: of noise and sampling, since this is no release.
    """
    random = np.random.default_rng(seed)
    sensitivity = math.sqrt(2) if adjacency is Adjacency.REPLACE_ONE else 1.0
    sigma = noise_multiplier(epsilon, DEFAULT_DELTA) * sensitivity
    size = count // len(class_names)
    images, classes = [], []
    for label in range(len(class_names)):
        moment = _sums(records[labels == label])
        # Noise on the upper triangle, whose entries off the diagonal stand for two each.
        noise = np.triu(random.normal(0.0, sigma, moment.shape))
        noise = (noise + noise.T) / math.sqrt(2)
        noise[np.diag_indices_from(noise)] /= math.sqrt(2)
        images.append(_draw(moment + noise, size, random))
        classes.append(np.full(size, label))
    order = random.permutation(size * len(class_names))
    return LabelledImages(
        np.concatenate(images)[order], np.concatenate(classes)[order], class_names, {}
    )


def _sums(records: NDArray[np.uint8]) -> NDArray[np.float64]:
    constant = _CONSTANT * math.sqrt(records.shape[1])
    extended = np.column_stack([records / 255.0, np.full(len(records), constant)])
    extended /= np.linalg.norm(extended, axis=1, keepdims=True)
    moment: NDArray[np.float64] = extended.T @ extended
    return moment


def _draw(moment: NDArray[np.float64], size: int, random: np.random.Generator) -> NDArray[np.uint8]:
    inputs = len(moment) - 1
    weight = moment[-1, -1] / (_CONSTANT**2 * inputs)
    mean = moment[:-1, -1] / (_CONSTANT * math.sqrt(inputs) * weight)
    values, directions = np.linalg.eigh(moment[:-1, :-1] / weight - np.outer(mean, mean))
    scales = np.sqrt(values[-_RANK:].clip(min=0))
    code = random.standard_normal((size, _RANK))
    drawn = mean + (code * scales) @ directions[:, -_RANK:].T
    pixels: NDArray[np.uint8] = np.rint(drawn.clip(0, 1) * 255).astype(np.uint8)
    return pixels
