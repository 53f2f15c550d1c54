"""The command `dpntk evaluate`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final, TypeVar

import click
from click.core import ParameterSource

from ...common.cli.options import (
    FiniteRange,
    count_from,
    output_option,
    quiet_values_option,
    schema_option,
    seed_option,
)
from ...common.console import show, warning
from ...common.errors import SchemaError
from ...common.storage.atomic import require_absent
from ...release.commands.options import acceptance_options
from ...release.file.statement import NOT_PRIVATE
from ...release.signing.policy import Acceptance
from ..images.classifiers import CLASSIFIERS, in_words
from ..images.distilled import classifiers_of
from ..images.records import Records, read_real, read_synthetic
from ..images.report import REPORT_BEGINS, as_table, write_report
from ..images.utility import measure
from ..provenance import confirmed, described, is_private
from ..tables.baselines import independent_columns
from ..tables.points import regression_rows
from ..tables.report import as_table as as_grid
from ..tables.report import write_table_report
from ..tables.table import Table, is_table, read_real_table, read_synthetic_table
from ..tables.utility import MOST_RECORDS, evaluate_tables, task_for

AnyRecords = TypeVar("AnyRecords", Records, Table)

_TABLES_ONLY: Final = ("positive", "keep_negatives", "train_records")


@click.command("evaluate", short_help="Measure how good the synthetic records are.")
@click.argument("synthetic", type=click.Path(path_type=Path), nargs=-1)
@click.option(
    "--test", type=click.Path(path_type=Path), required=True, metavar="DATA",
    help="Real records that were not embedded; their test part, where they have one.",
)  # fmt: skip
@click.option(
    "--baseline", type=click.Path(path_type=Path), metavar="DATA",
    help="Real records to train on, for comparison; their train part, where they have one.",
)  # fmt: skip
@schema_option("Tables: what is publicly known of them, where SYNTHETIC does not say it.")
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
    "--release", type=click.Path(path_type=Path), metavar="FILE",
    help="Check that SYNTHETIC says that it comes from this release, that what it says of it is "
    "true, and that its signer is trusted.",
)  # fmt: skip
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
    positive: str | None,
    keep_negatives: float,
    train_records: int,
    release: Path | None,
    acceptance: Acceptance,
    seed: int,
    output: Path,
) -> None:
    """Train classifiers on SYNTHETIC (default: synthetic/) and test them on real records.

    Tables are also compared with the test records column by column, and several SYNTHETIC of one
    kind give means and standard deviations.

    The figures are computed from real records without noise: publishing them is a small release
    of its own that no epsilon covers.
    """
    require_absent(output, overwrite=True, cost="", begins=REPORT_BEGINS)
    synthetic = synthetic or (Path("synthetic"),)
    if schema is None and not is_table(synthetic[0]):
        for option in _TABLES_ONLY:
            if context.get_parameter_source(option) is not ParameterSource.DEFAULT:
                raise click.UsageError(f"--{option.replace('_', '-')} is for tables")
        if len(synthetic) > 1:
            raise click.UsageError("several SYNTHETIC are for tables: evaluate images one by one")
        _evaluate_images(synthetic[0], test, baseline, release, acceptance, seed, output)
        return
    tables = [
        _with_known_origin(path, read_synthetic_table(path, schema), release, acceptance)
        for path in synthetic
    ]
    training_sets: dict[str, list[Table]] = {}
    for path, table in zip(synthetic, tables, strict=True):
        if table.schema != tables[0].schema:
            raise SchemaError(f"{path}: its schema is not that of {synthetic[0]}")
        training_sets.setdefault(described(table.provenance), []).append(table)
    kinds = len(training_sets)
    held_out = read_real_table(test, "test", tables[0].schema)
    task = task_for(held_out, positive, keep_negatives, train_records)
    if baseline is not None:
        training_sets["real"] = [read_real_table(baseline, "train", tables[0].schema)]
    # Of the real rows where there are any: what their one-way marginals alone are worth.
    name, (*_, last) = list(training_sets.items())[-1]
    training_sets[f"independent columns of {name}"] = [independent_columns(last, seed)]
    # Quick, and first: damaged points are found out before anything is trained for long.
    by_kernel = regression_rows(synthetic, tables, held_out, task, seed)
    rows = evaluate_tables(training_sets, held_out, task, seed)
    rows[kinds:kinds] = by_kernel
    write_table_report(output, rows, tables, held_out, task, seed)
    show(as_grid(rows, held_out, task))


def _evaluate_images(
    synthetic: Path,
    test: Path,
    baseline: Path | None,
    release: Path | None,
    acceptance: Acceptance,
    seed: int,
    output: Path,
) -> None:
    records = _with_known_origin(synthetic, read_synthetic(synthetic), release, acceptance)
    held_out = read_real(test, "test", records)
    training_sets = {described(records.provenance): records}
    if baseline is not None:
        training_sets["real"] = read_real(baseline, "train", records)
    further = classifiers_of(synthetic, records)
    rows = measure(training_sets, held_out, seed, further)
    write_report(output, rows, records, held_out, seed, in_words({**CLASSIFIERS, **further}))
    show(as_table(rows, held_out))


def _with_known_origin(
    path: Path, records: AnyRecords, release: Path | None, acceptance: Acceptance
) -> AnyRecords:
    """Synthetic records; if a release is given, with its own figures in their provenance."""
    if release is not None:
        known = confirmed(release, acceptance, records.provenance, records.class_names)
        records = replace(records, provenance=known)
    if is_private(records.provenance) is False:
        warning(f"{path} is {NOT_PRIVATE}")
    return records
