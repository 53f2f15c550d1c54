"""Draw records from a trained generator."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from ...common.arguments import argument
from ...common.display.console import progress
from ...common.errors import GeneratorError
from ...common.schema.image import PIXEL_LEVELS, pictures
from ..fit.allocation import places_by_class
from ..fit.descent import finite
from .generators.registry import ImageGenerator

_BATCH = 1000


def sample(
    generator: ImageGenerator, count: int, class_weights: NDArray[np.float64], seed: int
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Draw images and labels, in random order.

    Args:
        generator: in evaluation mode, on the CPU.
        count: how many records.
        class_weights: share of each class, float64 (c,); labels follow the shares up to rounding.
        seed: seeds labels and latent codes.

    Returns:
        Images, uint8 (count, side, side), or in colour (count, side, side, 3), and labels, int64
        (count,).
    """
    random = torch.Generator().manual_seed(seed)
    spec = generator.spec
    records = np.empty((count, spec.channels * spec.side**2), dtype=np.uint8)
    labels = np.empty(count, dtype=np.int64)
    with progress("sampling", count, "records") as advance, torch.inference_mode():
        for label, places in places_by_class(count, class_weights, _BATCH, random):
            code = torch.randn(1, len(places), spec.code, generator=random)
            made = finite(generator(code, torch.tensor([label]))[0])
            pixels = (made * PIXEL_LEVELS).round().to(torch.uint8)
            records[places] = pixels.numpy()
            labels[places] = label
            advance(len(places), "")
    return pictures(records, spec.channels), labels


def require_no_condition(where: str, *, distilled: bool = False) -> None:
    """Refuse a condition on images, which have no columns, or on a distilled set.

    Args:
        where: the condition.
        distilled: whether the records are a distilled set rather than images.

    Raises:
        GeneratorError: the condition is not empty.
    """
    if where:
        why = (
            "a distilled set is written as it is"
            if distilled
            else "images have no columns: keep those of a class by their labels"
        )
        raise GeneratorError(f"{argument('where')}: {why}")
