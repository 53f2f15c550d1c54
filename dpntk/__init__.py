"""Share data you may not share.

`Synthesizer` goes the whole way from records to synthetic ones. The stages by themselves are
`dpntk.embed`, `dpntk.release` and `dpntk.generate`; `dpntk.evaluate` measures what comes out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .synthesizer import Synthesizer

__all__ = ["Synthesizer"]


def __getattr__(name: str) -> object:
    """On first use: a command line that needs no estimator does not wait for one."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import synthesizer

    return getattr(synthesizer, name)
