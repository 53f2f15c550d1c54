"""The command `dpntk schema`."""

from __future__ import annotations

from pathlib import Path

import click

from ...common.cli.default_paths import EMBEDDING
from ...common.cli.options import (
    DataPath,
    elsewhere,
    names_in,
    output_option,
    overwrite_option,
    quiet_values_option,
    unit_options,
)
from ...common.cli.prompts import is_terminal
from ...common.display.console import console, warning
from ...common.display.text import counted, typed
from ...common.schema.csv_format import COMMA, MISSING_TEXTS, POINT, CsvFormat
from ...common.schema.drafts.draft import SCHEMA_BEGINS
from ...common.schema.drafts.toml import COST
from ...common.schema.privacy_unit import declared_unit
from ...common.storage.atomic import SENSITIVE_MODE, require_absent, write_atomically
from .accepting import accepted


@click.command("schema")
@click.argument("data", type=DataPath())
@click.option("--label", metavar="COLUMN", help="The column that tells a record's class.")
@click.option(
    "--columns", callback=names_in, metavar="NAMES",
    help="Describe only these columns and the label, such as age,sex,pay, and leave all others "
    "out; a name with a comma stands in double quotes.",
)  # fmt: skip
@click.option(
    "--separator",
    default=",",
    show_default=True,
    help="Character that separates the values of a CSV file.",
)
@click.option(
    "--decimal", type=click.Choice([POINT, COMMA]), default=POINT, show_default=True,
    help="Decimal mark of the numbers in a CSV file.",
)  # fmt: skip
@click.option(
    "--encoding", default="utf-8", show_default=True, help="Encoding of a CSV file."
)  # fmt: skip
@click.option(
    "--missing", multiple=True, metavar="TEXT",
    help=f"Text that stands for a missing value [default: {', '.join(filter(None, MISSING_TEXTS))} "
    "and the empty text]; may be given several times, and replaces the default.",
)  # fmt: skip
@click.option(
    "--split", type=click.Choice(["train", "test"]), default="train", show_default=True,
    help="Which part to read, if a folder has both.",
)  # fmt: skip
@click.option(
    "--constraints", is_flag=True,
    help="Also draft rules that all rows keep, such as total = drugs + care, or when a value is "
    "missing; the time between two dates, one of which is never before the other, as a column of "
    "its own; and columns that follow from another one, such as a region from a district. "
    "Generated rows will keep what you confirm.",
)  # fmt: skip
@unit_options
@click.option(
    "--accept", is_flag=True,
    help="Show what was looked up, ask for each column whether it is publicly known, and confirm "
    "those to which you answer yes.",
)  # fmt: skip
@quiet_values_option
@output_option("Where to write the draft.", "schema.toml")
@overwrite_option("Replace a schema that is already there.")
def command(
    data: Path | str,
    label: str | None,
    columns: tuple[str, ...] | None,
    separator: str,
    decimal: str,
    encoding: str,
    missing: tuple[str, ...],
    split: str,
    constraints: bool,
    unit: str | None,
    rows_per_unit: int | None,
    accept: bool,
    output: Path,
    overwrite: bool,
) -> None:
    """Draft a schema.toml for the table DATA: one CSV or Parquet file, or a folder of such files.

    DATA may lie in object storage, as in s3://bucket/file.csv.

    Bounds and categories are looked up in the data. Replace each by what is publicly known, or
    check that it is the same, and confirm it. Until then the file is as sensitive as the data.
    """
    from ..inference.schema import draft_schema  # --help need not wait for torch

    if accept and not is_terminal():
        raise click.UsageError("--accept asks on a terminal: elsewhere edit the schema")
    require_absent(output, overwrite=overwrite, cost=COST, begins=SCHEMA_BEGINS.encode())
    separator = "\t" if separator == "\\t" else separator
    draft = draft_schema(
        data,
        label,
        csv=CsvFormat(separator, encoding, missing or MISSING_TEXTS, decimal),
        split=split,
        columns=columns,
        privacy_unit=declared_unit(unit, rows_per_unit),
        constraints=constraints,
    )
    draft = accepted(draft) if accept else draft
    write_atomically(output, draft.to_toml().encode(), mode=SENSITIVE_MODE)
    console.print(f"drafted {output}: {counted(len(draft.schema.columns), 'column')}")
    if rules := draft.schema.constraints:
        warning(
            f"{output} shows {counted(len(rules), 'constraint')} that no row breaks: keep those "
            "that hold for every row of any such table, and remove 'constraints_confirmed = false'"
        )
    elif not draft.constraints_confirmed:
        warning(
            f"{output} has no constraints, because rows break all that were tried: declare those "
            "that are known to hold, if any, and remove 'constraints_confirmed = false'"
        )
    if draft.unconfirmed or not draft.left_out_confirmed:
        warning(
            f"{output} shows bounds and categories of the data, and kinds, types and missing "
            "values that one record may have decided: replace them by what is publicly known, and "
            "remove 'confirmed = false' from each"
        )
    other = elsewhere(EMBEDDING, f"{_stem_of(data)}.h5")
    console.print(f"next: dpntk embed {typed(data)} --schema {typed(output)}{other}")


def _stem_of(data: Path | str) -> str:
    """The name of a file or folder, also of `.`, without its suffix."""
    return data.resolve().stem if isinstance(data, Path) else Path(data).stem
