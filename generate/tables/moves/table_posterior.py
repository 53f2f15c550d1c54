"""Tables of columns as they are likely to be, given noisy ones.

The cells of a table of categories have nothing in common but how frequent each order of magnitude
is (`denoising.table_shares`). Numbers that go together mostly do so as Gaussian ones would
(`copula`), which all tables of two numbers show together. Rows that were held to a few cells only
would lose most of that again. So rows are held to a table of more cells, which divide the share of
each coarse cell as the Gaussian law has it, unless the pair is measured in still more cells: the
law would ask for something else within.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ....common.features.marginals.cells import MarginalColumn, MarginalGroup
from ..copula import NoisyTable, Pair, PairLaws
from ..denoising import table_shares
from .table_departures import SharesOf

_EXACT: Final = 1e-9
"""Shares of cells are at least that."""
_TINY: Final = 1e-300
_FITTING_STEPS: Final = 20
_ROUGH: Final = 3
"""If numbers are cut into this many parts or fewer, much of how they go together lies within."""
_PARTS: Final = 8
"""Numbers of which a table has few cells are cut into this many parts, or a few more."""


@dataclass(frozen=True, eq=False)
class Look:
    """What is seen of a table.

    Attributes:
        table: its columns, with all of its cells.
        coarse: whether it is of two numbers in few cells.
        folded: whether it was released folded, so that its cells are not seen by themselves.
        shares: of all cells, noisy, float64 (cells,).
        noise: standard deviation on each.
    """

    table: MarginalGroup
    coarse: bool
    folded: bool
    shares: NDArray[np.float64]
    noise: float

    @property
    def is_rough(self) -> bool:
        """Whether its cells are so few that how the numbers go together within them matters."""
        return self.coarse and max(side.known for side in self.table.sides) <= _ROUGH

    @property
    def has_low_signal(self) -> bool:
        """Whether the noise on cells exceeds their shares, so that none says anything by itself."""
        return self.noise * len(self.shares) > 1

    @property
    def pair(self) -> Pair:
        """Where each column begins in a record."""
        return tuple(side.start for side in self.table.sides)


def posterior_tables(
    looks: Sequence[Look], shares_of: SharesOf
) -> list[tuple[MarginalGroup, Tensor]]:
    """Tables as they are likely to be, with the columns of rows.

    Args:
        looks: what is seen of each, of one class.
        shares_of: of rows.

    Returns:
        For each its columns, in more cells if it is rough and no other table of its pair has
        still more, and shares of cells, float64 (cells,).
    """
    noisy = [_as_noisy(look, shares_of) for look in looks if _goes_by_law(look.table, shares_of)]
    laws = PairLaws.of(noisy) if noisy else None
    measured = {
        look.pair: len(look.shares) for look in looks if not (look.coarse or look.has_low_signal)
    }
    found = []
    for look in looks:
        table, law = look.table, None
        if laws is not None and _goes_by_law(table, shares_of):
            law = _by_law(laws, look, table, shares_of)
        shares = law
        if law is None or not (look.folded or look.has_low_signal):
            shares = table_shares(look.shares, look.noise, None if law is None else law.ravel())
        wanted = _fitted(torch.from_numpy(shares), [shares_of(side) for side in table.sides])
        if laws is not None and law is not None and look.is_rough:
            finer = MarginalGroup(tuple(_finer(side, shares_of) for side in table.sides))
            if finer.dimension >= measured.get(look.pair, 0):
                wanted = _shared_out(laws, look, finer, wanted, shares_of)
                table = finer
        found.append((table, wanted))
    return found


def _as_noisy(look: Look, shares_of: SharesOf) -> NoisyTable:
    """A table of two numbers, without cells of missing ones."""
    sides = look.table.sides
    cells = look.shares.reshape([side.dimension for side in sides])[_known(look.table)]
    rows, columns = (shares_of(side).numpy()[: side.known] for side in sides)
    return NoisyTable(cells, look.noise, rows, columns, look.pair)


def _by_law(
    laws: PairLaws, look: Look, table: MarginalGroup, shares_of: SharesOf
) -> NDArray[np.float64]:
    """Shares of cells of two numbers by the law of a pair, (r, s)."""
    alone = [shares_of(side).numpy() for side in table.sides]
    law = np.outer(*alone).clip(_EXACT)
    known = (each[: side.known] for each, side in zip(alone, table.sides, strict=True))
    # That a number is missing has no place among its other cells.
    law[_known(table)] = laws.shares(look.pair, *known)
    return law


def _shared_out(
    laws: PairLaws, look: Look, finer: MarginalGroup, wanted: Tensor, shares_of: SharesOf
) -> Tensor:
    """Shares of the same table in more cells, which have by the law what there is in their part."""
    law = torch.from_numpy(_by_law(laws, look, finer, shares_of)).flatten()
    within = _parts_of(finer, look.table)
    of_parts = torch.zeros_like(wanted).index_add_(0, within, law)
    shares = law * (wanted / of_parts.clamp(min=_TINY))[within]
    return _fitted(shares, [shares_of(side) for side in finer.sides])


def _parts_of(finer: MarginalGroup, table: MarginalGroup) -> Tensor:
    """Which cell of a table each cell of the same one in more cells is in, int64 (cells,)."""
    cells = torch.meshgrid(
        *(
            side.merge(torch.tensor([*each.merged, *([each.cells] if each.missing >= 0 else [])]))
            for each, side in zip(finer.sides, table.sides, strict=True)
        ),
        indexing="ij",
    )
    return table.cell_among(dict(zip(table.sides, cells, strict=True))).flatten()


def _goes_by_law(table: MarginalGroup, shares_of: SharesOf) -> bool:
    """Whether a table is of two numbers that some rows have."""
    return table.of_numbers and all(
        bool(shares_of(side)[: side.known].any()) for side in table.sides
    )


def _known(table: MarginalGroup) -> tuple[slice, ...]:
    """Which cells are not of missing numbers."""
    return tuple(slice(side.known) for side in table.sides)


def _finer(side: MarginalColumn, shares_of: SharesOf) -> MarginalColumn:
    whole = side.unmerged
    even = whole.in_parts(shares_of(whole).numpy()[: whole.known], _PARTS)
    return replace(whole, merged=tuple(sorted({*side.merged, *even.merged})))


def _fitted(shares: Tensor, alone: Sequence[Tensor]) -> Tensor:
    """Shares of cells with those of columns that rows have, (r,), (s,), ...; flat.

    By iterative proportional fitting (Deming and Stephan 1940).
    """
    shares = shares.view([len(each) for each in alone])
    for _ in range(_FITTING_STEPS):
        for axis, each in enumerate(alone):
            others = [other for other in range(shares.dim()) if other != axis]
            ratio = each / shares.sum(dim=others).clamp(min=_TINY)
            shares = shares * ratio.view([-1 if at == axis else 1 for at in range(shares.dim())])
    return shares.flatten()
