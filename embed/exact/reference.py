"""The definition of the tangent features, computed literally: one gradient per record.

The pipeline does not use it, because it makes n x d numbers. Tests and benchmarks compare the
engine with it, and so can a reader.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from ...common.features.ntk.layers import (
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
from ...common.features.ntk.map import TangentFeatures


def network_of(feature_map: TangentFeatures) -> nn.Sequential:
    """The network as a torch module, in double precision, on vectors (b, inputs).

    Any output weights will do if they sum to the readout over the outputs; here each output has an
    equal part of it.
    """
    modules: list[nn.Module] = [nn.Unflatten(1, feature_map.shape)]
    modules += [
        _module(layer, before) for layer, before, _ in shapes(feature_map.layers, feature_map.shape)
    ]
    output = nn.Linear(len(feature_map.readout), feature_map.outputs)
    network = nn.Sequential(*modules, output).double()
    with_weights = [m for m in modules if isinstance(m, nn.Linear | nn.Conv1d | nn.Conv2d)]
    with torch.no_grad():
        for module, (weight, bias) in zip(with_weights, feature_map.parameters, strict=True):
            module.weight.copy_(torch.from_numpy(weight))
            assert module.bias is not None
            module.bias.copy_(torch.from_numpy(bias))
        readout = torch.from_numpy(feature_map.readout).double()
        output.weight.copy_(readout.expand_as(output.weight) / feature_map.outputs)
        output.bias.zero_()
    return network


def _module(layer: Layer, shape: Shape) -> nn.Module:
    match layer:
        case Linear(outputs):
            return nn.Linear(shape[0], outputs)
        case Convolution(channels, size):
            kind = nn.Conv1d if len(shape) == 2 else nn.Conv2d
            return kind(shape[0], channels, size, padding=size // 2)
        case Activation(function):
            return {
                "relu": nn.ReLU(),
                "leaky_relu": nn.LeakyReLU(LEAKY_SLOPE),
                "relu6": nn.ReLU6(),
                "softsign": nn.Softsign(),
            }[function]
        case AveragePool(size):
            return nn.AvgPool1d(size) if len(shape) == 2 else nn.AvgPool2d(size)
        case Flatten():
            return nn.Flatten()
        case LayerNorm():
            return nn.LayerNorm(shape, eps=LAYER_NORM_EPSILON, elementwise_affine=False)


def features(feature_map: TangentFeatures, records: Tensor) -> Tensor:
    """Compute phi of every record by `vmap(grad)`: normalised gradients of the sum of outputs.

    Args:
        feature_map: the map.
        records: float64 (n, inputs), values 0..1: the network's inputs. Gradients flow back to
            them.

    Returns:
        float64 (n, d).
    """
    network = network_of(feature_map)
    parameters = {name: weight.detach() for name, weight in network.named_parameters()}

    def total(weights: dict[str, Tensor], record: Tensor) -> Tensor:
        outputs: Tensor = functional_call(network, weights, (record[None],))
        return outputs.sum()

    gradients: dict[str, Tensor] = vmap(grad(total), in_dims=(None, 0))(parameters, records)
    return _merge(feature_map, list(gradients.values()))


def features_one_by_one(feature_map: TangentFeatures, records: Tensor) -> Iterator[Tensor]:
    """Yield phi of one record after another, each by its own backward pass."""
    network = network_of(feature_map)
    parameters = list(network.parameters())
    for record in records:
        gradients = torch.autograd.grad(network(record[None]).sum(), parameters)
        yield _merge(feature_map, [gradient[None] for gradient in gradients])[0]


def _merge(feature_map: TangentFeatures, gradients: Sequence[Tensor]) -> Tensor:
    """Divide by the norm, and keep one scaled copy of what all outputs share."""
    *hidden, output, last = gradients
    full = torch.cat([gradient.flatten(1) for gradient in gradients], dim=1)
    scale = math.sqrt(feature_map.outputs)
    shared = [output[:, 0] * scale, last[:, :1] * scale]
    merged = torch.cat([*(gradient.flatten(1) for gradient in hidden), *shared], dim=1)
    normalised: Tensor = merged / full.norm(dim=1, keepdim=True)
    return normalised
