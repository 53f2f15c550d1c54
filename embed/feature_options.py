"""Draw a feature map for records of a schema, without looking at any record."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ..common.arguments import argument, require_kind
from ..common.display.representations import BriefRepr
from ..common.errors import SchemaError
from ..common.features.base import FEATURE_MAPS, Drawable, FeatureMap
from ..common.features.joint import JointFeatures
from ..common.features.joint_image import JointImageFeatures
from ..common.features.marginals import MarginalFeatures
from ..common.features.moments import MomentFeatures
from ..common.features.ntk.architectures import (
    ARCHITECTURES,
    layers_of,
    read_widths,
    takes_vectors,
)
from ..common.features.ntk.layers import ACTIVATIONS, Shape
from ..common.features.ntk.map import TangentFeatures
from ..common.features.ntk.presets import PRESETS, fitting, shape_of
from ..common.features.ntk.scattering import FRONTS, Front, Pixels, Scattering, make_front
from ..common.features.registry import FEATURES
from ..common.features.torchscript import PublicModule, load_module
from ..common.schema import Schema
from ..common.schema.image import ImageSchema
from ..common.schema.table import TableSchema
from .fourier import fourier_features
from .pairs import pairs_to_choose_among, products_of_columns, read_pairs

DEFAULT_ARCH: Final = "fc_1l"
DEFAULT_ACTIVATION: Final = "relu"
DEFAULT_FREQUENCIES: Final = 5000
DEFAULT_MARGINALS: Final = 0.4
"""Weight of marginals in a feature of norm 1; the network's features have 0.89 to 0.92."""
DEFAULT_MOMENTS: Final = 0.3
"""Weight of products of columns, in a table that has at least two."""
_TABLE_WIDTHS: Final = {"fc_1l": "200"}
"""Widths for tables, where they differ from those for images."""
_OF_A_NETWORK: Final = ("preset", "arch", "width", "activation", "front")
_OF_FOURIER: Final = ("frequencies", "length_scale")
_OF_TABLES: Final = ("marginals", "pairs", "moments", "target")
_OF_PIXELS: Final = ("pixels",)
_OF_A_MODULE: Final = ("module", "module_is_public", "squares", "rectified")
"""Options by the features that they mean something for."""


@dataclass(frozen=True, repr=False)
class FeatureOptions(BriefRepr):
    """Which feature map. An option that is None has the default of its kind.

    Attributes:
        kind: "ntk", "rff", "hermite", "pixels" or "perceptual".
        arch: for "ntk": the network, one of `ARCHITECTURES`; "fc_1l" if None.
        width: for "ntk": units or channels of its hidden layers, 400 or "3000_200"; those in
            `ARCHITECTURES` if None.
        activation: for "ntk": one of `ACTIVATIONS`; "relu" if None.
        front: for "ntk": the fixed transform before the network, one of `FRONTS`. If None,
            "scattering" for networks of linear layers, "pixels" for convolutions and for tables.
        frequencies: for "rff": how many; the dimension is twice that.
        length_scale: for "rff": that of its kernel, for values 0..1; sqrt(k / 7.5) if None, with k
            the number of values in an image, or of numeric columns of a table.
        marginals: for "ntk" on tables: weight of one-way marginals beside the network's features
            (`dpntk.common.features.joint`); 0 leaves them out; 0.4 if None.
        pairs: for "ntk" on tables: pairs of columns whose two-way marginals are released as well,
            such as "age,pay", or triples, such as "age,pay,town"; or "all" pairs; or "triples", all
            of columns with two values. They share the weight of marginals. If empty, a release with
            moments chooses some by its own noisy figures; "none" keeps it from that.
        moments: for "ntk" on tables with marginals: weight of products of columns, which show how
            columns depend on each other (`dpntk.common.features.moments`); 0 leaves them out; 0.3
            if None.
        target: for "ntk" on tables with such products: the name of a numeric column that the others
            are to predict. Its products are larger, so they have less noise, and the others more.
        pixels: for "ntk" on images: weight of the pixels themselves beside the network's features
            (`dpntk.common.features.joint_image`); 0 leaves them out. If None, a release chooses if
            the front is "scattering", and otherwise they are left out.
        seed: of the map's random weights. Noise has no seed.
        module: for "perceptual": a TorchScript archive of a module that maps float32 images
            (b, channels, side, side), values 0..1, to a tensor (b, ...). It always runs on the CPU.
        module_is_public: for "perceptual": the owner's word that the module was trained on public
            data only. The guarantee does not cover what it was trained on.
        squares: for "perceptual": weight of the squares of the module's outputs beside them
            (`dpntk.common.features.perceptual`); none if None or 0.
        rectified: for "perceptual": whether negative outputs of the module are set to 0, for which
            there is less noise.
        preset: the network that the paper's authors tuned on a data set, one of `PRESETS`, in place
            of `arch`, `width`, `activation` and `front`; for tables, without marginals. On that
            data set no guarantee covers the choice.

    Guarantee:
        None of this may be chosen by looking at the records: a release says what was chosen, and no
        epsilon covers the choice. No noise is drawn from `seed`.

    Raises:
        SchemaError: one of them is of another type than it has to be, or out of range.
    """

    kind: str = "ntk"
    arch: str | None = None
    width: str | int | None = None
    activation: str | None = None
    front: str | None = None
    frequencies: int = DEFAULT_FREQUENCIES
    length_scale: float | None = None
    marginals: float | None = None
    pairs: Sequence[str] = ()
    moments: float | None = None
    target: str | None = None
    pixels: float | None = None
    seed: int = 0
    module: Path | str | None = None
    module_is_public: bool = False
    squares: float | None = None
    rectified: bool = False
    preset: str | None = None

    def __post_init__(self) -> None:
        absent = type(None)
        for name, value, kind, wanted in (
            ("kind", self.kind, str, f"one of {', '.join(FEATURES)}"),
            ("arch", self.arch, (str, absent), f"one of {', '.join(ARCHITECTURES)}"),
            ("width", self.width, (str, int, absent), "a number, or a text such as '3000_200'"),
            ("activation", self.activation, (str, absent), f"one of {', '.join(ACTIVATIONS)}"),
            ("front", self.front, (str, absent), f"one of {', '.join(FRONTS)}"),
            ("frequencies", self.frequencies, int, "a number"),
            ("length_scale", self.length_scale, (float, int, absent), "a number"),
            ("marginals", self.marginals, (float, int, absent), "a weight from 0 to below 1"),
            ("moments", self.moments, (float, int, absent), "a weight from 0 to below 1"),
            ("target", self.target, (str, absent), "the name of a column"),
            ("pixels", self.pixels, (float, int, absent), "a weight from 0 to below 1"),
            ("pairs", self.pairs, (tuple, list), "a tuple, such as ('age,pay',) or ('all',)"),
            ("seed", self.seed, int, "a number"),
            ("module", self.module, (str, Path, absent), "the path of a file"),
            ("module_is_public", self.module_is_public, bool, "True or False"),
            ("squares", self.squares, (float, int, absent), "a weight from 0 to below 1"),
            ("rectified", self.rectified, bool, "True or False"),
            ("preset", self.preset, (str, absent), f"one of {', '.join(PRESETS)}"),
        ):
            require_kind(name, value, kind, wanted, refusal=SchemaError)
        for pair in self.pairs:
            require_kind("a pair", pair, str, "a text such as 'age,pay'", refusal=SchemaError)
        if not 0 <= self.seed < 1 << 32:
            raise SchemaError(
                f"{argument('seed', option='--feature-seed')}: a seed is from 0 to 4294967295"
            )
        if not 1 <= self.frequencies <= 1 << 20:
            raise SchemaError(f"{argument('frequencies')}: there are from 1 to 1048576 of them")
        if self.length_scale is not None and not 0 < self.length_scale < math.inf:
            raise SchemaError(f"{argument('length_scale')}: it is a positive number")
        for name in ("marginals", "moments", "pixels", "squares"):
            weight = getattr(self, name)
            if weight is not None and not 0 <= weight < 1:
                raise SchemaError(f"{argument(name)}: the weight is from 0 to below 1")
        if self.preset is not None and self.preset not in PRESETS:
            known = ", ".join(PRESETS)
            raise SchemaError(f"{argument('preset', self.preset)}: known are {known}")

    def prepare(self, schema: Schema) -> tuple[FeatureMap, PublicModule | None]:
        """Draw the map, or find out what the module is.

        Args:
            schema: of the records.

        Returns:
            The map, and of "perceptual" the module that computes it.

        Raises:
            SchemaError: there is no such map, or the owner has not said that the module is public.
            ModuleError: the module cannot be used.
        """
        if self.kind != "perceptual":
            self._refuse(_OF_A_MODULE, self._goes_with("perceptual"))
            return self.draw(schema), None
        self._refuse(_OF_A_NETWORK, self._goes_with("ntk"))
        self._refuse(_OF_FOURIER, self._goes_with("rff"))
        self._refuse((*_OF_TABLES, *_OF_PIXELS), self._goes_with("ntk"))
        if not isinstance(schema, ImageSchema):
            raise SchemaError(f"{_kind('perceptual')}: it is for images, not for tables")
        if self.module is None:
            module = argument("module", option="--module FILE")
            raise SchemaError(f"{_kind('perceptual')}: name the module's file with {module}")
        if not self.module_is_public:
            raise SchemaError(
                f"{argument('module', self.module)}: no epsilon covers the data that it was "
                f"trained on; add {argument('module_is_public', True)} if all of them are public"
            )
        shape = (schema.channels, schema.side, schema.side)
        opened = load_module(Path(self.module), shape, schema.levels)
        squares = float(self.squares or 0)
        return replace(opened.feature_map, squares=squares, rectified=self.rectified), opened

    def draw(self, schema: Schema) -> FeatureMap:
        """Draw the map, if it needs no module.

        Args:
            schema: of the records.

        Raises:
            SchemaError: there is no such map.
        """
        if self.preset is not None:
            return self._of_preset(self.preset, schema).draw(schema)
        tangent = self.kind == "ntk"
        if self.kind != "rff":
            self._refuse(_OF_FOURIER, self._goes_with("rff"))
        if not (tangent and isinstance(schema, TableSchema)):
            self._refuse(_OF_TABLES, f"it goes with tables and {_kind('ntk')}")
        if not (tangent and isinstance(schema, ImageSchema)):
            self._refuse(_OF_PIXELS, f"it goes with images and {_kind('ntk')}")
        if tangent:
            network = self._network(schema)
            if isinstance(schema, TableSchema):
                return self._beside_columns(network, schema)
            return self._beside_pixels(network)
        self._refuse(_OF_A_NETWORK, self._goes_with("ntk"))
        if self.kind == "rff":
            return fourier_features(schema, self.frequencies, self.length_scale, self.seed)
        if self.kind == "perceptual":
            raise SchemaError(f"{_kind(self.kind)}: a module's features are not drawn: embed first")
        if self.kind == "pixels" and not isinstance(schema, ImageSchema):
            raise SchemaError(f"{_kind(self.kind)}: they are for images, not for tables")
        kind = FEATURE_MAPS.entries().get(self.kind)
        if self.kind not in FEATURES or not isinstance(kind, Drawable):
            raise SchemaError(f"{_kind(self.kind)}: known are {', '.join(FEATURES)}")
        return kind.draw(schema.record_size, levels=schema.levels, seed=self.seed)

    def refuse_all(self, why: str) -> None:
        """Refuse all options but the seed, where no such map is drawn.

        Args:
            why: what the error says.

        Raises:
            SchemaError: there is one.
        """
        if self.kind != "ntk":
            raise SchemaError(f"{_kind(self.kind)}: {why}")
        for names in (_OF_A_NETWORK, _OF_FOURIER, _OF_TABLES, _OF_PIXELS, _OF_A_MODULE):
            self._refuse(names, why)

    def _refuse(self, names: Sequence[str], why: str) -> None:
        """Refuse options that mean nothing here; a weight of 0 asks for nothing."""
        for name in names:
            value = getattr(self, name)
            if value and value != getattr(type(self), name):
                said = value[0] if name == "pairs" else value
                raise SchemaError(f"{argument(name, said)}: {why}")

    def _goes_with(self, kind: str) -> str:
        return f"it goes with {_kind(kind)}, not {self.kind}"

    def _beside_columns(self, network: TangentFeatures, schema: TableSchema) -> FeatureMap:
        """A network's features of a table, with marginals and products of its columns."""
        weight = DEFAULT_MARGINALS if self.marginals is None else self.marginals
        if not weight:
            self._refuse(_OF_TABLES, f"it goes with a weight of {argument('marginals')} above 0")
            return network
        share = DEFAULT_MOMENTS if self.moments is None else self.moments
        moments = products_of_columns(schema, self.target) if share else None
        if moments is None and self.target is not None:
            why = (
                "the table has no such products" if share else f"{argument('moments', 0)} has none"
            )
            raise SchemaError(
                f"{argument('target', self.target)}: its products with other columns are to weigh "
                f"more, and {why}"
            )
        marginals = self._with_pairs(schema, moments)
        if moments is None:
            return JointFeatures(network, marginals, weight)
        return JointFeatures(network, marginals, weight, moments, share)

    def _with_pairs(self, schema: TableSchema, moments: MomentFeatures | None) -> MarginalFeatures:
        """Marginals of columns, and of those pairs that were asked for or may be chosen later."""
        if self.pairs or moments is None:
            return MarginalFeatures.of(schema, groups=read_pairs(self.pairs, schema))
        among = pairs_to_choose_among(schema, moments)
        return MarginalFeatures.of(schema, groups=among, fine=True, undecided=bool(among))

    def _of_preset(self, name: str, schema: Schema) -> FeatureOptions:
        """The options of the network that a preset names, for records of its form alone."""
        preset, this = PRESETS[name], argument("preset", name)
        if self.kind != "ntk":
            raise SchemaError(f"{this}: {self._goes_with('ntk')}")
        chosen = replace(self, preset=None)
        chosen._refuse(_OF_A_NETWORK, f"{this} says which network")
        network: dict[str, Any] = {"arch": preset.arch, "width": preset.width, "front": "pixels"}
        by_hand = {**network, "marginals": 0} if isinstance(schema, TableSchema) else network
        if preset.shape == shape_of(schema):
            if isinstance(schema, TableSchema) and self.marginals is None:
                network["marginals"] = 0.0
            return replace(chosen, **network)
        others = fitting(schema)
        instead = f"{argument('preset')} {' or '.join(others)} is" if others else "no preset is"
        itself = " ".join(argument(option, value) for option, value in by_hand.items())
        raise SchemaError(
            f"{this}: it is for {preset.shape}; this is {shape_of(schema)}, and "
            f"{instead} for that; the network itself is {itself}"
        )

    def _network(self, schema: Schema) -> TangentFeatures:
        arch = self.arch or DEFAULT_ARCH
        usual = "" if isinstance(schema, ImageSchema) else _TABLE_WIDTHS.get(arch, "")
        widths = read_widths(usual if self.width is None else str(self.width), arch)
        front, shape = self._before(arch, schema)
        return TangentFeatures.draw(
            front,
            layers_of(arch, widths, shape, self.activation or DEFAULT_ACTIVATION),
            outputs=len(schema.classes),
            levels=schema.levels,
            seed=self.seed,
            shape=shape,
        )

    def _beside_pixels(self, network: TangentFeatures) -> FeatureMap:
        if self.pixels is None and not isinstance(network.front, Scattering):
            return network
        if self.pixels == 0:
            return network
        return JointImageFeatures(network, None if self.pixels is None else float(self.pixels))

    def _before(self, arch: str, schema: Schema) -> tuple[Front, Shape]:
        """What stands before the network, and the shape of what it makes."""
        if not isinstance(schema, ImageSchema):
            if self.front not in (None, "pixels"):
                raise SchemaError(
                    f"{argument('front', self.front)}: it is for images, not for tables"
                )
            inputs = schema.record_size
            return Pixels(inputs), (inputs,) if takes_vectors(arch) else (1, inputs)
        front = make_front(self.front or default_front(arch), schema.side, schema.channels)
        if takes_vectors(arch):
            return front, (front.outputs,)
        if not isinstance(front, Pixels):
            raise SchemaError(
                f"{argument('front', self.front)}: {argument('arch', arch)} takes the pixels "
                "themselves"
            )
        return front, (schema.channels, schema.side, schema.side)


def _kind(name: str) -> str:
    """A kind of features, as an error names it."""
    return argument("kind", name, option="--features")


def default_front(arch: str) -> str:
    """What stands before a network if nothing is said."""
    return "scattering" if takes_vectors(arch) else "pixels"
