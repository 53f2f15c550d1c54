"""A card that has shapes and no numbers, and what travels to it.

It is torch's device "meta". Whatever asks it for a number, or for as many as it has found of
something, would have to wait for a card, and fails here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

CARD: Final = torch.device("meta")


class Traffic(TorchDispatchMode):
    """Sees every operation, and takes down what it moves to the card, in bytes."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.sent: list[int] = []

    def __torch_dispatch__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        made = func(*args, **(kwargs or {}))
        tensors = [leaf for leaf in tree_leaves((args, made)) if isinstance(leaf, torch.Tensor)]
        # A single number travels with the order to compute, and is no copy.
        moved = [each.nbytes for each in tensors if each.device.type == "cpu" and each.dim()]
        if any(each.device == CARD for each in tensors):
            self.sent += moved
        return made


class Seeded(torch.Generator):
    """On the processor, wherever it is said to be; the card takes it for its own."""

    def __new__(cls, device: torch.device) -> Seeded:
        return super().__new__(cls)


def on_the_card(thing: Any, moved: dict[int, Any] | None = None) -> Any:  # noqa: ANN401
    """The same object, with all tensors that it holds, its parts' too, on the card."""
    moved = {} if moved is None else moved
    if id(thing) in moved:
        return moved[id(thing)][1]
    there = thing
    if isinstance(thing, Tensor):
        there = thing.detach().to(CARD).requires_grad_(thing.requires_grad)
    elif isinstance(thing, (list, tuple)):
        there = type(thing)(on_the_card(each, moved) for each in thing)
    elif isinstance(thing, dict):
        thing.update({key: on_the_card(each, moved) for key, each in thing.items()})
    moved[id(thing)] = thing, there  # an id is its own as long as the object is kept
    if type(thing).__module__.startswith(("dpntk.generate", "torch.optim")):
        for name, value in vars(thing).items():
            vars(thing)[name] = on_the_card(value, moved)
    return there
