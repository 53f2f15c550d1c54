"""Stage one: stream the records once and keep only their class-wise feature sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..common.console import progress
from ..common.errors import SchemaError
from ..common.features.base import FeatureMap
from ..common.features.perceptual import PerceptualFeatures
from ..common.features.torchscript import PublicModule, load_module, module_for
from ..common.runtime.device import AUTO, choose_device
from ..common.schema import Schema
from ..common.schema.image import ImageSchema
from ..common.schema.table import TableSchema
from ..common.sources import Source, open_source, require_public_side
from .exact.grid import DEFAULT_CAPACITY, Grid
from .feature_options import DEFAULT_FREQUENCIES, MapOptions
from .run.job import Job
from .sums.file import Embedding


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
    module: Path | None = None,
    module_is_public: bool = False,
    device: str = AUTO,
    split: str = "train",
    image_size: int | None = None,
    classes: int | None = None,
    class_names: tuple[str, ...] | None = None,
    capacity: int | None = None,
    carry_out: Callable[[Job], Embedding] | None = None,
    table: TableSchema | None = None,
    marginals: float | None = None,
    pairs: Sequence[str] = (),
) -> Embedding:
    """Reduce a data set to its exact class-wise feature sums.

    Args:
        data: images or, with `table`, a table, as docs/guide/data.md and docs/guide/tables.md say;
            or an open source.
        features: the feature map: "ntk", "rff", "hermite" or "perceptual"; or a map of one's own,
            drawn without looking at the records (`tangent_features_of` makes one of a torch
            network).
        arch: of "ntk": the network whose tangent kernel is used; for this and the next five, see
            `feature_options.MapOptions`.
        width: of "ntk": of its hidden layers.
        activation: of "ntk": its elementwise function.
        front: of "ntk": what stands before it.
        frequencies: of "rff": how many; the dimension is twice that.
        length_scale: of "rff": of its kernel, for values 0..1; see `feature_options.MapOptions`.
        feature_seed: of the map's random weights. Not of any noise: that has no seed.
        module: of "perceptual": a TorchScript archive of a module that takes float32 images
            (b, 1, side, side), values 0..1, to a tensor (b, ...). It always runs on the processor.
        module_is_public: of "perceptual": the owner's word that the module was trained on public
            data alone. The guarantee does not cover what it was trained on.
        device: "auto", "cpu" or "cuda". Does not change a bit of the result.
        split: "train" or "test", where the data set has both.
        image_size: resize images to this many pixels a side.
        classes: declared number of classes.
        class_names: declared names of all classes of images, those without a record too.
        capacity: how many records the sums must be able to hold, for shards that are to be
            added: 2^20 or n, whichever is larger, if not given.
        carry_out: how to pass over the records; `WorkFolder.carry_out` survives interruptions and
            shares the work with other processes. In memory and in one go if None.
        table: the schema, if the data are a table in CSV or Parquet files.
        marginals: of "ntk" on tables: see `feature_options.MapOptions`.
        pairs: likewise.

    Returns:
        The embedding: SENSITIVE, not private in any way.

    Raises:
        DataError: the records cannot be read.
        SchemaError: they do not fit what is declared of them.
        ModuleError: the module cannot be used.
        DeviceError: there is no such device here.
    """
    if isinstance(data, (str, Path)):
        source = open_source(
            Path(data),
            split=split,
            image_size=image_size,
            class_count=classes,
            class_names=class_names,
            table=table,
        )
    else:
        source = data
    require_public_side(source)
    schema = source.schema
    options = MapOptions(
        features if isinstance(features, str) else "own",
        arch=arch,
        width=width,
        activation=activation,
        front=front,
        frequencies=frequencies,
        length_scale=length_scale,
        marginals=marginals,
        pairs=pairs,
    )
    file = _ModuleFile(module, module_is_public)
    opened: PublicModule | None = None
    feature_map: FeatureMap
    if not isinstance(features, str):
        options.refuse_network("a feature map of one's own has its network already")
        options.refuse_fourier("it goes with --features rff")
        options.refuse_marginals("it goes beside a feature map that dpntk draws")
        feature_map, opened = features, file.open_for(features)
    elif features == "perceptual":
        options.refuse_network(f"it goes with --features ntk, not {features}")
        options.refuse_fourier(f"it goes with --features rff, not {features}")
        options.refuse_marginals("it goes with --features ntk")
        opened = file.open(schema)
        feature_map = opened.feature_map
    else:
        file.require_nothing(f"it goes with --features perceptual, not {features}")
        feature_map = options.draw(schema, feature_seed)
    if feature_map.record_size != schema.record_size:
        raise SchemaError(
            f"records have {schema.record_size} values, but the feature map takes "
            f"{feature_map.record_size}"
        )
    grid = Grid.for_capacity(schema.levels, capacity or max(len(source), DEFAULT_CAPACITY))
    job = Job(source, feature_map, grid, choose_device(device), opened)
    return (carry_out or _in_one_go)(job)


def _in_one_go(job: Job) -> Embedding:
    class_sums = job.class_sums()
    with progress("embedding", len(job.source), "records") as advance:
        for batch in job.source.batches(class_sums.chunk_size):
            class_sums.add(batch.records, batch.labels)
            advance(len(batch.labels), "")
    return job.embedding(class_sums.totals)


@dataclass(frozen=True)
class _ModuleFile:
    """What was said of a module: where it is, and that it may be used."""

    path: Path | None
    is_public: bool

    def require_nothing(self, why: str) -> None:
        if self.path is not None:
            raise SchemaError(f"--module {self.path}: {why}")
        if self.is_public:
            raise SchemaError(f"--module-is-public: {why}")

    def open(self, schema: Schema) -> PublicModule:
        if not isinstance(schema, ImageSchema):
            raise SchemaError("--features perceptual: it is for images, not for tables")
        return load_module(self._declared(), (1, schema.side, schema.side), schema.levels)

    def open_for(self, feature_map: FeatureMap) -> PublicModule | None:
        if not isinstance(feature_map, PerceptualFeatures):
            self.require_nothing("it goes with perceptual features")
            return None
        return module_for(feature_map, self._declared())

    def _declared(self) -> Path:
        """The file, if the owner says that no epsilon needs to cover what it was trained on."""
        if self.path is None:
            raise SchemaError("--features perceptual: name the module's file with --module FILE")
        if not self.is_public:
            raise SchemaError(
                f"--module {self.path}: no epsilon covers the data that it was trained on; add "
                "--module-is-public if all of them are public"
            )
        return self.path
