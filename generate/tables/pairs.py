"""The two-way marginals that a release holds, as a target of training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...common.features.base import FeatureMap
from ...common.features.marginals import MarginalColumn
from ..kernels.mean_embedding import MeanEmbedding
from ..kernels.mmd import distance_from
from .marginals import marginal_part

_Place = tuple[int, int]


@dataclass(frozen=True, eq=False)
class PairMarginal:
    """How often each cell of a pair of columns is, class by class.

    Attributes:
        first: from where to where in a record one column is; the largest value there says in which
            cell the record lies.
        second: likewise of the other one.
        shares: noisy, float64 (classes, cells of the first, cells of the second).
    """

    first: _Place
    second: _Place
    shares: NDArray[np.float64]


def pairs_of(mean: MeanEmbedding, feature_map: FeatureMap) -> tuple[PairMarginal, ...]:
    """The two-way marginals that a release of a table holds, nothing if it holds none.

    Args:
        mean: mean features of each class.
        feature_map: of the release.
    """
    found = marginal_part(mean, feature_map)
    if found is None:
        return ()
    marginals, noisy, size = found
    places = marginals.places[len(marginals.columns) :]
    return tuple(
        PairMarginal(
            _place(pair.first),
            _place(pair.second),
            (noisy[place] / size).T.reshape(-1, pair.first.count, pair.second.count),
        )
        for pair, place in zip(marginals.pairs, places, strict=True)
    )


class PairDistance:
    """Squared distance of two-way marginals: mean over pairs and classes, without bias.

    A cell of two columns is hit if both cells are: so features of a pair are products of those of
    its columns, and inner products of them are products of inner products. They are never written
    out. Which cell a generated row hits is where its largest value is; the gradient is passed on to
    the values themselves (straight-through, as in `TableGenerator`).

    Args:
        pairs: released ones, at least one.
        device: where records are.
        weight: the distance is multiplied by it.
    """

    def __init__(self, pairs: Sequence[PairMarginal], device: torch.device, weight: float) -> None:
        self._weight = weight / len(pairs)
        self._seconds: dict[_Place, list[_Place]] = {}
        tables: dict[_Place, list[Tensor]] = {}
        for pair in pairs:
            shares = torch.as_tensor(pair.shares, device=device).float()
            self._seconds.setdefault(pair.first, []).append(pair.second)
            tables.setdefault(pair.first, []).append(shares)
        self._tables = {first: torch.cat(found, dim=-1) for first, found in tables.items()}
        self._norm = torch.stack([t.square().sum(dim=(1, 2)) for t in self._tables.values()]).sum(0)

    def __call__(self, records: Tensor) -> Tensor:
        """The distance of a batch.

        Args:
            records: (c, b, record size), values 0..1, b >= 2 of each class.
        """
        places = {place for found in self._seconds.values() for place in found}
        cells = {place: _cells(records, place) for place in places | self._seconds.keys()}
        towards, gram = records.new_zeros(()), records.new_zeros(())
        for first, seconds in self._seconds.items():
            one, others = cells[first], torch.cat([cells[second] for second in seconds], dim=-1)
            towards = towards + ((one @ self._tables[first]) * others).sum(dim=-1)
            gram = gram + (one @ one.mT) * (others @ others.mT)
        return distance_from(towards, gram, self._norm) * self._weight


def _cells(records: Tensor, place: _Place) -> Tensor:
    """1 in the cell of each record, 0 in the others: (c, b, cells)."""
    values = records[..., slice(*place)]
    hard = torch.nn.functional.one_hot(values.argmax(-1), values.shape[-1]).to(values)
    return hard + values - values.detach()


def _place(column: MarginalColumn) -> _Place:
    return column.start, column.start + column.count
