"""Stage one: stream the records once and keep only their class-wise feature sums."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from ..common.architectures import layers_of, read_widths, takes_vectors
from ..common.console import progress
from ..common.device import AUTO, choose_device
from ..common.errors import SchemaError
from ..common.feature_map import FeatureMap
from ..common.feature_maps import FEATURES
from ..common.front import Front, Pixels, make_front
from ..common.hermite import HermiteFeatures
from ..common.joint import JointFeatures
from ..common.layers import Shape
from ..common.marginals import MarginalFeatures
from ..common.ntk import TangentFeatures
from ..common.rff import RandomFourierFeatures
from ..common.schema import ImageSchema
from ..common.schemas import Schema
from ..common.sources import Source, open_source
from ..common.table_schema import TableSchema
from .accumulate import ClassSums
from .artifact import Embedding
from .grid import DEFAULT_CAPACITY, Grid

DEFAULT_ARCH: Final = "fc_1l"
DEFAULT_ACTIVATION: Final = "relu"
DEFAULT_FREQUENCIES: Final = 5000
DEFAULT_MARGINALS: Final = 0.6
"""Weight of marginals in a feature of norm 1; the network's features have 0.8."""
_TABLE_WIDTHS: Final = {"fc_1l": "200"}
"""Widths for tables, where they differ from those for images."""
_VALUES_PER_SQUARED_LENGTH: Final = 7.5
"""DP-MERF's squared length scale for MNIST is 105, a 7.5th of the number of pixels."""


def embed(
    data: Path | str | Source,
    *,
    features: str | FeatureMap = "ntk",
    arch: str | None = None,
    width: str | int | None = None,
    activation: str | None = None,
    front: str | None = None,
    frequencies: int = DEFAULT_FREQUENCIES,
    length_scale: float | None = None,
    feature_seed: int = 0,
    device: str = AUTO,
    split: str = "train",
    image_size: int | None = None,
    classes: int | None = None,
    capacity: int | None = None,
    table: TableSchema | None = None,
    marginals: float | None = None,
) -> Embedding:
    """Reduce a data set to its exact class-wise feature sums.

    Args:
        data: a folder of class folders, a folder of IDX files, an .npz file, or an open source.
        features: the feature map: "ntk", "rff" or "hermite"; or a map of one's own, drawn without
            looking at the records (`tangent_features_of` makes one of a torch network).
        arch: of "ntk": the network whose tangent kernel is used, one of
            `dpntk.common.architectures.ARCHITECTURES`; "fc_1l" if None.
        width: of "ntk": of its hidden layers, 400 or "3000_200"; as said there if None.
        activation: of "ntk": one of `dpntk.common.layers.ACTIVATIONS`; "relu" if None.
        front: of "ntk": what stands before it: "pixels" (nothing) or "scattering". If None,
            "scattering" before networks of linear layers, "pixels" before convolutions.
        frequencies: of "rff": how many; the dimension is twice that.
        length_scale: of "rff": of its kernel, for values 0..1; sqrt(record size / 7.5) if None.
        feature_seed: of the map's random weights. Not of any noise: that has no seed.
        device: "auto", "cpu" or "cuda". Does not change a bit of the result.
        split: "train" or "test", where the data set has both.
        image_size: resize images to this many pixels a side.
        classes: declared number of classes, for formats that only number them.
        capacity: how many records the sums must be able to hold, for shards that are to be
            added: 2^20 or n, whichever is larger, if not given.
        table: the schema, if the data are a table in CSV or Parquet files.
        marginals: of "ntk" on tables: weight of one-way marginals beside the network's features
            (see `dpntk.common.joint`); 0 leaves them out; 0.6 if None.

    Returns:
        The embedding: SENSITIVE, not private in any way.

    Raises:
        DataError: the records cannot be read.
        SchemaError: they do not fit what is declared of them.
    """
    if isinstance(data, (str, Path)):
        source = open_source(
            Path(data), split=split, image_size=image_size, class_count=classes, table=table
        )
    else:
        source = data
    schema = source.schema
    network = _Network(arch, width, activation, front)
    if isinstance(features, str):
        feature_map = _draw(schema, features, network, frequencies, length_scale, feature_seed)
        feature_map = _beside_marginals(feature_map, schema, marginals)
    else:
        network.require_nothing("a feature map of one's own has its network already")
        if marginals:
            raise SchemaError("--marginals: they go beside a feature map that dpntk draws")
        feature_map = features
    if feature_map.record_size != schema.inputs:
        raise SchemaError(
            f"records have {schema.inputs} values, but the feature map takes "
            f"{feature_map.record_size}"
        )
    grid = Grid.for_capacity(schema.levels, capacity or max(len(source), DEFAULT_CAPACITY))
    class_sums = ClassSums(feature_map, len(schema.classes), grid, choose_device(device))
    with progress("embedding", len(source), "records") as advance:
        for batch in source.batches(class_sums.chunk_size):
            class_sums.add(batch.records, batch.labels)
            advance(len(batch.labels), "")
    return Embedding(
        sums=class_sums.sums,
        counts=class_sums.counts,
        schema=schema,
        feature_map=feature_map,
        grid=grid,
    )


@dataclass(frozen=True)
class _Network:
    """What was said of the network; None where nothing was."""

    arch: str | None
    width: str | int | None
    activation: str | None
    front: str | None

    def require_nothing(self, why: str) -> None:
        for name, value in asdict(self).items():
            if value is not None:
                raise SchemaError(f"--{name} {value}: {why}")

    def draw(self, schema: Schema, seed: int) -> TangentFeatures:
        arch = self.arch or DEFAULT_ARCH
        usual = "" if isinstance(schema, ImageSchema) else _TABLE_WIDTHS.get(arch, "")
        widths = read_widths(usual if self.width is None else str(self.width), arch)
        front, shape = self._before(arch, schema)
        return TangentFeatures.draw(
            front,
            layers_of(arch, widths, shape, self.activation or DEFAULT_ACTIVATION),
            outputs=len(schema.classes),
            levels=schema.levels,
            seed=seed,
            shape=shape,
        )

    def _before(self, arch: str, schema: Schema) -> tuple[Front, Shape]:
        """What stands before the network, and the shape of what it makes."""
        if not isinstance(schema, ImageSchema):
            if self.front not in (None, "pixels"):
                raise SchemaError(f"--front {self.front}: it is for images, not for tables")
            inputs = schema.inputs
            return Pixels(inputs), (inputs,) if takes_vectors(arch) else (1, inputs)
        front = make_front(self.front or default_front(arch), schema.side)
        if takes_vectors(arch):
            return front, (front.outputs,)
        if not isinstance(front, Pixels):
            raise SchemaError(f"--front {self.front}: --arch {arch} takes the pixels themselves")
        return front, (1, schema.side, schema.side)


def _beside_marginals(feature_map: FeatureMap, schema: Schema, weight: float | None) -> FeatureMap:
    if isinstance(schema, TableSchema) and isinstance(feature_map, TangentFeatures):
        weight = DEFAULT_MARGINALS if weight is None else weight
        if weight:
            return JointFeatures(feature_map, MarginalFeatures.of(schema), weight)
    elif weight:
        raise SchemaError(f"--marginals {weight:g}: it goes with tables and --features ntk")
    return feature_map


def default_front(arch: str) -> str:
    """What stands before a network if nothing is said."""
    return "scattering" if takes_vectors(arch) else "pixels"


def _draw(
    schema: Schema,
    features: str,
    network: _Network,
    frequencies: int,
    length_scale: float | None,
    seed: int,
) -> FeatureMap:
    """Draw a feature map for records of a schema; the records are not looked at."""
    if features == "ntk":
        return network.draw(schema, seed)
    network.require_nothing(f"it goes with --features ntk, not {features}")
    if features == "hermite":
        return HermiteFeatures.draw(schema.inputs, levels=schema.levels, seed=seed)
    if features == "rff":
        return RandomFourierFeatures.draw(
            schema.inputs,
            frequencies=frequencies,
            length_scale=length_scale or math.sqrt(schema.inputs / _VALUES_PER_SQUARED_LENGTH),
            levels=schema.levels,
            seed=seed,
        )
    raise SchemaError(f"--features {features}: known are {', '.join(FEATURES)}")
