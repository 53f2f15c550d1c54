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

    PyTorch would run the whole backward pass in a single thread.

    Args:
        terms: each computes a scalar from the parameters.
        parameters: the only tensors that the sum is differentiable with respect to.
        each: of `one_core_each`.

    Returns:
        A scalar that can be differentiated once.
    """

    def found(term: Term) -> tuple[Tensor, tuple[Tensor, ...]]:
        value = term()
        slopes = torch.autograd.grad(value, parameters, materialize_grads=True)
        return value.detach(), slopes

    values, slopes = zip(*each(found, terms), strict=True)
    return with_gradient(
        torch.stack(values).sum(),
        parameters,
        [torch.stack(parts).sum(0) for parts in zip(*slopes, strict=True)],
    )


def with_gradient(value: Tensor, parameters: Sequence[Tensor], slopes: Sequence[Tensor]) -> Tensor:
    """A value whose gradient is known, as if it had been computed from the parameters.

    Args:
        value: a scalar.
        parameters: the only tensors that it is differentiable with respect to.
        slopes: its gradient, one tensor for each parameter.

    Returns:
        A copy of the value that can be differentiated once.
    """
    known: Tensor = _Known.apply(value, tuple(slopes), *parameters)  # type: ignore[no-untyped-call]
    return known


class _Known(torch.autograd.Function):
    """A value with a gradient that is known already."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, slopes: Sequence[Tensor], *_: Tensor) -> Tensor:  # noqa: ANN401 - untyped
        """A copy of the value; the gradient is kept."""
        ctx.save_for_backward(*slopes)
        return value.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401 - untyped
        """The kept gradient times that of the value."""
        return None, None, *(slope * kept for kept in ctx.saved_tensors)
