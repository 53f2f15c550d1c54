"""The command `dpntk evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from ...common.cli.default_paths import SYNTHETIC
from ...common.cli.options import (
    PATH,
    FiniteRange,
    count_from,
    json_option,
    label_columns_option,
    output_option,
    quiet_values_option,
    schema_option,
    seed_option,
)
from ...common.cli.sections import SectionedCommand, image_option, table_option
from ...common.display.console import show, show_json, warning
from ...common.storage.atomic import require_absent
from ...release.commands.options import acceptance_options
from ..report import REPORT_BEGINS
from ..tables.options import MOST_RECORDS, TableOptions
from .options import test_labels_option

_TABLES_ONLY: Final = (
    "target", "positive", "keep_negatives", "train_records", "members", "classifiers",
)  # fmt: skip
_SETTINGS: Final = ("usual", "published")


@click.command("evaluate", cls=SectionedCommand)
@click.argument("synthetic", type=PATH, nargs=-1)
@click.option(
    "--test", type=PATH, required=True, metavar="DATA",
    help="Real records that were not embedded; their test part, if they have one.",
)  # fmt: skip
@click.option(
    "--baseline", type=PATH, metavar="DATA",
    help="Real records to train on, for comparison; their train part, if they have one.",
)  # fmt: skip
@test_labels_option
@image_option(
    "--baseline-labels", type=PATH, metavar="FILE", help="The same for --baseline."
)  # fmt: skip
@label_columns_option
@schema_option("For tables: what is publicly known about them, if SYNTHETIC does not say it.")
@table_option(
    "--target", metavar="COLUMN",
    help="For tables: what to predict; a numeric column is learnt by regressions [default: the "
    "label]",
)  # fmt: skip
@table_option(
    "--positive", metavar="CLASS",
    help="For tables with two classes: the positive one, for ROC and PRC [default: the rarer one "
    "among the test records]",
)  # fmt: skip
@table_option(
    "--keep-negatives", type=FiniteRange(0, 1, min_open=True), default=1.0, metavar="RATE",
    help="For tables with two classes: keep only this share of the negative one, in training and "
    "test parts. Only for comparison with published figures that were computed in this way.",
)  # fmt: skip
@table_option(
    "--train-records", type=count_from(1), default=MOST_RECORDS, show_default=True,
    metavar="N", help="For tables: train classifiers on at most N records, drawn at random.",
)  # fmt: skip
@table_option(
    "--classifiers", type=click.Choice(_SETTINGS), default=_SETTINGS[0], show_default=True,
    help="For tables: settings of the classifiers; 'published' are those of DP-KIP's table 7, only "
    "for comparison with published figures.",
)  # fmt: skip
@table_option(
    "--members", type=PATH, metavar="DATA",
    help="For tables: the real records that SYNTHETIC was made from; their train part, if they "
    "have one. Shows what membership attacks find: a check of the implementation, not the promise.",
)  # fmt: skip
@image_option(
    "--metric-module", type=PATH, metavar="FILE",
    help="For images: measure Frechet distance to the test records, precision and recall in the "
    "features of this module, and train a linear classifier on them: a TorchScript archive, as for "
    "'dpntk embed --module'. It is a program and will be run.",
)  # fmt: skip
@click.option(
    "--release", type=PATH, metavar="FILE",
    help="Check that SYNTHETIC claims to come from this release, that what it says about the "
    "release is true, and that the release's signer is trusted.",
)  # fmt: skip
@json_option("Print what is written as JSON, for programs, in place of the table.")
@quiet_values_option
@acceptance_options
@seed_option("Seed of the classifiers.", 0)
@output_option("Where to write the figures; an earlier file is replaced.", "evaluation.json")
@click.pass_context
def command(
    context: click.Context,
    /,
    synthetic: tuple[Path, ...],
    schema: Path | None,
    target: str | None,
    positive: str | None,
    keep_negatives: float,
    train_records: int,
    classifiers: str,
    members: Path | None,
    as_json: bool,
    output: Path,
    **given: Any,  # noqa: ANN401 - handed on
) -> None:
    """Train classifiers on SYNTHETIC (default: synthetic/) and test them on real records.

    Images without labels cannot be classified; they are measured by their distance from real ones.
    Tables are also compared with the test records column by column. Several SYNTHETIC of one kind
    give means and standard deviations.

    The figures are computed from real records without noise: publishing them is a small release
    of its own that no epsilon covers.
    """
    from ..pipeline import are_tables, evaluate  # --help need not wait for classifiers

    require_absent(output, overwrite=True, cost="", begins=REPORT_BEGINS)
    synthetic = synthetic or (Path(SYNTHETIC),)
    tables: TableOptions | None = TableOptions(
        schema,
        positive,
        keep_negatives,
        train_records,
        target,
        members,
        published=classifiers == "published",
    )
    if not are_tables(synthetic, tables):
        tables = None
        for option in _TABLES_ONLY:
            if context.get_parameter_source(option) is not ParameterSource.DEFAULT:
                raise click.UsageError(f"--{option.replace('_', '-')} is for tables")
        if len(synthetic) > 1:
            raise click.UsageError("several SYNTHETIC are for tables: evaluate images one by one")
    found = evaluate(synthetic, tables=tables, **given)
    found.save(output)
    warning(f"{output} is SENSITIVE: only you can read it (0600)")
    if as_json:
        show_json(found.to_json())
    else:
        show(found.table())
