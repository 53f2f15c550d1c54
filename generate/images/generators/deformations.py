"""Deformations shared by all classes: turns, stretches, shears, shifts and smooth bends.

Objects of one kind lean, grow, shift and bend. This is known before any record is seen, and a noisy
mean embedding says too little about a class to learn it from nothing. So all classes share
deformations of a given form, whose sizes are learnt from the release: they shrink to a sixth for
pictures of clothes, which hardly lean, and to a third or more for handwriting.
docs/design/image-generator.md has the figures.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import torch
from torch import Tensor, nn

from .conditional import FLOW_GRID, ConditionalGenerator, GeneratorSpec

_TURN: Final = 0.1
_STRETCH: Final = 0.07
_SHIFT: Final = 0.035
_BEND: Final = 0.035
"""Initial standard deviations: of an angle in radians, of relative changes of length, and of shifts
and single control points in half image widths."""


class DeformedGenerator(nn.Module):
    """A generator whose images are deformed at random, in ways that all classes share.

    Args:
        generator: makes the images that are deformed.
        size: factor on the initial deformations.
        learnt: whether the sizes are learnt; otherwise they stay fixed.

    Attributes:
        generator: the generator without deformations.
        sizes: logarithm of the size of each of nine kinds of deformation: a turn, an enlargement, a
            stretch along either axis, a shear along either, a shift along either, and bends.
        spec: of the generator that `whole` returns.
    """

    forms: Tensor
    kinds: Tensor

    def __init__(
        self, generator: ConditionalGenerator, size: float = 1.0, *, learnt: bool = True
    ) -> None:
        super().__init__()
        self.generator = generator
        even, bends = _even_deformations(), _BEND * torch.eye(2 * FLOW_GRID**2)
        forms = torch.cat([even, bends.view(-1, 2, FLOW_GRID, FLOW_GRID)])
        kinds = torch.arange(len(forms)).clamp(max=len(even))
        self.register_buffer("forms", size * forms)
        self.register_buffer("kinds", kinds)
        self.sizes = nn.Parameter(torch.zeros(len(even) + 1), requires_grad=learnt)

    @property
    def spec(self) -> GeneratorSpec:
        """See the class docstring."""
        spec = self.generator.spec
        return replace(spec, flows=spec.flows + len(self.forms))

    def shared(self) -> Tensor:
        """The deformations as flows, (k, 2, grid, grid)."""
        sizes = self.sizes[self.kinds].exp()
        return sizes[:, None, None, None] * self.forms

    def forward(self, code: Tensor, classes: Tensor) -> Tensor:
        """See `ConditionalGenerator`; the deformations' part of the code comes last."""
        shared = self.shared().expand(len(classes), -1, -1, -1, -1)
        flows = torch.cat([self.generator.flows[classes], shared], dim=1)
        return self.generator.with_flows(code, classes, flows)

    def whole(self) -> ConditionalGenerator:
        """Convert to a plain generator that holds the deformations as further flows."""
        return self.generator.with_further_flows(self.shared().detach())


def _even_deformations() -> Tensor:
    """The affine deformations, as flows of their initial size, (8, 2, g, g)."""
    along = torch.linspace(-1, 1, FLOW_GRID)
    y, x = torch.meshgrid(along, along, indexing="ij")
    none, one = torch.zeros_like(x), torch.ones_like(x)
    kinds = (
        (_TURN, -y, x),
        (_STRETCH, x, y),
        (_STRETCH, x, none),
        (_STRETCH, none, y),
        (_STRETCH, y, none),
        (_STRETCH, none, x),
        (_SHIFT, one, none),
        (_SHIFT, none, one),
    )
    return torch.stack([size * torch.stack([to_x, to_y]) for size, to_x, to_y in kinds])
