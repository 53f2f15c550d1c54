"""The command `dpntk evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click
from click.core import ParameterSource

from ...common.cli.options import (
    PATH,
    FiniteRange,
    count_from,
    json_option,
    output_option,
    quiet_values_option,
    schema_option,
    seed_option,
)
from ...common.console import console, show, show_json
from ...common.storage.atomic import require_absent
from ...release.commands.options import acceptance_options
from ...release.signing.policy import Acceptance
from ..pipeline import are_tables, evaluate
from ..report import REPORT_BEGINS
from ..tables.options import TableOptions
from ..tables.task import MOST_RECORDS

_TABLES_ONLY: Final = (
    "target", "positive", "keep_negatives", "train_records", "members", "classifiers",
)  # fmt: skip
_SETTINGS: Final = ("usual", "published")


@click.command("evaluate")
@click.argument("synthetic", type=PATH, nargs=-1)
@click.option(
    "--test", type=PATH, required=True, metavar="DATA",
    help="Real records that were not embedded; their test part, where they have one.",
)  # fmt: skip
@click.option(
    "--baseline", type=PATH, metavar="DATA",
    help="Real records to train on, for comparison; their train part, where they have one.",
)  # fmt: skip
@schema_option("Tables: what is publicly known of them, where SYNTHETIC does not say it.")
@click.option(
    "--target", metavar="COLUMN",
    help="Tables: what to predict [default: the label]. A numeric column is learnt by regressions.",
)  # fmt: skip
@click.option(
    "--positive", metavar="CLASS",
    help="Tables with two classes: the one that ROC and PRC are about (default: the rarer one of "
    "the test records).",
)  # fmt: skip
@click.option(
    "--keep-negatives", type=FiniteRange(0, 1, min_open=True), default=1.0, metavar="RATE",
    help="Tables with two classes: keep only this share of the other class, in training and test "
    "parts, as published tables did. For comparison with them only.",
)  # fmt: skip
@click.option(
    "--train-records", type=count_from(1), default=MOST_RECORDS, show_default=True,
    metavar="N", help="Tables: train classifiers on at most so many records, drawn at random.",
)  # fmt: skip
@click.option(
    "--classifiers", type=click.Choice(_SETTINGS), default=_SETTINGS[0], show_default=True,
    help="Tables: settings of classifiers; published: those of DP-KIP's table 7, for comparison "
    "with published tables only.",
)  # fmt: skip
@click.option(
    "--members", type=PATH, metavar="DATA",
    help="Tables: the real records that SYNTHETIC was made from; their train part, where they have "
    "one. Shows what attackers find who know them: a check of the implementation, not the promise.",
)  # fmt: skip
@click.option(
    "--metric-module", type=PATH, metavar="FILE",
    help="Images: measure the Frechet distance to the test records, precision and recall in what "
    "this module says of them, and train a linear classifier on it: a TorchScript archive, as "
    "'dpntk embed --module' takes it. It is a program and will be run.",
)  # fmt: skip
@click.option(
    "--release", type=PATH, metavar="FILE",
    help="Check that SYNTHETIC says that it comes from this release, that what it says of it is "
    "true, and that its signer is trusted.",
)  # fmt: skip
@json_option("Print what is written, for programs, in place of the table.")
@quiet_values_option
@acceptance_options
@seed_option("Of the classifiers.", 0)
@output_option("Where to write the figures; an earlier file is replaced.", "evaluation.json")
@click.pass_context
def command(
    context: click.Context,
    synthetic: tuple[Path, ...],
    test: Path,
    baseline: Path | None,
    schema: Path | None,
    target: str | None,
    positive: str | None,
    keep_negatives: float,
    train_records: int,
    classifiers: str,
    members: Path | None,
    metric_module: Path | None,
    release: Path | None,
    as_json: bool,
    acceptance: Acceptance,
    seed: int,
    output: Path,
) -> None:
    """Train classifiers on SYNTHETIC (default: synthetic/) and test them on real records.

    Images without labels cannot be classified: of them it says how far they are from real ones.
    Tables are also compared with the test records column by column, and several SYNTHETIC of one
    kind give means and standard deviations.

    The figures are computed from real records without noise: publishing them is a small release
    of its own that no epsilon covers.
    """
    require_absent(output, overwrite=True, cost="", begins=REPORT_BEGINS)
    synthetic = synthetic or (Path("synthetic"),)
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
    found = evaluate(
        synthetic,
        test=test,
        baseline=baseline,
        tables=tables,
        release=release,
        acceptance=acceptance,
        seed=seed,
        metric_module=metric_module,
    )
    found.save(output)
    console.print(f"{output} is SENSITIVE: only you can read it (0600)")
    if as_json:
        show_json(found.to_json())
    else:
        show(found.table())
