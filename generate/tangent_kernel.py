"""Inner products of NTK features, for generated records, without the features themselves."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..common.ntk import OneHiddenLayerNTK
from .front import SmoothFront


@dataclass(frozen=True, eq=False)
class Gradients:
    """The network's gradients at a batch, as the factors that they are made of.

    Attributes:
        feature_map: of the network.
        inputs: (c, b, inputs), values 0..1: what the network got.
        delta: (c, b, width), gradient with respect to the hidden pre-activations.
        activation: (c, b, width).
        norm: (c, b), norm of the whole gradient.
    """

    feature_map: OneHiddenLayerNTK
    inputs: Tensor
    delta: Tensor
    activation: Tensor
    norm: Tensor

    def inner(self, matrix: Tensor) -> Tensor:
        """<matrix[c], phi(x)> for every record x of class c: a Jacobian-vector product.

        Args:
            matrix: (c, d).

        Returns:
            (c, b).
        """
        blocks = self.feature_map.blocks
        hidden = matrix[:, blocks["hidden"]].view(
            -1, self.feature_map.width, self.feature_map.inputs
        )
        bias, readout = matrix[:, None, blocks["bias"]], matrix[:, blocks["readout"], None]
        through_hidden = self.inputs @ hidden.transpose(1, 2) + bias
        product = (self.delta * through_hidden).sum(-1)
        through_outputs = (self.activation @ readout)[..., 0] + matrix[:, blocks["output_bias"]]
        product = product + math.sqrt(self.feature_map.outputs) * through_outputs
        inner: Tensor = product / self.norm
        return inner

    def gram(self) -> Tensor:
        """<phi(x), phi(x')> for all pairs of records within each class.

        Returns:
            (c, b, b).
        """
        kernel = (self.delta @ self.delta.mT) * (self.inputs @ self.inputs.mT + 1)
        kernel = kernel + self.feature_map.outputs * (self.activation @ self.activation.mT + 1)
        return kernel / (self.norm[:, :, None] * self.norm[:, None, :])


class TangentKernel:
    """`OneHiddenLayerNTK` in floating point, differentiable with respect to the records.

    phi(x) for the record x of class c is compared with column c of a matrix, and with phi of the
    other records of class c. Both need only products of the factors of the gradient: the cost is
    that of a few passes through the network, and nothing of size b x d appears.
    """

    def __init__(
        self,
        feature_map: OneHiddenLayerNTK,
        device: torch.device,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.feature_map = feature_map
        self._front = SmoothFront(feature_map.front, device, dtype)
        self._hidden = torch.as_tensor(feature_map.hidden, device=device, dtype=dtype)
        self._bias = torch.as_tensor(feature_map.bias, device=device, dtype=dtype)
        self._readout = torch.as_tensor(feature_map.readout, device=device, dtype=dtype)

    def features(self, records: Tensor) -> Gradients:
        """Pass a batch through the network.

        Args:
            records: (c, b, record size), values 0..1.
        """
        inputs = self._front(records)
        before = inputs @ self._hidden.T + self._bias
        activation = before.relu()
        # The ReLU's slope is constant almost everywhere: no gradient flows through the mask.
        delta = (before > 0).to(before.dtype) * self._readout
        squared = delta.square().sum(-1) * (inputs.square().sum(-1) + 1)
        squared = squared + self.feature_map.outputs * (activation.square().sum(-1) + 1)
        return Gradients(self.feature_map, inputs, delta, activation, squared.sqrt())
