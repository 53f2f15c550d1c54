"""Normalised empirical neural tangent kernels: phi(x) is the gradient of a random network.

The network is a chain of layers (`dpntk.common.features.ntk.layers`) and a last linear layer with K
outputs, f_k(x) = <W_k, a> + c_k, where a is the output of the layers for x. The feature is

    phi(x) = grad_theta sum_k f_k(x) / ||grad_theta sum_k f_k(x)||

(Yang et al., arXiv 2303.01687, section 3, with the sum of the outputs as the scalar whose gradient
is taken). The gradient of each of the K outputs' weights is the same vector a: one copy scaled by
sqrt(K) gives the same kernel in fewer dimensions, and of these weights only the readout v = sum_k
W_k is needed. So phi(x) is, divided by its norm,

    [ for every layer with weights: gradient of the weights | of the biases ]  sqrt(K) a | sqrt(K)

Weights lie on a fixed-point grid, so that sums of weights times integer records are exact in
float64 whatever the order of summation: see `dpntk.common.numerics.exact` for why that matters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from ...errors import SchemaError
from ...schema import Schema
from ...schema.table import TableSchema
from ..base import FEATURE_MAPS
from .architectures import CUSTOM, NAMED_LATER, name_of
from .layers import (
    Activation,
    Affine,
    Layer,
    Linear,
    Shape,
    from_json,
    shapes,
    to_json,
)
from .scattering import Front, front_from_spec

FIRST_GRID: Final = 2.0**-24
HIDDEN_GRID: Final = 2.0**-16
READOUT_GRID: Final = 2.0**-20
EXACT: Final = 2.0**53
"""Integers up to here are exact in float64."""
_ROUNDED: Final = 2.0**28
"""A hidden layer's inputs are rounded to integers; their range reaches at least this far."""
_LARGEST_READOUT: Final = 2.0**10


@dataclass(frozen=True)
class AffineLayer:
    """A layer with weights, and its input shape.

    Attributes:
        kind: the layer without its weights.
        shape: the shape of a record's values before it.
        weight: float32, of `kind.weight_shape(shape)`.
        bias: float32 (outputs,).
    """

    kind: Affine
    shape: Shape
    weight: NDArray[np.float32]
    bias: NDArray[np.float32]


@FEATURE_MAPS.add("ntk")
@dataclass(frozen=True, eq=False)
class TangentFeatures:
    """The feature map of a network.

    Attributes:
        layers: the network without its last layer.
        parameters: weights and biases of the layers that have weights, in order: float32, multiples
            of 2^-24 in the first layer and of 2^-16 in later ones.
        readout: v, float32 (values before the last layer,), multiples of 2^-20.
        shape: the shape of the network's input.
        outputs: K, the number of network outputs.
        levels: records hold integers 0..levels, which stand for the values 0..1.
        front: the fixed transform before the network; its outputs are the x above.

    Guarantee:
        norm_bound: phi is a vector divided by its own norm, which is never 0, even for a record of
        zeros, because the output biases contribute sqrt(K). nonnegative: see there.
        (docs/privacy/proofs.md, statements 1 and 2.)
    """

    layers: tuple[Layer, ...]
    parameters: tuple[tuple[NDArray[np.float32], NDArray[np.float32]], ...]
    readout: NDArray[np.float32]
    shape: Shape
    outputs: int
    levels: int
    front: Front
    norm_bound: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        if self.front.outputs != math.prod(self.shape):
            raise SchemaError("feature map: the front does not fit the network behind it")
        if self.outputs < 1 or self.levels < 1 or min(self.shape, default=0) < 1:
            raise SchemaError("feature map: sides, outputs and levels start at 1")
        if not self.layers or not isinstance(self.layers[0], Affine):
            raise SchemaError("feature map: the first layer is linear or a convolution")
        wanted = _parameter_shapes(self.layers, self.shape)
        if [(w.shape, b.shape) for w, b in self.parameters] != wanted[:-1]:
            raise SchemaError("feature map: the weights' shapes are not those of the layers")
        if (self.readout.shape,) != wanted[-1]:
            raise SchemaError("feature map: the readout does not fit the layer before it")
        for name, weight in self.weights().items():
            if weight.dtype != np.float32 or not np.isfinite(weight).all():
                raise SchemaError(f"feature map: {name} must be finite float32")
        for number, (weight, bias) in enumerate(self.parameters):
            grid = HIDDEN_GRID if number else FIRST_GRID
            _require_grid(f"weight_{number + 1}", weight, grid)
            _require_grid(f"bias_{number + 1}", bias, grid)
            if not weight.any():
                raise SchemaError(
                    f"feature map: all of weight_{number + 1} are 0, rounded to multiples of "
                    f"{grid:g}: nothing passes through such a layer"
                )
            # Sums of records, or of a hidden layer's rounded values, must be exact in float64.
            factor = _ROUNDED if number else self.levels
            reach = largest_sum(weight, number > 0) + float(np.abs(bias).max())
            if reach / grid * factor >= EXACT:
                raise SchemaError(
                    f"feature map: weight_{number + 1} too large to be summed exactly"
                )
        _require_grid("readout", self.readout, READOUT_GRID)
        if np.abs(self.readout).max() > _LARGEST_READOUT:
            raise SchemaError("feature map: readout too large")

    @classmethod
    def draw(
        cls,
        front: Front,
        layers: Sequence[Layer],
        *,
        outputs: int,
        levels: int,
        seed: int,
        shape: Shape | None = None,
    ) -> TangentFeatures:
        """Draw the weights at random, without looking at any record.

        Every weight and bias is uniform on +-1/sqrt(fan-in), as in torch's layers and so in the
        paper's code, then rounded to the grid. Values are not scaled by widths elsewhere (standard
        parametrisation).

        Args:
            front: the fixed transform before the network.
            layers: the network without its last layer.
            outputs: number of network outputs.
            levels: largest integer in a record.
            seed: the seed of the weights alone; privacy noise never has a seed.
            shape: the shape of the network's input; a vector if None.

        Raises:
            SchemaError: the layers do not fit together.
        """
        generator, shape = np.random.default_rng(seed), shape or (front.outputs,)
        *wanted, (readout_shape,) = _parameter_shapes(layers, shape)
        parameters = []
        for number, (weight_shape, bias_shape) in enumerate(wanted):
            grid = HIDDEN_GRID if number else FIRST_GRID
            reach = 1 / math.sqrt(math.prod(weight_shape[1:]))
            weight, bias = (generator.uniform(-reach, reach, s) for s in (weight_shape, bias_shape))
            parameters.append((to_grid(weight, grid), to_grid(bias, grid)))
        (width,) = readout_shape
        readout = sum(generator.uniform(-1.0, 1.0, width) for _ in range(outputs))
        return cls(
            layers=tuple(layers),
            parameters=tuple(parameters),
            readout=to_grid(np.asarray(readout) / math.sqrt(width), READOUT_GRID),
            shape=shape,
            outputs=outputs,
            levels=levels,
            front=front,
        )

    @property
    def record_size(self) -> int:
        """Number of values in a record."""
        return self.front.record_size

    @cached_property
    def affine(self) -> tuple[AffineLayer, ...]:
        """The layers that have weights."""
        places = [
            (layer, before)
            for layer, before, _ in shapes(self.layers, self.shape)
            if isinstance(layer, Affine)
        ]
        return tuple(
            AffineLayer(layer, before, weight, bias)
            for (layer, before), (weight, bias) in zip(places, self.parameters, strict=True)
        )

    @cached_property
    def blocks(self) -> dict[str, slice]:
        """The coordinates of each parameter's gradient in phi(x)."""
        sizes = {name: weight.size for name, weight in self._own_weights().items()}
        found, start = {}, 0
        for name, size in {**sizes, "output_bias": 1}.items():
            found[name] = slice(start, start + size)
            start += size
        return found

    @property
    def dimension(self) -> int:
        """The number of weights, with those of the last layer counted once."""
        return int(self.blocks["output_bias"].stop)

    @property
    def nonnegative(self) -> bool:
        """Whether there is just one hidden layer, linear and followed by a ReLU (or a ReLU6).

        The inner product of two gradients is then <delta, delta'> (<x, x'> + 1) + K (<a, a'> + 1).
        A component of delta is 0 or that of v, and neither records nor activations are negative, so
        every term is >= 0. With more layers, or with a convolution, whose gradient sums over
        positions where v has different signs, a component may have either sign.
        """
        first, *rest = self.layers
        functions = [layer.function for layer in rest if isinstance(layer, Activation)]
        return (
            isinstance(first, Linear)
            and len(functions) == len(rest) > 0
            and set(functions) <= {"relu", "relu6"}
        )

    def describe(self, schema: Schema) -> str:
        """A description for readers of a release."""
        arch, widths = name_of(self.layers, self.shape)
        width = "_".join(map(str, widths))
        inputs = "encoded rows" if isinstance(schema, TableSchema) else self.front.spec()["kind"]
        return f"normalised tangent features of {arch}, width {width}, on {inputs}"

    def spec(self) -> dict[str, Any]:
        """Everything beside `weights` that is needed to rebuild the map, as plain JSON."""
        arch, widths = name_of(self.layers, self.shape)
        return {
            "features": "ntk",
            "arch": arch,
            "width": "_".join(map(str, widths)),
            "layers": to_json(self.layers),
            "shape": list(self.shape),
            "front": self.front.spec(),
            "outputs": self.outputs,
            "levels": self.levels,
        }

    def _own_weights(self) -> dict[str, NDArray[np.float32]]:
        named: dict[str, NDArray[np.float32]] = {}
        for number, (weight, bias) in enumerate(self.parameters, start=1):
            named |= {f"weight_{number}": weight, f"bias_{number}": bias}
        return {**named, "readout": self.readout}

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """The drawn weights by name."""
        return {**self._own_weights(), **self.front.weights()}

    @classmethod
    def from_spec(
        cls, spec: Mapping[str, Any], weights: Mapping[str, NDArray[Any]]
    ) -> TangentFeatures:
        """Rebuild a map from `spec()` and `weights()`.

        Raises:
            SchemaError: they do not describe a map that this dpntk knows, or contradict each other.
        """
        layers, shape = from_json(spec.get("layers")), spec.get("shape")
        whole = [spec.get("outputs"), spec.get("levels")]
        whole += shape if isinstance(shape, list) else [None]
        if not all(type(number) is int and 0 < number <= 1 << 24 for number in whole):
            raise SchemaError("feature map: shape, outputs and levels are whole numbers")
        if not isinstance(shape, list) or not 0 < len(shape) <= 3:
            raise SchemaError("feature map: an input has one to three dimensions")
        count = sum(isinstance(layer, Affine) for layer in layers)
        pairs = [(f"weight_{n}", f"bias_{n}") for n in range(1, count + 1)]
        own = {"readout", *(name for pair in pairs for name in pair)}
        if not own <= set(weights):
            raise SchemaError("feature map: expected the weights of every layer, and the readout")
        front_spec = spec.get("front")
        if not isinstance(front_spec, Mapping):
            raise SchemaError("feature map: it does not say what stands before the network")
        front = front_from_spec(
            front_spec,
            {name: weight for name, weight in weights.items() if name not in own},
            math.prod(shape),
        )
        rebuilt = cls(
            layers=layers,
            parameters=tuple((weights[weight], weights[bias]) for weight, bias in pairs),
            readout=weights["readout"],
            shape=tuple(shape),
            outputs=spec["outputs"],
            levels=spec["levels"],
            front=front,
        )
        known = rebuilt.spec()
        if known["arch"] in NAMED_LATER and spec.get("arch") == CUSTOM:
            known["arch"] = CUSTOM
        if known != dict(spec):
            raise SchemaError("feature map: not one that this dpntk knows")
        return rebuilt


def largest_sum(weight: NDArray[np.float32], both_ways: bool) -> float:
    """The largest sum of absolute weights into one output (or out of one input).

    Args:
        weight: (outputs, inputs, ...).
        both_ways: whether to include inputs, which the backward pass needs.
    """
    sizes = np.abs(weight).astype(np.float64)
    towards = sizes.reshape(len(sizes), -1).sum(axis=1).max()
    away = sizes.sum(axis=0).reshape(weight.shape[1], -1).sum(axis=1).max() if both_ways else 0.0
    return float(max(towards, away))


def _parameter_shapes(layers: Sequence[Layer], shape: Shape) -> list[tuple[Shape, ...]]:
    """The shapes of weights and biases, layer by layer, and of the readout."""
    found: list[tuple[Shape, ...]] = []
    after = shape
    for layer, before, made in shapes(layers, shape):
        after = made
        if isinstance(layer, Affine):
            weight_shape = layer.weight_shape(before)
            found.append((weight_shape, weight_shape[:1]))
    if len(after) != 1:
        raise SchemaError("feature map: the layers end in a vector: put a flatten last")
    return [*found, (after,)]


def to_grid(values: NDArray[np.float64], grid: float) -> NDArray[np.float32]:
    """Round to multiples of a power of two."""
    return (np.rint(values / grid) * grid).astype(np.float32)


def _require_grid(name: str, values: NDArray[np.float32], grid: float) -> None:
    scaled = values.astype(np.float64) / grid
    if not np.array_equal(scaled, np.rint(scaled)):
        raise SchemaError(f"feature map: {name} is not on its grid of {grid}")
