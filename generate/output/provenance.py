"""The origin of generated records, for their provenance and their generator."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import torch

from ...common.display.console import warning
from ...common.display.text import some_of
from ...common.features.joint import parts_of
from ...common.features.marginals.map import LARGE_ON_MEANS
from ...release.file.citation import citation_of, is_private
from ...release.file.model import OpenedRelease, Release
from ...release.file.statement import NOT_PRIVATE
from ..defaults import MOST_IMAGES
from ..fit.descent import Training
from ..fit.settings import TrainingSettings
from .generator_file import Spec

_LARGE: Final = 0.3
"""About the size of typical correlations."""
_NAMED: Final = 10
"""At most this many indistinct classes are named; `dpntk inspect` names all."""


def origin_of(
    opened: OpenedRelease,
    settings: TrainingSettings,
    training: Training[Any] | None = None,
    spec: Spec | None = None,
) -> dict[str, Any]:
    """The origin of generated records, as plain JSON: the release and the training.

    Args:
        opened: the release.
        settings: how a generator is trained.
        training: its outcome; None if nothing was trained.
        spec: of the generator, if there is one.
    """
    trained: dict[str, Any] = {"settings": asdict(settings)}
    if spec is not None:
        trained |= {"generator": spec.to_json()}
    if training is not None:
        losses = [[point.step, point.loss] for point in training.losses]
        trained |= {"noise_floor": training.noise_floor, "losses": losses}
    unclear = {"indistinct": list(opened.release.indistinct)} if opened.release.indistinct else {}
    return {
        "release": {**citation_of(opened), "records": opened.release.guarantee.records},
        **unclear,
        "training": trained,
        "versions": {"dpntk": version("dpntk"), "torch": torch.__version__},
    }


def first_seed(origin: Mapping[str, Any]) -> object:
    """The seed of the training and of the records drawn right after it; None if unknown.

    Args:
        origin: from `origin_of`, possibly read from a file.
    """
    training = origin.get("training")
    settings = training.get("settings") if isinstance(training, dict) else None
    return settings.get("seed") if isinstance(settings, dict) else None


def records_of(origin: Mapping[str, Any]) -> int:
    """How many records a release was made from; as many as images are made if unknown.

    Args:
        origin: from `origin_of`, possibly read from a file.
    """
    cited = origin.get("release")
    records = cited.get("records") if isinstance(cited, dict) else None
    return records if type(records) is int and records > 0 else MOST_IMAGES


def warn_of_noise(release: Release) -> None:
    """Warn of classes and of dependence between columns that are hardly more than noise."""
    if release.indistinct:
        names = some_of(release.indistinct, _NAMED)
        warning(
            f"of these classes the release says hardly more than noise does: {names}: what would "
            "help is more records of them, a larger epsilon, or fewer classes"
        )
    if _noise_on_means(release) > LARGE_ON_MEANS:
        warning(
            "single columns are mostly noise in this release, their means among them: what would "
            "help is more records, a larger epsilon, or fewer columns"
        )
    if _noise_on_correlations(release) > _LARGE:
        warning(
            "how columns go together is mostly noise in this release: what would help is more "
            "records, a larger epsilon, fewer columns, or pairs of columns that are chosen "
            "beforehand; 'dpntk plan' says what would be enough"
        )


def _noise_on_means(release: Release) -> float:
    """Approximate noise on the mean of a number, over all classes together."""
    parts = parts_of(release.feature_map)
    if parts.marginals is None or not release.guarantee.private:
        return 0.0
    return parts.marginals.noise_on_means(_noise_on_all(release) / parts.weight)


def _noise_on_correlations(release: Release) -> float:
    """Approximate noise on the correlations in a release, over all classes together."""
    parts, noise = parts_of(release.feature_map), _noise_on_all(release)
    if parts.moments is None or not release.guarantee.private:
        return 0.0
    # Each product appears twice.
    found = parts.moments.noise_on_correlations(noise / parts.moment_weight / math.sqrt(2))
    if parts.marginals is None:
        return found
    return min(found, parts.marginals.noise_on_correlations(noise / parts.weight))


def _noise_on_all(release: Release) -> float:
    """Noise on an entry of the mean feature of all classes together."""
    return release.noise_per_coordinate * math.sqrt(len(release.schema.classes))


def warn_unless_private(origin: Mapping[str, Any], folder: Path) -> None:
    """Warn if records to be written to a folder come from a release without noise.

    Args:
        origin: from `origin_of`.
        folder: the folder.
    """
    if not is_private(origin):
        warning(f"{folder} will be {NOT_PRIVATE}; only you can read it (0700)")
