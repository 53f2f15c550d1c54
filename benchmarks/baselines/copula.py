"""A Gaussian copula: noisy histograms of columns, and noisy products of ranks for all pairs.

The ten lines that a statistician would write for a table of numbers (Li, Xiong and Jiang 2014,
"Differentially Private Synthesization of Multi-Dimensional Data using Copula Functions", with
products of ranks in the place of Kendall's tau). Half of the budget is for histograms, in the cells
that MST and AIM get, and half for the products.

A benchmark and no release: sums and noise are in floating point.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from dpntk.common.numerics.simplex import to_simplex
from dpntk.evaluate.tables.table import Table
from dpntk.release.mechanism.accountant import noise_multiplier

from .mst_aim import codes_of, table_of

_LEAST_VARIANCE: Final = 1e-3
_MOST_CORRELATION: Final = 0.99
Matrix = NDArray[np.float64]


def copula_rows(table: Table, epsilon: float, delta: float, seed: int) -> Table:
    """As many rows as a table has, of a Gaussian copula; under replace-one.

    Args:
        table: the rows to fit.
        epsilon: for histograms and products together.
        delta: likewise.
        seed: of noise and draws, since this is no release.
    """
    random = np.random.default_rng(seed)
    codes, sizes = codes_of(table)
    count, columns = codes.shape
    sigma = math.sqrt(2) * noise_multiplier(epsilon, delta)  # each half of the budget
    histograms = [
        np.bincount(code, minlength=size) for code, size in zip(codes.T, sizes, strict=True)
    ]
    # Two rows differ in two cells of each histogram.
    noise = sigma * math.sqrt(2 * columns)
    shares = [
        to_simplex((each + random.normal(0, noise, len(each))) / count) for each in histograms
    ]
    ends = [np.cumsum(share) for share in shares]
    scores = [2 * end - share - 1 for end, share in zip(ends, shares, strict=True)]
    ranks = np.stack([score[code] for score, code in zip(scores, codes.T, strict=True)], axis=1)
    # Ranks are -1 to 1. If a of k change their sign, a (k - a) products change by 2: at most
    # k^2 / 4 of them, so by k in length.
    products = np.triu(ranks.T @ ranks + random.normal(0, sigma * columns, (columns, columns)), 1)
    variances = np.array(
        [(share * score**2).sum() for share, score in zip(shares, scores, strict=True)]
    )
    scale = np.sqrt(np.maximum(variances, _LEAST_VARIANCE))
    normal = random.multivariate_normal(
        np.zeros(columns), _correlations(products / count / np.outer(scale, scale)), count
    )
    places = norm.cdf(normal)
    drawn = [
        np.searchsorted(end, place, "right").clip(max=len(end) - 1)
        for end, place in zip(ends, places.T, strict=True)
    ]
    return table_of(np.stack(drawn, axis=1), table.schema, random)


def _correlations(of_ranks: Matrix) -> Matrix:
    """Correlations of the Gaussian, from those of ranks above the diagonal."""
    upper = 2 * np.sin(np.pi / 6 * of_ranks.clip(-_MOST_CORRELATION, _MOST_CORRELATION))
    values, directions = np.linalg.eigh(upper + upper.T + np.eye(len(upper)))
    whole = (directions * np.maximum(values, _LEAST_VARIANCE)) @ directions.T
    scale = np.sqrt(np.diagonal(whole))
    found: Matrix = whole / np.outer(scale, scale)
    return found
