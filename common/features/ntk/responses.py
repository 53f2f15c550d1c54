"""The responses of filters to images, as one matrix product."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from .scattering import POOL, STRIDE

BLOCK = STRIDE * POOL
"""The pixels from one local mean to the next."""


class Responses:
    """Complex filters at every `STRIDE`-th position.

    All positions of one local mean are computed together, from a window that covers their patches.
    To use only multiplications and additions, libraries would have to convolve one image at a time,
    and they are slow with few channels on one side. Most factors in the product here are not zero.

    Args:
        filters: (2 k, size, size), the real parts before the imaginary ones.
        side: height and width of an image.

    Attributes:
        taps: the filters at each position of a local mean, (2 x places x k, window, window).
        means: the number of local means along a side.
    """

    def __init__(self, filters: Tensor, side: int) -> None:
        self._each, size = len(filters) // 2, filters.shape[-1]
        self.means = ((side - 1) // STRIDE + 1) // POOL  # leftover positions belong to none
        self._window = size + STRIDE * (POOL - 1)
        self._padded = BLOCK * (self.means - 1) + self._window
        self._before = size // 2
        places = range(0, BLOCK, STRIDE)
        moved = [among_zeros(filters, x, y, self._window) for y in places for x in places]
        by_place = torch.stack(moved).unflatten(1, (2, self._each))
        self.taps = by_place.transpose(0, 1).flatten(0, 2)
        self._there = self.taps.flatten(1).T.contiguous()

    def __call__(self, images: Tensor) -> Tensor:
        """Responses to images (n, side, side): (n * means * means, 2, places of a mean, k)."""
        before = self._before
        after = self._padded - images.shape[-1] - before  # negative if pixels are left over
        images = functional.pad(images, (before, after, before, after))
        windows = images.unfold(1, self._window, BLOCK).unfold(2, self._window, BLOCK)
        found: Tensor = windows.reshape(-1, self._window**2) @ self._there
        return found.view(-1, 2, POOL**2, self._each)

    def transposed(self, slopes: Tensor) -> Tensor:
        """The transposed map: from responses to images (n, side, side), through all windows."""
        windows = (slopes.flatten(1) @ self._there.T).view(-1, self.means**2, self._window**2)
        sides = self._padded, self._padded
        found = functional.fold(windows.mT, sides, self._window, stride=BLOCK)
        return found[:, 0]


def among_zeros(filters: Tensor, x: int, y: int, room: int) -> Tensor:
    """Filters (..., size, size) in a larger window, (..., room, room)."""
    size = filters.shape[-1]
    return functional.pad(filters, (x, room - size - x, y, room - size - y))
