"""Classifiers that apply only to distilled sets of images."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from torch import nn

from ..distilled import SupportSet, read_points
from ..given import Arrays
from ..provenance import is_distilled
from .classifiers import ImageClassifier, score_network
from .records import LabelledImages

_STEPS: Final = 600
_BATCH: Final = 100
_FILTERS: Final = 128


def classifiers_of(folder: Path | Arrays, synthetic: LabelledImages) -> dict[str, ImageClassifier]:
    """Classifiers that apply only to distilled sets; none for other records.

    Args:
        folder: that `dpntk generate` wrote, or records in memory, which are no distilled set.
        synthetic: the records in it.

    Raises:
        DataError: its points are missing or damaged.
    """
    if not isinstance(folder, Path) or not is_distilled(synthetic.provenance):
        return {}
    size = synthetic.pixels.shape[1]
    points = read_points(folder, synthetic.provenance, synthetic.classes, size)
    return {
        "kernel regression": ImageClassifier(
            partial(_kernel_regression, points),
            "Kernel ridge regression from the points as they are, with the kernel of the release.",
        ),
        "ConvNet": ImageClassifier(
            _convnet,
            "Three blocks of 128 3x3 filters, instance normalisation, ReLU, mean pooling; 600 "
            "steps.",
        ),
    }


def _kernel_regression(
    points: SupportSet, train: LabelledImages, test: LabelledImages, seed: int
) -> float:
    return float((points.outputs(test.records).argmax(axis=1) == test.labels).mean())


def _convnet(train: LabelledImages, test: LabelledImages, seed: int) -> float:
    def network() -> nn.Sequential:
        blocks: list[nn.Module] = []
        side, channels = train.side, train.channels
        for _ in range(3):
            blocks += [
                nn.Conv2d(channels, _FILTERS, 3, padding=1),
                nn.InstanceNorm2d(_FILTERS, affine=True),
                nn.ReLU(),
                nn.AvgPool2d(2),
            ]
            side, channels = side // 2, _FILTERS
            if side < 4:  # instance normalisation needs more than one pixel
                break
        return nn.Sequential(
            *blocks,
            nn.Flatten(),
            nn.Linear(_FILTERS * side**2, train.classes),
        )

    batch = min(_BATCH, len(train))
    return score_network(network, train, test, seed, steps=_STEPS, batch=batch, learning_rate=1e-3)
