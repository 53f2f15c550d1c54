"""Options that the commands of this package share."""

from __future__ import annotations

from typing import Final

from ...common.cli.options import PATH
from ...common.cli.sections import image_option

test_labels_option: Final = image_option(
    "--test-labels", type=PATH, metavar="FILE",
    help="For images side by side in a folder: the CSV file that holds the labels of --test.",
)  # fmt: skip
