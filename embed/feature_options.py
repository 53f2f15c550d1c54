"""Draw a feature map for records of a schema, without looking at any record."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ..common.arguments import require_kind
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
from ..common.features.rff import RandomFourierFeatures
from ..common.features.torchscript import PublicModule, load_module
from ..common.outline import Terse
from ..common.schema import Schema
from ..common.schema.encoding import blocks_of
from ..common.schema.image import ImageSchema
from ..common.schema.table import TableSchema
from .pairs import pairs_to_choose_among, read_pairs

DEFAULT_ARCH: Final = "fc_1l"
DEFAULT_ACTIVATION: Final = "relu"
DEFAULT_FREQUENCIES: Final = 5000
DEFAULT_MARGINALS: Final = 0.4
"""Weight of marginals in a feature of norm 1; the network's features have 0.89 to 0.92."""
DEFAULT_MOMENTS: Final = 0.3
"""Weight of products of columns, in a table that has at least two."""
_TABLE_WIDTHS: Final = {"fc_1l": "200"}
"""Widths for tables, where they differ from those for images."""
_OF_A_NETWORK: Final = ("arch", "width", "activation", "front")
_VALUES_PER_SQUARED_LENGTH: Final = 7.5
"""DP-MERF's squared length scale for MNIST is 105, a 7.5th of the number of pixels."""


@dataclass(frozen=True, repr=False)
class FeatureOptions(Terse):
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
            raise SchemaError("--feature-seed: a seed is from 0 to 4294967295")
        if not 1 <= self.frequencies <= 1 << 20:
            raise SchemaError("--frequencies: there are from 1 to 1048576 of them")
        if self.length_scale is not None and not 0 < self.length_scale < math.inf:
            raise SchemaError("--length-scale: it is a positive number")
        for name in ("marginals", "moments", "pixels", "squares"):
            weight = getattr(self, name)
            if weight is not None and not 0 <= weight < 1:
                raise SchemaError(f"--{name}: the weight is from 0 to below 1")
        if self.preset is not None and self.preset not in PRESETS:
            raise SchemaError(f"--preset {self.preset}: known are {', '.join(PRESETS)}")

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
            self._refuse_module(f"it goes with --features perceptual, not {self.kind}")
            return self.draw(schema), None
        self.refuse_network(f"it goes with --features ntk, not {self.kind}")
        self.refuse_fourier(f"it goes with --features rff, not {self.kind}")
        self.refuse_marginals(f"it goes with tables and --features ntk, not {self.kind}")
        self.refuse_pixels("it goes with --features ntk")
        if not isinstance(schema, ImageSchema):
            raise SchemaError("--features perceptual: it is for images, not for tables")
        if self.module is None:
            raise SchemaError("--features perceptual: name the module's file with --module FILE")
        if not self.module_is_public:
            raise SchemaError(
                f"--module {self.module}: no epsilon covers the data that it was trained on; add "
                "--module-is-public if all of them are public"
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
            self.refuse_fourier(f"it goes with --features rff, not {self.kind}")
        if not (tangent and isinstance(schema, TableSchema)):
            self.refuse_marginals("it goes with tables and --features ntk")
        if not (tangent and isinstance(schema, ImageSchema)):
            self.refuse_pixels("it goes with images and --features ntk")
        if tangent:
            network = self._network(schema)
            weight = DEFAULT_MARGINALS if self.marginals is None else self.marginals
            if not weight:
                self.refuse_marginals("it goes with a weight of --marginals above 0")
            if weight and isinstance(schema, TableSchema):
                share = DEFAULT_MOMENTS if self.moments is None else self.moments
                moments = self._products(schema) if share else None
                if moments is None and self.target is not None:
                    why = "the table has no such products" if share else "--moments 0 has none"
                    raise SchemaError(
                        f"--target {self.target}: its products with other columns are to weigh "
                        f"more, and {why}"
                    )
                marginals = self._with_pairs(schema, moments)
                if moments is None:
                    return JointFeatures(network, marginals, weight)
                return JointFeatures(network, marginals, weight, moments, share)
            return self._beside_pixels(network)
        self.refuse_network(f"it goes with --features ntk, not {self.kind}")
        if self.kind == "rff":
            return self._fourier(schema)
        if self.kind == "perceptual":
            raise SchemaError(
                "--features perceptual: a module's features are not drawn: embed first"
            )
        if self.kind == "pixels" and not isinstance(schema, ImageSchema):
            raise SchemaError("--features pixels: they are for images, not for tables")
        kind = FEATURE_MAPS.entries().get(self.kind)
        if self.kind not in FEATURES or not isinstance(kind, Drawable):
            raise SchemaError(f"--features {self.kind}: known are {', '.join(FEATURES)}")
        return kind.draw(schema.record_size, levels=schema.levels, seed=self.seed)

    def _products(self, schema: TableSchema) -> MomentFeatures | None:
        """Products of columns, with the target that was named; None if there are none."""
        moments = MomentFeatures.of(schema)
        if self.target is None:
            return moments
        columns = {block.column.name: block for block in blocks_of(schema)}
        numeric = [name for name, block in columns.items() if block.column.kind.numeric]
        wrong, names = f"--target {self.target}: ", ", ".join(numeric) or "none"
        if self.target == schema.label:
            raise SchemaError(
                f"{wrong}it is the label, and all is released class by class as it is: without "
                "--target, classes are what other columns predict"
            )
        if self.target in schema.left_out:
            raise SchemaError(f"{wrong}the schema leaves it out; numeric columns are {names}")
        if self.target in (column.name for column in schema.made):
            raise SchemaError(f"{wrong}it is made anew, not read; numeric columns are {names}")
        if self.target not in columns:
            raise SchemaError(f"{wrong}there is no such column; numeric columns are {names}")
        if self.target not in numeric:
            raise SchemaError(
                f"{wrong}its values are categories: make it the label of the schema, and leave "
                f"--target out; numeric columns are {names}"
            )
        return moments and moments.aiming_at(columns[self.target].place.start)

    def _with_pairs(self, schema: TableSchema, moments: MomentFeatures | None) -> MarginalFeatures:
        """Marginals of columns, and of those pairs that were asked for or may be chosen later."""
        if self.pairs or moments is None:
            return MarginalFeatures.of(schema, groups=read_pairs(self.pairs, schema))
        among = pairs_to_choose_among(schema, moments)
        return MarginalFeatures.of(schema, groups=among, fine=True, undecided=bool(among))

    def refuse_all(self, why: str) -> None:
        """Refuse all options but the seed, where no such map is drawn.

        Raises:
            SchemaError: there is one.
        """
        if self.kind != "ntk":
            raise SchemaError(f"--features {self.kind}: {why}")
        self.refuse_network(why)
        self.refuse_fourier(why)
        self.refuse_marginals(why)
        self.refuse_pixels(why)
        self._refuse_module(why)

    def refuse_network(self, why: str) -> None:
        """Refuse options of a network.

        Raises:
            SchemaError: there is one.
        """
        for name in ("preset", *_OF_A_NETWORK):
            if getattr(self, name) is not None:
                raise SchemaError(f"--{name} {getattr(self, name)}: {why}")

    def refuse_fourier(self, why: str) -> None:
        """Refuse options of random Fourier features, where they were asked for.

        Raises:
            SchemaError: there is one.
        """
        if self.frequencies != DEFAULT_FREQUENCIES:
            raise SchemaError(f"--frequencies {self.frequencies}: {why}")
        if self.length_scale is not None:
            raise SchemaError(f"--length-scale {self.length_scale:g}: {why}")

    def refuse_marginals(self, why: str) -> None:
        """Refuse marginals, where a weight or pairs were asked for.

        Raises:
            SchemaError: they were.
        """
        if self.marginals:
            raise SchemaError(f"--marginals {self.marginals:g}: {why}")
        if self.pairs:
            raise SchemaError(f"--pairs {self.pairs[0]}: {why}")
        if self.moments:
            raise SchemaError(f"--moments {self.moments:g}: {why}")
        if self.target is not None:
            raise SchemaError(f"--target {self.target}: {why}")

    def refuse_pixels(self, why: str) -> None:
        """Refuse pixels, where a weight was asked for.

        Raises:
            SchemaError: it was.
        """
        if self.pixels:
            raise SchemaError(f"--pixels {self.pixels:g}: {why}")

    def _refuse_module(self, why: str) -> None:
        if self.module is not None:
            raise SchemaError(f"--module {self.module}: {why}")
        if self.module_is_public:
            raise SchemaError(f"--module-is-public: {why}")
        if self.squares:
            raise SchemaError(f"--squares {self.squares:g}: {why}")
        if self.rectified:
            raise SchemaError(f"--rectified: {why}")

    def _fourier(self, schema: Schema) -> FeatureMap:
        """Of images all values; of tables numbers, and categories beside them in one-hot form."""
        places: Sequence[int] = range(schema.record_size)
        categories = None
        if isinstance(schema, TableSchema):
            numeric = [block for block in blocks_of(schema) if block.column.kind.numeric]
            places = [block.place.start for block in numeric]
            places += [block.place.stop - 1 for block in numeric if block.missing_place]
            if len(numeric) < len(schema.features):
                categories = MarginalFeatures.of(schema, numbers=False)
            if categories is not None and not numeric:
                return categories
        numbers = RandomFourierFeatures.draw(
            schema.record_size,
            frequencies=self.frequencies,
            length_scale=self.length_scale or math.sqrt(len(places) / _VALUES_PER_SQUARED_LENGTH),
            levels=schema.levels,
            seed=self.seed,
            places=places,
        )
        if categories is None:
            return numbers
        return JointFeatures(numbers, categories, math.sqrt(0.5))  # both kernels are at most 1

    def _of_preset(self, name: str, schema: Schema) -> FeatureOptions:
        """The options of the network that a preset names, for records of its form alone."""
        preset = PRESETS[name]
        if self.kind != "ntk":
            raise SchemaError(f"--preset {name}: it goes with --features ntk, not {self.kind}")
        chosen = replace(self, preset=None)
        chosen.refuse_network(f"--preset {name} says which network")
        network: dict[str, Any] = {"arch": preset.arch, "width": preset.width, "front": "pixels"}
        by_hand = f"--arch {preset.arch} --width {preset.width} --front pixels"
        if isinstance(schema, TableSchema):
            by_hand += " --marginals 0"
            if self.marginals is None:
                network["marginals"] = 0.0
        if preset.shape == shape_of(schema):
            return replace(chosen, **network)
        others = fitting(schema)
        instead = f"--preset {' or '.join(others)} is" if others else "no preset is"
        raise SchemaError(
            f"--preset {name}: it is for {preset.shape}; this is {shape_of(schema)}, and "
            f"{instead} for that; the network itself is {by_hand}"
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
                raise SchemaError(f"--front {self.front}: it is for images, not for tables")
            inputs = schema.record_size
            return Pixels(inputs), (inputs,) if takes_vectors(arch) else (1, inputs)
        front = make_front(self.front or default_front(arch), schema.side, schema.channels)
        if takes_vectors(arch):
            return front, (front.outputs,)
        if not isinstance(front, Pixels):
            raise SchemaError(f"--front {self.front}: --arch {arch} takes the pixels themselves")
        return front, (schema.channels, schema.side, schema.side)


def default_front(arch: str) -> str:
    """What stands before a network if nothing is said."""
    return "scattering" if takes_vectors(arch) else "pixels"
