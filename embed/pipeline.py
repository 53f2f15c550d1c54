"""Stage one: stream the records once and keep only their class-wise feature sums."""

from __future__ import annotations

from pathlib import Path

from ..common.console import progress
from ..common.device import AUTO, choose_device
from ..common.errors import SchemaError
from ..common.sources import Source, open_source
from .accumulate import ClassSums
from .artifact import Embedding
from .drawing import ARCHITECTURES, DEFAULT_FREQUENCIES, DEFAULT_WIDTH, draw_map
from .grid import DEFAULT_CAPACITY, Grid


def embed(
    data: Path | str | Source,
    *,
    features: str = "ntk",
    arch: str = "fc_1l",
    width: int = DEFAULT_WIDTH,
    front: str | None = None,
    frequencies: int = DEFAULT_FREQUENCIES,
    length_scale: float | None = None,
    feature_seed: int = 0,
    device: str = AUTO,
    split: str = "train",
    image_size: int | None = None,
    classes: int | None = None,
    capacity: int | None = None,
) -> Embedding:
    """Reduce a data set to its exact class-wise feature sums.

    Args:
        data: a folder of class folders, a folder of IDX files, an .npz file, or an open source.
        features: the feature map: "ntk", "rff" or "hermite".
        arch: of "ntk": the network whose tangent kernel is used.
        width: its number of hidden units.
        front: of "ntk": what stands before it: "pixels" (nothing) or "scattering".
        frequencies: of "rff": how many; the dimension is twice that.
        length_scale: of "rff": of its kernel, for values 0..1; sqrt(record size / 7.5) if None.
        feature_seed: of the map's random weights. Not of any noise: that has no seed.
        device: "auto", "cpu" or "cuda". Does not change a bit of the result.
        split: "train" or "test", where the data set has both.
        image_size: resize images to this many pixels a side.
        classes: declared number of classes, for formats that only number them.
        capacity: how many records the sums must be able to hold, for shards that are to be
            added: 2^20 or n, whichever is larger, if not given.

    Returns:
        The embedding: SENSITIVE, not private in any way.

    Raises:
        DataError: the records cannot be read.
        SchemaError: they do not fit what is declared of them.
    """
    if arch not in ARCHITECTURES:
        raise SchemaError(f"--arch {arch}: known are {', '.join(ARCHITECTURES)}")
    if isinstance(data, (str, Path)):
        source = open_source(Path(data), split=split, image_size=image_size, class_count=classes)
    else:
        source = data
    schema = source.schema
    feature_map = draw_map(schema, features, front, width, frequencies, length_scale, feature_seed)
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
