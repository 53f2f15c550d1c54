"""What an audit does if nothing is said; without the mechanism, for --help."""

from __future__ import annotations

from typing import Final

DEFAULT_RUNS: Final = 10_000
DEFAULT_CONFIDENCE: Final = 0.999
