"""Share data you may not share.

`Synthesizer` goes the whole way from records to synthetic ones; `ReleasedSynthesizer` is what
somebody has who has the release alone. The stages by themselves are `dpntk.embed`, `dpntk.release`
and `dpntk.generate`; `dpntk.evaluate` measures what comes out.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .released import ReleasedSynthesizer
    from .synthesizer import Synthesizer

__all__ = ["ReleasedSynthesizer", "Synthesizer"]

_LAZY: Final = {"ReleasedSynthesizer": "released", "Synthesizer": "synthesizer"}
"""Name to the module that it is in."""


def __getattr__(name: str) -> object:
    """On first use: a command line that needs no estimator does not wait for one."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
