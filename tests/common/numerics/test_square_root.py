"""Square roots, compared with those of fifty digits."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
import torch

from dpntk.common.numerics.square_root import square_root


@pytest.mark.parametrize("scale", [1e-300, 1e-3, 1.0, 2.0**46, 1e300])
def test_roots_are_rounded_correctly(scale: float) -> None:
    random = np.random.default_rng(1)
    values = np.concatenate([random.random(5_000), random.integers(0, 2**23, 500) ** 2 / 2**46])
    values *= scale
    with localcontext() as context:
        context.prec = 50
        exact = [float(Decimal(value).sqrt()) for value in values.tolist()]
    found = square_root(torch.from_numpy(values).view(10, -1))
    assert found.flatten().tolist() == exact


def test_gradients_go_through() -> None:
    values = torch.tensor([4.0, 9.0], dtype=torch.float64, requires_grad=True)
    square_root(values).sum().backward()
    assert values.grad is not None
    assert values.grad.tolist() == [1 / 4, 1 / 6]
