"""The command `dpntk bounds`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from ...common.adjacency import Adjacency
from ...common.cli.default_paths import EMBEDDING, MAGNITUDES
from ...common.cli.options import PATH, elsewhere, output_option, overwrite_option, schema_option
from ...common.display.console import console, warning
from ...common.display.text import promised, typed
from ...common.errors import OutputError
from ...common.schema.drafts.draft import SCHEMA_BEGINS
from ...common.schema.drafts.toml import read_draft
from ...common.storage.atomic import (
    SENSITIVE_MODE,
    require_absent,
    require_room,
    write_atomically,
)
from ..publishing.parameters import ClassCounts, PrivacyParameters
from .options import promise_options

_COST: Final = "is a schema that was paid for"
_OVERHEAD: Final = 1 << 16
"""More bytes than the entries of what was spent and the bounds take in a schema."""


@click.command("bounds")
@click.argument("magnitudes", type=PATH, default=MAGNITUDES)
@schema_option('Schema in which these columns have bounds = "private".', required=True)
@promise_options(
    epsilon="Privacy loss to spend on bounds: a small part of the whole, such as 0.1.",
    delta="Delta to spend on bounds.",
    adjacency="What is hidden; choose the same for the release.",
)
@click.option(
    "--compose", is_flag=True, help="Spend again, although something was spent on bounds before."
)
@output_option("Where to write the schema with the bounds that were found.", "bounded.toml")
@overwrite_option("Replace a schema that is already there.")
def command(
    magnitudes: Path,
    schema: Path,
    epsilon: float,
    delta: float | None,
    adjacency: Adjacency,
    compose: bool,
    output: Path,
    overwrite: bool,
) -> None:
    """Find bounds of columns from MAGNITUDES, the file that 'dpntk embed --private-bounds' wrote.

    What this spends is written into the schema beside the bounds, and counts in the ledger of every
    embedding that is made with that schema. A column keeps bounds = "private" if none of its
    magnitudes stands out from the noise, if most of its rows lie beyond those that do, or if its
    bounds contradict a constraint. 'dpntk plan MAGNITUDES' says how many rows it takes to stand
    out, and spends nothing.
    """
    from ..publishing.private_bounds import find_bounds  # --help need not wait for torch

    require_absent(output, overwrite=overwrite, cost=_COST, begins=SCHEMA_BEGINS.encode())
    parameters = PrivacyParameters(epsilon, delta, adjacency, ClassCounts.UNIFORM)
    draft = read_draft(schema)
    require_room(output, len(draft.to_toml().encode()) + _OVERHEAD)
    found = find_bounds(magnitudes, draft, parameters, lambda total: compose)
    try:
        write_atomically(output, found.to_toml().encode(), mode=SENSITIVE_MODE)
    except (KeyboardInterrupt, OutputError) as error:
        reason = str(error) or "interrupted"
        raise OutputError(f"{reason}; {magnitudes} counts what was spent all the same") from error
    for column in found.schema.columns:
        if column.name in draft.private and column.name not in found.private:
            console.print(f"{column.name}: {column.lower:g} to {column.upper:g}")
    spent = found.schema.spent[-1]
    beside = ", beside what was spent before" if len(found.schema.spent) > 1 else ""
    console.print(
        f"wrote {output}: epsilon {promised(epsilon)} was spent on bounds, delta "
        f"{promised(spent.delta)}, {adjacency.value}{beside}"
    )
    bounded = typed(output)
    if found.private:
        warning(
            "bounds contradict a constraint, no magnitude stands out from the noise, or most rows "
            f"are beyond those that do, in {', '.join(found.private)}: declare lower and upper in "
            f"{output}, or spend more on what is left, which adds to what is spent: "
            f"'dpntk embed DATA --schema {bounded} --private-bounds -o {typed(magnitudes)} "
            f"--overwrite' and 'dpntk bounds {typed(magnitudes)} --schema {bounded} --eps E "
            f"--compose -o {bounded} --overwrite'"
        )
    else:
        other = elsewhere(EMBEDDING, f"{output.stem}.h5")
        console.print(f"next: dpntk embed DATA --schema {bounded}{other}")
