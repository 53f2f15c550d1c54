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
"""Keeps the gradient of the square root finite at 0."""
_AT_ONCE: Final = 20_000
"""Number of windows that a CPU processes at a time, those of 400 images of 28x28 pixels: with more,
intermediate results leave the cache and memory must be allocated."""


class SmoothFront:
    """A front in floating point, without rounding to integers.

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
        """Number of images to process together: a GPU has room for all."""
        few = max(1, _AT_ONCE // self._filters.means**2)
        return few if images.device.type == "cpu" else max(1, len(images))

    def _local_means(self, images: Tensor) -> Tensor:
        found: Tensor = _LocalMeans.apply(images, self._filters)  # type: ignore[no-untyped-call]
        return found


class _Filters(Responses):
    """Filters, and the gradient of their responses.

    On a CPU the gradient is a convolution whose channels are blocks of pixels, which is faster
    although most factors are zeros. A GPU library would use reduced precision for it, or be slow;
    there it is a product and sums over windows, as in the forward pass.

    Args:
        filters: see `Responses`.
        side: see `Responses`.
    """

    def __init__(self, filters: Tensor, side: int) -> None:
        super().__init__(filters, side)
        self._image = slice(self._before, self._before + side)
        window = self.taps.shape[-1]
        in_blocks = among_zeros(self.taps, 0, 0, window + -window % BLOCK)[:, None]
        blocks = functional.pixel_unshuffle(in_blocks, BLOCK)
        back = blocks.transpose(0, 1).flip(2, 3)
        self._back = back.contiguous(memory_format=torch.channels_last)  # as gradients are

    def back(self, slopes: Tensor) -> Tensor:
        """Gradient with respect to the images, from that of the responses."""
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
    """Local means of the modulus of complex responses, times `GAIN` and clipped at 1.

    Automatic differentiation would store every intermediate result, each as large as the responses,
    and read them all again; on a CPU that takes as long as the arithmetic.
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
        """Gradient with respect to the images, from that of the local means."""
        responses, modulus, means = ctx.saved_tensors
        of_mean = slope.flatten(2).mT.reshape(means.shape).mul(GAIN / POOL**2)
        ratio = of_mean.masked_fill_(means > 1.0, 0.0)[:, None] / modulus
        filters: _Filters = ctx.filters
        return filters.back(responses * ratio[:, None]), None
