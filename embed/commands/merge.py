"""The command `dpntk merge`."""

from __future__ import annotations

from pathlib import Path

import click

from ...common.cli.default_paths import EMBEDDING, RELEASE
from ...common.cli.options import PATH, elsewhere, output_option, overwrite_option
from ...common.display.console import console, notice, warning
from ...common.display.text import counted, typed
from ...common.storage.atomic import followed


@click.command("merge")
@click.argument("embeddings", nargs=-1, required=True, type=PATH)
@output_option("Where to write the sum. It is as SENSITIVE as its parts.", EMBEDDING)
@overwrite_option(
    "Replace an embedding that is already there, if nothing has been released from it."
)
def command(embeddings: tuple[Path, ...], output: Path, overwrite: bool) -> None:
    """Add up EMBEDDINGS of different records: what one pass over all of them would have given.

    They must have been made with the same options; give --capacity to 'dpntk embed' if there are
    more than a million records in all. No record may be in two of them. What was released from one
    of them before counts for its records; release from the sum only from now on.
    """
    from ..merging import merge_files  # --help need not wait for torch

    whole = merge_files(embeddings, output, overwrite=overwrite)
    output = followed(output)
    console.print(
        f"merged {len(embeddings)} embeddings: {whole.records:,} {whole.schema.noun} in "
        f"{counted(len(whole.schema.classes), 'class', 'classes')}"
    )
    if released := bool(whole.ledger.all_entries):
        notice(
            "there are earlier releases from the parts; 'dpntk budget' shows what they add up to"
        )
    warning(f"{output} is SENSITIVE: it is not private, and only you can read it (0600)")
    console.print(
        "from now on release from the sum only: the parts' ledgers do not hear of it",
        f"next: dpntk release {typed(output)} --eps 1{' --compose' if released else ''}"
        f"{elsewhere(RELEASE, f'{output.stem}-release.h5')}",
    )
