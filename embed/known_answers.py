"""A check that this machine computes the same exact sums as every other one.

Embeddings from several machines can be added up, and an interrupted pass can be continued, because
the features of a record are the same integers everywhere (`dpntk.embed.exact.base`). Here the sums
over a few made-up records are compared with their known digests.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import torch

from ..common.schema.classes import numbered
from ..common.schema.image import ImageSchema
from ..common.schema.origin import Origin
from .exact.grid import DEFAULT_CAPACITY, Grid
from .feature_options.base import FeatureOptions
from .feature_options.fourier import FourierOptions
from .feature_options.pixels import PixelOptions
from .feature_options.tangent import TangentOptions
from .sums.accumulate import ClassSums

_RECORDS: Final = 12
_SCHEMA: Final = ImageSchema(8, numbered(3), Origin.DECLARED, Origin.DECLARED)
_MAPS: Final = {
    "one layer and scattering": TangentOptions(width="7", pixels=0.0),
    "pixels beside it": TangentOptions(width="7"),
    "two layers": TangentOptions(arch="fc_2l", width="6_5", front="pixels"),
    "convolutions": TangentOptions(arch="cnn_2l", width="3_8"),
    "pixels": PixelOptions(),
    "random Fourier features": FourierOptions(frequencies=9),
}
KNOWN: Final = {
    "one layer and scattering": "12978afb340a81c05b6c247b19f12a68cbc0f1b499189fb04df5858f36648460",
    "pixels beside it": "0a28b0348c62710bf0d7a27e3d712f8d0d40edbbf521bea5b5c8742938c13ca1",
    "two layers": "2505d88001fa016987b389b83b07acce0fc1653ea5b873939c55e8910f2c5ec6",
    "convolutions": "e26e54a2cb89c25a5d369bb0e2176c1efb32177a5e070492476dd23e648b433f",
    "pixels": "335b5d889d3632720b6907a3a6c812964167f8af5f8a83f91b021be853e70354",
    "random Fourier features": "af4901351caa0d0b36f5c093d9b918aa5e1b25ef6f48493eaa756700240db2f8",
}
"""Maps each feature map to the SHA-256 of its sums."""


def differing(device: torch.device) -> list[str]:
    """The feature maps whose sums differ from the known ones; none if all is well.

    Args:
        device: where to compute.
    """
    found = {name: _digest(options, device) for name, options in _MAPS.items()}
    return [name for name, digest in found.items() if digest != KNOWN[name]]


def _digest(options: FeatureOptions, device: torch.device) -> str:
    number, place = np.ogrid[:_RECORDS, : _SCHEMA.record_size]
    records = ((number + 1) * (place + 3) * 37 + place**2 * 11).astype(np.uint8)
    grid = Grid.for_capacity(_SCHEMA.levels, DEFAULT_CAPACITY)
    sums = ClassSums(options.draw(_SCHEMA), len(_SCHEMA.classes), grid, device)
    sums.add(records, np.arange(_RECORDS) % len(_SCHEMA.classes))
    return sums.totals.digest()
