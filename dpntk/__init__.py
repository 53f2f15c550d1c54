"""Share data you may not share: synthetic records under differential privacy.

From a DataFrame to a DataFrame::

    import dpntk

    model = dpntk.Synthesizer(epsilon=1.0, schema="schema.toml", folder="work").fit(patients)
    synthetic = model.sample(1000)

`Synthesizer` goes all the way from sensitive records to synthetic ones. Whoever has only the
release, and not the records, uses `ReleasedSynthesizer`.

The stages one by one, each a module whose `help` begins with an example::

    dpntk.embed       sensitive records -> an embedding, which stays secret
    dpntk.release     an embedding      -> a signed release, which may go anywhere
    dpntk.generate    a release         -> synthetic records
    dpntk.evaluate    how useful synthetic records are, measured on real ones

Every error is a `DpntkError` with a message of one line.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from . import embed, evaluate, generate, release
    from .common.errors import DpntkError
    from .released import ReleasedSynthesizer
    from .synthesizer import Synthesizer

__all__ = [
    "DpntkError",
    "ReleasedSynthesizer",
    "Synthesizer",
    "embed",
    "evaluate",
    "generate",
    "release",
]

_LAZY: Final = {
    "DpntkError": "common.errors",
    "ReleasedSynthesizer": "released",
    "Synthesizer": "synthesizer",
}
"""Name to the module that defines it; the other public names are modules."""


def __getattr__(name: str) -> object:
    """On first use: a command line that needs no estimator does not wait for one."""
    if name in _LAZY:
        return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """What `help` and completion show: also what has not been used yet."""
    return sorted({*globals(), *__all__})
