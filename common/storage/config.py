"""The user's configuration folder, with the signing key, lists of signers, and data sets."""

from __future__ import annotations

from pathlib import Path

import click


def config_folder() -> Path:
    """The folder, which may not exist: ~/.config/dpntk, or as set by XDG_CONFIG_HOME."""
    return Path(click.get_app_dir("dpntk"))
