"""The command `dpntk inspect`."""

from __future__ import annotations

from pathlib import Path

import click

from ...common.cli.default_paths import RELEASE
from ...common.cli.options import PATH, json_option
from ...common.display.console import console, out, show_label, warning
from ...common.storage.atomic import PUBLIC_MODE, SENSITIVE_MODE, require_absent, write_atomically
from ..file.statement import NOT_PRIVATE
from ..signing.policy import Acceptance
from .options import acceptance_options


@click.command("inspect")
@click.argument("release", type=PATH, default=RELEASE)
@json_option("Print everything but the matrix as JSON, for programs.")
@click.option(
    "--registry", is_flag=True,
    help="Print an entry for OpenDP's registry of deployments, as YAML, with what the file knows.",
)  # fmt: skip
@click.option(
    "--page", type=PATH, metavar="FILE",
    help="Write one page of HTML to print, for whoever answers for the privacy of the records; an "
    "earlier one is replaced.",
)  # fmt: skip
@acceptance_options
def command(
    release: Path, as_json: bool, registry: bool, page: Path | None, acceptance: Acceptance
) -> None:
    """Show the label of RELEASE (default: release.h5): what it promises, and who says so."""
    from ..file.reader import open_any  # --help need not wait for torch
    from ..label.kinds import label_of
    from ..label.page import BEGINS, page_of

    if as_json + registry + (page is not None) > 1:
        raise click.UsageError("give one of --json, --registry and --page")
    if page is not None:
        require_absent(page, overwrite=True, cost="", begins=BEGINS)
    opened = open_any(release, acceptance)
    private = opened.release.guarantee.private
    if not private:
        warning(f"{release} is {NOT_PRIVATE}")
    label = label_of(opened)
    if page is not None:
        write_atomically(page, page_of(opened), mode=PUBLIC_MODE if private else SENSITIVE_MODE)
        console.print(f"wrote {page}: it can be printed from any browser")
    elif as_json:
        out.print(*label.as_json().splitlines())
    elif registry:
        out.print(*label.as_registry_entry().splitlines())
    else:
        show_label("privacy release", label.as_rows(), good=private)
