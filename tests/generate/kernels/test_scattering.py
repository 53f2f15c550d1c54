"""The way back through the filters, as processors and as cards take it."""

from __future__ import annotations

import pytest
import torch

from dpntk.common.features.ntk.scattering import Scattering
from dpntk.generate.kernels.scattering import SmoothFront, _Filters


@pytest.mark.parametrize("side", [8, 9, 11, 14, 28, 30])
def test_both_ways_back_are_the_transposed_of_the_way_there(side: int) -> None:
    random = torch.Generator().manual_seed(side)
    filters = torch.as_tensor(Scattering.standard(side).filters, dtype=torch.float64)
    there = _Filters(filters, side)
    images = torch.randn((3, side, side), generator=random, dtype=torch.float64)
    responses = there(images)
    slopes = torch.randn(responses.shape, generator=random, dtype=torch.float64)
    expected = float((responses * slopes).sum())
    padded = there.transposed(slopes)
    across = min(side, padded.shape[-1] - 5)  # pixels that are left over have no slope
    seen = padded[:, 5 : 5 + across, 5 : 5 + across]
    assert float((images[:, :across, :across] * seen).sum()) == pytest.approx(expected, rel=1e-12)
    back = there.back(slopes)
    assert back.shape == images.shape
    assert torch.allclose(back[:, :across, :across], seen, rtol=0, atol=1e-12)
    assert not back[:, across:].any()
    assert not back[:, :, across:].any()


def test_many_large_images_are_looked_at_a_few_at_a_time_and_come_out_the_same() -> None:
    """What is kept for the way back fits a processor's caches, and is not one block for all."""
    side, count = 64, 100
    front = Scattering.standard(side)
    smooth = SmoothFront(front, torch.device("cpu"), torch.float32)
    random = torch.Generator().manual_seed(0)
    records = torch.rand((2, count // 2, front.record_size), generator=random, requires_grad=True)
    kept: list[int] = []

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        together = smooth(records)
    all_responses = count * front.places**2 * 4 * len(front.filters)
    assert all_responses // 2 < sum(kept)
    assert max(kept) < all_responses
    weights = torch.rand(together.shape, generator=random)
    (slopes,) = torch.autograd.grad((together * weights).sum(), records)
    for at in range(0, count // 2, 10):
        some = records[:, at : at + 10].detach().requires_grad_()
        alone = smooth(some)
        (of_some,) = torch.autograd.grad((alone * weights[:, at : at + 10]).sum(), some)
        assert torch.allclose(together[:, at : at + 10], alone, rtol=0, atol=1e-6)
        assert torch.allclose(slopes[:, at : at + 10], of_some, rtol=0, atol=1e-4)
