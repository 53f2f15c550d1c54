"""Stage one: stream the records once and keep only their class-wise feature sums."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..common.arguments import argument, integer, require_kind
from ..common.display.console import progress
from ..common.errors import SchemaError
from ..common.features.base import FeatureMap
from ..common.features.perceptual import PerceptualFeatures
from ..common.features.torchscript import PublicModule
from ..common.runtime.device import AUTO, choose_device
from ..common.schema import Schema
from ..common.sources import (
    InMemoryData,
    Source,
    SourceOptions,
    encoded_by,
    open_source,
    require_public_form,
    require_same_data,
    with_bounded_units,
)
from .exact.base import EXACT_FORMS
from .exact.grid import DEFAULT_CAPACITY, Grid
from .feature_options.base import FeatureOptions
from .feature_options.tangent import TangentOptions
from .run.job import Job
from .sums.file import Embedding, require_storable


def embed(
    data: Path | str | InMemoryData | Source,
    features: FeatureOptions | FeatureMap | None = None,
    source: SourceOptions | None = None,
    *,
    device: str = AUTO,
    capacity: int | None = None,
    carry_out: Callable[[Job], Embedding] | None = None,
) -> Embedding:
    """Reduce a data set to its exact class-wise feature sums.

    S = sum_i phi(x_i) y_i^T, the sum over records x_i with one-hot labels y_i (Yang et al., arXiv
    2303.01687, section 4), in one pass over the data.

    Example::

        patients = embed("patients.csv", source=SourceOptions(schema="schema.toml"))
        digits = embed("mnist/", TangentOptions(width=800), SourceOptions(classes=10))

    Guarantee:
        None: an embedding is as sensitive as the records. The release's guarantee rests on two
        facts: each sum is exact, and one record changes it by the difference of two vectors of norm
        at most 1. (docs/privacy/proofs.md, statements 3 and 4.) If rows are protected together, no
        more rows of a privacy unit are added up than the schema declares (statement 21). Everything
        in `features` and `source` counts as public: do not look it up in the records.

    Args:
        data: the path of images or of a table (docs/guide/data.md and docs/guide/tables.md); an
            address in object storage, such as "s3://bucket/folder"; a table in memory: a pandas or
            Polars DataFrame or an Arrow table; a pair of arrays: images (n, height, width), uint8
            or floats in [0, 1], and labels (n,), whole numbers from 0; or what `open_source`
            returned. The same records give the same embedding, whatever form they come in.
        features: the feature map: options such as `TangentOptions`, the default, or your own map,
            drawn without looking at the records (see `tangent_features_of`).
        source: how to read the data, and what is publicly known about them. A table needs a schema.
        device: "auto", "cpu" or "cuda". It does not change a bit of the result.
        capacity: how many records the sums must have room for, if shards are to be added up later;
            if None, 2^20 or n, whichever is larger.
        carry_out: how to make the pass: that of a `dpntk.embed.run.work_folder.WorkFolder` survives
            interruptions and shares the work with other processes. If None, the pass runs in
            memory, in one go.

    Returns:
        The embedding, with sums int64 (d, c) for a map of dimension d and c classes: SENSITIVE, not
        private in any way.

    Raises:
        DataError: the records cannot be read, or their files changed in the meantime.
        SchemaError: they do not fit what is declared about them, or the options make no sense.
        ModuleError: the module cannot be used.
        DeviceError: this machine has no such device.
    """
    if source is not None:
        wanted = "SourceOptions, such as SourceOptions(schema='schema.toml')"
        require_kind("source", source, SourceOptions, wanted, refusal=SchemaError)
    if capacity is not None:
        capacity = integer("capacity", capacity, "a number of records", refusal=SchemaError)
    if not isinstance(data, Source):
        records = open_source(data, source or SourceOptions())
    elif source is not None:
        raise SchemaError("source options: the data are an open source, which has its own already")
    else:
        records = data
    require_public_form(records)
    before = None if _in_memory(data) else (records, records.fingerprint())
    records = with_bounded_units(records)
    features = TangentOptions() if features is None else features
    if isinstance(features, FeatureOptions):
        records = encoded_by(records, features.encoding(records.schema))
    schema = records.schema
    feature_map, module = _feature_map(features, schema)
    if feature_map.record_size != schema.record_size:
        raise SchemaError(
            f"records have {schema.record_size} values, but the feature map takes "
            f"{feature_map.record_size}"
        )
    if schema.privacy_unit is not None and capacity is None and len(records) > DEFAULT_CAPACITY:
        raise SchemaError(
            "how many rows there are is protected, and a grid is chosen by their number: declare "
            f"with {argument('capacity')} how many there could be"
        )
    room = max(len(records), DEFAULT_CAPACITY) if capacity is None else capacity
    grid = Grid.for_capacity(schema.levels, room)
    require_storable(schema, feature_map, grid)
    job = Job(records, feature_map, grid, choose_device(device), module)
    embedding = (carry_out or _in_one_go)(job)
    if before is not None:
        require_same_data(*before)
    return embedding


def _in_memory(data: Path | str | InMemoryData | Source) -> bool:
    """Whether the data are the caller's own objects, which nobody else changes."""
    return not isinstance(data, str | Path | Source)


def _feature_map(
    features: FeatureOptions | FeatureMap, schema: Schema
) -> tuple[FeatureMap, PublicModule | None]:
    """The feature map, and the module that computes it, if any."""
    if isinstance(features, FeatureOptions):
        return features.prepare(schema)
    if isinstance(features, PerceptualFeatures):
        raise SchemaError('perceptual features need their module: PerceptualOptions(module="FILE")')
    wanted = (
        "options, such as TangentOptions(width=400), or a feature map (tangent_features_of makes "
        "one of a torch network)"
    )
    require_kind("features", features, tuple(EXACT_FORMS.entries()), wanted, refusal=SchemaError)
    return features, None


def _in_one_go(job: Job) -> Embedding:
    class_sums = job.class_sums()
    with progress("embedding", len(job.source), "records") as advance:
        for batch in job.source.batches(class_sums.chunk_size):
            class_sums.add(batch.records, batch.labels)
            advance(len(batch.labels), "")
    return job.embedding(class_sums.totals)
