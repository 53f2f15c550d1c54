"""Options of a data set: how to read it, and what is publicly known of it."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from pathlib import Path

import numpy as np

from ..arguments import argument, require_kind, set_plain
from ..display.text import counted
from ..errors import SchemaError
from ..schema.drafts.toml import A_SCHEMA, read_schema
from ..schema.image import COLOUR, GREY
from ..schema.preparation import Fit, Preparation
from ..schema.table import TableSchema


@dataclass(frozen=True)
class SourceOptions:
    """How to read a data set, and what is publicly known about it.

    Example::

        SourceOptions(schema="schema.toml")
        SourceOptions(class_names=("benign", "malignant"), image_size=32)

    Attributes:
        schema: for a table: its schema, which describes the columns and any privacy unit, or the
            path of a `schema.toml`. Every table needs one; images need none.
        split: "train" or "test", if the data set has both.
        image_size: resize every image to this many pixels a side.
        classes: declared number of classes of images; if the format names classes, the number to
            expect.
        class_names: declared names of all classes of images, including those without a record. If
            labels are texts, or all names are numbers, labels are such names; otherwise labels are
            indices into the names, from 0. Without `classes` or `class_names`, classes are looked
            up in the data, and every release says so.
        channels: 1 to read every image in shades of grey, 3 to read every image in colour. If None,
            all images must be like the first one.
        fit: how images become squares of `image_size`: "stretch", "crop" or "pad".
        value_range: which stored values of images are black and white, such as (0, 4095); values
            beyond are clipped to these. If None, 0 and 255, or 0 and 1 for floats.
        invert: whether to embed the negatives of images, for dark objects on a bright background.
            Generated images are inverted back.
        labels: for images side by side in a folder: the CSV file that holds their labels, or its
            address in object storage.
        label_columns: names of its columns of files and labels; found automatically if None.
        only_compared: whether records are only compared with others, not embedded. Then images with
            bytes 0 and 1 alone are read as black and nearly black; otherwise they are refused if no
            range is declared. Images beside class folders, or beside the folder of a part, are then
            passed over in any case.

    Lists become tuples, and NumPy's whole numbers become plain ones.

    Raises:
        SchemaError: an option has the wrong type, or options contradict each other.
    """

    schema: TableSchema | Path | str | None = None
    split: str = "train"
    image_size: int | None = None
    classes: int | None = None
    class_names: tuple[str, ...] | None = None
    channels: int | None = None
    fit: str | None = None
    value_range: tuple[float, float] | None = None
    invert: bool = False
    labels: Path | str | None = None
    label_columns: tuple[str, str] | None = None
    only_compared: bool = False

    def __post_init__(self) -> None:
        set_plain(self, **{name: _plain(value) for name, value in vars(self).items()})
        for name, value, kind, wanted in (
            ("schema", self.schema, (TableSchema, Path, str, type(None)), A_SCHEMA),
            ("image_size", self.image_size, (int, type(None)), "a number of pixels, such as 28"),
            ("classes", self.classes, (int, type(None)), "a number of classes, such as 10"),
            ("class_names", self.class_names, (tuple, type(None)), "a tuple: ('cat', 'dog')"),
            ("invert", self.invert, bool, "True or False"),
            ("only_compared", self.only_compared, bool, "True or False"),
            ("labels", self.labels, (Path, str, type(None)), "the path of a CSV file"),
        ):
            require_kind(name, value, kind, wanted, refusal=SchemaError)
        for name in self.class_names or ():
            require_kind("a class name", name, str, "a text", refusal=SchemaError)
        if self.channels not in (None, GREY, COLOUR):
            raise SchemaError("channels: 1 for grey images, 3 for colour")
        if self.split not in ("train", "test"):
            raise SchemaError("split: it is 'train' or 'test'")
        if self.fit is not None and self.fit not in [fit.value for fit in Fit]:
            raise SchemaError("fit: it is 'stretch', 'crop' or 'pad'")
        if self.value_range is not None and not _is_pair(self.value_range, Real):
            raise SchemaError("value_range: two numbers, black and white, such as (0, 4095)")
        if self.fit is not None and self.image_size is None:
            size = argument("image_size")
            raise SchemaError(
                f"{argument('fit')} says how images become squares of {size}: give both"
            )
        if self.label_columns is not None:
            if not _is_pair(self.label_columns, str):
                raise SchemaError("label_columns: two names of columns: ('file', 'label')")
            if self.labels is None:
                raise SchemaError(
                    f"{argument('label_columns')} means nothing without {argument('labels')}"
                )
        _ = self.preparation  # refuses an invalid range

    @property
    def preparation(self) -> Preparation:
        """The processing of every image that these options ask for.

        Raises:
            SchemaError: the range of values is invalid.
        """
        value_range = None
        if self.value_range is not None:
            low, high = self.value_range
            value_range = float(low), float(high)
        fit = Fit.STRETCH if self.fit is None else Fit(self.fit)
        return Preparation(fit, value_range, self.invert)

    def table(self) -> TableSchema | None:
        """The schema; None if the data are images.

        Raises:
            SchemaError: it cannot be read or used, or an option for images is given.
        """
        if self.schema is None:
            names, classes = self.class_names, self.classes
            if names is not None and classes not in (None, len(names)):
                raise SchemaError(
                    f"{argument('class_names')} names {counted(len(names), 'class', 'classes')}, "
                    f"but {argument('classes')} declares {classes}: leave out {argument('classes')}"
                )
            return None
        of_images = (
            self.image_size, self.classes, self.class_names, self.channels, self.fit,
            self.value_range, self.invert or None, self.labels,
        )  # fmt: skip
        if any(value is not None for value in of_images):
            channels = argument("channels", option="--grey, --colour")
            raise SchemaError(
                f"{argument('image_size')}, {argument('fit')}, {argument('value_range')}, "
                f"{argument('invert')}, {channels}, {argument('classes')}, "
                f"{argument('class_names')} and {argument('labels')} are for images: for a table "
                "the schema says all"
            )
        if isinstance(self.schema, TableSchema):
            return self.schema
        return read_schema(Path(self.schema))


def _plain(value: object) -> object:
    """Values such as `labels.max() + 1` or a list of names, as plain types."""
    if isinstance(value, list):
        return tuple(value)
    return int(value) if isinstance(value, np.integer) else value


def _is_pair(value: object, kind: type) -> bool:
    """Whether something is a pair of numbers or texts; True and False are no numbers."""
    return (
        isinstance(value, tuple)
        and len(value) == 2
        and all(isinstance(each, kind) and not isinstance(each, bool) for each in value)
    )
