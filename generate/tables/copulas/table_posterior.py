"""Posterior estimates of tables of columns, given noisy ones.

The cells of a table of categories share nothing but a distribution of orders of magnitude
(`denoising.table_shares`). Two dependent numbers mostly follow a Gaussian copula (`copula`), or
depart from it smoothly (`smooth_departures`); both are estimated from all tables of two numbers
together. A target of a few coarse cells would lose most of that shape. So each coarse cell's share
is divided among finer cells by this model, unless the pair is also measured in still finer cells,
which the model might contradict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ....common.features.marginals.cells import MarginalColumn, MarginalGroup
from ..dependence.table_departures import SharesOf
from ..marginals.denoising import table_shares
from .copula import NoisyTable, Pair, PairCopulas
from .smooth_departures import CopulaResidual, SmoothDepartures, waves_of

_EXACT: Final = 1e-9
"""Floor for shares of cells."""
_TINY: Final = 1e-300
_FITTING_STEPS: Final = 20
_ROUGH: Final = 3
"""With this many parts or fewer, much of the dependence of numbers lies within cells."""
_PARTS: Final = 8
"""Rough tables are refined to this many parts of each number, or a few more."""


class Lacking(NamedTuple):
    """How often one of two numbers is missing, or both are.

    Attributes:
        share: a noisy share of rows.
        noise: its standard deviation.
    """

    share: float
    noise: float


@dataclass(frozen=True, eq=False)
class TableObservation:
    """A noisy observation of a table.

    Attributes:
        table: its columns, with all of its cells.
        coarse: whether it is of two numbers in few cells.
        folded: whether it was released folded, so that its cells are not observed individually.
        shares: noisy shares of all cells, float64 (cells,).
        noise: standard deviation of the noise on each.
        lacking: the last cell of a folded table of numbers that may be missing.
    """

    table: MarginalGroup
    coarse: bool
    folded: bool
    shares: NDArray[np.float64]
    noise: float
    lacking: Lacking | None = None

    @property
    def is_rough(self) -> bool:
        """Whether its cells are so few that the dependence within them matters."""
        return self.coarse and max(side.known for side in self.table.sides) <= _ROUGH

    @property
    def has_low_signal(self) -> bool:
        """Whether the noise exceeds a uniform share, so that no cell says anything by itself."""
        return self.noise * len(self.shares) > 1

    @property
    def pair(self) -> Pair:
        """The two numbers, by where each begins in a record."""
        return tuple(side.start for side in self.table.sides)


def copulas_of(looks: Sequence[TableObservation], shares_of: SharesOf) -> PairCopulas | None:
    """The copulas of pairs of numbers; None if no table is of two numbers.

    Args:
        looks: the observation of each table of one class.
        shares_of: gives the shares of a column's cells in rows.
    """
    together = known_together(looks, shares_of)
    noisy = [
        _as_noisy(look, shares_of, together.get(look.pair))
        for look in looks
        if _has_copula(look.table, shares_of)
    ]
    return PairCopulas.of(noisy) if noisy else None


def posterior_tables(
    looks: Sequence[TableObservation],
    shares_of: SharesOf,
    copulas: PairCopulas | None,
    *,
    divide_folded: bool = True,
) -> list[tuple[MarginalGroup, Tensor]]:
    """Estimate tables, with the one-way marginals of rows.

    Args:
        looks: the observation of each table of one class.
        shares_of: gives the shares of a column's cells in rows.
        copulas: see `copulas_of`.
        divide_folded: whether folded tables are divided into finer cells too. They determine a
            correlation and nothing else, so there is no need if rows follow a copula.

    Returns:
        For each table its columns, in finer cells if it is rough and no other table of its pair is
        finer still, and shares of cells, float64 (cells,).
    """
    model = None if copulas is None else _NumbersModel(looks, shares_of, copulas)
    measured = {
        look.pair: len(look.shares) for look in looks if not (look.coarse or look.has_low_signal)
    }
    found = []
    for look in looks:
        table, expected = look.table, None
        if model is not None and _has_copula(table, shares_of):
            expected = model.shares(look.pair, table)
        shares = expected
        if expected is None or not (look.folded or look.has_low_signal):
            shares = table_shares(
                look.shares, look.noise, None if expected is None else expected.ravel()
            )
        wanted = _fitted(torch.from_numpy(shares), [shares_of(side) for side in table.sides])
        rough = look.is_rough and (divide_folded or not look.folded)
        if model is not None and expected is not None and rough:
            finer = MarginalGroup(tuple(_finer(side, shares_of) for side in table.sides))
            if finer.dimension >= measured.get(look.pair, 0):
                wanted = _divided(model, look, finer, wanted)
                table = finer
        found.append((table, wanted))
    return found


def known_together(looks: Sequence[TableObservation], shares_of: SharesOf) -> dict[Pair, float]:
    """The share of rows in which neither of two numbers is missing, where a table shows it.

    Numbers of one questionnaire are missing together. The cell of a table in which both are, or
    either is if the table is folded, shows how often, even if noise hides all others. Its departure
    from independence is shrunk in proportion to its noise (James and Stein 1961, "Estimation with
    Quadratic Loss").

    Args:
        looks: the observation of each table of one class.
        shares_of: gives the shares of a column's cells in rows.
    """
    seen: dict[Pair, list[tuple[float, float]]] = {}
    alone: dict[Pair, list[float]] = {}
    for look in looks:
        sides = look.table.sides
        may_be_missing = all(side.dimension > side.known for side in sides)
        if not may_be_missing or not _has_copula(look.table, shares_of):
            continue
        missing = [float(shares_of(side)[-1]) for side in sides]
        both, noise = float(look.shares[-1]), look.noise
        if look.folded:
            if look.lacking is None:
                continue
            both, noise = sum(missing) - look.lacking.share, look.lacking.noise
        alone[look.pair] = missing
        seen.setdefault(look.pair, []).append((both, max(noise, _EXACT) ** -2))
    found = {}
    for pair, (first, second) in alone.items():
        shares, precisions = np.array(seen[pair]).T
        variance = 1 / precisions.sum()
        apart = float(variance * precisions @ shares) - first * second
        apart *= max(0.0, 1 - variance / max(apart**2, _TINY))
        both = min(max(first * second + apart, 0.0, first + second - 1), first, second)
        found[pair] = max(1 - first - second + both, _EXACT)
    return found


def _as_noisy(
    look: TableObservation, shares_of: SharesOf, together: float | None = None
) -> NoisyTable:
    """A table of two numbers, without the cells of missing values."""
    sides = look.table.sides
    cells = look.shares.reshape([side.dimension for side in sides])[_known(look.table)]
    rows, columns = (shares_of(side).numpy()[: side.known] for side in sides)
    return NoisyTable(cells, look.noise, rows, columns, look.pair, together)


class _NumbersModel:
    """What all tables of two numbers together say of each of them.

    Folded tables determine no departures from copulas.

    Args:
        looks: the observation of each table of one class.
        shares_of: gives the shares of a column's cells in rows.
        copulas: of all pairs of numbers.
    """

    def __init__(
        self, looks: Sequence[TableObservation], shares_of: SharesOf, copulas: PairCopulas
    ) -> None:
        self.shares_of, self._copulas = shares_of, copulas
        # Each serves several tables, or twice for one.
        self._waves = cache(partial(waves_of, shares_of=shares_of))
        self._by_copula = cache(self._copula_shares)
        self._departures = SmoothDepartures.of(
            [
                CopulaResidual(
                    look.pair,
                    _as_noisy(look, shares_of).shares - self._by_copula(look.pair, look.table),
                    look.noise,
                    *map(self._waves, look.table.sides),
                )
                for look in looks
                if look.noise and not look.folded and _has_copula(look.table, shares_of)
            ]
        )

    def shares(self, pair: Pair, table: MarginalGroup) -> NDArray[np.float64]:
        """Shares of the cells of two numbers, in any cells, (r, s)."""
        found = np.outer(*(self.shares_of(side).numpy() for side in table.sides))
        if (together := self._copulas.together.get(pair)) is not None:
            _miss_together(found, together)
        found = found.clip(_EXACT)
        # A missing value has no place in the order of cells: beyond whether both are missing, it is
        # taken to be independent.
        found[_known(table)] = self._departures.added_to(
            self._by_copula(pair, table), pair, *map(self._waves, table.sides)
        )
        return found

    def _copula_shares(self, pair: Pair, table: MarginalGroup) -> NDArray[np.float64]:
        rows, columns = (self.shares_of(side).numpy()[: side.known] for side in table.sides)
        return self._copulas.shares(pair, rows, columns)


def _miss_together(table: NDArray[np.float64], together: float) -> None:
    """Change how often two numbers are missing together in a table of independent ones, (r, s).

    Args:
        table: shares of cells; the last row and the last column are of missing values.
        together: the share of rows in which neither is to be missing.
    """
    known = table[:-1, :-1].sum()
    more = together - known
    for cells in (table[-1, :-1], table[:-1, -1]):
        cells *= max(cells.sum() - more, 0.0) / max(cells.sum(), _TINY)
    table[-1, -1] = max(table[-1, -1] + more, 0.0)
    table[:-1, :-1] *= together / max(known, _TINY)


def _divided(
    model: _NumbersModel, look: TableObservation, finer: MarginalGroup, wanted: Tensor
) -> Tensor:
    """Divide each cell's share among finer cells in proportion to the model."""
    expected = torch.from_numpy(model.shares(look.pair, finer)).flatten()
    within = _parts_of(finer, look.table)
    of_parts = torch.zeros_like(wanted).index_add_(0, within, expected)
    shares = expected * (wanted / of_parts.clamp(min=_TINY))[within]
    return _fitted(shares, [model.shares_of(side) for side in finer.sides])


def _parts_of(finer: MarginalGroup, table: MarginalGroup) -> Tensor:
    """The cell of a table that contains each cell of a finer version, int64 (cells,)."""
    cells = torch.meshgrid(
        *(
            side.merge(torch.tensor([*each.merged, *([each.cells] if each.missing >= 0 else [])]))
            for each, side in zip(finer.sides, table.sides, strict=True)
        ),
        indexing="ij",
    )
    return table.cell_among(dict(zip(table.sides, cells, strict=True))).flatten()


def _has_copula(table: MarginalGroup, shares_of: SharesOf) -> bool:
    """Whether a table is of two numbers that are not missing in all rows."""
    return table.of_numbers and all(
        bool(shares_of(side)[: side.known].any()) for side in table.sides
    )


def _known(table: MarginalGroup) -> tuple[slice, ...]:
    """The cells that are not of missing numbers."""
    return tuple(slice(side.known) for side in table.sides)


def _finer(side: MarginalColumn, shares_of: SharesOf) -> MarginalColumn:
    whole = side.unmerged
    even = whole.in_parts(shares_of(whole).numpy()[: whole.known], _PARTS)
    return replace(whole, merged=tuple(sorted({*side.merged, *even.merged})))


def _fitted(shares: Tensor, alone: Sequence[Tensor]) -> Tensor:
    """Fit shares of cells to the given marginals (r,), (s,), ...; the result is flat.

    Uses iterative proportional fitting (Deming and Stephan 1940).
    """
    shares = shares.view([len(each) for each in alone])
    for _ in range(_FITTING_STEPS):
        for axis, each in enumerate(alone):
            others = [other for other in range(shares.dim()) if other != axis]
            ratio = each / shares.sum(dim=others).clamp(min=_TINY)
            shares = shares * ratio.view([-1 if at == axis else 1 for at in range(shares.dim())])
    return shares.flatten()
