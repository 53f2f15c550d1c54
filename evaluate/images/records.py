"""Images in memory, synthetic or real."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...common.arguments import Location, argument, path_from
from ...common.display.representations import RedactedRepr
from ...common.errors import DataError, SchemaError
from ...common.schema.classes import numbered
from ...common.schema.image import GREY, PIXEL_LEVELS, ImageSchema
from ...common.schema.preparation import AS_STORED, Preparation
from ...common.sources import Source, SourceOptions, open_source
from ...common.storage.synthetic_folder import IMAGES, PROVENANCE
from ..given import Arrays, name_of
from ..provenance import read_provenance
from ..unpacked import require_plausible

_BATCH: Final = 4096


@dataclass(frozen=True, eq=False, repr=False)
class LabelledImages(RedactedRepr):
    """Square images and labels.

    Attributes:
        pixels: uint8 (n, channels * side * side).
        labels: int64 (n,), indices into `class_names`.
        class_names: the name of every class.
        provenance: where synthetic records come from; empty for real ones.
        channels: 1 for grey images, 3 for colour.
        preparation: how the real images were prepared, which synthetic ones resemble.
    """

    pixels: NDArray[np.uint8]
    labels: NDArray[np.int64]
    class_names: tuple[str, ...]
    provenance: dict[str, Any]
    channels: int = GREY
    preparation: Preparation = AS_STORED

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    @property
    def side(self) -> int:
        """Height and width in pixels."""
        return math.isqrt(self.pixels.shape[1] // self.channels)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of an image: (channels, side, side)."""
        return self.channels, self.side, self.side

    @property
    def records(self) -> NDArray[np.uint8]:
        """The images as a feature map sees them, uint8 (n, channels * side * side)."""
        return self.preparation.turned_back(self.pixels)

    def images(self, places: NDArray[np.int64] | None = None) -> NDArray[np.float32]:
        """Pixels as values 0..1, float32 (n, channels * side * side), of some records or of all."""
        pixels = self.pixels if places is None else self.pixels[places]
        return pixels.astype(np.float32) / np.float32(PIXEL_LEVELS)


@dataclass(frozen=True)
class LabelFiles:
    """Labels of real images in CSV files.

    Attributes:
        test: the file for the test records; None if these hold their labels themselves.
        baseline: the file for the records to train on; None likewise.
        columns: names of the columns of files and labels in both; detected if None.
    """

    test: Path | None
    baseline: Path | None
    columns: tuple[str, str] | None

    @classmethod
    def of(
        cls,
        test: Location | None,
        baseline: Location | None,
        columns: tuple[str, str] | None,
    ) -> LabelFiles:
        """Collect the arguments of `evaluate` or `write_report`.

        Raises:
            DataError: one is not a path.
            SchemaError: columns are named, but no file.
        """
        files = {"test_labels": test, "baseline_labels": baseline}
        if columns is not None and test is baseline is None:
            raise SchemaError(
                f"{argument('label_columns')} means nothing without {argument('test_labels')}"
            )
        of_test, of_baseline = (
            None if file is None else path_from(name, file, refusal=DataError)
            for name, file in files.items()
        )
        return cls(of_test, of_baseline, columns)


def read_synthetic(path: Path | Arrays) -> LabelledImages:
    """Read what `dpntk generate` wrote, any .npz with x and y, or arrays in memory.

    Raises:
        DataError: there are no such records, or they are all of one of several classes.
        SchemaError: they are not a data set of images.
    """
    if not isinstance(path, Path):
        source = open_source(path, SourceOptions(only_compared=True))
        return _of_several_classes(_collect(source, None, {}), path)
    if not path.exists():
        raise DataError(f"{path}: there is no such folder; 'dpntk generate' makes one")
    images = path / IMAGES if path.is_dir() else path
    if not images.is_file():
        raise DataError(
            f"{path}: there is neither {IMAGES} nor a table in it; 'dpntk generate' writes one"
        )
    provenance = read_provenance(path) if path.is_dir() else {}
    names: tuple[str, ...] | None = None
    preparation = AS_STORED
    if provenance:
        try:
            names = tuple(map(str, provenance.pop("classes")))
            preparation = Preparation.from_json(provenance.get("preparation", {}))
        except (KeyError, TypeError, ValueError, SchemaError) as error:
            raise DataError(f"{path / PROVENANCE}: damaged; generate the records again") from error
    known = SourceOptions(classes=len(names) if names else None, only_compared=True)
    source = open_source(images, known)
    require_plausible(images, len(source) * source.schema.record_size)
    records = replace(_collect(source, names, provenance), preparation=preparation)
    return _of_several_classes(records, path)


def _of_several_classes(records: LabelledImages, path: Path | Arrays) -> LabelledImages:
    """Refuse records of one of several classes, which teach nothing."""
    if records.classes > 1 and len(np.unique(records.labels)) < 2:
        raise DataError(
            f"{name_of(path)}: all records are of one class, so there is nothing to classify"
        )
    return records


def read_real(
    path: Path | Arrays,
    split: str,
    like: LabelledImages,
    labels: Path | None = None,
    label_columns: tuple[str, str] | None = None,
) -> LabelledImages:
    """Read real records in the form and classes of synthetic ones.

    If the synthetic records have no labels, those of real records are ignored.

    Args:
        path: of the real records, or these as arrays.
        split: which part of them to read; arrays have no parts.
        like: the synthetic records.
        labels: the CSV file with their labels, if they do not hold these themselves.
        label_columns: its columns of files and labels; detected if None.

    Raises:
        DataError: they cannot be read.
        SchemaError: they do not match the synthetic ones.
    """
    preparation = like.preparation
    known = SourceOptions(
        split=split if isinstance(path, Path) else SourceOptions().split,
        image_size=like.side,
        channels=like.channels,
        fit=preparation.fit.value,
        value_range=preparation.value_range,
        invert=preparation.inverted,
        only_compared=True,
    )
    if like.class_names == numbered(1):
        records = _collect(open_source(path, known), None, {})
        records = replace(records, labels=np.zeros_like(records.labels), class_names=numbered(1))
    else:
        known = replace(
            known,
            classes=like.classes,
            class_names=like.class_names,
            labels=labels,
            label_columns=None if labels is None else label_columns,
        )
        records = _collect(open_source(path, known), like.class_names, {})
    pixels = preparation.turned_back(records.pixels)
    return replace(records, pixels=pixels, preparation=preparation)


def _collect(
    source: Source, names: tuple[str, ...] | None, provenance: dict[str, Any]
) -> LabelledImages:
    assert isinstance(source.schema, ImageSchema)
    batches = list(source.batches(_BATCH))
    return LabelledImages(
        pixels=np.concatenate([batch.records for batch in batches]),
        labels=np.concatenate([batch.labels for batch in batches]),
        class_names=names or source.schema.classes,
        provenance=provenance,
        channels=source.schema.channels,
    )
