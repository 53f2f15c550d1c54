"""Fronts in floating point, differentiable with respect to the records."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from ...common.features.ntk.responses import BLOCK, Responses, among_zeros
from ...common.features.ntk.scattering import GAIN, POOL, Front, Pixels, Scattering

_SMOOTHING = 1e-6
"""Keeps the root's slope finite where there is nothing to see."""
_AT_ONCE: Final = 20_000
"""A processor looks at so many windows at a time, all those of 400 images of 28x28 pixels: what
comes of more is fetched from memory anew at every link of the chain, and asked of the system."""


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
        local = torch.cat([self._local_means(part) for part in images.split(self._at_once(images))])
        return torch.cat([records, local.reshape(*records.shape[:-1], -1)], dim=-1)

    def _at_once(self, images: Tensor) -> int:
        """How many images to look at together: a card has room for all."""
        few = max(1, _AT_ONCE // self._filters.means**2)
        return few if images.device.type == "cpu" else max(1, len(images))

    def _local_means(self, images: Tensor) -> Tensor:
        found: Tensor = _LocalMeans.apply(images, self._filters)  # type: ignore[no-untyped-call]
        return found


class _Filters(Responses):
    """Filters, and the way back from what they respond.

    On a processor that is a convolution whose channels are blocks of pixels, which is faster so
    although most of what is multiplied there is zeros. A card's library would take a rough kind of
    number for it, or long; there it is a product and sums over windows, as the way there.

    Args:
        filters: see `Responses`.
        side: likewise.
    """

    def __init__(self, filters: Tensor, side: int) -> None:
        super().__init__(filters, side)
        self._image = slice(self._before, self._before + side)
        window = self.taps.shape[-1]
        in_blocks = among_zeros(self.taps, 0, 0, window + -window % BLOCK)[:, None]
        blocks = functional.pixel_unshuffle(in_blocks, BLOCK)
        back = blocks.transpose(0, 1).flip(2, 3)
        self._back = back.contiguous(memory_format=torch.channels_last)  # as slopes are

    def back(self, slopes: Tensor) -> Tensor:
        """Slopes of the images from those of the responses."""
        found = (
            self._by_convolution(slopes) if slopes.device.type == "cpu" else self.transposed(slopes)
        )
        missing = max(0, self._image.stop - found.shape[-1])
        images: Tensor = functional.pad(found, (0, missing, 0, missing))
        return images[:, self._image][..., self._image]

    def _by_convolution(self, slopes: Tensor) -> Tensor:
        channels = slopes.view(-1, self.means, self.means, self._back.shape[1]).movedim(-1, 1)
        found = functional.conv2d(channels, self._back, padding=self._back.shape[-1] - 1)
        return functional.pixel_shuffle(found, BLOCK)[:, 0]


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
