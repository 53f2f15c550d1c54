"""Compute a loss that is a sum with one thread per term.

A step uses only a few hundred records. If torch splits each of its products among threads, these
mostly wait for one another, especially on a shared machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ...common.runtime.threads import Each

Term = Callable[[], Tensor]


def sum_of(terms: Iterable[Term], parameters: Sequence[Tensor], each: Each) -> Tensor:
    """Compute a sum and its gradient together, each term in one thread.

    Args:
        terms: each computes a scalar from the parameters.
        parameters: the only tensors that the sum is differentiable with respect to.
        each: of `one_core_each`.

    Returns:
        A scalar that can be differentiated once.
    """
    total: Tensor = _Sum.apply(tuple(terms), each, *parameters)  # type: ignore[no-untyped-call]
    return total


class _Sum(torch.autograd.Function):
    """Computes gradients in the forward pass, each in the thread of its term.

    PyTorch would run the whole backward pass in a single thread.
    """

    @staticmethod
    def forward(ctx: Any, terms: Sequence[Term], each: Each, *parameters: Tensor) -> Tensor:  # noqa: ANN401 - untyped
        """The sum; its gradients are kept."""

        def found(term: Term) -> tuple[Tensor, tuple[Tensor, ...]]:
            with torch.enable_grad():
                value = term()
            slopes = torch.autograd.grad(value, parameters, materialize_grads=True)
            return value.detach(), slopes

        values, slopes = zip(*each(found, terms), strict=True)
        ctx.save_for_backward(*(torch.stack(parts).sum(0) for parts in zip(*slopes, strict=True)))
        return torch.stack(values).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401 - untyped
        """The kept gradients times that of the sum."""
        return None, None, *(slope * kept for kept in ctx.saved_tensors)
