"""Fronts in whole numbers: every output is a function of its record's bytes alone, to the bit.

Convolutions add products of integers below 2^53, which a float64 holds exactly in any order; roots
are rounded correctly by IEEE 754 and cut to integers; the rest is elementwise.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ...common.features.ntk.scattering import (
    FILTER_GRID,
    GAIN,
    POOL,
    STRIDE,
    Front,
    Pixels,
    Scattering,
)
from ...common.numerics.square_root import square_root

_AT_ONCE = 256


class ExactFront:
    """A front on integer records.

    Guarantee:
        An output is a whole number 0..levels and depends on the bytes of its own record and on the
        filters only, not on the batch, the number of threads or the device.
        (docs/privacy/proofs.md, statement 3.)
    """

    def __init__(self, front: Front, levels: int, device: torch.device) -> None:
        if not isinstance(front, (Pixels, Scattering)):
            raise TypeError(f"no exact form of {front!r} is known")
        self._front = front
        self._levels = levels
        self._filters = torch.empty(0)
        if isinstance(front, Scattering):
            filters = torch.as_tensor(front.filters, dtype=torch.float64, device=device)
            self._filters = (filters / FILTER_GRID)[:, None]

    def __call__(self, records: Tensor) -> Tensor:
        """Apply it to a batch.

        Args:
            records: float64 (b, record size), integers 0..levels.

        Returns:
            float64 (b, outputs), integers 0..levels; the record itself comes first.
        """
        if isinstance(self._front, Pixels):
            return records
        # A few at a time: the responses take many times the room of the records.
        added = [self._local_means(self._front, part) for part in records.split(_AT_ONCE)]
        return torch.cat([records, torch.cat(added)], dim=1)

    def _local_means(self, front: Scattering, records: Tensor) -> Tensor:
        images = records.view(-1, 1, front.side, front.side)
        # A GPU's library may convolve by Fourier transforms, which are not exact.
        with torch.backends.cudnn.flags(enabled=False):
            responses = torch.nn.functional.conv2d(
                images, self._filters, stride=STRIDE, padding=self._filters.shape[-1] // 2
            )
        real, imaginary = responses.split(front.channels, dim=1)
        modulus = square_root(real * real + imaginary * imaginary).floor_()
        side = front.places * POOL
        total = torch.zeros(1, dtype=torch.float64, device=records.device)
        for row in range(POOL):
            for column in range(POOL):
                total = total + modulus[:, :, row:side:POOL, column:side:POOL]
        # In units of levels / 2^14, summed over the places of a mean.
        local = (total * (GAIN * FILTER_GRID / POOL**2)).floor_().clamp_(max=self._levels)
        return local.reshape(len(records), -1)
