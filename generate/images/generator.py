"""The class-conditional generator, for images of any size from 8 to 64 pixels."""

from __future__ import annotations

import copy
import math
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, Final

import torch
from torch import Tensor, nn

from ...common.schema.image import GREY
from .networks.spec import require_form

_FACTOR_SCALE: Final = 0.1
_FLOW_SCALE: Final = 0.03
"""Displacements at the start, in half image widths; eight together move a pixel of 28 by 1.2."""
FLOW_GRID: Final = 5
"""Control points of a displacement, along either side."""
_FARTHEST: Final = 2.0**100
"""Displacements beyond this have overflowed, or do when they are interpolated."""


@dataclass(frozen=True)
class GeneratorSpec:
    """All that is needed beside its weights to rebuild a generator.

    Attributes:
        side: height and width of an image.
        classes: number of classes.
        factors: of each class, which change brightness.
        flows: of each class, which displace.
        channels: of an image, 1 or 3.

    Raises:
        GeneratorError: a number is out of its range.
    """

    side: int
    classes: int
    factors: int = 16
    flows: int = 8
    channels: int = GREY

    def __post_init__(self) -> None:
        require_form(self.side, self.classes, self.channels, self.factors, self.flows)

    @property
    def code(self) -> int:
        """Length of the latent code: a weight of each factor and of each flow."""
        return self.factors + self.flows

    def to_json(self) -> dict[str, Any]:
        """A plain mapping; that of grey images says nothing of channels."""
        document = asdict(self)
        if self.channels == GREY:
            del document["channels"]
        return document


class ConditionalGenerator(nn.Module):
    """Latent code and class to an image: a deformable template of each class, cut to 0..1.

    Each class has a template and some factors, which a part of the latent code weighs: a Gaussian
    of low rank. What comes of them is displaced by a smooth flow, which the rest of the code weighs
    (Amit, Grenander and Piccioni 1991, "Structural Image Restoration through Deformable
    Templates"; through the interpolation of Jaderberg et al. 2015, "Spatial Transformer
    Networks", gradients reach both). Templates begin at the class means, factors and flows small,
    random and smooth, so that detail of single pixels is there only if the release asks for it.

    That things of one kind differ in shape and place is all that is assumed of them, and much of
    what a Gaussian cannot say: docs/design/image-generator.md has the figures. The paper's
    generator (Yang et al., arXiv 2303.01687, after DP-MERF) is convolutional; from a mean embedding
    with noise it learns fragments of strokes.
    """

    def __init__(self, spec: GeneratorSpec) -> None:
        super().__init__()
        self.spec = spec
        pixels = spec.channels * spec.side**2
        self.template = nn.Parameter(torch.empty(spec.classes, 1, pixels))
        self.factors = nn.Parameter(torch.empty(spec.classes, spec.factors, pixels))
        self.flows = nn.Parameter(torch.empty(spec.classes, spec.flows, 2, FLOW_GRID, FLOW_GRID))
        if not self.template.is_meta:  # where only shapes matter, and arithmetic takes seconds
            self._start()

    @torch.no_grad()
    def _start(self) -> None:
        """Grey templates, and factors and flows that are small, random and smooth.

        A factor begins the same in all channels: things are brighter or darker rather than of
        another colour.
        """
        spec = self.spec
        self.template.fill_(0.5)
        coarse = min(spec.side, max(8, -(-spec.side // 2)))
        smooth = torch.randn(spec.classes, spec.factors, coarse, coarse)
        factors = _FACTOR_SCALE * _enlarged(smooth, spec.side)
        self.factors.copy_(factors.repeat(1, 1, spec.channels))
        self.flows.copy_(_FLOW_SCALE * torch.randn(self.flows.shape))

    @torch.no_grad()
    def start_from(self, means: Tensor) -> None:
        """Take the mean image of each class as its template.

        Args:
            means: (classes, channels * side * side), values 0..1.
        """
        self.template.copy_(means[:, None])

    @torch.no_grad()
    def share(self, size: float = 1.0) -> None:
        """Give all classes the factors and flows of the first one.

        Args:
            size: what factors are multiplied by. Where noise hides how images of a class differ,
                factors stay what they were by chance, and classifiers learn to look past them.
        """
        self.factors.copy_(size * self.factors[:1].expand_as(self.factors))
        self.flows.copy_(self.flows[:1].expand_as(self.flows).clone())

    @torch.no_grad()
    def limit_factors(self, most: float) -> None:
        """Make factors smaller, all alike, if they change pixels by more than is said.

        Args:
            most: standard deviation of a pixel by factors, over pixels and classes in mean square.
        """
        found = float(self.factors.square().sum(dim=1).mean().sqrt())
        if found > most:
            self.factors.mul_(most / found)

    @torch.no_grad()
    def with_factors(self, more: Tensor) -> ConditionalGenerator:
        """The same generator with further factors.

        Args:
            more: (classes, k, channels * side * side).
        """
        wider = copy.deepcopy(self)
        wider.spec = replace(self.spec, factors=self.spec.factors + more.shape[1])
        wider.factors = nn.Parameter(torch.cat([self.factors, more.to(self.factors)], dim=1))
        return wider

    @torch.no_grad()
    def with_template(self, template: Tensor) -> ConditionalGenerator:
        """The same generator with another template.

        Args:
            template: (classes, 1, channels * side * side).
        """
        other = copy.deepcopy(self)
        other.template.copy_(template)
        return other

    @torch.no_grad()
    def with_further_flows(self, more: Tensor) -> ConditionalGenerator:
        """The same generator with further flows, which all classes share.

        Args:
            more: (k, 2, grid, grid).
        """
        wider = copy.deepcopy(self)
        wider.spec = replace(self.spec, flows=self.spec.flows + len(more))
        shared = more.to(self.flows).expand(self.spec.classes, -1, -1, -1, -1)
        wider.flows = nn.Parameter(torch.cat([self.flows, shared], dim=1))
        return wider

    def forward(self, code: Tensor, classes: Tensor) -> Tensor:
        """Make the same number of images of each of some classes.

        Args:
            code: (k, b, code), standard normal.
            classes: int64 (k,), the class of each group.

        Returns:
            (k, b, channels * side * side), values 0..1.
        """
        return self.with_flows(code, classes, self.flows[classes])

    def with_flows(self, code: Tensor, classes: Tensor, flows: Tensor) -> Tensor:
        """Make images that are displaced by other flows than the generator's own.

        Args:
            code: (k, b, factors and flows), standard normal.
            classes: int64 (k,), the class of each group.
            flows: of each group, (k, any number, 2, grid, grid).

        Returns:
            (k, b, channels * side * side), values 0..1; not a number in all pixels of an image
            that would be displaced by what is none.
        """
        weights, moves = code.split([self.spec.factors, flows.shape[1]], dim=-1)
        coarse = moves @ flows.flatten(2)
        # Torch's `grid_sample` reads and writes anywhere in memory when it is to fetch a pixel from
        # a place that is no number. So such an image is none before it is displaced, and stays at
        # its place: whoever looks at it or at its loss finds that it is no number.
        lost = ~(coarse.abs() < _FARTHEST).all(dim=-1, keepdim=True)
        weights = weights.masked_fill(lost, math.nan)
        still = self.template[classes] + weights @ self.factors[classes]
        displacements = self._displacements(coarse.masked_fill(lost, 0.0))
        return self._displaced(still, displacements).clamp(0.0, 1.0)

    def _displacements(self, coarse: Tensor) -> Tensor:
        """Where pixels are fetched from, relative to themselves, (k b, side, side, 2).

        Args:
            coarse: the same at control points, (k, b, 2 * grid * grid).
        """
        side = self.spec.side
        fine = coarse.flatten(0, 1) @ _from_single_points(side, coarse.device, coarse.dtype)
        return fine.view(-1, side, side, 2)

    def _displaced(self, images: Tensor, displacements: Tensor) -> Tensor:
        """Images (k, b, channels * side * side) with pixels from elsewhere."""
        side = self.spec.side
        stay = torch.eye(2, 3, device=images.device, dtype=images.dtype)[None]
        places = nn.functional.affine_grid(stay, [1, 1, side, side], align_corners=False)
        moved = nn.functional.grid_sample(
            images.reshape(-1, self.spec.channels, side, side), places + displacements,
            padding_mode="border", align_corners=False,
        )  # fmt: skip
        return moved.view_as(images)


@lru_cache(maxsize=8)
@torch.inference_mode(False)
def _from_single_points(side: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Displacements that come of single control points, (2 * grid * grid, side * side * 2).

    Interpolation is linear, so that a product with these does it; image by image it takes several
    times as long.
    """
    size = 2 * FLOW_GRID**2
    single = torch.eye(size, device=device, dtype=dtype).view(size, 2, FLOW_GRID, FLOW_GRID)
    fine = nn.functional.interpolate(single, (side, side), mode="bicubic", align_corners=True)
    return fine.permute(0, 2, 3, 1).flatten(1)


def _enlarged(coarse: Tensor, side: int) -> Tensor:
    """(k, r, coarse, coarse) to (k, r, side * side)."""
    fine = nn.functional.interpolate(coarse, (side, side), mode="bicubic", align_corners=False)
    return fine.flatten(2)
