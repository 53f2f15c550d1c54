"""A sum of terms has the value and the slope of the sum, whoever computes the terms."""

from __future__ import annotations

import threading
from functools import partial

import pytest
import torch
from torch import Tensor

from dpntk.common.runtime.threads import one_core_each
from dpntk.generate.fit.parts import sum_of
from tests.helpers.threads import torch_threads


def term(scale: float, x: Tensor, y: Tensor) -> Tensor:
    return scale * (x * y).sin().sum()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_it_is_the_sum_and_so_is_its_slope(threads: int) -> None:
    random = torch.Generator().manual_seed(0)
    x, y = (torch.rand(7, generator=random, dtype=torch.float64) for _ in range(2))
    x.requires_grad_()
    y.requires_grad_()
    scales = [1.0, -3.0, 0.25, 8.0]
    expected = sum((term(scale, x, y) for scale in scales), torch.zeros(()))
    slopes = torch.autograd.grad(expected.square(), [x, y])
    with torch_threads(threads), one_core_each() as each:
        total = sum_of([partial(term, scale, x, y) for scale in scales], [x, y], each)
        found = torch.autograd.grad(total.square(), [x, y])
    assert torch.allclose(total, expected, rtol=1e-12)
    for ours, theirs in zip(found, slopes, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-12)


def test_terms_are_computed_at_the_same_time() -> None:
    """Both wait for each other, on the way there and on the way back."""
    met = threading.Barrier(2, timeout=60)

    class Meets(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: Tensor) -> Tensor:
            met.wait()
            return x.clone()

        @staticmethod
        def backward(ctx: object, slope: Tensor) -> Tensor:
            met.wait()
            return slope

    def meets(x: Tensor) -> Tensor:
        found: Tensor = Meets.apply(x)  # type: ignore[no-untyped-call]
        return found

    x = torch.ones((), requires_grad=True)
    with torch_threads(2), one_core_each() as each:
        total = sum_of([lambda: meets(x), lambda: meets(2 * x)], [x], each)
        total.backward()
    assert (total.item(), x.grad) == (3.0, torch.tensor(3.0))


def test_what_a_term_raises_is_raised() -> None:
    x = torch.ones((), requires_grad=True)

    def fails() -> Tensor:
        raise ValueError("no term")

    with torch_threads(2), one_core_each() as each, pytest.raises(ValueError, match="no term"):
        sum_of([lambda: 2 * x, fails], [x], each)
