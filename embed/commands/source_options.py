"""The options that say how to read the data, shared by several commands."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from ...common.cli.options import (
    DataPath,
    all_of,
    label_columns_option,
    names_in,
    schema_option,
    threads_option,
)
from ...common.cli.sections import image_option, table_option
from ...common.display.console import notice
from ...common.errors import SchemaError
from ...common.schema import Schema
from ...common.schema.classes import numbered
from ...common.schema.drafts.toml import read_schema
from ...common.schema.image import COLOUR, GREY, LARGEST_SIDE, SMALLEST_SIDE, ImageSchema
from ...common.schema.preparation import Fit
from ...common.schema.privacy_unit import PrivacyUnit
from ...common.sources.options import SourceOptions


def _range(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> tuple[float, float] | None:
    """The two numbers in LOW,HIGH."""
    if text is None:
        return None
    try:
        low, high = map(float, text.split(","))
    except ValueError as error:
        raise click.BadParameter("write it as in 0,4095: black, and then white") from error
    return low, high


_OPTIONS: Final = all_of(
    click.option(
        "--split", type=click.Choice(["train", "test"]), default="train", show_default=True,
        help="Which part to read, if the data have both.",
    ),
    image_option(
        "--image-size", type=click.IntRange(SMALLEST_SIDE, LARGEST_SIDE), metavar="PIXELS",
        help="Resize every image, of whatever size, to a square of this many pixels a side.",
    ),
    image_option(
        "--fit", type=click.Choice([fit.value for fit in Fit]),
        help="With --image-size: how an image that is not square becomes one: stretched, cropped "
        "to its middle, or padded with black [default: stretch]",
    ),
    image_option(
        "--value-range", metavar="LOW,HIGH", callback=_range,
        help="Declare which stored values are black and white, such as 0,4095 or -1000,400; values "
        "beyond are cut to these. Needed for more than 8 bits a pixel, and for floats beyond 0 to "
        "1. Do not derive it from the records.",
    ),
    image_option(
        "--invert", is_flag=True,
        help="Embed the negatives of images that are dark on a bright ground, such as ink on "
        "paper: noise hides less of them. Generated images are turned back.",
    ),
    image_option(
        "--grey", "channels", type=int, flag_value=GREY,
        help="Read every image as shades of grey; otherwise colour images stay in colour.",
    ),
    image_option(
        "--colour", "channels", type=int, flag_value=COLOUR,
        help="Read every image as colours, grey ones too.",
    ),
    image_option(
        "--classes", type=click.IntRange(1, 10_000), metavar="N",
        help="Declare the number of classes of images whose labels are numbers; otherwise it is "
        "looked up in the labels, and the release says that it was.",
    ),
    image_option(
        "--class-names", metavar="NAME,NAME,...", callback=names_in,
        help="Declare the names of all classes of images, also of classes without a record; "
        "otherwise they are looked up in the folders or labels. Labels that are texts are such "
        "names, and so are numbers if all names are numbers (1,2,3); other numbers are places of "
        "names in this list, from 0. Put a name with a comma in double quotes.",
    ),
    image_option(
        "--labels", type=DataPath(), metavar="FILE",
        help="CSV file with the labels of images that lie side by side in a folder. It has a "
        "header, a column of file names and a column of labels.",
    ),
    label_columns_option,
    schema_option(
        "DATA is a table, and this says what is publicly known about it; 'dpntk schema' drafts it."
    ),
    table_option(
        "--accept-from-data", is_flag=True,
        help="Accept what 'dpntk schema' looked up in the data and nobody has confirmed; every "
        "release will say that it is outside the guarantee.",
    ),
    threads_option,
)  # fmt: skip


def source_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --split, --classes and so on, and pass them on as `source`."""

    @functools.wraps(command)
    def with_options(
        split: str, image_size: int | None, fit: str | None,
        value_range: tuple[float, float] | None, invert: bool, channels: int | None,
        classes: int | None, class_names: tuple[str, ...] | None, labels: Path | str | None,
        label_columns: tuple[str, str] | None, schema: Path | None,
        **given: Any,  # noqa: ANN401 - handed on
    ) -> None:  # fmt: skip
        source = SourceOptions(
            schema, split, image_size, classes, class_names, channels,
            fit=fit, value_range=value_range, invert=invert,
            labels=labels, label_columns=label_columns,
        )  # fmt: skip
        command(source=source, **given)

    return _OPTIONS(with_options)


def with_schema(
    source: SourceOptions, *, accept_from_data: bool, privacy_unit: PrivacyUnit | None = None
) -> SourceOptions:
    """The options with the schema given by --schema and --accept-from-data, if any.

    Args:
        source: the options from `source_options`.
        accept_from_data: whether to accept what the draft looked up in the data.
        privacy_unit: the unit given by --unit; if None, the schema's.

    Raises:
        SchemaError: the schema cannot be used as it is, or an option needs a schema.
    """
    if isinstance(source.schema, Path):
        schema = read_schema(
            source.schema, accept_from_data=accept_from_data, privacy_unit=privacy_unit
        )
        return replace(source, schema=schema)
    if accept_from_data:
        raise SchemaError("--accept-from-data means nothing without --schema")
    if privacy_unit is not None:
        raise SchemaError("--unit is for tables: say with --schema what is known of one")
    return source


def say_what_was_looked_up(schema: Schema) -> None:
    """Tell the owner what the guarantee does not cover because it was looked up in the data."""
    if schema.from_data:
        declared = "--schema"
        if isinstance(schema, ImageSchema):
            by_number = schema.classes == numbered(len(schema.classes))
            declared = "--classes" if by_number else "--class-names"
        notice(
            f"looked up in the data, so outside the guarantee: {', '.join(schema.from_data)}; "
            f"declare with {declared}"
        )
