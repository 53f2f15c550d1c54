"""The command `dpntk doctor`."""

from __future__ import annotations

import click

from ...common.cli.options import json_option
from ...common.display.console import TextTable, show, show_json
from ...common.errors import DpntkError, RunError


@click.command("doctor")
@json_option("Print what was found as JSON, for programs.")
def command(as_json: bool) -> None:
    """Show what dpntk runs with, and check that it computes as it does on every other machine.

    Exact sums of a few made-up records are compared with those that they have everywhere. No data
    are read; of the signing key, its public half. The exit code is 1 if anything is wrong.
    """
    from .checks import CHECKS  # --help need not wait for torch

    found, wrong = {}, []
    for name, look in CHECKS.items():
        try:
            found[name] = look()
        except DpntkError as error:
            found[name] = f"WRONG: {error}"
            wrong.append(name)
    if as_json:
        show_json({"found": found, "wrong": wrong})
    else:
        table = TextTable(header=False)
        table.add_column(wrap=False)
        table.add_column()
        for name, said in found.items():
            table.add_row(name, said)
        show(table)
    if wrong:
        raise RunError(f"not all is well on this machine: {', '.join(wrong)}")
