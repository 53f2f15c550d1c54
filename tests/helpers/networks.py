"""Networks of every kind that the engine knows, small enough for oracles."""

from __future__ import annotations

import math

from dpntk.common.features.ntk.architectures import layers_of
from dpntk.common.features.ntk.layers import (
    Activation,
    AveragePool,
    Convolution,
    Flatten,
    Layer,
    LayerNorm,
    Linear,
    Shape,
)
from dpntk.common.features.ntk.map import TangentFeatures
from dpntk.common.features.ntk.scattering import Front, Pixels, Scattering
from tests.conftest import CLASSES, SIDE

VALUES = SIDE * SIDE
VECTOR: Shape = (VALUES,)
IMAGE: Shape = (1, SIDE, SIDE)
STRIP: Shape = (1, VALUES)
COLOURS: Shape = (3, SIDE, SIDE)


def draw(
    layers: tuple[Layer, ...],
    shape: Shape = VECTOR,
    front: Front | None = None,
    seed: int = 4,
) -> TangentFeatures:
    return TangentFeatures.draw(
        front or Pixels(math.prod(shape)),
        layers,
        outputs=CLASSES,
        levels=255,
        seed=seed,
        shape=shape,
    )


def paper(arch: str, shape: Shape, *widths: int, activation: str = "relu") -> TangentFeatures:
    return draw(layers_of(arch, widths, shape, activation), shape)


SCATTERING = Scattering.standard(SIDE)
OF_COLOURS = Scattering.standard(SIDE, 3)

NETWORKS = {
    "fc_1l": paper("fc_1l", VECTOR, 9),
    "fc_1l behind a front": draw(
        (Linear(7), Activation("relu")), (SCATTERING.outputs,), SCATTERING
    ),
    "fc_1l behind a front, in colour": draw(
        (Linear(5), Activation("relu")), (OF_COLOURS.outputs,), OF_COLOURS
    ),
    "layer norm behind fc_1l": paper("fc_1l_norm", VECTOR, 9),
    "fc_2l": paper("fc_2l", VECTOR, 9, 6),
    "fc_2l leaky": paper("fc_2l", VECTOR, 9, 6, activation="leaky_relu"),
    "fc_2l relu6": paper("fc_2l", VECTOR, 9, 6, activation="relu6"),
    "fc_2l softsign": paper("fc_2l", VECTOR, 9, 6, activation="softsign"),
    "cnn_1l": paper("cnn_1l", IMAGE, 3),
    "cnn_2l": paper("cnn_2l", IMAGE, 3, 4),
    "cnn_1l in colour": paper("cnn_1l", COLOURS, 3),
    "cnn_2l in colour": paper("cnn_2l", COLOURS, 3, 4),
    "cnn_1l on vectors": paper("cnn_1l", STRIP, 3),
    "cnn_2l on vectors": paper("cnn_2l", STRIP, 3, 5),
    "pooled and deep": draw(
        (
            Convolution(2, 5),
            LayerNorm(),
            Activation("softsign"),
            AveragePool(3),  # leaves two rows and columns out
            Convolution(3, 3),
            Activation("leaky_relu"),
            AveragePool(2),
            Flatten(),
            Linear(6),
            Activation("relu6"),
            Linear(5),
            Activation("relu"),
        ),
        IMAGE,
    ),
    "pooled strip": draw((Convolution(2, 3), Activation("relu"), AveragePool(5), Flatten()), STRIP),
    "no bend at all": draw((Linear(4),)),
}
