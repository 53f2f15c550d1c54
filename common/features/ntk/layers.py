"""Networks as data: the possible layers of a tangent kernel's network, without weights.

A layer states its output shape for an input shape, and the shape of its weights.
`dpntk.common.features.ntk.backprop` defines what it computes, for exact and floating-point
arithmetic alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from ...errors import SchemaError

Shape = tuple[int, ...]
"""The shape of one record's values at some point in the network: (values,), or (channels, length),
or (channels, height, width)."""

LAYER_NORM_EPSILON: Final = 1e-5
LEAKY_SLOPE: Final = 0.01
ACTIVATIONS: Final = ("relu", "leaky_relu", "relu6", "softsign")
"""Activations that need only additions, multiplications, divisions and comparisons, which IEEE 754
defines to the last bit. Exponentials are not: a library may compute one value in two ways."""
_LARGEST: Final = 1 << 24


@dataclass(frozen=True)
class Linear:
    """Every output is a weighted sum of all inputs, plus a bias.

    Attributes:
        outputs: the number of outputs.
    """

    outputs: int

    def output_shape(self, shape: Shape) -> Shape:
        """(outputs,)."""
        _require(len(shape) == 1, "a linear layer takes a vector: put a flatten before it")
        return (self.outputs,)

    def weight_shape(self, shape: Shape) -> Shape:
        """(outputs, inputs)."""
        return (self.outputs, shape[0])


@dataclass(frozen=True)
class Convolution:
    """A convolution over one or two dimensions, zero-padded so that sides do not change.

    Attributes:
        channels: the number of output channels.
        size: side of the kernel, odd.
    """

    channels: int
    size: int

    def output_shape(self, shape: Shape) -> Shape:
        """(channels, *sides)."""
        _require(len(shape) in (2, 3), "a convolution takes channels and one or two dimensions")
        _require(self.size % 2 == 1, "a convolution's kernel has an odd side")
        return (self.channels, *shape[1:])

    def weight_shape(self, shape: Shape) -> Shape:
        """(channels out, channels in, size[, size])."""
        return (self.channels, shape[0], *(self.size for _ in shape[1:]))


@dataclass(frozen=True)
class Activation:
    """An elementwise function.

    Attributes:
        function: one of `ACTIVATIONS`.
    """

    function: str

    def output_shape(self, shape: Shape) -> Shape:
        """The shape of the input, which does not change."""
        _require(self.function in ACTIVATIONS, f"activations are {', '.join(ACTIVATIONS)}")
        return shape


@dataclass(frozen=True)
class AveragePool:
    """Means over neighbouring positions; leftover positions at the far sides are dropped.

    Attributes:
        size: the side of the neighbourhood, and the stride.
    """

    size: int

    def output_shape(self, shape: Shape) -> Shape:
        """(channels, *sides / size)."""
        _require(len(shape) in (2, 3), "pooling takes channels and one or two dimensions")
        _require(min(shape[1:]) >= self.size, "pooling over more places than there are")
        return (shape[0], *(side // self.size for side in shape[1:]))


@dataclass(frozen=True)
class Flatten:
    """Flattens all values into one vector."""

    def output_shape(self, shape: Shape) -> Shape:
        """(values,)."""
        return (math.prod(shape),)


@dataclass(frozen=True)
class LayerNorm:
    """A record's values minus their mean, divided by their standard deviation; without weights."""

    def output_shape(self, shape: Shape) -> Shape:
        """The shape of the input, which does not change."""
        return shape


Affine = Linear | Convolution
Layer = Linear | Convolution | Activation | AveragePool | Flatten | LayerNorm

_KINDS: Final[dict[str, type[Layer]]] = {
    "linear": Linear,
    "convolution": Convolution,
    "activation": Activation,
    "average_pool": AveragePool,
    "flatten": Flatten,
    "layer_norm": LayerNorm,
}


def shapes(layers: Sequence[Layer], shape: Shape) -> Iterator[tuple[Layer, Shape, Shape]]:
    """Iterate over a network's layers.

    Yields:
        Each layer with its input and output shapes.

    Raises:
        SchemaError: a layer does not fit its input shape.
    """
    for layer in layers:
        after = layer.output_shape(shape)
        _require(0 < math.prod(after) <= _LARGEST, "too few or too many values after a layer")
        yield layer, shape, after
        shape = after


def to_json(layers: Sequence[Layer]) -> list[dict[str, Any]]:
    """The layers as plain JSON."""
    names = {kind: name for name, kind in _KINDS.items()}
    return [{"kind": names[type(layer)], **asdict(layer)} for layer in layers]


def from_json(document: object) -> tuple[Layer, ...]:
    """Read what `to_json` wrote.

    Raises:
        SchemaError: it is not such a list.
    """
    _require(isinstance(document, list) and 0 < len(document) <= 64, "expected a list of layers")
    assert isinstance(document, list)
    return tuple(_one_from_json(entry) for entry in document)


def _one_from_json(entry: object) -> Layer:
    _require(isinstance(entry, Mapping), "a layer is an object")
    assert isinstance(entry, Mapping)
    values = dict(entry)
    kind = _KINDS.get(str(values.pop("kind", None)))
    if kind is None:
        raise SchemaError("feature map: a layer that this dpntk does not know")
    for name, value in values.items():
        if name == "function":
            right = isinstance(value, str)
        else:
            right = type(value) is int and 0 < value <= _LARGEST
        _require(right, f"a layer's {name} is out of range")
    try:
        return kind(**values)
    except TypeError as error:
        raise SchemaError("feature map: a layer that this dpntk does not know") from error


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise SchemaError(f"feature map: {problem}")
