"""What `dpntk doctor` looks at."""

from __future__ import annotations

import platform
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Final

import torch

from ...common.cli.app import LIBRARIES
from ...common.errors import RunError
from ...common.runtime.device import choose_device
from ...common.runtime.threads import use_threads
from ...embed.known_answers import KNOWN, differing
from ..signing.keys import default_key_path, public_half
from ..signing.trust import allowed_path, trusted


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


CHECKS: Final[dict[str, Callable[[], str]]] = {
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
