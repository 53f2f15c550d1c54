"""The names of the feature maps that can be chosen."""

from __future__ import annotations

from typing import Final

DEFAULT_FEATURES: Final = "ntk"
FEATURES: Final = (DEFAULT_FEATURES, "hermite", "perceptual", "pixels", "rff")
"""Those of the registered maps that stand by themselves: --help shows them without loading any."""
