"""The last step to a release of a table: which values stand together in a row.

The released marginals say how often each value is in a class; the other released features say what
goes with what. So the rows of a class are arranged: two of them exchange their values of a column
with probability min(1, exp(gain)), where the gain is by how much the sum of <theta, phi(x)> over
the two rows grows (Metropolis et al. 1953, "Equation of state calculations by fast computing
machines"). The marginals stay as they are. If theta stayed, too, an arrangement would in the end be
as likely as exp of the sum over all rows: the law of the largest entropy among those with the same
marginals and the same mean feature. theta is looked for meanwhile, by gradient ascent on the
likelihood of mu, the released mean feature of the class, under that law:

    change of theta  ~  mu - mean phi - ridge theta,

the mean being that of the rows as they stand (Tieleman 2008, "Training restricted Boltzmann
machines using approximations to the likelihood gradient", section 3). The steps are long: rows that
are told again and again what they still lack move faster than under a theta that stays (Tieleman
and Hinton 2009, "Using fast weights to improve persistent contrastive divergence", section 3).

A generator that is trained towards the same mean by gradients has to learn what goes with what
through draws of categories, and leaves most columns as good as independent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..common.console import Advance
from ..common.encoding import blocks_of
from ..common.feature_map import FeatureMap
from ..common.joint import parts_of
from ..common.ntk import TangentFeatures
from ..common.table_schema import TableSchema
from ..release.contents import Release
from .mean_embedding import DROWNED, released_mean
from .shallow_tangents import ShallowTangents, has_shallow_tangents
from .table_correction import make_whole
from .table_tilting import CAUTION, Rows

_WINDOW: Final = 10
"""Rounds after which it is seen whether the distance of the mean features still falls."""
_FALLS: Final = 0.99
"""To this part of what it was, or less. Otherwise the steps were too long, and are halved."""
_RATE: Final = 200.0
_LEAST_RATE: Final = 5.0
_MOMENTUM: Final = 0.8
_MOST_ROUNDS: Final = 300
_LATER_ROUNDS: Final = 8
"""With each doubling of the rows."""
_COLUMNS_A_ROUND: Final = 0.3
_LEAST_COLUMNS: Final = 3
_LEAST_ROWS: Final = 4_000
_MOST_ROWS: Final = 8_000
"""So many rows are arranged from the beginning; where more are wanted, they are doubled until there
are enough, and every time arranged a little further."""


@dataclass(frozen=True, eq=False)
class Exchange:
    """How rows are arranged.

    Attributes:
        feature_map: tangent features of one hidden layer of ReLU units, beside marginals.
        schema: of the table.
        mean: released mean feature of each class, float32 (c, d).
        noise: standard deviation of the noise on an entry of each, float64 (c,).
    """

    feature_map: FeatureMap
    schema: TableSchema
    mean: NDArray[np.float32]
    noise: NDArray[np.float64]

    def arranges(self, label: int) -> bool:
        """Whether enough is known of a class: it has not drowned."""
        return bool(self.noise[label] <= DROWNED)

    @cached_property
    def _tangents(self) -> ShallowTangents:
        main = parts_of(self.feature_map).main
        assert isinstance(main, TangentFeatures)
        return ShallowTangents(main)

    def draw(
        self,
        label: int,
        count: int,
        rows: Rows,
        random: np.random.Generator,
        advance: Advance = lambda units, remark: None,
    ) -> NDArray[np.float32]:
        """Draw rows of a class.

        Args:
            label: the class.
            count: how many.
            rows: with the marginals that the rows are to have. What goes with what in them does not
                matter.
            random: of the draw.
            advance: is told how near the mean features are, and at the end how many rows there are.

        Returns:
            float32 (count, record size), in random order.
        """
        sizes = [max(count, _LEAST_ROWS)]
        while sizes[-1] > _MOST_ROWS:
            sizes.append((sizes[-1] + 1) // 2)
        parts, tangents, blocks = parts_of(self.feature_map), self._tangents, blocks_of(self.schema)
        target = torch.from_numpy(self.mean[label, : parts.split] / np.float32(parts.main_weight))
        noise = float(self.noise[label]) / parts.main_weight
        taken = max(_LEAST_COLUMNS, round(_COLUMNS_A_ROUND * len(blocks)))
        theta, step = torch.zeros_like(target), torch.zeros_like(target)
        rate = _RATE

        def arrange(records: Tensor) -> float:
            """One round; the squared distance of the mean features before it."""
            nonlocal theta, step
            missing = target - tangents.mean(records)
            step = _MOMENTUM * step + missing - CAUTION * noise * theta
            theta = theta + rate * step
            columns = [blocks[column] for column in random.permutation(len(blocks))[:taken]]
            tangents.exchange(records, theta, columns, random)
            return float(missing.square().sum())

        first = rows(label, sizes.pop())
        make_whole(first, self.schema)
        made = torch.from_numpy(first)
        floor, before = noise**2 * len(target), math.inf
        with _one_thread():
            for _ in range(_MOST_ROUNDS // _WINDOW):
                distance = sum(arrange(made) for _ in range(_WINDOW)) / _WINDOW
                advance(0, f"distance {distance:.5f}, noise floor {floor:.5f}")
                if distance > _FALLS * before:
                    rate /= 2
                if rate < _LEAST_RATE:
                    break
                before = distance
            while sizes:
                made = torch.cat([made, made])[: sizes.pop()]
                for _ in range(_LATER_ROUNDS):
                    arrange(made)
        advance(count, "")
        chosen: NDArray[np.float32] = made.numpy()[random.permutation(len(made))[:count]]
        return chosen


@contextmanager
def _one_thread() -> Iterator[None]:
    """Steps are so small that on a busy machine threads wait for one another rather than work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def exchange_of(release: Release) -> Exchange | None:
    """How rows are arranged by a release; None if its features are not of the kind.

    Guarantee:
        Post-processing: reads the release alone. (docs/privacy.md, statement 10.)

    Args:
        release: of a table.
    """
    if not has_shallow_tangents(release.feature_map):
        return None
    assert isinstance(release.schema, TableSchema)
    mean = released_mean(release)
    return Exchange(release.feature_map, release.schema, mean.values.T.copy(), mean.noise)
