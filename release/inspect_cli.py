"""The command `dpntk inspect`."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from ..common.console import warning
from .acceptance import Acceptance
from .acceptance_options import acceptance_options
from .contents import NOT_PRIVATE
from .distilled_label import distilled_label
from .embedding_label import embedding_label
from .reader import OpenedDistilled, open_any


@click.command("inspect", short_help="Show what a release says and promises.")
@click.argument("release", type=click.Path(path_type=Path), default="release.h5")
@click.option("--json", "json_wanted", is_flag=True, help="Everything but the matrix, as JSON.")
@click.option(
    "--registry", is_flag=True,
    help="An entry for OpenDP's registry of deployments, as far as the file knows, as YAML.",
)  # fmt: skip
@acceptance_options
def command(release: Path, json_wanted: bool, registry: bool, acceptance: Acceptance) -> None:
    """Show the label of RELEASE (default: release.h5): what it promises, and who says so."""
    if json_wanted and registry:
        raise click.UsageError("give either --json or --registry, not both")
    opened = open_any(release, acceptance)
    if not opened.release.guarantee.private:
        warning(f"{release} is {NOT_PRIVATE}")
    label = (
        distilled_label(opened) if isinstance(opened, OpenedDistilled) else embedding_label(opened)
    )
    if json_wanted:
        click.echo(label.as_json())
    elif registry:
        click.echo(label.as_registry_entry(), nl=False)
    else:
        Console(markup=False, highlight=False).print(label.as_panel())
