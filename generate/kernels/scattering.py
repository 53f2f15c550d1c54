"""Fronts in floating point, differentiable with respect to the records."""

from __future__ import annotations

import torch
from torch import Tensor

from ...common.features.ntk.scattering import GAIN, POOL, STRIDE, Front, Pixels, Scattering

_SMOOTHING = 1e-6
"""Keeps the root's slope finite where there is nothing to see."""


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
        self._filters = torch.empty(0)
        self._padding = (0, 0)
        if isinstance(front, Scattering):
            filters = torch.as_tensor(front.filters, dtype=dtype, device=device)[:, None]
            size = filters.shape[-1]
            more = -size % STRIDE
            filters = torch.nn.functional.pad(filters, (0, more, 0, more))
            self._filters = torch.nn.functional.pixel_unshuffle(filters, STRIDE)
            last = (front.side - 1) // STRIDE * STRIDE
            self._padding = (size // 2, last + size - size // 2 + more - front.side)

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
        images = records.reshape(-1, 1, front.side, front.side)
        # Pixels of even and odd rows and columns as channels, so that the convolution has stride
        # 1: its backward pass is an order of magnitude faster than that of one with stride 2.
        images = torch.nn.functional.pad(images, self._padding * 2)
        images = torch.nn.functional.pixel_unshuffle(images, STRIDE)
        responses = torch.nn.functional.conv2d(images, self._filters)
        real, imaginary = responses.split(front.channels, dim=1)
        modulus = (real.square() + imaginary.square() + _SMOOTHING).sqrt()
        local = torch.nn.functional.avg_pool2d(modulus, POOL) * GAIN
        local = local.clamp(max=1.0).flatten(1)
        return torch.cat([records, local.view(*records.shape[:-1], -1)], dim=-1)
