"""Networks as data: the layers that a tangent kernel's network may be made of, without weights.

A layer says what shape it makes of a shape, and which weights it needs. What it computes is said
in `dpntk.common.features.ntk.backprop`, for exact and for floating-point arithmetic alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from ...errors import SchemaError

Shape = tuple[int, ...]
"""Shape of one record's values at some place in the network: (values,), or (channels, length), or
(channels, height, width)."""

LAYER_NORM_EPSILON: Final = 1e-5
LEAKY_SLOPE: Final = 0.01
ACTIVATIONS: Final = ("relu", "leaky_relu", "relu6", "softsign")
"""Made of additions, multiplications, divisions and comparisons alone, which IEEE 754 defines to
the last bit. Exponentials are not: a library may compute one value in two ways."""
_LARGEST: Final = 1 << 24


@dataclass(frozen=True)
class Linear:
    """Every output is a weighted sum of all inputs, and a bias.

    Attributes:
        outputs: how many.
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
    """A convolution over one or two dimensions, with zeros around, so that sides stay as they are.

    Attributes:
        channels: how many come out.
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
    """Means over neighbouring places; what is left over at the far sides is left out.

    Attributes:
        size: side of the neighbourhood, and the step from one to the next.
    """

    size: int

    def output_shape(self, shape: Shape) -> Shape:
        """(channels, *sides / size)."""
        _require(len(shape) in (2, 3), "pooling takes channels and one or two dimensions")
        _require(min(shape[1:]) >= self.size, "pooling over more places than there are")
        return (shape[0], *(side // self.size for side in shape[1:]))


@dataclass(frozen=True)
class Flatten:
    """All values as one vector."""

    def output_shape(self, shape: Shape) -> Shape:
        """(values,)."""
        return (math.prod(shape),)


@dataclass(frozen=True)
class LayerNorm:
    """A record's values less their mean, over their standard deviation; no weights of its own."""

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
    """Go through a network.

    Yields:
        Each layer with the shape that it gets and the shape that it makes.

    Raises:
        SchemaError: a layer cannot stand where it does.
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
        SchemaError: it is no such list.
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
