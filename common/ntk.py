"""The normalised empirical neural tangent kernel of a network with one hidden layer.

The network is x -> h = A x + b, a = max(h, 0), f_k = <W_k, a> + c_k for k = 1..K, and
phi(x) = grad_theta sum_k f_k(x) / ||grad_theta sum_k f_k(x)|| (Yang et al., arXiv 2303.01687,
section 3, with the sum of the outputs as the scalar whose gradient is taken).

In closed form, with the readout v = sum_k W_k and delta = v * [h > 0], the gradient is

    hidden weights   delta x^T          (width x inputs)
    hidden biases    delta              (width)
    output weights   sqrt(K) a          (width)
    output biases    sqrt(K)            (1)

because the gradient of each of the K outputs' weights is the same vector a: one copy scaled by
sqrt(K) gives the same kernel in fewer dimensions. Only v is needed of the output weights.

Weights live on a fixed-point grid, so that sums of weights times integer records are exact in
float64 whatever the order of summation: see `dpntk.embed.fixed_point` for why that matters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from .errors import SchemaError
from .feature_map import weights_digest
from .front import Front, front_from_spec

HIDDEN_GRID: Final = 2.0**-24
READOUT_GRID: Final = 2.0**-20
EXACT: Final = 2.0**53
"""Integers up to here are exact in float64."""


@dataclass(frozen=True, eq=False)
class OneHiddenLayerNTK:
    """The feature map `fc_1l`.

    Attributes:
        hidden: A, float32 (width, inputs), multiples of 2^-24.
        bias: b, float32 (width,), multiples of 2^-24.
        readout: v, float32 (width,), multiples of 2^-20.
        outputs: K, the number of network outputs.
        levels: records hold integers 0..levels, which stand for the values 0..1.
        front: what stands before the network; its outputs are the x above.

    Guarantee:
        norm_bound: phi is a vector divided by its own norm, which is never 0 because the output
        bias contributes sqrt(K). nonnegative: the inner product of two gradients is
        <delta, delta'> (<x, x'> + 1) + K (<a, a'> + 1); delta and delta' have the signs of v
        wherever they are not 0, records and activations are not negative, so every term is >= 0.
        (docs/privacy.md, statements 1 and 2.)
    """

    hidden: NDArray[np.float32]
    bias: NDArray[np.float32]
    readout: NDArray[np.float32]
    outputs: int
    levels: int
    front: Front

    def __post_init__(self) -> None:
        width, inputs = self.hidden.shape
        if self.bias.shape != (width,) or self.readout.shape != (width,):
            raise SchemaError("feature map: the weights' shapes disagree")
        if self.front.outputs != inputs:
            raise SchemaError("feature map: the front does not fit the network behind it")
        if width < 1 or inputs < 1 or self.outputs < 1 or self.levels < 1:
            raise SchemaError("feature map: width, inputs, outputs and levels start at 1")
        for name, weight in self.weights().items():
            if weight.dtype != np.float32 or not np.isfinite(weight).all():
                raise SchemaError(f"feature map: {name} must be finite float32")
        _require_grid("hidden", self.hidden, HIDDEN_GRID)
        _require_grid("bias", self.bias, HIDDEN_GRID)
        _require_grid("readout", self.readout, READOUT_GRID)
        # h times levels, and ||delta||^2, must be exact in float64 in any order of summation.
        reach = np.abs(self.hidden).sum(axis=1, dtype=np.float64) + np.abs(self.bias)
        if reach.max() * self.levels / HIDDEN_GRID >= EXACT:
            raise SchemaError("feature map: hidden weights too large to be summed exactly")
        if np.square(self.readout, dtype=np.float64).sum() / READOUT_GRID**2 >= EXACT:
            raise SchemaError("feature map: readout too large to be summed exactly")

    @classmethod
    def draw(
        cls, front: Front, *, width: int, outputs: int, levels: int, seed: int
    ) -> OneHiddenLayerNTK:
        """Draw the weights at random, without looking at any record.

        Every weight and bias is uniform on +-1/sqrt(fan-in), as `torch.nn.Linear` does and the
        paper's code with it, then rounded to the grid.

        Args:
            front: what stands before the network.
            width: number of hidden units.
            outputs: number of network outputs.
            levels: largest integer in a record.
            seed: of the weights alone; privacy noise has no seed anywhere.
        """
        generator, inputs = np.random.default_rng(seed), front.outputs
        hidden = generator.uniform(-1.0, 1.0, (width, inputs)) / math.sqrt(inputs)
        bias = generator.uniform(-1.0, 1.0, width) / math.sqrt(inputs)
        readout = generator.uniform(-1.0, 1.0, (outputs, width)).sum(axis=0) / math.sqrt(width)
        return cls(
            hidden=_to_grid(hidden, HIDDEN_GRID),
            bias=_to_grid(bias, HIDDEN_GRID),
            readout=_to_grid(readout, READOUT_GRID),
            outputs=outputs,
            levels=levels,
            front=front,
        )

    @property
    def width(self) -> int:
        """Number of hidden units."""
        return int(self.hidden.shape[0])

    @property
    def inputs(self) -> int:
        """Number of values that the network gets: those of a record, and what the front adds."""
        return int(self.hidden.shape[1])

    @property
    def record_size(self) -> int:
        """Number of values in a record."""
        return self.front.record_size

    @property
    def dimension(self) -> int:
        """D = width (inputs + 2) + 1."""
        return self.width * (self.inputs + 2) + 1

    @property
    def blocks(self) -> dict[str, slice]:
        """Where each parameter's gradient lies in phi(x)."""
        edges = np.cumsum([0, self.width * self.inputs, self.width, self.width, 1]).tolist()
        names = ("hidden", "bias", "readout", "output_bias")
        return {
            name: slice(start, stop)
            for name, start, stop in zip(names, edges[:-1], edges[1:], strict=True)
        }

    @property
    def norm_bound(self) -> float:
        """1: see the class docstring."""
        return 1.0

    @property
    def nonnegative(self) -> bool:
        """True: see the class docstring."""
        return True

    def spec(self) -> dict[str, Any]:
        """All that is needed beside `weights` to rebuild the map, as plain JSON."""
        return {
            "features": "ntk",
            "arch": "fc_1l",
            "width": self.width,
            "inputs": self.inputs,
            "front": self.front.spec(),
            "outputs": self.outputs,
            "levels": self.levels,
            "activation": "relu",
        }

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """The drawn weights by name."""
        own = {"hidden": self.hidden, "bias": self.bias, "readout": self.readout}
        return {**own, **self.front.weights()}

    def digest(self) -> str:
        """Of the weights: see `weights_digest`."""
        return weights_digest(self)

    @classmethod
    def from_spec(
        cls, spec: Mapping[str, Any], weights: Mapping[str, NDArray[Any]]
    ) -> OneHiddenLayerNTK:
        """Rebuild a map from `spec()` and `weights()`.

        Raises:
            SchemaError: they do not describe a map that this dpntk knows, or contradict each other.
        """
        own = {"hidden", "bias", "readout"}
        if not own <= set(weights):
            raise SchemaError("feature map: expected the weights hidden, bias and readout")
        if weights["hidden"].ndim != 2:
            raise SchemaError("feature map: hidden must be a matrix")
        front_spec = spec.get("front")
        if not isinstance(front_spec, Mapping):
            raise SchemaError("feature map: it does not say what stands before the network")
        front = front_from_spec(
            front_spec,
            {name: weight for name, weight in weights.items() if name not in own},
            weights["hidden"].shape[1],
        )
        numbers = {}
        for name in ("outputs", "levels"):
            value = spec.get(name)
            if not isinstance(value, int) or isinstance(value, bool):
                raise SchemaError(f"feature map: {name} must be an integer")
            numbers[name] = value
        rebuilt = cls(
            hidden=weights["hidden"],
            bias=weights["bias"],
            readout=weights["readout"],
            front=front,
            **numbers,
        )
        if rebuilt.spec() != dict(spec):
            raise SchemaError("feature map: not one that this dpntk knows")
        return rebuilt


def _to_grid(values: NDArray[np.float64], grid: float) -> NDArray[np.float32]:
    return (np.rint(values / grid) * grid).astype(np.float32)


def _require_grid(name: str, values: NDArray[np.float32], grid: float) -> None:
    scaled = values.astype(np.float64) / grid
    if not np.array_equal(scaled, np.rint(scaled)):
        raise SchemaError(f"feature map: {name} is not on its grid of {grid}")
