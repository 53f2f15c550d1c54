"""The definition of the features, computed literally: one gradient for each record.

Nothing in the pipeline uses it, because it makes n x d numbers. It is what tests and benchmarks
compare the closed form with, and what a reader can check the closed form against.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from ..common.ntk import OneHiddenLayerNTK


def network_of(feature_map: OneHiddenLayerNTK) -> nn.Sequential:
    """The network as a torch module, in double precision.

    Any output weights will do whose sum over the outputs is the readout; here each is an equal
    part of it.
    """
    hidden = nn.Linear(feature_map.inputs, feature_map.width)
    output = nn.Linear(feature_map.width, feature_map.outputs)
    readout = torch.from_numpy(feature_map.readout).double()
    network = nn.Sequential(hidden, nn.ReLU(), output).double()
    with torch.no_grad():
        hidden.weight.copy_(torch.from_numpy(feature_map.hidden))
        hidden.bias.copy_(torch.from_numpy(feature_map.bias))
        output.weight.copy_(readout.expand_as(output.weight) / feature_map.outputs)
        output.bias.zero_()
    return network


def features(feature_map: OneHiddenLayerNTK, records: Tensor) -> Tensor:
    """Make phi of every record by `vmap(grad)`: normalised gradients of the sum of the outputs.

    Args:
        feature_map: the map.
        records: float64 (n, inputs), values 0..1. Gradients flow back to them.

    Returns:
        float64 (n, d).
    """
    network = network_of(feature_map)
    parameters = {name: weight.detach() for name, weight in network.named_parameters()}

    def total(weights: dict[str, Tensor], record: Tensor) -> Tensor:
        outputs: Tensor = functional_call(network, weights, (record,))
        return outputs.sum()

    gradients: dict[str, Tensor] = vmap(grad(total), in_dims=(None, 0))(parameters, records)
    return _merge(feature_map, *gradients.values())


def features_one_by_one(feature_map: OneHiddenLayerNTK, records: Tensor) -> Iterator[Tensor]:
    """Yield phi of one record after the other, each by a backward pass of its own."""
    network = network_of(feature_map)
    parameters = list(network.parameters())
    for record in records:
        gradients = torch.autograd.grad(network(record).sum(), parameters)
        yield _merge(feature_map, *(gradient[None] for gradient in gradients))[0]


def _merge(
    feature_map: OneHiddenLayerNTK, hidden: Tensor, bias: Tensor, output: Tensor, last: Tensor
) -> Tensor:
    """Divide by the norm, and keep one scaled copy of the gradients that all outputs share."""
    full = torch.cat([gradient.flatten(1) for gradient in (hidden, bias, output, last)], dim=1)
    scale = math.sqrt(feature_map.outputs)
    merged = torch.cat([hidden.flatten(1), bias, output[:, 0] * scale, last[:, :1] * scale], dim=1)
    normalised: Tensor = merged / full.norm(dim=1, keepdim=True)
    return normalised
