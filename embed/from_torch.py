"""A feature map made from the user's own torch network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from ..common.arguments import integer, require_kind
from ..common.errors import SchemaError
from ..common.features.ntk.layers import (
    LAYER_NORM_EPSILON,
    LEAKY_SLOPE,
    Activation,
    AveragePool,
    Convolution,
    Flatten,
    Layer,
    LayerNorm,
    Linear,
    Shape,
    shapes,
)
from ..common.features.ntk.map import (
    FIRST_GRID,
    HIDDEN_GRID,
    READOUT_GRID,
    TangentFeatures,
    to_grid,
)
from ..common.features.ntk.scattering import Pixels
from ..common.schema.image import PIXEL_LEVELS

_KINDS: Final[tuple[type[nn.Module], ...]] = (
    nn.Linear,
    nn.Conv1d,
    nn.Conv2d,
    nn.LeakyReLU,
    nn.ReLU6,
    nn.ReLU,
    nn.Softsign,
    nn.AvgPool1d,
    nn.AvgPool2d,
    nn.Flatten,
    nn.LayerNorm,
)


def tangent_features_of(
    network: nn.Sequential,
    shape: Shape,
    *,
    levels: int = PIXEL_LEVELS,
) -> TangentFeatures:
    """Make a feature map from the layers and weights of a network.

    Weights are rounded to the map's grid: to multiples of 2^-24 in the first layer, of 2^-16 in
    later ones, and of 2^-20 in the sum over the last layer's outputs.

    Example::

        network = nn.Sequential(nn.Linear(784, 300), nn.ReLU(), nn.Linear(300, 10))
        embedding = embed("mnist/", tangent_features_of(network, (784,)))

    Guarantee:
        That of all tangent features: no feature has a norm above 1, whatever the weights
        (docs/privacy/proofs.md, statements 1 and 2). The weights themselves go into the release:
        nothing covers what they were trained on.

    Args:
        network: linear layers, one- or two-dimensional convolutions that preserve the size, ReLU,
            leaky ReLU, ReLU6, softsign, average pools, flattens, and layer norms without weights
            over all values of a record. The first layer is linear or a convolution, the last one
            linear. The network must not have been trained on the sensitive records: the guarantee
            does not cover its weights.
        shape: shape of the network's input for one record: (values,), (channels, length) or
            (channels, height, width).
        levels: largest integer in a record.

    Returns:
        The feature map, for `embed(data, features)`.

    Raises:
        SchemaError: a layer is not one of these, or the layers do not fit together.
    """
    wanted = "a torch.nn.Sequential of its layers"
    require_kind("network", network, nn.Sequential, wanted, refusal=SchemaError)
    wanted = "a tuple of whole numbers, such as (784,) or (1, 28, 28)"
    require_kind("shape", shape, tuple, wanted, refusal=SchemaError)
    shape = tuple(integer("a side", side, wanted, refusal=SchemaError) for side in shape)
    levels = integer("levels", levels, "a whole number, such as 255", refusal=SchemaError)
    if not len(network):
        raise SchemaError("the network has no layers: a linear layer comes last")
    *modules, last = network
    if not isinstance(last, nn.Linear):
        raise SchemaError(f"the network ends in {type(last).__name__}: a linear layer comes last")
    _layer(last)  # refuses one that computes something else
    layers = _layers(modules, shape)
    parameters: list[tuple[NDArray[np.float32], NDArray[np.float32]]] = []
    for module in modules:
        if isinstance(module, nn.Linear | nn.Conv1d | nn.Conv2d):
            grid = HIDDEN_GRID if parameters else FIRST_GRID
            parameters.append(
                (to_grid(_numbers(module.weight), grid), to_grid(_numbers(module.bias), grid))
            )
    return TangentFeatures(
        layers=layers,
        parameters=tuple(parameters),
        readout=to_grid(_numbers(last.weight).sum(axis=0), READOUT_GRID),
        shape=shape,
        outputs=last.out_features,
        levels=levels,
        front=Pixels(math.prod(shape)),
    )


def _numbers(weight: Tensor | None) -> NDArray[np.float64]:
    if weight is None:
        raise SchemaError("a layer without biases: every linear layer and convolution needs them")
    numbers: NDArray[np.float64] = weight.detach().cpu().double().numpy()
    return numbers


def _layers(modules: Sequence[nn.Module], shape: Shape) -> tuple[Layer, ...]:
    """The layers of a network for records of a given shape."""
    found = tuple(_layer(module) for module in modules)
    for module, (_, before, _) in zip(modules, shapes(found, shape), strict=True):
        if isinstance(module, nn.LayerNorm):  # ours takes all values of a record together
            _expect(module, "normalized_shape", before)
    return found


def _layer(module: nn.Module) -> Layer:
    kind = next((kind for kind in _KINDS if isinstance(module, kind)), None)
    if kind is None or type(module).forward is not kind.forward:
        raise SchemaError(f"a layer of the kind {type(module).__name__} is not supported")
    match module:
        case nn.Linear():
            return Linear(module.out_features)
        case nn.Conv1d() | nn.Conv2d():
            size, *_ = module.kernel_size
            _expect(module, "kernel_size", size)
            if module.padding != "same" or size % 2 == 0:
                _expect(module, "padding", size // 2)
            _expect(module, "stride", 1)
            _expect(module, "dilation", 1)
            _expect(module, "groups", 1)
            _expect(module, "padding_mode", "zeros")
            return Convolution(module.out_channels, size)
        case nn.LeakyReLU():
            _expect(module, "negative_slope", LEAKY_SLOPE)
            return Activation("leaky_relu")
        case nn.ReLU6():
            return Activation("relu6")
        case nn.ReLU():
            return Activation("relu")
        case nn.Softsign():
            return Activation("softsign")
        case nn.AvgPool1d() | nn.AvgPool2d():
            side, *_ = np.atleast_1d(module.kernel_size).tolist()
            _expect(module, "kernel_size", side)
            _expect(module, "stride", side)
            _expect(module, "padding", 0)
            _expect(module, "ceil_mode", False)
            if isinstance(module, nn.AvgPool2d):
                _expect(module, "divisor_override", None)
            return AveragePool(side)
        case nn.Flatten():
            _expect(module, "start_dim", 1)
            _expect(module, "end_dim", -1)
            return Flatten()
        case _:
            assert isinstance(module, nn.LayerNorm)
            _expect(module, "elementwise_affine", False)
            _expect(module, "eps", LAYER_NORM_EPSILON)
            return LayerNorm()


def _expect(module: nn.Module, name: str, value: Any) -> None:  # noqa: ANN401
    """Refuse a module whose attribute has another value, or other values for its sides."""
    found = getattr(module, name)
    sides = isinstance(found, tuple) and not isinstance(value, tuple)
    if not (all(each == value for each in found) if sides else found == value):
        raise SchemaError(f"{type(module).__name__} with {name}={found}: only {value} is supported")
