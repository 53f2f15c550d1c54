"""Options that several commands share: of the data that are read, and of a feature map."""

from __future__ import annotations

import csv
import functools
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final

import click

from ...common.cli.options import FiniteRange
from ...common.console import notice
from ...common.errors import SchemaError
from ...common.features.ntk.architectures import ARCHITECTURES
from ...common.features.ntk.layers import ACTIVATIONS
from ...common.features.ntk.scattering import FRONTS
from ...common.features.registry import FEATURES
from ...common.schema import Schema
from ...common.schema.image import ImageSchema, numbered
from ...common.schema.table import TableSchema
from ...common.schema.toml import read_schema
from ..feature_options import (
    DEFAULT_ACTIVATION,
    DEFAULT_ARCH,
    DEFAULT_FREQUENCIES,
    DEFAULT_MARGINALS,
    PRESETS,
    MapOptions,
)

OF_THE_MAP: Final = tuple(entry.name for entry in fields(MapOptions))
"""Names of the parameters that `map_options` adds."""
_WIDTHS: Final = ", ".join(
    f"{'_'.join(map(str, widths))} for {arch}" for arch, widths in ARCHITECTURES.items()
)


def map_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --features, --arch and so on, and hand their meaning over as `options`."""

    @click.option(
        "--features", type=click.Choice(FEATURES), default=FEATURES[0], show_default=True,
        help="Feature map: tangent features of a network, random Fourier features (DP-MERF), "
        "Hermite features (DP-HP), or what a pre-trained module of yours says of an image "
        "(DP-MEPF).",
    )  # fmt: skip
    @click.option(
        "--arch", type=click.Choice(list(ARCHITECTURES)),
        help="Network whose tangent kernel is used: one or two hidden layers, linear or "
        f"convolutions [default: {DEFAULT_ARCH}]",
    )  # fmt: skip
    @click.option(
        "--width", metavar="W[_W2]",
        help="Units or channels of its hidden layers, as in 3000_200 "
        f"[default: {_WIDTHS}; 200 for fc_1l on tables]",
    )  # fmt: skip
    @click.option(
        "--activation", type=click.Choice(ACTIVATIONS),
        help=f"Its elementwise function [default: {DEFAULT_ACTIVATION}]",
    )  # fmt: skip
    @click.option(
        "--front", type=click.Choice(FRONTS),
        help="What stands before it: nothing, or oriented filters beside the pixels "
        "[default: scattering; pixels for cnn]",
    )  # fmt: skip
    @click.option(
        "--frequencies", type=click.IntRange(1, 1 << 20), default=DEFAULT_FREQUENCIES,
        show_default=True, help="For rff: how many; the dimension is twice that.",
    )  # fmt: skip
    @click.option(
        "--length-scale", type=FiniteRange(0, min_open=True), metavar="L",
        help="For rff: of its Gaussian kernel, for values 0 to 1. Do not look it up in the "
        "records [default: square root of a 7.5th of the pixels, or of the numeric columns]",
    )  # fmt: skip
    @click.option(
        "--marginals", type=FiniteRange(0, 1, max_open=True), metavar="WEIGHT",
        help="For tables: weight of one-way marginals in each feature; 0 leaves them out "
        f"[default: {DEFAULT_MARGINALS}]",
    )  # fmt: skip
    @click.option(
        "--pairs", multiple=True, metavar="A,B",
        help="For tables: two columns whose two-way marginal is taken as well, out of the same "
        "weight; may be given several times. Or all.",
    )  # fmt: skip
    @click.option(
        "--preset", type=click.Choice(list(PRESETS)),
        help="The network that DP-NTK's authors tuned on that data set, instead of --arch, --width "
        "and --front. For these data no guarantee covers the choice.",
    )  # fmt: skip
    @functools.wraps(command)
    def with_options(preset: str | None, **given: Any) -> None:  # noqa: ANN401 - handed on
        options = MapOptions(**{name: given.pop(name) for name in OF_THE_MAP})
        if preset:
            options.refuse_network(f"--preset {preset} says which network")
            options = replace(options, **PRESETS[preset])
            notice(f"--preset {preset}: tuned on that data set, for which no guarantee covers it")
        command(options=options, **given)

    return with_options


def _names(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> tuple[str, ...] | None:
    """The names in a line of comma-separated values."""
    if text is None:
        return None
    try:
        (names,) = csv.reader([text], skipinitialspace=True, strict=True)
    except (csv.Error, ValueError) as error:
        raise click.BadParameter("write it as in cat,dog,'\"eel, moray\"'") from error
    names = [name.strip() for name in names]
    if not all(names):
        raise click.BadParameter("a class without a name: write it as in cat,dog,eel")
    return tuple(names)


_OPTIONS: Final = (
    click.option(
        "--split", type=click.Choice(["train", "test"]), default="train", show_default=True,
        help="Which part to read, where the data have both.",
    ),
    click.option(
        "--image-size", type=click.IntRange(8, 64), metavar="PIXELS",
        help="Resize every image to this many pixels a side.",
    ),
    click.option(
        "--classes", type=click.IntRange(1, 10_000), metavar="N",
        help="Declare the number of classes of images whose labels are numbers; otherwise it is "
        "looked up in the labels, and the release says that it was.",
    ),
    click.option(
        "--class-names", metavar="NAME,NAME,...", callback=_names,
        help="Declare the names of all classes of images, those without a record too; otherwise "
        "they are looked up in the folders, or are numbers. A name with a comma is put in double "
        "quotes.",
    ),
    click.option(
        "--schema", "schema_path", type=click.Path(path_type=Path), metavar="SCHEMA.TOML",
        help="DATA is a table, and this says what is publicly known of it; 'dpntk schema' drafts "
        "it.",
    ),
    click.option(
        "--accept-from-data", is_flag=True,
        help="Take the schema as it was drafted from the data; every release will say that "
        "what it says of the columns is outside the guarantee.",
    ),
    click.option(
        "--threads", type=click.IntRange(1, 4096), metavar="N",
        help="Threads to compute with [default: this process's share of the cores]",
    ),
)  # fmt: skip


def source_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of `_OPTIONS`, which say what the data are and what is known of them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def given_schema(path: Path | None, *, accept_from_data: bool) -> TableSchema | None:
    """The schema that --schema and --accept-from-data speak of; None if there is no table.

    Raises:
        SchemaError: it cannot be used as it is, or there is nothing to accept.
    """
    if path is not None:
        return read_schema(path, accept_from_data=accept_from_data)
    if accept_from_data:
        raise SchemaError("--accept-from-data means nothing without --schema")
    return None


def say_what_was_looked_up(schema: Schema) -> None:
    """Tell the owner what the guarantee does not cover because it was read off the data."""
    if schema.from_data:
        declared = "--schema"
        if isinstance(schema, ImageSchema):
            by_number = schema.classes == numbered(len(schema.classes))
            declared = "--classes" if by_number else "--class-names"
        notice(
            f"looked up in the data, so outside the guarantee: {', '.join(schema.from_data)}; "
            f"declare with {declared}"
        )
