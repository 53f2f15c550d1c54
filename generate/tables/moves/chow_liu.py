"""The tree of pairs of columns that best describes a table's distribution (Chow and Liu 1968).

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
"""Mutual information is at least that: a graph keeps no edges without a weight."""
_TINY: Final = 1e-300


@dataclass(frozen=True, eq=False)
class TableShares:
    """How often columns have their cells together.

    Attributes:
        group: which.
        shares: what is believed of them, float64 (cells of the first column, of the second, and so
            on), positive.
        start: of its cells among those of all tables.
    """

    group: MarginalGroup
    shares: Tensor
    start: int

    @property
    def information(self) -> float:
        """Mutual information of two columns, in nats."""
        alone = torch.outer(self.shares.sum(dim=1), self.shares.sum(dim=0))
        return float(torch.special.xlogy(self.shares, self.shares / alone.clamp(min=_TINY)).sum())


def chow_liu_tree(tables: Sequence[TableShares]) -> list[tuple[int, TableShares]]:
    """Pairs without a circle, parents first, whose mutual information is largest in all.

    Args:
        tables: of two columns and more; those of two alone are looked at.

    Returns:
        Of each where the values of the parent begin in a record, and the table.
    """
    starts = list(dict.fromkeys(side.start for table in tables for side in table.group.sides))
    weights = np.zeros((len(starts), len(starts)))
    between = {}
    for table in tables:
        if not table.group.is_pair:
            continue
        one, other = sorted(starts.index(side.start) for side in table.group.sides)
        # Of two tables of the same columns, the one that says more.
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
