"""The discrete cosine transform of images."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray


@lru_cache(maxsize=8)
def cosines(side: int) -> NDArray[np.float64]:
    """The orthonormal cosine transform along one axis: row f is the wave of frequency f.

    It is the same array for every caller, and read-only.
    """
    places = (np.arange(side) + 0.5) * math.pi / side
    waves: NDArray[np.float64] = np.cos(np.arange(side)[:, None] * places) * math.sqrt(2 / side)
    waves[0] /= math.sqrt(2)
    waves.setflags(write=False)
    return waves
