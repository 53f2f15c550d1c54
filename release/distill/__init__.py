"""Distillation (DP-KIP): release a few labelled points from which kernel regression learns.

Unlike `dpntk.release.release`, this reads the records themselves, and adds noise at every step.

Example, with the table that `dpntk demo --table` writes::

    from dpntk.embed import SourceOptions, open_source
    from dpntk.release.distill import Settings, distill

    patients = open_source("demo/train.csv", SourceOptions(schema="demo/schema.toml"))
    distill(
        patients, "points.h5", "demo/train.ledger.json", epsilon=1.0, settings=Settings(per_class=5)
    )

`Settings` says how the points are found; `PRESETS` are settings for data sets in the literature.
`dpntk.generate.generate` writes the points as records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...common.lazy import attach

if TYPE_CHECKING:
    from .pipeline import distill
    from .settings import PRESETS, Settings

__all__ = ["PRESETS", "Settings", "distill"]

__getattr__, __dir__ = attach(
    __name__, {"PRESETS": ".settings", "Settings": ".settings", "distill": ".pipeline"}
)
