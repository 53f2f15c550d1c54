"""Stage two: the privacy barrier.

`release` reads an embedding and so reaches the sensitive room; `open_release` does not. The first
is therefore imported on first use, and stages three and four import `dpntk.release.reader`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .contents import Guarantee, Release
from .reader import OpenedRelease, open_release

if TYPE_CHECKING:
    from .publish import release, save_release

__all__ = ["Guarantee", "OpenedRelease", "Release", "open_release", "release", "save_release"]


def __getattr__(name: str) -> object:
    if name in {"release", "save_release"}:
        from . import publish

        return getattr(publish, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
