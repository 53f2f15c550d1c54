"""A loss that is a sum, on as many cores as there are: each takes some of its terms.

A step looks at a few hundred records. Where torch divides each of its products among threads, these
wait for one another rather than work, the more so if others use the machine.
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
    """The sum of some terms and its slope, both found at once, each term by one thread.

    Args:
        terms: each computes a scalar from the parameters.
        parameters: what it is differentiable with respect to, and with respect to nothing else.
        each: of `one_core_each`.

    Returns:
        A scalar that can be differentiated once.
    """
    total: Tensor = _Sum.apply(tuple(terms), each, *parameters)  # type: ignore[no-untyped-call]
    return total


class _Sum(torch.autograd.Function):
    """Goes backward on the way there, in the thread of each term: torch has one thread for all."""

    @staticmethod
    def forward(ctx: Any, terms: Sequence[Term], each: Each, *parameters: Tensor) -> Tensor:  # noqa: ANN401 - untyped
        """The sum; the slopes are kept."""

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
        """The kept slopes times that of the sum."""
        return None, None, *(slope * kept for kept in ctx.saved_tensors)
