"""The training part of a data set of images, in memory, as benchmarks draw from it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dpntk.common.schema.classes import numbered
from dpntk.common.schema.image import ImageSchema
from dpntk.common.sources import open_source
from dpntk.common.sources.options import SourceOptions
from dpntk.evaluate.images.records import LabelledImages


def training_part(data: Path, classes: int = 10) -> LabelledImages:
    """All its records, with classes named by their numbers."""
    source = open_source(data, SourceOptions(classes=classes))
    assert isinstance(source.schema, ImageSchema)
    batches = list(source.batches(4096))
    images = np.concatenate([batch.records for batch in batches])
    labels = np.concatenate([batch.labels for batch in batches])
    return LabelledImages(images, labels, numbered(classes), {}, source.schema.channels)
