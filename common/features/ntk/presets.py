"""Table 5 of the DP-NTK paper (Yang et al., arXiv 2303.01687): its settings for each data set.

A row has the network that embeds records, and the training settings of the generator. They were
tuned on the records of those sets: no guarantee covers what the choice of a preset reveals about
them. For any other data they are public.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ...display.text import counted
from ...schema import Schema
from ...schema.image import COLOUR, GREY, ImageSchema
from ..base import FeatureMap
from .architectures import layers_of, read_widths
from .map import TangentFeatures
from .scattering import Pixels

_ACTIVATION: Final = "relu"
_IN_THEIR_CODE: Final = {"fc_1l": "fc_1l_norm"}
"""Maps a name in the paper's table to dpntk's name for the network in the authors' code, if it
differs: that code has a layer norm after the ReLU, which the paper does not mention."""


@dataclass(frozen=True)
class ImageShape:
    """The form of images.

    Attributes:
        side: height and width in pixels.
        channels: 1 or 3.
        classes: the number of classes; 1 if records are generated without labels.
    """

    side: int
    channels: int
    classes: int

    def __str__(self) -> str:
        shade = "grey images" if self.channels == GREY else "images in colour"
        return f"{shade}, {self.side}x{self.side} pixels, {_classes(self.classes)}"


@dataclass(frozen=True)
class TableShape:
    """The form of a table.

    Attributes:
        columns: the number of columns beside the label.
        classes: the number of the label's classes.
    """

    columns: int
    classes: int

    def __str__(self) -> str:
        return f"a table of {counted(self.columns, 'column')}, {_classes(self.classes)}"


@dataclass(frozen=True)
class Preset:
    """A row of the paper's table.

    Attributes:
        printed: the network's name in the table.
        width: the widths of its hidden layers.
        shape: the form of the data set.
        steps: training steps of the generator.
        code: length of its latent code.
        batch: records in a step.
    """

    printed: str
    width: str
    shape: ImageShape | TableShape
    steps: int
    code: int
    batch: int

    @property
    def arch(self) -> str:
        """The network, one of `ARCHITECTURES`, with ReLU and without a front."""
        return _IN_THEIR_CODE.get(self.printed, self.printed)

    def made(self, feature_map: FeatureMap) -> bool:
        """Whether a feature map is that of this preset, apart from its random weights."""
        if not isinstance(feature_map, TangentFeatures):
            return False
        if not isinstance(feature_map.front, Pixels):
            return False
        widths = read_widths(self.width, self.arch)
        own = layers_of(self.arch, widths, feature_map.shape, _ACTIVATION)
        return tuple(feature_map.layers) == own


_DIGITS: Final = ImageShape(28, GREY, 10)
_SMALL: Final = ImageShape(32, COLOUR, 10)
PRESETS: Final[dict[str, Preset]] = {
    "mnist": Preset("fc_1l", "800", _DIGITS, 2000, 5, 5000),
    "fashion-mnist": Preset("fc_1l", "800", _DIGITS, 2000, 5, 5000),
    "celeba": Preset("fc_2l", "3000_200", ImageShape(32, COLOUR, 1), 20000, 141, 1000),
    "cifar-10": Preset("fc_2l", "3000_200", _SMALL, 40000, 201, 1000),
    "cifar-10-no-noise": Preset("fc_2l", "800_1000", _SMALL, 20000, 31, 200),
    "adult": Preset("cnn_2l", "30_200", TableShape(14, 2), 50, 11, 200),
    "census": Preset("cnn_2l", "30_20", TableShape(40, 2), 2000, 21, 200),
    "cervical": Preset("cnn_2l", "800_1000", TableShape(35, 2), 500, 11, 200),
    "credit": Preset("fc_1l", "1500", TableShape(29, 2), 500, 11, 200),
    "epileptic": Preset("cnn_2l", "50_20", TableShape(178, 2), 2000, 101, 200),
    "isolet": Preset("cnn_2l", "10_20", TableShape(617, 2), 1000, 21, 200),
    "covtype": Preset("cnn_2l", "100_20", TableShape(54, 7), 1000, 101, 200),
    "intrusion": Preset("fc_2l", "30_1000", TableShape(40, 5), 1000, 21, 200),
}
LEARNING_RATE: Final = 0.01
"""The learning rate of all presets."""


def shape_of(schema: Schema) -> ImageShape | TableShape:
    """The form of a schema's records."""
    classes = len(schema.classes)
    if isinstance(schema, ImageSchema):
        return ImageShape(schema.side, schema.channels, classes)
    return TableShape(len(schema.features), classes)


def fitting(schema: Schema) -> tuple[str, ...]:
    """The names of the presets for records of a schema's form."""
    shape = shape_of(schema)
    return tuple(name for name, preset in PRESETS.items() if preset.shape == shape)


def presets_of(feature_map: FeatureMap, schema: Schema) -> tuple[str, ...]:
    """The names of the presets that may have made a feature map: several if they are alike."""
    return tuple(name for name in fitting(schema) if PRESETS[name].made(feature_map))


def _classes(count: int) -> str:
    return counted(count, "class", "classes")
