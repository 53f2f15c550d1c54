"""The networks of the DP-NTK paper (Yang et al., arXiv 2303.01687, table 5), by name and widths.

============  =======================================================================
`fc_1l`       linear (W), ReLU
`fc_1l_norm`  linear (W), ReLU, layer norm: what the authors' public code calls fc_1l
`fc_2l`       linear (W1), ReLU, linear (W2), layer norm
`cnn_1l`      convolution with W channels, ReLU
`cnn_2l`      convolution with W1 channels, ReLU, convolution with W2 channels, layer norm
============  =======================================================================

Each is followed by a linear layer with as many outputs as classes. Kernels are 3x3 on images. On
vectors a convolution runs along the vector with a kernel of 3, and the second layer of `cnn_2l` is
linear. Layer norms have no weights.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ...arguments import argument
from ...errors import SchemaError
from .layers import Activation, Affine, Convolution, Flatten, Layer, LayerNorm, Linear, Shape

ARCHITECTURES: Final = {
    "fc_1l": (400,),
    "fc_1l_norm": (400,),
    "fc_2l": (400, 100),
    "cnn_1l": (16,),
    "cnn_2l": (16, 32),
}
"""The names of architectures, and their default widths."""
CUSTOM: Final = "custom"
"""The name of any other network."""
NAMED_LATER: Final = ("fc_1l_norm",)
"""Networks that older files may call `CUSTOM`, because they had no name then."""
_KERNEL: Final = 3
_LARGEST_WIDTH: Final = 100_000


def layers_of(arch: str, widths: Sequence[int], shape: Shape, activation: str) -> tuple[Layer, ...]:
    """The layers of an architecture, without the last one, which every network has.

    Args:
        arch: one of `ARCHITECTURES`.
        widths: the widths of its hidden layers.
        shape: the shape of a record.
        activation: the elementwise function.

    Raises:
        SchemaError: there is no such architecture, or it has another number of widths.
    """
    if arch not in ARCHITECTURES:
        raise SchemaError(f"{argument('arch', arch)}: known are {', '.join(ARCHITECTURES)}")
    if len(widths) != len(ARCHITECTURES[arch]):
        example = "_".join(map(str, ARCHITECTURES[arch]))
        raise SchemaError(
            f"{argument('arch', arch)} has {len(ARCHITECTURES[arch])} hidden layer(s): give a "
            f"width for each, as in {argument('width', example)}"
        )
    bend = Activation(activation)
    if arch == "fc_1l":
        return fc_1l(widths[0], activation)
    if arch == "fc_1l_norm":
        return (*fc_1l(widths[0], activation), LayerNorm())
    if arch == "fc_2l":
        return (Linear(widths[0]), bend, Linear(widths[1]), LayerNorm())
    first = (Convolution(widths[0], _KERNEL), bend)
    if arch == "cnn_1l":
        return (*first, Flatten())
    if len(shape) == 2:  # a vector, as one channel
        return (*first, Flatten(), Linear(widths[1]), LayerNorm())
    return (*first, Convolution(widths[1], _KERNEL), Flatten(), LayerNorm())


def fc_1l(width: int, activation: str = "relu") -> tuple[Layer, ...]:
    """One fully connected hidden layer: the default network."""
    return (Linear(width), Activation(activation))


def takes_vectors(arch: str) -> bool:
    """Whether an architecture ignores the arrangement of a record's values."""
    return arch.startswith("fc")


def name_of(layers: Sequence[Layer], shape: Shape) -> tuple[str, tuple[int, ...]]:
    """The name and widths from which `layers_of` makes a network; otherwise `CUSTOM`."""
    widths = tuple(
        layer.outputs if isinstance(layer, Linear) else layer.channels
        for layer in layers
        if isinstance(layer, Affine)
    )
    functions = {layer.function for layer in layers if isinstance(layer, Activation)}
    for arch, usual in ARCHITECTURES.items():
        fits = len(widths) == len(usual) and len(functions) == 1
        if fits and tuple(layers) == layers_of(arch, widths, shape, *functions):
            return arch, widths
    return CUSTOM, widths


def read_widths(text: str, arch: str) -> tuple[int, ...]:
    """Parse widths in the paper's form, "3000_200"; those of `ARCHITECTURES` if empty.

    Raises:
        SchemaError: the text has another form.
    """
    if not text:
        return ARCHITECTURES.get(arch, ())
    if not re.fullmatch(r"[0-9]{1,6}(_[0-9]{1,6})*", text):
        raise SchemaError(f"{argument('width', text)}: write 400, or 3000_200 for two layers")
    widths = tuple(map(int, text.split("_")))
    if not all(0 < width <= _LARGEST_WIDTH for width in widths):
        raise SchemaError(f"{argument('width', text)}: a width is from 1 to {_LARGEST_WIDTH}")
    return widths
