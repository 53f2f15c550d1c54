"""Allocate records to classes, and to places in random order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray


def places_by_class(
    count: int, class_weights: NDArray[np.float64], batch: int, random: torch.Generator
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Assign random places to the records of each class.

    Args:
        count: how many records.
        class_weights: share of each class, float64 (c,).
        batch: largest number of places at a time.
        random: mixes the classes, before anything is yielded.

    Yields:
        Index of a class and some of its places, int64 (b,); every place 0..count-1 once.
    """
    places = torch.randperm(count, generator=random).numpy()
    for label, wanted in enumerate(split_by_shares(count, class_weights).tolist()):
        mine, places = places[:wanted], places[wanted:]
        for start in range(0, wanted, batch):
            yield label, mine[start : start + batch]


def split_by_shares(count: int, shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """Split `count` into integers in proportion to `shares`, by largest remainders."""
    wanted = shares / shares.sum() * count
    whole: NDArray[np.int64] = np.floor(wanted).astype(np.int64)
    largest_remainders = np.argsort(whole - wanted, kind="stable")
    whole[largest_remainders[: count - int(whole.sum())]] += 1
    return whole
