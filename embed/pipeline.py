"""Stage one: stream the records once and keep only their class-wise feature sums."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..common.console import progress
from ..common.errors import SchemaError
from ..common.features.base import FeatureMap
from ..common.features.perceptual import PerceptualFeatures
from ..common.features.torchscript import PublicModule
from ..common.runtime.device import AUTO, choose_device
from ..common.schema import Schema
from ..common.sources import Source, SourceOptions, open_source, require_public_side
from .exact.grid import DEFAULT_CAPACITY, Grid
from .feature_options import FeatureOptions
from .run.job import Job
from .sums.file import Embedding


def embed(
    data: Path | str | Source,
    features: FeatureOptions | FeatureMap | None = None,
    source: SourceOptions | None = None,
    *,
    device: str = AUTO,
    capacity: int | None = None,
    carry_out: Callable[[Job], Embedding] | None = None,
) -> Embedding:
    """Reduce a data set to its exact class-wise feature sums.

    Args:
        data: images or a table, as docs/guide/data.md and docs/guide/tables.md say; or an open
            source.
        features: which feature map; or a map of one's own, drawn without looking at the records
            (`tangent_features_of` makes one of a torch network). Tangent features if None.
        source: how to read the data, and what is publicly known of them; of a table at least the
            schema.
        device: "auto", "cpu" or "cuda". Does not change a bit of the result.
        capacity: how many records the sums must be able to hold, for shards that are to be
            added: 2^20 or n, whichever is larger, if not given.
        carry_out: how to pass over the records; `WorkFolder.carry_out` survives interruptions and
            shares the work with other processes. In memory and in one go if None.

    Returns:
        The embedding: SENSITIVE, not private in any way.

    Raises:
        DataError: the records cannot be read.
        SchemaError: they do not fit what is declared of them.
        ModuleError: the module cannot be used.
        DeviceError: there is no such device here.
    """
    if isinstance(data, (str, Path)):
        records = open_source(data, source or SourceOptions())
    elif source is not None:
        raise SchemaError("source options: the data are an open source, which has its own already")
    else:
        records = data
    require_public_side(records)
    schema = records.schema
    feature_map, module = _feature_map(features or FeatureOptions(), schema)
    if feature_map.record_size != schema.record_size:
        raise SchemaError(
            f"records have {schema.record_size} values, but the feature map takes "
            f"{feature_map.record_size}"
        )
    grid = Grid.for_capacity(schema.levels, capacity or max(len(records), DEFAULT_CAPACITY))
    job = Job(records, feature_map, grid, choose_device(device), module)
    return (carry_out or _in_one_go)(job)


def _feature_map(
    features: FeatureOptions | FeatureMap, schema: Schema
) -> tuple[FeatureMap, PublicModule | None]:
    """The map, and the module that computes it if it is one of a module."""
    if isinstance(features, FeatureOptions):
        return features.prepare(schema)
    if isinstance(features, PerceptualFeatures):
        raise SchemaError(
            'perceptual features need their module: FeatureOptions("perceptual", module=FILE)'
        )
    return features, None


def _in_one_go(job: Job) -> Embedding:
    class_sums = job.class_sums()
    with progress("embedding", len(job.source), "records") as advance:
        for batch in job.source.batches(class_sums.chunk_size):
            class_sums.add(batch.records, batch.labels)
            advance(len(batch.labels), "")
    return job.embedding(class_sums.totals)
