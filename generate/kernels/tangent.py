"""Inner products of generated records' tangent features, without writing them out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ...common.features.ntk.backprop import forward_and_back
from ...common.features.ntk.layers import Convolution
from ...common.features.ntk.map import AffineLayer, TangentFeatures
from .base import KERNELS
from .scattering import SmoothFront


@dataclass(frozen=True, eq=False)
class LayerGradient:
    """Gradients of a layer's weights and biases for a batch, as factors or written out.

    Attributes:
        delta: (c, b, outputs) if the gradient of the weights is the outer product delta inputs^T
            and that of the biases delta; (c, b, weights) if it is delta, and inputs are None.
        inputs: (c, b, inputs) or None.
    """

    delta: Tensor
    inputs: Tensor | None

    def squared_norm(self) -> Tensor:
        """(c, b)."""
        squared = self.delta.square().sum(-1)
        return squared if self.inputs is None else squared * (self.inputs.square().sum(-1) + 1)

    def inner(self, matrix: Tensor) -> Tensor:
        """Inner products with the gradient's part of a matrix, (c, weights and biases)."""
        if self.inputs is None:
            return (self.delta @ matrix[:, :, None])[..., 0]
        outputs = self.delta.shape[-1]
        weights, biases = matrix[:, :-outputs], matrix[:, None, -outputs:]
        moved = self.inputs @ weights.view(len(matrix), outputs, -1).mT + biases
        return (self.delta * moved).sum(-1)

    def gram(self) -> Tensor:
        """(c, b, b)."""
        kernel = self.delta @ self.delta.mT
        return kernel if self.inputs is None else kernel * (self.inputs @ self.inputs.mT + 1)

    def numbers(self) -> int:
        """How many numbers are stored."""
        return self.delta.numel() + (0 if self.inputs is None else self.inputs.numel())


@dataclass(frozen=True, eq=False)
class Gradients:
    """The network's gradients for a batch, grouped by class.

    Attributes:
        layers: gradients of the layers with weights, in order.
        last: (c, b, values), the gradient of an output's weights.
        outputs: number of outputs, which all have this gradient.
        norm: (c, b), norm of the whole gradient.
    """

    layers: Sequence[LayerGradient]
    last: Tensor
    outputs: int
    norm: Tensor

    def inner(self, matrix: Tensor) -> Tensor:
        """<matrix[c], phi(x)> for every record x of class c: a Jacobian-vector product.

        Args:
            matrix: (c, d).

        Returns:
            (c, b).
        """
        *parts, readout = matrix.split([*self._sizes(), self.last.shape[-1] + 1], dim=1)
        through_outputs = (self.last @ readout[:, :-1, None])[..., 0] + readout[:, -1:]
        product = math.sqrt(self.outputs) * through_outputs
        for layer, part in zip(self.layers, parts, strict=True):
            product = product + layer.inner(part)
        inner: Tensor = product / self.norm
        return inner

    def gram(self) -> Tensor:
        """<phi(x), phi(x')> for all pairs of records within each class.

        Returns:
            (c, b, b).
        """
        kernel = self.outputs * (self.last @ self.last.mT + 1)
        for layer in self.layers:
            kernel = kernel + layer.gram()
        return kernel / (self.norm[:, :, None] * self.norm[:, None, :])

    def numbers(self) -> int:
        """How many numbers are stored."""
        of_layers = sum(layer.numbers() for layer in self.layers)
        return of_layers + self.last.numel() + self.norm.numel()

    def _sizes(self) -> list[int]:
        return [
            layer.delta.shape[-1] * (1 if layer.inputs is None else layer.inputs.shape[-1] + 1)
            for layer in self.layers
        ]


@KERNELS.add(TangentFeatures)
class TangentKernel:
    """`TangentFeatures` in floating point, differentiable with respect to the records.

    phi(x) for a record x of class c is compared with column c of a matrix, and with phi of the
    other records of class c. Both need only products of the gradient's factors (for a convolution,
    of the gradient itself, which is short). So the cost is that of a few passes through the
    network, and no array of size b x d is formed.
    """

    def __init__(
        self,
        feature_map: TangentFeatures,
        device: torch.device,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.feature_map = feature_map
        self._front = SmoothFront(feature_map.front, device, dtype)
        self._affine = [SmoothAffine(layer, device, dtype) for layer in feature_map.affine]
        self._readout = torch.as_tensor(feature_map.readout, device=device, dtype=dtype)

    def features(self, records: Tensor) -> Gradients:
        """Pass a batch through the network.

        Args:
            records: (c, b, record size), values 0..1.
        """
        groups = records.shape[:2]
        inputs = self._front(records).reshape(-1, *self.feature_map.shape)
        found = forward_and_back(
            self.feature_map.layers,
            self._affine,
            self._readout,
            inputs,
            lambda values: values.sum(-1),
        )
        layers = []
        for affine, values, delta in zip(self._affine, found.inputs, found.deltas, strict=True):
            left, right = affine.gradient(values, delta)
            right = None if right is None else right.view(*groups, -1)
            layers.append(LayerGradient(left.view(*groups, -1), right))
        last = found.last.view(*groups, -1)
        squared = self.feature_map.outputs * (last.square().sum(-1) + 1)
        for layer in layers:
            squared = squared + layer.squared_norm()
        return Gradients(layers, last, self.feature_map.outputs, squared.sqrt())


class SmoothAffine:
    """A layer with weights, in floating point."""

    def __init__(self, layer: AffineLayer, device: torch.device, dtype: torch.dtype) -> None:
        self._weight = torch.as_tensor(layer.weight, device=device, dtype=dtype)
        self._bias = torch.as_tensor(layer.bias, device=device, dtype=dtype)
        self._is_convolution = isinstance(layer.kind, Convolution)
        if self._is_convolution:
            # A one-dimensional kernel becomes two-dimensional, with first dimension 1.
            self._weight = self._weight.view(*layer.weight.shape[:2], -1, layer.weight.shape[-1])
        self._padding = tuple(side // 2 for side in self._weight.shape[2:])

    def forward(self, values: Tensor) -> Tensor:
        """Map (b, *shape before) to (b, *shape after)."""
        if not self._is_convolution:
            return torch.nn.functional.linear(values, self._weight, self._bias)
        made = torch.nn.functional.conv2d(
            _as_image(values), self._weight, self._bias, padding=self._padding
        )
        return made.view(len(values), -1, *values.shape[2:])

    def backward(self, delta: Tensor) -> Tensor:
        """Map gradients (b, *shape after) to (b, *shape before)."""
        if not self._is_convolution:
            return delta @ self._weight
        made = torch.nn.functional.conv_transpose2d(
            _as_image(delta), self._weight, padding=self._padding
        )
        return made.view(len(delta), -1, *delta.shape[2:])

    def gradient(self, values: Tensor, delta: Tensor) -> tuple[Tensor, Tensor | None]:
        """Gradients of weights and biases for every record, as in `LayerGradient`."""
        if not self._is_convolution:
            return delta, values
        patches = torch.nn.functional.unfold(
            _as_image(values), tuple(self._weight.shape[2:]), padding=self._padding
        )
        deltas = delta.flatten(2)
        return torch.cat([(deltas @ patches.mT).flatten(1), deltas.sum(-1)], dim=1), None


def _as_image(values: Tensor) -> Tensor:
    return values.reshape(*values.shape[:2], -1, values.shape[-1])
