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
    """The factors that the network's gradients at a batch are made of, grouped by class.

    Attributes:
        records: (c, b, inputs), values 0..1.
        delta: (c, b, width), gradient with respect to the hidden pre-activations.
        activation: (c, b, width).
        norm: (c, b), norm of the whole gradient.
    """

    records: Tensor
    delta: Tensor
    activation: Tensor
    norm: Tensor


class NTKKernel:
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

    def gradients(self, records: Tensor) -> Gradients:
        """Pass a batch through the network.

        Args:
            records: (c, b, record size), values 0..1.
        """
        records = self._front(records)
        before = records @ self._hidden.T + self._bias
        activation = before.relu()
        # The ReLU's slope is constant almost everywhere: no gradient flows through the mask.
        delta = (before > 0).to(before.dtype) * self._readout
        squared = delta.square().sum(-1) * (records.square().sum(-1) + 1)
        squared = squared + self.feature_map.outputs * (activation.square().sum(-1) + 1)
        return Gradients(records, delta, activation, squared.sqrt())

    def inner(self, gradients: Gradients, matrix: Tensor) -> Tensor:
        """<matrix[c], phi(x)> for every record x of class c: a Jacobian-vector product.

        Args:
            gradients: of the batch.
            matrix: (c, d).

        Returns:
            (c, b).
        """
        blocks = self.feature_map.blocks
        hidden = matrix[:, blocks["hidden"]].view(-1, *self._hidden.shape)
        bias, readout = matrix[:, None, blocks["bias"]], matrix[:, blocks["readout"], None]
        through_hidden = gradients.records @ hidden.transpose(1, 2) + bias
        product = (gradients.delta * through_hidden).sum(-1)
        through_outputs = (gradients.activation @ readout)[..., 0] + matrix[
            :, blocks["output_bias"]
        ]
        product = product + math.sqrt(self.feature_map.outputs) * through_outputs
        inner: Tensor = product / gradients.norm
        return inner

    def gram(self, gradients: Gradients) -> Tensor:
        """<phi(x), phi(x')> for all pairs of records within each class.

        Returns:
            (c, b, b).
        """
        records, delta, activation = gradients.records, gradients.delta, gradients.activation
        kernel = (delta @ delta.mT) * (records @ records.mT + 1)
        kernel = kernel + self.feature_map.outputs * (activation @ activation.mT + 1)
        return kernel / (gradients.norm[:, :, None] * gradients.norm[:, None, :])
