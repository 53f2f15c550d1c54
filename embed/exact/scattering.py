"""Fronts in integers: every output is a function of its record's bytes alone, to the bit.

Matrix products are sums of integers below 2^53, which float64 holds exactly in any order. Roots are
rounded correctly, as IEEE 754 requires, and truncated to integers. The rest is elementwise.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from ...common.features.ntk.responses import Responses
from ...common.features.ntk.scattering import (
    FILTER_GRID,
    GAIN,
    POOL,
    Front,
    Pixels,
    Scattering,
)
from ...common.numerics.square_root import square_root

_AT_ONCE: Final = 128
"""Images per step: the filters' responses are many times larger than the images, and best stay in
the processor's cache."""
_AT_ONCE_CUDA: Final = 2048


class ExactFront:
    """A front (a fixed transform before the network) on integer records.

    Guarantee:
        An output is an integer 0..levels. It depends only on the bytes of its own record and on the
        filters, not on the batch, the number of threads or the device. (docs/privacy/proofs.md,
        statement 3.)
    """

    def __init__(self, front: Front, levels: int, device: torch.device) -> None:
        if not isinstance(front, (Pixels, Scattering)):
            raise TypeError(f"no exact form of {front!r} is known")
        self._front = front
        self._levels = levels
        self._at_once = _AT_ONCE if device.type == "cpu" else _AT_ONCE_CUDA
        if isinstance(front, Scattering):
            filters = torch.as_tensor(front.filters, dtype=torch.float64, device=device)
            self._responses = Responses(filters / FILTER_GRID, front.side)

    def __call__(self, records: Tensor) -> Tensor:
        """Apply it to a batch.

        Args:
            records: float64 (b, record size), integers 0..levels.

        Returns:
            float64 (b, outputs), integers 0..levels; the record itself comes first.
        """
        if isinstance(self._front, Pixels):
            return records
        added = [self._local_means(self._front, some) for some in records.split(self._at_once)]
        return torch.cat([records, torch.cat(added)], dim=1)

    def _local_means(self, front: Scattering, records: Tensor) -> Tensor:
        real, imaginary = self._responses(records.view(-1, front.side, front.side)).unbind(1)
        modulus = square_root(real.square().addcmul_(imaginary, imaginary)).floor_()
        # In units of levels / 2^14, summed over the positions of a mean.
        total = modulus.sum(dim=1)
        local = total.mul_(GAIN * FILTER_GRID / POOL**2).floor_().clamp_(max=self._levels)
        return local.view(-1, front.places**2, front.channels).mT.reshape(len(records), -1)
