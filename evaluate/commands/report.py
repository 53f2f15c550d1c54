"""The command `dpntk report`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ...common.cli.default_paths import RELEASE, SYNTHETIC
from ...common.cli.options import (
    PATH,
    label_columns_option,
    output_option,
    quiet_values_option,
)
from ...common.display.console import console
from ...release.commands.options import acceptance_options
from .options import test_labels_option


@click.command("report")
@click.argument("release", type=PATH, default=RELEASE)
@click.argument("synthetic", type=PATH, default=SYNTHETIC)
@click.option(
    "--test", type=PATH, metavar="DATA",
    help="Real records that were not embedded, to compare with; their test part, if they have "
    "one.",
)  # fmt: skip
@test_labels_option
@label_columns_option
@click.option(
    "--evaluation", type=PATH, metavar="FILE",
    help="Show the figures that 'dpntk evaluate' wrote about SYNTHETIC.",
)  # fmt: skip
@click.option(
    "--public", is_flag=True,
    help="Write a report that anybody may see, from RELEASE and SYNTHETIC alone.",
)  # fmt: skip
@quiet_values_option
@acceptance_options
@output_option("Where to write the report; an earlier one is replaced.", "report.html")
def command(
    release: Path,
    synthetic: Path,
    public: bool,
    output: Path,
    **given: Any,  # noqa: ANN401 - handed on
) -> None:
    """Write one HTML file that shows what RELEASE promises, and what SYNTHETIC looks like.

    RELEASE is release.h5, and SYNTHETIC synthetic/, if nothing else is said. SYNTHETIC has to say
    that it comes from RELEASE. The file fetches nothing and has no scripts. Without --public it is
    for the owner of the records alone.
    """
    from ..html.report import write_report  # --help need not wait for torch

    write_report(release, synthetic, output, public=public, **given)
    if public:
        console.print(
            f"{output} is public, if {synthetic} holds what was generated from {release}: it says "
            "so, and nothing can show it"
        )
    else:
        console.print(f"{output} is SENSITIVE: only you can read it (0600)")
