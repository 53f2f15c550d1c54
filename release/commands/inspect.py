"""The command `dpntk inspect`."""

from __future__ import annotations

from pathlib import Path

import click

from ...common.cli.options import json_option
from ...common.console import out, show_label, warning
from ..file.reader import open_any
from ..file.statement import NOT_PRIVATE
from ..label.kinds import label_of
from ..signing.policy import Acceptance
from .options import acceptance_options


@click.command("inspect", short_help="Show what a release says and promises.")
@click.argument("release", type=click.Path(path_type=Path), default="release.h5")
@json_option("Everything but the matrix, as JSON.")
@click.option(
    "--registry", is_flag=True,
    help="An entry for OpenDP's registry of deployments, as far as the file knows, as YAML.",
)  # fmt: skip
@acceptance_options
def command(release: Path, as_json: bool, registry: bool, acceptance: Acceptance) -> None:
    """Show the label of RELEASE (default: release.h5): what it promises, and who says so."""
    if as_json and registry:
        raise click.UsageError("give either --json or --registry, not both")
    opened = open_any(release, acceptance)
    private = opened.release.guarantee.private
    if not private:
        warning(f"{release} is {NOT_PRIVATE}")
    label = label_of(opened)
    if as_json:
        out.print(*label.as_json().splitlines())
    elif registry:
        out.print(*label.as_registry_entry().splitlines())
    else:
        show_label("privacy release", label.as_rows(), good=private)
