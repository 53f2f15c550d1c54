"""The tree of column pairs that best approximates a table's distribution.

Chow and Liu 1968, "Approximating Discrete Probability Distributions with Dependence Trees".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree
from torch import Tensor

from ....common.features.marginals.cells import MarginalGroup

_EXACT: Final = 1e-9
"""Floor for mutual information: a sparse graph drops edges of weight 0."""
_TINY: Final = 1e-300


@dataclass(frozen=True, eq=False)
class TableShares:
    """The joint distribution of a group of columns.

    Attributes:
        group: the columns.
        shares: estimated joint shares, float64 (cells of the first column, of the second, and so
            on), positive.
        start: where its cells begin among those of all tables.
    """

    group: MarginalGroup
    shares: Tensor
    start: int

    @property
    def information(self) -> float:
        """Mutual information of the two columns, in nats."""
        alone = torch.outer(self.shares.sum(dim=1), self.shares.sum(dim=0))
        return float(torch.special.xlogy(self.shares, self.shares / alone.clamp(min=_TINY)).sum())


def chow_liu_tree(tables: Sequence[TableShares]) -> list[tuple[int, TableShares]]:
    """The maximum spanning tree of pairs by mutual information, parents first.

    Args:
        tables: tables of two or more columns; only those of two are used.

    Returns:
        For each edge, where the parent's values begin in a record, and the table.
    """
    starts = list(dict.fromkeys(side.start for table in tables for side in table.group.sides))
    weights = np.zeros((len(starts), len(starts)))
    between = {}
    for table in tables:
        if not table.group.is_pair:
            continue
        one, other = sorted(starts.index(side.start) for side in table.group.sides)
        # Of two tables of the same columns, keep the more informative one.
        if (information := -max(table.information, _EXACT)) < weights[one, other]:
            weights[one, other], between[one, other] = information, table
    tree = minimum_spanning_tree(weights)
    found, seen = [], set()
    for root in range(len(starts)):
        if root in seen:
            continue
        order, before = breadth_first_order(tree, root, directed=False)
        seen.update(order.tolist())
        for child in order[1:]:
            parent = int(before[child])
            table = between[min(parent, child), max(parent, child)]
            found.append((starts[parent], table))
    return found
