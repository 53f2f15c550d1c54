"""The way back through the filters, as processors and as cards take it."""

from __future__ import annotations

import pytest
import torch

from dpntk.common.features.ntk.scattering import Scattering
from dpntk.generate.kernels.scattering import _Filters


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
