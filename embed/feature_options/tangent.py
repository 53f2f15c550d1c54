"""Options of a random network's tangent features (DP-NTK), and of features beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ...common.arguments import argument, integer, require_kind, set_plain
from ...common.errors import SchemaError
from ...common.features.base import FeatureMap
from ...common.features.joint import JointFeatures
from ...common.features.joint_image import JointImageFeatures
from ...common.features.marginals.map import MarginalFeatures
from ...common.features.moments import MomentFeatures
from ...common.features.ntk.architectures import (
    ARCHITECTURES,
    layers_of,
    read_widths,
    takes_vectors,
)
from ...common.features.ntk.layers import ACTIVATIONS, Shape
from ...common.features.ntk.map import TangentFeatures
from ...common.features.ntk.presets import PRESETS, fitting, shape_of
from ...common.features.ntk.scattering import FRONTS, Front, Pixels, Scattering, make_front
from ...common.schema import Schema
from ...common.schema.image import ImageSchema
from ...common.schema.table import TableSchema
from .base import FEATURE_OPTIONS, SeededOptions, weight_or_none
from .columns import WORDS, pairs_to_choose_among, products_of_columns, read_pairs
from .defaults import (
    DEFAULT_ACTIVATION,
    DEFAULT_ARCH,
    DEFAULT_MARGINALS,
    DEFAULT_MOMENTS,
)

_TABLE_WIDTHS: Final = {"fc_1l": "200"}
"""Default widths for tables, where they differ from those for images."""
_OF_A_NETWORK: Final = ("arch", "width", "activation", "front")
"""The options that a preset sets."""
_OF_IMAGES: Final = ("pixels",)
_OF_TABLES: Final = ("marginals", "pairs", "moments", "target")


@FEATURE_OPTIONS.add("ntk")
@dataclass(frozen=True, repr=False, kw_only=True)
class TangentOptions(SeededOptions):
    """The normalised gradient of a random network (DP-NTK). An option that is None has a default.

    For images, pixels may stand beside it; for tables, marginals and products of columns.

    Attributes:
        arch: the network, one of `ARCHITECTURES`; "fc_1l" if None.
        width: units or channels of its hidden layers, 400 or "3000_200"; those in `ARCHITECTURES`
            if None.
        activation: one of `ACTIVATIONS`; "relu" if None.
        front: the fixed transform before the network, one of `FRONTS`. If None, "scattering" for
            networks of linear layers, "pixels" for convolutions and for tables.
        marginals: for tables: weight of one-way marginals beside the network's features
            (`dpntk.common.features.joint`); 0 leaves them out. If None, a release chooses by its
            noise, or it is 0.4 if `moments` are chosen.
        pairs: for tables: pairs of columns whose two-way marginals are released, such as "age,pay"
            or ("age", "pay"), or triples, such as "age,pay,town". If empty, a release with moments
            chooses ten pairs by its own noisy figures. Either way it also measures all pairs of
            numbers in few cells. "none" prevents all of that; "all" for all pairs, and "triples"
            for all triples of columns with two values, stand in place of it and share the weight of
            marginals.
        moments: for tables with marginals: weight of products of columns, which show how columns
            depend on each other (`dpntk.common.features.moments`); 0 leaves them out. If None, a
            release chooses by its noise, or it is 0.3 if `marginals` are chosen.
        target: for tables with such products: the name of a numeric column that the others are to
            predict. Its products are larger, so they get less noise, and the others get more.
        pixels: for images: weight of the pixels themselves beside the network's features
            (`dpntk.common.features.joint_image`); 0 leaves them out. If None, a release chooses if
            the front is "scattering", and otherwise they are left out.
        preset: the network that the paper's authors tuned on a data set, one of `PRESETS`, in place
            of `arch`, `width`, `activation` and `front`; for tables, without marginals. On that
            data set, no guarantee covers the choice.
        seed: the seed of the network's weights. Noise has no seed.

    Guarantee:
        None of this may be chosen by looking at the records: a release states the choice, and no
        epsilon covers it. No noise is drawn from `seed`.

    Raises:
        SchemaError: an option has the wrong type or is out of range.
    """

    arch: str | None = None
    width: str | int | None = None
    activation: str | None = None
    front: str | None = None
    marginals: float | None = None
    pairs: Sequence[str | Sequence[str]] = ()
    moments: float | None = None
    target: str | None = None
    pixels: float | None = None
    preset: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        absent = type(None)
        width = "a number, or a text such as '3000_200'"
        if not isinstance(self.width, str | None):
            set_plain(self, width=integer("width", self.width, width, refusal=SchemaError))
        for name, value, kind, wanted in (
            ("arch", self.arch, (str, absent), f"one of {', '.join(ARCHITECTURES)}"),
            ("activation", self.activation, (str, absent), f"one of {', '.join(ACTIVATIONS)}"),
            ("front", self.front, (str, absent), f"one of {', '.join(FRONTS)}"),
            ("target", self.target, (str, absent), "the name of a column"),
            ("pairs", self.pairs, (tuple, list), "a tuple, such as ('age,pay',) or ('all',)"),
            ("preset", self.preset, (str, absent), f"one of {', '.join(PRESETS)}"),
        ):
            require_kind(name, value, kind, wanted, refusal=SchemaError)
        set_plain(self, pairs=tuple(map(_as_text, self.pairs)))
        for name in ("marginals", "moments", "pixels"):
            set_plain(self, **{name: weight_or_none(name, getattr(self, name))})
        if self.preset is not None and self.preset not in PRESETS:
            known = ", ".join(PRESETS)
            raise SchemaError(f"{argument('preset', self.preset)}: known are {known}")

    def encoding(self, schema: Schema) -> Schema:
        """The schema by which records are best encoded for the map.

        Where a release measures all pairs of numbers, ordered categories are encoded by rank, to
        be measured among these (`TableSchema.with_ranks`).
        """
        chooses = not set(self._said_of_pairs) & set(WORDS) and 0 not in (
            self.marginals,
            self.moments,
        )
        if isinstance(schema, TableSchema) and chooses and self.preset is None:
            return schema.with_ranks()
        return schema

    @property
    def _said_of_pairs(self) -> list[str]:
        return [str(pair) for pair in self.pairs]  # all of them texts by now

    def draw(self, schema: Schema) -> FeatureMap:
        """Draw the map, without looking at any record.

        Args:
            schema: of the records.

        Raises:
            SchemaError: there is no such map for such records.
        """
        if self.preset is not None:
            return self._of_preset(self.preset, schema).draw(schema)
        if isinstance(schema, TableSchema):
            self._refuse(_OF_IMAGES, "it goes with images, and this is a table")
            return self._beside_columns(self._network(schema), schema)
        self._refuse(_OF_TABLES, "it goes with tables, and these are images")
        return self._beside_pixels(self._network(schema))

    def _beside_columns(self, network: TangentFeatures, schema: TableSchema) -> FeatureMap:
        """A network's features for a table, with marginals and products of its columns."""
        if self.marginals == 0:
            self._refuse(_OF_TABLES, f"it goes with a weight of {argument('marginals')} above 0")
            return network
        moments = None if self.moments == 0 else products_of_columns(schema, self.target)
        if moments is None and self.target is not None:
            none = f"{argument('moments', 0)} has none"
            why = none if self.moments == 0 else "the table has no such products"
            raise SchemaError(
                f"{argument('target', self.target)}: its products with other columns are to weigh "
                f"more, and {why}"
            )
        marginals = self._with_pairs(schema, moments)
        weight = DEFAULT_MARGINALS if self.marginals is None else self.marginals
        share = DEFAULT_MOMENTS if self.moments is None else self.moments
        return JointFeatures(
            network,
            marginals,
            weight,
            moments,
            0.0 if moments is None else share,
            weights_undecided=self.marginals is None and not self.moments,
        )

    def _with_pairs(self, schema: TableSchema, moments: MomentFeatures | None) -> MarginalFeatures:
        """Marginals of columns, and of the pairs that were asked for or may be chosen later."""
        named = read_pairs(self._said_of_pairs, schema)
        if moments is None or set(self._said_of_pairs) & set(WORDS):
            return MarginalFeatures.of(schema, groups=named)
        among = pairs_to_choose_among(schema, moments, named)
        return MarginalFeatures.of(
            schema, groups=among, fine=True, undecided=bool(among), named=named
        )

    def _of_preset(self, name: str, schema: Schema) -> TangentOptions:
        """The options of a preset's network, which takes only records of the preset's form."""
        preset, this = PRESETS[name], argument("preset", name)
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
        """The front of the network, and the shape of its output."""
        if not isinstance(schema, ImageSchema):
            if self.front not in (None, "pixels"):
                raise SchemaError(
                    f"{argument('front', self.front)}: it is for images, not for tables"
                )
            inputs = schema.record_size
            return Pixels(inputs), (inputs,) if takes_vectors(arch) else (1, inputs)
        front = make_front(self.front or _default_front(arch), schema.side, schema.channels)
        if takes_vectors(arch):
            return front, (front.outputs,)
        if not isinstance(front, Pixels):
            raise SchemaError(
                f"{argument('front', self.front)}: {argument('arch', arch)} takes the pixels "
                "themselves"
            )
        return front, (schema.channels, schema.side, schema.side)


def _default_front(arch: str) -> str:
    """The front of a network if none is chosen."""
    return "scattering" if takes_vectors(arch) else "pixels"


def _as_text(pair: object) -> str:
    """A pair as a text, with commas between its names.

    Raises:
        SchemaError: it is neither a text nor a tuple of names.
    """
    if isinstance(pair, (tuple, list)) and all(isinstance(name, str) for name in pair):
        return ",".join(pair)
    wanted = "a text such as 'age,pay', or ('age', 'pay')"
    require_kind("a pair", pair, str, wanted, refusal=SchemaError)
    return str(pair)
