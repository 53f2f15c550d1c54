"""Copying and swapping rows of tensors in place."""

from __future__ import annotations

from torch import Tensor


def exchange_rows(one: Tensor, other: Tensor, rows: Tensor) -> None:
    """Swap some rows, int64 (m,), of two tensors, in place."""
    given = one.index_select(0, rows)
    copy_rows(rows, rows, (other, one))
    other.index_copy_(0, rows, given)


def copy_rows(rows: Tensor, by: Tensor, *pairs: tuple[Tensor, Tensor]) -> None:
    """Copy some rows of each first tensor to rows of the second: indexing takes twice as long."""
    for new, old in pairs:
        old.index_copy_(0, rows, new.index_select(0, by))
