"""The user's configuration folder, with the signing key, lists of signers, and data sets.

Whoever can write to it decides whom to trust and what counts as spent.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import click

from ..errors import DpntkError, OutputError


def config_folder() -> Path:
    """The folder, which may not exist: ~/.config/dpntk, or as set by XDG_CONFIG_HOME.

    A relative XDG_CONFIG_HOME is ignored, as its specification asks: what lies in the current
    directory may come from strangers.

    Raises:
        OutputError: the user has no home folder.
    """
    folder = Path(click.get_app_dir("dpntk"))
    if not folder.is_absolute():
        folder = Path(os.path.expanduser("~/.config/dpntk"))
    if not folder.is_absolute():
        raise OutputError(
            "there is no home folder for keys and settings: name a folder in XDG_CONFIG_HOME, by "
            "its whole path"
        )
    return folder


def make_private(folder: Path) -> None:
    """Make a folder for its owner alone (0700), if there is none, and the configuration folder.

    Args:
        folder: the configuration folder, or one in it.

    Raises:
        OSError: it cannot be made.
    """
    for each in (config_folder(), folder):
        each.mkdir(mode=0o700, parents=True, exist_ok=True)


def require_our_folder(path: Path, power: str, refusal: type[DpntkError]) -> None:
    """Check the folder of a file, and the folder that it really is in, like `require_ours`."""
    for folder in {path.parent, path.resolve().parent}:
        require_ours(folder, folder.stat(), power, refusal)


def require_ours(path: Path, status: os.stat_result, power: str, refusal: type[DpntkError]) -> None:
    """Refuse a file, or its folder, if others can change it, as ssh does.

    Args:
        path: the file or folder.
        status: the status of the opened file, or of the folder.
        power: what they would decide, for the message.
        refusal: the error to raise.

    Raises:
        DpntkError: as `refusal`: it belongs to another user, except root, or others can write to
            it.
    """
    if status.st_uid not in (0, os.geteuid()):
        raise refusal(
            f"{path} belongs to somebody else, who decides then {power}: 'chown' it, or name "
            "another folder in XDG_CONFIG_HOME"
        )
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise refusal(
            f"{path} can be written by others, who decide then {power}: 'chmod go-w {path}' "
            "once you have looked at what is in it"
        )
