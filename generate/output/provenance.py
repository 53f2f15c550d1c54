"""Where generated records come from: what goes into their provenance and their generator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from ...common.console import warning
from ...release.file.citation import citation_of
from ...release.file.model import OpenedRelease
from ...release.file.statement import NOT_PRIVATE
from ..fit.descent import LossPoint
from ..fit.settings import TrainingSettings


def origin_of(
    opened: OpenedRelease,
    settings: TrainingSettings,
    generator: Mapping[str, Any],
    losses: Sequence[LossPoint],
    noise_floor: float,
) -> dict[str, Any]:
    """Where generated records come from, as plain JSON: the release, and the training.

    Args:
        opened: the release.
        settings: how the generator was trained.
        generator: what it is, plain JSON.
        losses: the mean loss over every few steps.
        noise_floor: what the release's noise alone adds to the loss, in expectation.
    """
    return {
        "release": citation_of(opened),
        "training": {
            "settings": settings.to_json(),
            "generator": dict(generator),
            "noise_floor": noise_floor,
            "losses": [[point.step, point.loss] for point in losses],
        },
        "versions": {"dpntk": version("dpntk"), "torch": torch.__version__},
    }


def is_private(origin: Mapping[str, Any]) -> bool:
    """Whether records come from a release with noise.

    Args:
        origin: as of `origin_of`, maybe from a file: what it does not say is not promised.
    """
    release = origin.get("release")
    return isinstance(release, dict) and release.get("private") is True


def warn_unless_private(origin: Mapping[str, Any], folder: Path) -> None:
    """Say it if records that are to be written to a folder come from a release without noise.

    Args:
        origin: as of `origin_of`.
        folder: that will hold them.
    """
    if not is_private(origin):
        warning(f"{folder} will be {NOT_PRIVATE}; only you can read it (0700)")
