"""The class-conditional generator, for images of any size from 8 to 64 pixels."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import torch
from torch import Tensor, nn

from ....common.schema.image import GREY
from ...output.generator_file import Spec
from .networks.spec import require_form

_FACTOR_SCALE: Final = 0.1
_FLOW_SCALE: Final = 0.03
"""Initial displacements, in half image widths; eight together move a pixel of a 28-pixel image by
1.2."""
FLOW_GRID: Final = 5
"""Control points of a displacement along each side."""
_FARTHEST: Final = 2.0**100
"""Displacements beyond this have overflowed, or would when interpolated."""


@dataclass(frozen=True)
class GeneratorSpec(Spec):
    """Everything needed to rebuild a generator, except its weights.

    Attributes:
        side: height and width of an image.
        classes: number of classes.
        factors: number of factors of each class, which change brightness.
        flows: number of flows of each class, which displace pixels.
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
        """Length of the latent code: one weight for each factor and flow."""
        return self.factors + self.flows

    def to_json(self) -> dict[str, Any]:
        """A plain mapping; for grey images it leaves out the channels."""
        document = super().to_json()
        if self.channels == GREY:
            del document["channels"]
        return document


class ConditionalGenerator(nn.Module):
    """Maps a latent code and class to an image: a deformable template, clipped to 0..1.

    Each class has a template plus factors weighted by a part of the latent code: a low-rank
    Gaussian. The result is displaced by a smooth flow, weighted by the rest of the code (Amit,
    Grenander and Piccioni 1991, "Structural Image Restoration through Deformable Templates";
    through the interpolation of Jaderberg et al. 2015, "Spatial Transformer Networks", gradients
    reach both). Templates start at the class means; factors and flows start small, random and
    smooth, so that pixel-level detail appears only if the release calls for it.

    The only assumption is that objects of one kind differ in shape and place, which is much of what
    a Gaussian cannot express: docs/design/image-generator.md has the figures. The paper's generator
    (Yang et al., arXiv 2303.01687, after DP-MERF) is convolutional; from a noisy mean embedding it
    learns fragments of strokes.
    """

    def __init__(self, spec: GeneratorSpec) -> None:
        super().__init__()
        self.spec = spec
        pixels = spec.channels * spec.side**2
        self.template = nn.Parameter(torch.empty(spec.classes, 1, pixels))
        self.factors = nn.Parameter(torch.empty(spec.classes, spec.factors, pixels))
        self.flows = nn.Parameter(torch.empty(spec.classes, spec.flows, 2, FLOW_GRID, FLOW_GRID))
        if not self.template.is_meta:  # on meta only shapes matter, and arithmetic takes seconds
            self._start()

    @torch.no_grad()
    def _start(self) -> None:
        """Start with grey templates and small, random, smooth factors and flows.

        A factor starts equal in all channels: objects vary in brightness rather than colour.
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
            size: factor on the factors. Where noise hides how images of a class differ, the factors
                keep their random start, and classifiers learn to ignore them.
        """
        self.factors.copy_(size * self.factors[:1].expand_as(self.factors))
        self.flows.copy_(self.flows[:1].expand_as(self.flows).clone())

    @torch.no_grad()
    def limit_factors(self, most: float) -> None:
        """Scale all factors down if they change pixels by more than a limit.

        Args:
            most: largest standard deviation of a pixel due to factors, as a root mean square over
                pixels and classes.
        """
        found = float(self.factors.square().sum(dim=1).mean().sqrt())
        if found > most:
            self.factors.mul_(most / found)

    @torch.no_grad()
    def with_factors(self, more: Tensor) -> ConditionalGenerator:
        """The same generator with further factors.

        Args:
            more: the factors, (classes, k, channels * side * side).
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
        """Make images with flows other than the generator's own.

        Args:
            code: (k, b, factors and flows), standard normal.
            classes: int64 (k,), the class of each group.
            flows: of each group, (k, any number, 2, grid, grid).

        Returns:
            (k, b, channels * side * side), values 0..1; an image is NaN in all pixels if its
            displacements are not finite or have overflowed.
        """
        weights, moves = code.split([self.spec.factors, flows.shape[1]], dim=-1)
        coarse = moves @ flows.flatten(2)
        # Torch's `grid_sample` reads and writes arbitrary memory if a coordinate is not finite. So
        # such an image is set to NaN and is not displaced: the image and its loss then show the
        # failure.
        lost = ~(coarse.abs() < _FARTHEST).all(dim=-1, keepdim=True)
        weights = weights.masked_fill(lost, math.nan)
        still = self.template[classes] + weights @ self.factors[classes]
        displacements = self._displacements(coarse.masked_fill(lost, 0.0))
        return self._displaced(still, displacements).clamp(0.0, 1.0)

    def _displacements(self, coarse: Tensor) -> Tensor:
        """Offsets from each pixel to where its value is read, (k b, side, side, 2).

        Args:
            coarse: the offsets at control points, (k, b, 2 * grid * grid).
        """
        side = self.spec.side
        fine = coarse.flatten(0, 1) @ _from_single_points(side, coarse.device, coarse.dtype)
        return fine.view(-1, side, side, 2)

    def _displaced(self, images: Tensor, displacements: Tensor) -> Tensor:
        """Displace images (k, b, channels * side * side)."""
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
    """Displacements due to each single control point, (2 * grid * grid, side * side * 2).

    Interpolation is linear, so a product with this matrix performs it; interpolating image by image
    takes several times as long.
    """
    size = 2 * FLOW_GRID**2
    single = torch.eye(size, device=device, dtype=dtype).view(size, 2, FLOW_GRID, FLOW_GRID)
    fine = nn.functional.interpolate(single, (side, side), mode="bicubic", align_corners=True)
    return fine.permute(0, 2, 3, 1).flatten(1)


def _enlarged(coarse: Tensor, side: int) -> Tensor:
    """Enlarge (k, r, coarse, coarse) to (k, r, side * side)."""
    fine = nn.functional.interpolate(coarse, (side, side), mode="bicubic", align_corners=False)
    return fine.flatten(2)
