"""What options of feature maps are if nothing is said; without the maps, for --help."""

from __future__ import annotations

from typing import Final

DEFAULT_ARCH: Final = "fc_1l"
DEFAULT_ACTIVATION: Final = "relu"
DEFAULT_MARGINALS: Final = 0.4
"""Weight of marginals in a feature of norm 1; the network's part then has 0.87 to 0.92."""
DEFAULT_MOMENTS: Final = 0.3
"""Weight of products of columns, in a table with at least two columns."""
UNLABELLED_MARGINALS: Final = 0.7
UNLABELLED_MOMENTS: Final = 0.5
"""Both in a table without a label. There are no classes to tell apart, which the network's features
are best at; they then have a weight of 0.51 or 0.71."""
DEFAULT_FREQUENCIES: Final = 5000
