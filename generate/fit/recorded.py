"""The loss of a step and its gradient, as a GPU computes them fastest."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.func import functional_call

from ...common.display.console import notice
from ...common.runtime.replay import Replay
from .descent import Loss
from .parts import with_gradient

LossOf = Callable[[Tensor], Loss]


class Recorded:
    """A loss of batches of one shape on a GPU, recorded by the first of them.

    Where CUDA cannot record it, a note says so and it is computed step by step.

    Args:
        loss_of: of a batch; see `Replay` for what it may do.
        module: the loss can be differentiated once with respect to its parameters.
    """

    def __init__(self, loss_of: LossOf, module: nn.Module) -> None:
        self._loss_of = loss_of
        self._whole = _Whole(loss_of, module)
        self._parameters = {n: p for n, p in self._whole.named_parameters() if p.requires_grad}
        self._replay: Replay[tuple[Tensor, ...]] | None = None
        self._may = True

    def forget(self) -> None:
        """Record anew at the next call, because what the loss reads is somewhere else now."""
        self._replay = None

    def __call__(self, batch: Tensor) -> Loss:
        """The loss of a batch."""
        if self._replay is None and self._may:
            self._replay = self._recording(batch)
        if self._replay is None:
            return self._loss_of(batch)
        minimised, reported, *slopes = self._replay(batch)
        known = with_gradient(minimised, list(self._parameters.values()), slopes)
        return Loss(known, reported.clone())

    def _recording(self, batch: Tensor) -> Replay[tuple[Tensor, ...]] | None:
        """None if CUDA refuses: recording saves time, and training does not depend on it."""
        try:
            return Replay(self._with_slopes, batch)
        except RuntimeError as error:
            self._may = False
            reason = str(error).partition("\n")[0]
            notice(f"training goes on step by step, and takes longer: no CUDA graph ({reason})")
            return None

    def _with_slopes(self, batch: Tensor) -> tuple[Tensor, ...]:
        """The losses and the gradients, none of which can be differentiated."""
        # Not of the parameters themselves: torch adds up a parameter's gradients on the stream on
        # which it first met it, and other work may be waiting there, so it cannot be recorded.
        same = {name: each.detach().requires_grad_() for name, each in self._parameters.items()}
        loss: Loss = functional_call(self._whole, same, (batch,))
        slopes = torch.autograd.grad(loss.minimised, tuple(same.values()), materialize_grads=True)
        return loss.minimised.detach(), loss.reported.detach(), *slopes


class _Whole(nn.Module):
    """A loss as a module, in which torch can exchange the parameters."""

    def __init__(self, loss_of: LossOf, module: nn.Module) -> None:
        super().__init__()
        self.module = module
        self._loss_of = loss_of

    def forward(self, batch: Tensor) -> Loss:
        """The loss of a batch."""
        return self._loss_of(batch)
