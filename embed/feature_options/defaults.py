"""What options of feature maps are if nothing is said; without the maps, for --help."""

from __future__ import annotations

from typing import Final

DEFAULT_ARCH: Final = "fc_1l"
DEFAULT_ACTIVATION: Final = "relu"
DEFAULT_MARGINALS: Final = 0.4
"""Weight of marginals in a feature of norm 1, if that of products is chosen."""
DEFAULT_MOMENTS: Final = 0.3
"""Weight of products of columns, if that of marginals is chosen. If neither is, an embedding has
both of these weights, and a release chooses others."""
DEFAULT_FREQUENCIES: Final = 5000
