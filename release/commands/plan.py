"""The command `dpntk plan`."""

from __future__ import annotations

from typing import Any

import click

from ...common.cli.options import PATH, json_option, schema_option, unit_options
from ...common.cli.sections import SectionedCommand, image_option
from ...embed.commands.feature_options import feature_options
from ...embed.exact.grid import MOST_RECORDS
from .class_counts import class_count_options
from .options import promise_options


@click.command("plan", cls=SectionedCommand)
@click.argument("embedding", type=PATH, required=False)
@click.option(
    "--records", type=click.IntRange(2, MOST_RECORDS), metavar="N",
    help="How many records there are. An EMBEDDING knows, except under add-remove: there the "
    "number is protected, so give one that you would give in public.",
)  # fmt: skip
@image_option(
    "--classes", type=click.IntRange(1, 10_000), metavar="N", help="How many classes there are."
)  # fmt: skip
@promise_options(
    epsilon="Epsilon of the release.", delta="Delta of the release.", adjacency="What is hidden."
)
@class_count_options
@feature_options
@image_option(
    "--image-size", type=click.IntRange(8, 64), metavar="PIXELS",
    help="Height and width of an image [default: 28]",
)  # fmt: skip
@json_option()
@image_option("--colour", is_flag=True, help="Images have three channels.")
@schema_option("The data are a table, and this says what is publicly known about it.")
@unit_options
@click.pass_context
def command(
    context: click.Context,
    /,
    **given: Any,  # noqa: ANN401 - handed on
) -> None:
    """Say how much noise a release would have, before anything is embedded or spent.

    It also says what could be learnt from such a release, for several epsilons, by simulation: for
    tables on rows that are made up from the schema, for images on scikit-learn's digits.

    Give --records, with --classes for images or --schema for a table, and the options of 'dpntk
    embed' that differ from its defaults; or an EMBEDDING, of which only plan and ledger are read.
    Without --classes and --schema it is embedding.h5, where there is one.
    """
    from .planning import run  # --help need not wait for torch

    run(context, **given)
