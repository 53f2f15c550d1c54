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

from typing import TYPE_CHECKING

from .common.lazy import attach

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

__getattr__, __dir__ = attach(
    __name__,
    {
        "DpntkError": ".common.errors",
        "ReleasedSynthesizer": ".released",
        "Synthesizer": ".synthesizer",
        "embed": ".embed",
        "evaluate": ".evaluate",
        "generate": ".generate",
        "release": ".release",
    },
)
