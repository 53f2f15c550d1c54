"""The default paths that commands read and write."""

from __future__ import annotations

from typing import Final

EMBEDDING: Final = "embedding.h5"
MAGNITUDES: Final = "magnitudes.h5"
"""The embedding that `dpntk embed --private-bounds` writes."""
RELEASE: Final = "release.h5"
SYNTHETIC: Final = "synthetic"
"""The folder of synthetic records."""
