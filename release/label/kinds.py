"""The label of a release of either kind."""

from __future__ import annotations

from ..file.distilled import AnyOpened, holds_points
from .base import Label
from .distilled import distilled_label
from .embedding import embedding_label


def label_of(opened: AnyOpened) -> Label:
    """The label of a release, whichever kind it is."""
    return distilled_label(opened) if holds_points(opened) else embedding_label(opened)
