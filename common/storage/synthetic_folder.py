"""The files of a folder of synthetic records: `generate` writes them, `evaluate` reads them."""

from __future__ import annotations

from typing import Final

PROVENANCE: Final = "provenance.json"
IMAGES: Final = "images.npz"
PREVIEW: Final = "preview.png"
PICTURES: Final = "pictures.zip"
"""Each image as a PNG file, if requested."""
CSV: Final = "table.csv"
PARQUET: Final = "table.parquet"
POINTS: Final = "points.npz"
"""Points for kernel regression, unrounded."""
