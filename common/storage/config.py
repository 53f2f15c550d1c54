"""The user's configuration folder: the signing key, the lists of signers, and the data sets."""

from __future__ import annotations

from pathlib import Path

import click


def config_folder() -> Path:
    """The folder, which need not exist: ~/.config/dpntk, or as XDG_CONFIG_HOME says."""
    return Path(click.get_app_dir("dpntk"))
