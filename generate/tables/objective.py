"""The distance between generated rows and a release of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...common.features.base import FeatureMap
from ...common.features.joint import parts_of
from ...common.features.marginals.cells import MarginalColumn
from ...common.schema.table import TableSchema
from ..fit.descent import Loss
from ..kernels.base import FeatureMatrix
from ..kernels.mean_embedding import MeanEmbedding
from ..kernels.mmd import MeanEmbeddingDistance, distance_from, squared_distance
from .marginals.released import marginal_part, marginals_of, record_targets

_Place = tuple[int, int]


class TableDistance:
    """Mean over classes of the squared distance of mean embeddings, estimated without bias.

    This is `MeanEmbeddingDistance` plus, if the release holds marginals of columns or pairs, their
    distances. The weight of the latter is free to choose, since the release already has its noise.

    Args:
        mean: target of the generator.
        feature_map: of the release.
        schema: of the release.
        device: where to compute.
        marginals_loss: weight of the marginals.

    Attributes:
        noise_floor: expected contribution of the release's noise to the distance without the
            marginals.
    """

    def __init__(
        self,
        mean: MeanEmbedding,
        feature_map: FeatureMap,
        schema: TableSchema,
        device: torch.device,
        marginals_loss: float,
    ) -> None:
        parts = parts_of(feature_map)
        main, weight = parts.main, parts.main_weight
        self._features: MeanEmbeddingDistance | None = None
        self.noise_floor = 0.0
        if main is not None:
            target = torch.as_tensor(mean.values[: parts.split].T, device=device)
            noise = torch.as_tensor(mean.noise, device=device).float()
            self._features = MeanEmbeddingDistance(main, target / weight, noise / weight)
            self.noise_floor = self._features.noise_floor
        self._places: Tensor | None = None
        if marginals := marginals_of(mean, feature_map, schema):
            places, means = record_targets(marginals)
            self._places = torch.as_tensor(places, device=device)
            self._size = (marginals_loss / len(marginals)) ** 0.5
            self._means = torch.as_tensor(means, device=device) * self._size
        self._pairs: PairDistance | None = None
        if pairs := pairs_of(mean, feature_map):
            self._pairs = PairDistance(pairs, device, marginals_loss)

    def __call__(self, records: Tensor) -> Loss:
        """The distance of a batch, and its part without the marginals, which is reported.

        Args:
            records: (c, b, record size), values 0..1, b >= 2 of each class.
        """
        features = torch.zeros((), device=records.device)
        if self._features is not None:
            features = self._features(records)
        if self._places is None:
            return Loss(features, features.detach())
        marginals = FeatureMatrix(records[..., self._places] * self._size)
        norm = self._means.square().sum(dim=1)
        distance = features + squared_distance(marginals, self._means, norm)
        if self._pairs is not None:
            distance = distance + self._pairs(records)
        return Loss(distance, features.detach())


@dataclass(frozen=True, eq=False)
class PairMarginal:
    """The shares of the cells of a pair of columns in each class.

    Attributes:
        first: begin and end of one column in a record; the largest value there marks the record's
            cell.
        second: begin and end of the other column.
        shares: noisy, float64 (classes, cells of the first, cells of the second).
    """

    first: _Place
    second: _Place
    shares: NDArray[np.float64]


def pairs_of(mean: MeanEmbedding, feature_map: FeatureMap) -> tuple[PairMarginal, ...]:
    """The two-way marginals that a release of a table holds; empty if it holds none.

    Only those of categories and soft bins, in which a network's output is differentiable.

    Args:
        mean: mean features of each class.
        feature_map: of the release.
    """
    found = marginal_part(mean, feature_map)
    if found is None:
        return ()
    marginals, noisy, of_columns = found
    size = of_columns * marginals.group_entry / marginals.entry
    places = marginals.places[len(marginals.tables) - len(marginals.groups) :]
    return tuple(
        PairMarginal(
            _place(group.sides[0]),
            _place(group.sides[1]),
            (noisy[place] / size).T.reshape(-1, *(side.count for side in group.sides)),
        )
        for group, place in zip(marginals.groups, places, strict=True)
        if group.is_pair and not any(side.cells for side in group.sides)
    )


class PairDistance:
    """Squared distance of two-way marginals: mean over pairs and classes, without bias.

    A row hits a cell of two columns if it hits both columns' cells. So features of a pair are
    products of those of its columns, and their inner products are products of inner products; the
    features are never written out. A generated row hits the cell of its largest value, and the
    gradient passes to the values themselves (straight-through, as in `TableGenerator`).

    Args:
        pairs: released ones, at least one.
        device: where records are.
        weight: factor on the distance.
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
