"""A feature map made from the user's own torch network."""

from __future__ import annotations

import math
from typing import Any

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
)
from ..common.features.ntk.map import (
    FIRST_GRID,
    HIDDEN_GRID,
    READOUT_GRID,
    TangentFeatures,
    to_grid,
)
from ..common.features.ntk.scattering import Front, Pixels
from ..common.schema.image import PIXEL_LEVELS


def tangent_features_of(
    network: nn.Sequential,
    shape: Shape,
    *,
    front: Front | None = None,
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
            leaky ReLU, ReLU6, softsign, average pools, flattens and layer norms without weights.
            The first layer is linear or a convolution, the last one linear. The network must not
            have been trained on the sensitive records: the guarantee does not cover its weights.
        shape: shape of the network's input for one record: (values,), (channels, length) or
            (channels, height, width).
        front: fixed transform before the network; none if None.
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
    front = Pixels(math.prod(shape)) if front is None else front
    require_kind("front", front, Front, "what make_front makes", refusal=SchemaError)
    levels = integer("levels", levels, "a whole number, such as 255", refusal=SchemaError)
    if not len(network):
        raise SchemaError("the network has no layers: a linear layer comes last")
    *modules, last = network
    if not isinstance(last, nn.Linear):
        raise SchemaError(f"the network ends in {type(last).__name__}: a linear layer comes last")
    layers = tuple(_layer(module) for module in modules)
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
        front=front,
    )


def _numbers(weight: Tensor | None) -> NDArray[np.float64]:
    if weight is None:
        raise SchemaError("a layer without biases: every linear layer and convolution needs them")
    numbers: NDArray[np.float64] = weight.detach().cpu().double().numpy()
    return numbers


def _layer(module: nn.Module) -> Layer:
    match module:
        case nn.Linear():
            return Linear(module.out_features)
        case nn.Conv1d() | nn.Conv2d():
            (size, *others) = module.kernel_size
            _expect(module, "kernel_size", (size, *[size] * len(others)))
            _expect(module, "padding", tuple(side // 2 for side in module.kernel_size))
            _expect(module, "stride", tuple(1 for _ in module.kernel_size))
            _expect(module, "dilation", tuple(1 for _ in module.kernel_size))
            _expect(module, "groups", 1)
            _expect(module, "padding_mode", "zeros")
            return Convolution(module.out_channels, size)
        case nn.ReLU():
            return Activation("relu")
        case nn.LeakyReLU():
            _expect(module, "negative_slope", LEAKY_SLOPE)
            return Activation("leaky_relu")
        case nn.ReLU6():
            return Activation("relu6")
        case nn.Softsign():
            return Activation("softsign")
        case nn.AvgPool1d() | nn.AvgPool2d():
            side, *more = np.atleast_1d(module.kernel_size).tolist()
            _expect(module, "kernel_size", module.kernel_size if {side} >= set(more) else side)
            _expect(module, "stride", module.kernel_size)
            _expect(module, "padding", (0,) if isinstance(module, nn.AvgPool1d) else 0)
            _expect(module, "ceil_mode", False)
            return AveragePool(side)
        case nn.Flatten():
            return Flatten()
        case nn.LayerNorm():
            _expect(module, "elementwise_affine", False)
            _expect(module, "eps", LAYER_NORM_EPSILON)
            return LayerNorm()
    raise SchemaError(f"a layer of the kind {type(module).__name__} is not supported")


def _expect(module: nn.Module, name: str, value: Any) -> None:  # noqa: ANN401
    found = getattr(module, name)
    if found != value:
        raise SchemaError(f"{type(module).__name__} with {name}={found}: only {value} is supported")
