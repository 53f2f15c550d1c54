"""The command `dpntk doctor`."""

from __future__ import annotations

import platform
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Final

import click
import torch

from ...common.cli.app import LIBRARIES
from ...common.cli.options import json_option
from ...common.display.console import TextTable, show, show_json
from ...common.errors import DpntkError, RunError
from ...common.runtime.device import choose_device
from ...common.runtime.threads import use_threads
from ...embed.known_answers import KNOWN, differing
from ..signing.keys import default_key_path, public_half
from ..signing.trust import allowed_path, trusted


@click.command("doctor")
@json_option("Print what was found as JSON, for programs.")
def command(as_json: bool) -> None:
    """Show what dpntk runs with, and check that it computes as it does on every other machine.

    Exact sums of a few made-up records are compared with those that they have everywhere. No data
    are read; of the signing key, its public half. The exit code is 1 if anything is wrong.
    """
    found, wrong = {}, []
    for name, look in _CHECKS.items():
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


def _versions() -> str:
    return ", ".join(f"{name} {version(name)}" for name in (*LIBRARIES, "scipy", "scikit-learn"))


def _xgboost() -> str:
    if find_spec("xgboost") is None:
        return "not installed: 'dpntk evaluate' does without it"
    return str(import_module("xgboost").__version__)


def _device() -> str:
    device = choose_device()
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return f"{device} ({name})"


def _key() -> str:
    path = default_key_path()
    if not path.exists():
        return "none yet; it is made when it is first needed"
    return f"{public_half(path).fingerprint} in {path}"


def _signers() -> str:
    names = [signer.name for signer in trusted()]
    return f"{', '.join(names) or 'nobody yet'}; kept in {allowed_path()}"


def _arithmetic() -> str:
    for device in {torch.device("cpu"), choose_device()}:
        if others := differing(device):
            raise RunError(
                f"on {device} the sums of {', '.join(others)} are not those of other machines: "
                "embed nothing here, and please report it"
            )
    return f"exact: {len(KNOWN)} known sums are what they should be"


_CHECKS: Final[dict[str, Callable[[], str]]] = {
    "dpntk": lambda: version("dpntk"),
    "Python": lambda: f"{platform.python_version()} on {platform.platform()}",
    "libraries": _versions,
    "XGBoost": _xgboost,
    "device": _device,
    "threads": lambda: str(use_threads()),
    "signing key": _key,
    "trusted signers": _signers,
    "arithmetic": _arithmetic,
}
"""The checks, in the order in which they are shown."""
