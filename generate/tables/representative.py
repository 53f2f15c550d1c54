"""Which rows of many to keep if fewer are wanted.

Rows chosen at random have sampling noise: in a few hundred of them, single columns are farther off
than the noise of many releases puts them. So the rows that are kept are those whose mean embedding
is closest to that of all rows, in maximum mean discrepancy (as in Chen, Welling & Smola 2010,
"Super-samples from kernel herding", arXiv 1203.3472). They begin as a random choice; then one of
them is exchanged for a row outside, as long as that brings the mean embeddings closer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...common.schema.encoding import Block

_SHARPNESS: Final = 3.0
"""Logarithm of the kernel of two rows that agree in every column."""
_LEAST_GAIN: Final = 1e-6
"""An exchange must gain at least this multiple of the kernel of the row that leaves with itself."""


def representative(
    records: NDArray[np.float32],
    count: int,
    blocks: Sequence[Block],
    random: np.random.Generator,
) -> NDArray[np.int64]:
    """Choose rows whose columns, pairs of columns and so on are distributed as those of all rows.

    The kernel of two rows is exp(s a), where a is the share of columns in which they agree (numbers
    agree the more, the nearer they are): a product of kernels of single columns, so it compares
    columns, pairs, triples and all others, with decreasing weight.

    Guarantee:
        Post-processing: the rows are generated. (docs/privacy/proofs.md, statement 10.)

    Args:
        records: encoded rows, float32 (n, record size), values 0..1.
        count: how many of them, at most n.
        blocks: the columns of a record.
        random: of the choice at the beginning, and of the order.

    Returns:
        Indices of different rows, int64 (count,), in random order.
    """
    order = random.permutation(len(records))
    if count in (0, len(records)):
        return order[:count]
    # Whole numbers: up to 258 columns their products add up exactly, whatever the order, so the
    # choice does not depend on the number of threads.
    agreeing = np.rint(255 * np.concatenate([records[:, block.shares] for block in blocks], axis=1))
    kernel = agreeing @ agreeing.T
    kernel *= _SHARPNESS / (255**2 * len(blocks))
    np.exp(kernel, out=kernel)
    square = kernel.diagonal()
    kept, left = order[:count], order[count:]
    # Each row's inner product with the difference of the two mean embeddings.
    off = kernel[kept].mean(axis=0) - kernel.mean(axis=0)
    for _ in range(len(records)):
        place = np.argmax(2 * off[kept] - square[kept] / count)
        row = kept[place]
        growth = 2 * (off[left] - off[row])
        growth += (square[row] + square[left] - 2 * kernel[row, left]) / count
        best = np.argmin(growth)
        if growth[best] > -_LEAST_GAIN * square[row]:
            break
        kept[place], left[best] = left[best], row
        off += (kernel[kept[place]] - kernel[row]) / count
    return random.permutation(kept)
