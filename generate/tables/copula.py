"""What a table of two numbers is like if they go together as Gaussian ones would.

Numbers that are skewed or far within their bounds are no Gaussian ones, but often go together as
these do once each is replaced by its rank (a Gaussian copula; Nelsen 2006, "An introduction to
copulas", section 2.3). That has one parameter, which a table tells well, be there noise on its
cells of the size of their shares.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

_CORRELATIONS: Final = np.sin(np.linspace(-1.5, 1.5, 61))
"""Those that are tried, closer to each other where they are large."""
_NODES: Final = 8
"""Ranks within a cell over which what goes with them is averaged."""
_EXACT: Final = 1e-12
"""Shares are at least that."""

Shares = NDArray[np.float64]


def copula_shares(noisy: Shares, rows: Shares, columns: Shares) -> Shares:
    """Shares of the cells of the nearest table of the kind to noisy ones (least squares).

    Args:
        noisy: (r, s), cells of either number in its order.
        rows: shares of the cells of the first number, (r,), at least one of them positive. They
            may add up to less than 1, if the number is missing otherwise, as often whatever the
            other one is.
        columns: likewise of the second, (s,).

    Returns:
        float64 (r, s), positive, with about these shares of rows and columns.
    """
    tables = _tables(rows / rows.sum(), columns / columns.sum(), _CORRELATIONS)
    tables *= rows.sum() * columns.sum()
    nearest = np.square(tables - noisy).sum(axis=(1, 2)).argmin()
    likely: Shares = tables[nearest].clip(_EXACT)
    return likely


def _tables(rows: Shares, columns: Shares, correlations: Shares) -> Shares:
    """Of each correlation the shares of cells, (correlations, r, s)."""
    before = np.cumsum(rows) - rows
    ranks = before[:, None] + rows[:, None] * (np.arange(_NODES) + 0.5) / _NODES
    first = ndtri(ranks.clip(_EXACT, 1 - _EXACT))
    borders = ndtri(np.concatenate([[0.0], np.cumsum(columns)]).clip(0, 1))
    borders[[0, -1]] = -np.inf, np.inf
    r = correlations[:, None, None, None]
    below = ndtr((borders - r * first[..., None]) / np.sqrt(1 - r**2))
    found: Shares = np.diff(below, axis=-1).mean(axis=2) * rows[:, None]
    return found
