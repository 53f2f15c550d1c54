"""Options shared by several commands, and option types that click lacks."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from ..address import is_address, require_local, require_plain
from ..arguments import MOST, MOST_SEED
from ..display.text import typed, without_counts
from ..errors import DataError
from .sections import Section, image_option, running_option, sectioned_option, table_option

Decorator = Callable[[Callable[..., None]], Callable[..., None]]
"""A function that adds an option to a command's function."""


def all_of(*options: Decorator) -> Decorator:
    """Combine several options into one decorator.

    Args:
        options: the options, in the order of --help.
    """

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(options):
            command = option(command)
        return command

    return with_options


class LocalPath(click.Path):
    """A local path; addresses in object storage are refused, because they could pass for one."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(
        self,
        value: Any,  # noqa: ANN401 - as click has it
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:  # noqa: ANN401
        """The path given by `value`."""
        require_local(value, refusal=DataError)
        return super().convert(value, param, ctx)


class DataPath(LocalPath):
    """The place of records: a local path, or an address in object storage, as text."""

    def convert(
        self,
        value: Any,  # noqa: ANN401 - as click has it
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:  # noqa: ANN401
        """The path or address given by `value`."""
        if is_address(value):
            require_plain(value, refusal=DataError)
            return value
        return super().convert(value, param, ctx)


PATH: Final = LocalPath()


def count_from(least: int) -> click.IntRange:
    """A count of records, steps or threads, up to the largest that libraries accept."""
    return click.IntRange(least, MOST)


def names_in(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> tuple[str, ...] | None:
    """An option's callback that parses names from a line of comma-separated values."""
    if text is None:
        return None
    try:
        (names,) = csv.reader([text], skipinitialspace=True, strict=True)
    except (csv.Error, ValueError) as error:
        raise click.BadParameter("write it as in cat,dog,'\"eel, moray\"'") from error
    names = [name.strip() for name in names]
    if not names or not all(names):
        raise click.BadParameter("an empty name: write it as in cat,dog,eel")
    return tuple(names)


def _two_names(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> tuple[str, str] | None:
    names = names_in(context, parameter, text)
    if names is None:
        return None
    if len(names) != 2:
        raise click.BadParameter("name two columns, that of files first: image_id,diagnosis")
    return names[0], names[1]


label_columns_option: Final = image_option(
    "--label-columns", metavar="FILE,LABEL", callback=_two_names,
    help="Which columns of a CSV file of labels hold the names of files and the labels [default: "
    "those with usual names]",
)  # fmt: skip
"""For all commands that read images with labels in a CSV file."""


@dataclass
class ErrorLine:
    """Settings of the error line of a failing command; the object of click's context.

    Attributes:
        values: whether the line may quote the records' values.
    """

    values: bool = True


def _without_values(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    line = ctx.find_object(ErrorLine)
    if wanted and line is not None:
        line.values = False
        ctx.with_resource(without_counts())


quiet_values_option: Final = running_option(
    "--quiet-values", is_flag=True, is_eager=True, expose_value=False, callback=_without_values,
    help="Leave values of the records out of error messages, and numbers of records out of "
    "notes, so that logs hold none.",
)  # fmt: skip
"""For all commands that read records."""


def elsewhere(usual: str, instead: str) -> str:
    """An addition to a suggested command, if its usual output exists already.

    Args:
        usual: the command's default output.
        instead: another name.
    """
    return f" -o {typed(Path(instead))}" if Path(usual).exists() else ""


def output_option(what: str, default: str | None = None) -> Decorator:
    """Add -o and --output; the command gets `output`, a path or None.

    Args:
        what: the help.
        default: the default output; None if the command chooses a place.
    """
    return click.option(
        "-o", "--output", type=PATH, default=default, show_default=True, help=what
    )  # fmt: skip


def overwrite_option(what: str) -> Decorator:
    """Add --overwrite; the command gets `overwrite`.

    Args:
        what: the help.
    """
    return click.option("--overwrite", is_flag=True, help=what)


def schema_option(what: str, *, required: bool = False) -> Decorator:
    """Add --schema; the command gets `schema`, a path or None.

    Args:
        what: the help.
        required: whether the option is required.
    """
    return table_option("--schema", type=PATH, required=required, metavar="SCHEMA.TOML", help=what)


def module_option(what: str, section: Section | None = None) -> Decorator:
    """Add --module, for perceptual features; the command gets `module`, a path or None.

    Args:
        what: the help.
        section: of --help.
    """
    return sectioned_option("--module", type=PATH, metavar="FILE", help=what, section=section)


def seed_option(
    what: str,
    default: int | None = None,
    name: str = "--seed",
    section: Section | None = None,
) -> Decorator:
    """Add --seed; the command gets `seed`. Noise has no seed.

    Args:
        what: the help.
        default: the seed if none is given.
        name: the option's name.
        section: the section of --help.
    """
    return sectioned_option(
        name, type=click.IntRange(0, MOST_SEED), metavar="SEED", default=default, show_default=True,
        help=what, section=section,
    )  # fmt: skip


def json_option(what: str = "Print all figures as JSON, for programs.") -> Decorator:
    """Add --json; the command gets `as_json`, and then prints only JSON to stdout.

    Args:
        what: the help.
    """
    return click.option("--json", "as_json", is_flag=True, help=what)


device_option: Final = running_option(
    "--device", default="auto", show_default=True, metavar="DEVICE", help="auto, cpu or cuda."
)
"""For all commands that compute a lot (`dpntk.common.runtime.device`)."""
threads_option: Final = running_option(
    "--threads", type=click.IntRange(1, 4096), metavar="N",
    help="Threads to compute with [default: this process's share of the cores]",
)  # fmt: skip
"""For all commands that read many records."""


class FiniteRange(click.FloatRange):
    """Numbers in a range, without infinity, and without NaN, which passes click's range checks."""

    def convert(
        self,
        value: Any,  # noqa: ANN401 - as click has it
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        """The number given by `value`."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


def unit_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --unit and --rows-per-unit."""
    from ..schema.privacy_unit import MOST_ROWS  # --help needs no schemas, and so no NumPy

    options = all_of(
        table_option(
            "--unit", metavar="COLUMN",
            help="Protect all rows of a table that have the same value in this column together, "
            "such as all visits of one patient. The column itself is not embedded. Needs "
            "--rows-per-unit.",
        ),
        table_option(
            "--rows-per-unit", type=click.IntRange(1, MOST_ROWS), metavar="K",
            help="How many rows of one --unit count: the first ones. Further rows are left out; "
            "the noise is K times as large.",
        ),
    )  # fmt: skip
    return options(command)
