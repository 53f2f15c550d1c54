"""Options that commands of this room share."""

from __future__ import annotations

from typing import Final

import click

from ...common.cli.options import PATH

test_labels_option: Final = click.option(
    "--test-labels", type=PATH, metavar="FILE",
    help="For images side by side in a folder: the CSV file that holds the labels of --test.",
)  # fmt: skip
