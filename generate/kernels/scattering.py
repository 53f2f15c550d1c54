"""Fronts in floating point, differentiable with respect to the records."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from ...common.features.ntk.scattering import GAIN, POOL, STRIDE, Front, Pixels, Scattering

_SMOOTHING = 1e-6
"""Keeps the root's slope finite where there is nothing to see."""
_BLOCK = STRIDE * POOL
"""Pixels from one local mean to the next."""


class SmoothFront:
    """A front as the generator sees it: without the rounding to whole numbers.

    Args:
        front: the front.
        device: where records are.
        dtype: of the records.
    """

    def __init__(self, front: Front, device: torch.device, dtype: torch.dtype) -> None:
        if not isinstance(front, (Pixels, Scattering)):
            raise TypeError(f"no differentiable form of {front!r} is known")
        self._front = front
        if isinstance(front, Scattering):
            filters = torch.as_tensor(front.filters, dtype=dtype, device=device)
            self._filters = _Filters(filters, front.side)

    def __call__(self, records: Tensor) -> Tensor:
        """Apply it to a batch.

        Args:
            records: (c, b, record size), values 0..1.

        Returns:
            (c, b, outputs), values 0..1; the record itself comes first.
        """
        front = self._front
        if isinstance(front, Pixels):
            return records
        images = records.reshape(-1, front.side, front.side)
        local: Tensor = _LocalMeans.apply(images, self._filters)  # type: ignore[no-untyped-call]
        return torch.cat([records, local.reshape(*records.shape[:-1], -1)], dim=-1)


class _Filters:
    """Complex filters at every `STRIDE`-th place, as products of matrices, and their way back.

    All places of one local mean are looked at together, in windows that hold what they see: a
    processor is far from its speed at convolutions with few channels on one side. The way back is a
    convolution whose channels are blocks of pixels; that is faster although most of what is
    multiplied there is zeros.

    Args:
        filters: (2 k, size, size), the real parts before the imaginary ones.
        side: height and width of an image.

    Attributes:
        means: how many local means there are along a side.
    """

    def __init__(self, filters: Tensor, side: int) -> None:
        self._each, size = len(filters) // 2, filters.shape[-1]
        self.means = ((side - 1) // STRIDE + 1) // POOL  # places that are left over belong to none
        self._image = slice(size // 2, size // 2 + side)
        window = size + STRIDE * (POOL - 1)
        places = range(0, STRIDE * POOL, STRIDE)
        moved = [_moved(filters, x, y, window) for y in places for x in places]
        by_place = torch.stack(moved).unflatten(1, (2, self._each)).transpose(0, 1).flatten(0, 2)
        self._window, self._padded = window, _BLOCK * (self.means - 1) + window
        self._there = by_place.flatten(1).T.contiguous()
        in_blocks = _moved(by_place, 0, 0, window + -window % _BLOCK)[:, None]
        blocks = functional.pixel_unshuffle(in_blocks, _BLOCK)
        back = blocks.transpose(0, 1).flip(2, 3)
        self._back = back.contiguous(memory_format=torch.channels_last)  # as slopes are

    def __call__(self, images: Tensor) -> Tensor:
        """Responses to images (n, side, side): (n * means * means, 2, places of a mean, k)."""
        before, side = self._image.start, images.shape[-1]
        after = self._padded - side - before  # negative where pixels are left over
        images = functional.pad(images, (before, after, before, after))
        windows = images.unfold(1, self._window, _BLOCK).unfold(2, self._window, _BLOCK)
        found: Tensor = windows.reshape(-1, self._window**2) @ self._there
        return found.view(-1, 2, POOL**2, self._each)

    def back(self, slopes: Tensor) -> Tensor:
        """Slopes of the images from those of the responses."""
        channels = slopes.view(-1, self.means, self.means, self._back.shape[1]).movedim(-1, 1)
        found = functional.conv2d(channels, self._back, padding=self._back.shape[-1] - 1)
        found = functional.pixel_shuffle(found, _BLOCK)[:, 0]
        missing = max(0, self._image.stop - found.shape[-1])
        images: Tensor = functional.pad(found, (0, missing, 0, missing))
        return images[:, self._image][..., self._image]


def _moved(filters: Tensor, x: int, y: int, room: int) -> Tensor:
    """Filters (..., size, size) among zeros, (..., room, room)."""
    size = filters.shape[-1]
    return functional.pad(filters, (x, room - size - x, y, room - size - y))


class _LocalMeans(torch.autograd.Function):
    """Local means of the modulus of complex responses, times `GAIN` and cut at 1.

    Automatic differentiation would keep what comes of every link of this chain, each as large as
    the responses, and go over all of it again; on a processor that takes as long as the arithmetic.
    """

    @staticmethod
    def forward(ctx: Any, images: Tensor, filters: _Filters) -> Tensor:  # noqa: ANN401 - untyped
        """Local means (n, k, means, means) of images (n, side, side)."""
        responses = filters(images)
        real, imaginary = responses.unbind(1)
        modulus = real.square().add_(_SMOOTHING).addcmul_(imaginary, imaginary).sqrt_()
        means = modulus.mean(dim=1).mul_(GAIN)
        ctx.filters = filters
        ctx.save_for_backward(responses, modulus, means)
        cut: Tensor = means.clamp(max=1.0).view(len(images), -1, means.shape[-1])
        found: Tensor = cut.mT.unflatten(2, (filters.means, filters.means))
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None]:  # noqa: ANN401 - untyped
        """Slopes of the images from those of the local means."""
        responses, modulus, means = ctx.saved_tensors
        of_mean = slope.flatten(2).mT.reshape(means.shape).mul(GAIN / POOL**2)
        ratio = of_mean.masked_fill_(means > 1.0, 0.0)[:, None] / modulus
        filters: _Filters = ctx.filters
        return filters.back(responses * ratio[:, None]), None
