"""Draw a feature map for records of a schema, without looking at any record."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from ..common.architectures import layers_of, read_widths, takes_vectors
from ..common.errors import SchemaError
from ..common.feature_map import FeatureMap
from ..common.feature_maps import FEATURES
from ..common.front import Pixels, make_front
from ..common.hermite import HermiteFeatures
from ..common.layers import Shape
from ..common.ntk import TangentFeatures
from ..common.rff import RandomFourierFeatures
from ..common.schema import ImageSchema

DEFAULT_ARCH: Final = "fc_1l"
DEFAULT_ACTIVATION: Final = "relu"
DEFAULT_FREQUENCIES: Final = 5000
_VALUES_PER_SQUARED_LENGTH: Final = 7.5
"""DP-MERF's squared length scale for MNIST is 105, a 7.5th of the number of pixels."""


@dataclass(frozen=True)
class MapOptions:
    """Which feature map, by the options of `embed`; None where nothing was said.

    Attributes:
        features: "ntk", "rff" or "hermite".
        arch: of "ntk": the network, one of `ARCHITECTURES`; "fc_1l" if None.
        width: of "ntk": of its hidden layers, 400 or "3000_200"; as said there if None.
        activation: of "ntk": one of `ACTIVATIONS`; "relu" if None.
        front: of "ntk": what stands before the network, one of `FRONTS`. If None, "scattering"
            before networks of linear layers, "pixels" before convolutions.
        frequencies: of "rff": how many; the dimension is twice that.
        length_scale: of "rff": of its kernel, for values 0..1; sqrt(record size / 7.5) if None.
    """

    features: str = "ntk"
    arch: str | None = None
    width: str | int | None = None
    activation: str | None = None
    front: str | None = None
    frequencies: int = DEFAULT_FREQUENCIES
    length_scale: float | None = None

    def draw(self, schema: ImageSchema, seed: int) -> FeatureMap:
        """Draw the map.

        Args:
            schema: of the records.
            seed: of the map's random weights. Not of any noise: that has no seed.

        Raises:
            SchemaError: there is no such map.
        """
        if self.features == "ntk":
            return self._network(schema, seed)
        self.refuse_network(f"it goes with --features ntk, not {self.features}")
        if self.features == "hermite":
            return HermiteFeatures.draw(schema.inputs, levels=schema.levels, seed=seed)
        if self.features == "rff":
            usual = math.sqrt(schema.inputs / _VALUES_PER_SQUARED_LENGTH)
            return RandomFourierFeatures.draw(
                schema.inputs,
                frequencies=self.frequencies,
                length_scale=self.length_scale or usual,
                levels=schema.levels,
                seed=seed,
            )
        if self.features == "perceptual":
            raise SchemaError(
                "--features perceptual: a module's features are not drawn: embed first"
            )
        raise SchemaError(f"--features {self.features}: known are {', '.join(FEATURES)}")

    def refuse_network(self, why: str) -> None:
        """Refuse options of a network.

        Raises:
            SchemaError: there is one.
        """
        for name in ("arch", "width", "activation", "front"):
            if getattr(self, name) is not None:
                raise SchemaError(f"--{name} {getattr(self, name)}: {why}")

    def _network(self, schema: ImageSchema, seed: int) -> TangentFeatures:
        arch = self.arch or DEFAULT_ARCH
        widths = read_widths("" if self.width is None else str(self.width), arch)
        front = make_front(self.front or default_front(arch), schema.side)
        shape: Shape = (front.outputs,)
        if not takes_vectors(arch):
            if not isinstance(front, Pixels):
                raise SchemaError(
                    f"--front {self.front}: --arch {arch} takes the pixels themselves"
                )
            shape = (1, schema.side, schema.side)
        return TangentFeatures.draw(
            front,
            layers_of(arch, widths, shape, self.activation or DEFAULT_ACTIVATION),
            outputs=len(schema.classes),
            levels=schema.levels,
            seed=seed,
            shape=shape,
        )


def default_front(arch: str) -> str:
    """What stands before a network if nothing is said."""
    return "scattering" if takes_vectors(arch) else "pixels"
