"""The last step from a release to a table: arranging values into rows.

Rows start with independent columns. A Markov chain refines them: its state is all rows of a class
at once, and its moves bring their mean feature closer to the released one. (A generator trained by
gradients would have to learn dependence through draws of categories, and leaves most columns
practically independent.)

The kind of move depends on how much is known about a class. As a rule it has columns of its own
(`columns`), and rows swap values (`moves.swap`). Much less is known about a low-signal class than
about all classes together. Its rows start as those of all classes, and everything particular to it
comes from its mean feature as a whole, towards which values are resampled (`moves.resample`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...common.display.console import Advance
from ...common.errors import GeneratorError
from ...common.features.base import FeatureMap
from ...common.features.joint import parts_of
from ...common.features.ntk.map import TangentFeatures
from ...common.runtime.threads import Each, one_core_each
from ...common.schema.encoding import blocks_of
from ...common.schema.rules.condition import Condition
from ...common.schema.table import TableSchema
from ...release.file.model import Release
from ..kernels.mean_embedding import LOW_SIGNAL, released_mean
from ..output.generator_file import Arrays, arrays_of_map
from .dependence.product_departures import ReleasedMoments
from .dependence.table_departures import ReleasedCounts
from .energies.count import CountEnergy
from .energies.goal import Departures, Goal
from .energies.relu_features import ReluFeatures, has_relu_features
from .marginals.matching import round_to_steps
from .marginals.released import is_noise
from .moves.base import Moves
from .moves.conditioned import ConditionEnergy, Pool
from .moves.resample import ResamplingMoves
from .moves.swap import SwapMoves
from .representative import representative
from .reweighting import Rows

_LEAST_ROWS: Final = 1_000
_USUAL_ROWS: Final = 4_000
_ENOUGH: Final = 100
"""There are from `_LEAST_ROWS` to `_USUAL_ROWS` rows: enough that the sampling variance of their
mean feature is a hundredth of the noise's variance."""
_RARE: Final = 10.0
"""A class is rare if its mean feature has more than this multiple of the noise on that of all
classes."""
_MOST_ROWS: Final = 8_000
"""At most this many rows are refined from the start. To get more, rows are doubled, and refined a
little further each time."""


def has_own_columns(noise: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether enough is known about each class to estimate its own columns.

    Args:
        noise: standard deviation of the noise on an entry of the mean feature of each class,
            float64 (c,).

    Returns:
        bool (c,): true without low signal, and also with low signal if the mean feature of all
        classes together is known little better.
    """
    if not noise.all():
        return noise <= LOW_SIGNAL
    own: NDArray[np.bool_] = (noise <= LOW_SIGNAL) | (noise <= _RARE * noise_on_all(noise))
    return own


def noise_on_all(noise: NDArray[np.float64]) -> float:
    """Standard deviation of the noise on a mean of all classes together.

    The noise on a class's mean is that on its sum over its number of records, so the noise levels
    reveal the class shares. They must not be 0.

    Args:
        noise: standard deviation of the noise on the mean of each class, float64 (c,).
    """
    return float(np.sqrt(len(noise)) / (1 / noise).sum())


@dataclass(frozen=True, eq=False)
class Refinement:
    """Arranges rows by a release.

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

    def to_arrays(self) -> Arrays:
        """Everything needed to restore it, beside the feature map's `spec` and the schema."""
        return {**arrays_of_map(self.feature_map), "mean": self.mean, "noise": self.noise}

    @classmethod
    def from_arrays(
        cls, arrays: Arrays, feature_map: FeatureMap | None, schema: TableSchema
    ) -> Refinement:
        """Restore a refinement from arrays that `to_arrays` made.

        Args:
            arrays: by name, without those of the feature map.
            feature_map: the map, or None if it is unknown.
            schema: of the table.

        Raises:
            GeneratorError: they contradict each other.
            KeyError: one is missing.
        """
        mean, noise = arrays.pop("mean"), arrays.pop("noise")
        if arrays:
            raise GeneratorError("its weights do not fit its description")
        if feature_map is None or not has_relu_features(feature_map):
            raise GeneratorError("rows cannot be arranged by its features")
        if (
            mean.shape != (len(schema.classes), feature_map.dimension)
            or mean.dtype != np.float32
            or not np.isfinite(mean).all()
            or not is_noise(noise, len(mean))
        ):
            raise GeneratorError("its classes and means contradict each other")
        return cls(feature_map, schema, mean, noise)

    def swaps(self, label: int) -> bool:
        """Whether enough is known about a class for its rows to swap values."""
        return bool(has_own_columns(self.noise)[label])

    @cached_property
    def _tangents(self) -> ReluFeatures:
        main = parts_of(self.feature_map).main
        assert isinstance(main, TangentFeatures)
        return ReluFeatures(main)

    def goal(self, label: int) -> Goal:
        """The targets for rows of a class."""
        return self._goal(self.mean[label], float(self.noise[label]))

    def goal_of_all(self) -> Goal:
        """The targets for rows of all classes together; see `noise_on_all`."""
        mean = (self._shares @ self.mean).astype(np.float32)
        return self._goal(mean, noise_on_all(self.noise))

    @cached_property
    def _shares(self) -> NDArray[np.float64]:
        """The class shares, as the noise levels reveal them."""
        shares: NDArray[np.float64] = 1 / self.noise
        shares /= shares.sum()
        return shares

    def _goal(self, mean: NDArray[np.float32], noise: float) -> Goal:
        """The targets for a mean feature (d,) with this noise on each entry."""
        parts = parts_of(self.feature_map)
        of_main = torch.from_numpy(mean[: parts.split] / np.float32(parts.main_weight))
        moments = ReleasedMoments.of(parts, mean, noise)
        counts = ReleasedCounts.of(parts, mean, noise)
        blocks = blocks_of(self.schema)
        return Goal(
            self._tangents,
            blocks,
            of_main,
            noise / parts.main_weight,
            moments,
            counts,
            only_class=len(self.mean) == 1,
        )

    def departures(self, rows: Rows) -> dict[int, Departures]:
        """The departures from independence of each class, by its label.

        Only of classes whose rows swap values, and empty if there is just one.

        Args:
            rows: see `draw`.
        """
        labels = [label for label in range(len(self.mean)) if self.swaps(label)]
        if len(labels) == 1:
            return {}
        return {
            label: self.goal(label).departures(self._whole(rows, label, _USUAL_ROWS))
            for label in labels
        }

    def _whole(self, rows: Rows, label: int, count: int) -> Tensor:
        """Rows of independent columns, rounded as they will be written."""
        made = rows(label, count)
        round_to_steps(made, self.schema)
        return torch.from_numpy(made)

    def _rows_of_all(self, rows: Rows) -> Tensor:
        """Rows of independent columns, with the marginals of all classes together."""
        counts = np.rint(_USUAL_ROWS * self._shares).astype(int).tolist()
        return torch.cat(
            [self._whole(rows, label, count) for label, count in enumerate(counts) if count]
        )

    def _moves(
        self,
        label: int,
        goal: Goal,
        records: Tensor,
        rows: Rows,
        departures: Mapping[int, Departures],
        random: np.random.Generator,
        each: Each,
    ) -> Moves:
        """The Markov chain for the rows of a class.

        A low-signal class keeps its own columns, but starts with the dependence of all classes.
        """
        if self.swaps(label):
            others = [known for other, known in departures.items() if other != label]
            return SwapMoves(goal, random, each, others)
        tables, of_all = None, self.goal_of_all().counts
        if of_all is not None:
            tables = CountEnergy(of_all, self._rows_of_all(rows))
            tables.initialise(records, goal.blocks, random)
        return ResamplingMoves(goal, records.clone(), tables, random, each)

    def pool(
        self,
        label: int,
        condition: Condition,
        rows: Rows,
        departures: Mapping[int, Departures],
        random: np.random.Generator,
        each: Each,
        advance: Advance = lambda units, remark: None,
    ) -> Pool:
        """Arrange rows of a class, as a source of rows that fulfil a condition.

        Args:
            label: the class.
            condition: one that some rows of the class may fulfil.
            rows: see `draw`.
            departures: see `draw`.
            random: of all draws.
            each: distributes the work.
            advance: reports progress.
        """
        made = self._whole(rows, label, _USUAL_ROWS)
        moves = self._moves(label, self.goal(label), made, rows, departures, random, each)
        moves.fit(made, advance)
        return Pool(moves, made, ConditionEnergy(condition, self.schema, label), random)

    def draw(
        self,
        label: int,
        count: int,
        rows: Rows,
        random: np.random.Generator,
        advance: Advance = lambda units, remark: None,
        departures: Mapping[int, Departures] = MappingProxyType({}),
    ) -> NDArray[np.float32]:
        """Draw rows of a class.

        Args:
            label: the class.
            count: how many.
            rows: makes rows with the marginals of the result, or, for a low-signal class, with its
                initial marginals. The dependence of their columns does not matter.
            random: of the draw.
            advance: reports progress, and at the end the number of rows.
            departures: departures of each class, by its label; if empty, nothing is pooled across
                classes.

        Returns:
            float32 (count, record size), in random order.
        """
        goal = self.goal(label)
        enough = min(_ENOUGH / max(goal.floor, _ENOUGH / _USUAL_ROWS), _USUAL_ROWS)
        sizes = [max(count, _LEAST_ROWS, round(enough))]
        while sizes[-1] > _MOST_ROWS:
            sizes.append((sizes[-1] + 1) // 2)
        made = self._whole(rows, label, sizes.pop())
        with one_core_each() as each:
            moves = self._moves(label, goal, made, rows, departures, random, each)
            moves.fit(made, advance)
            while sizes:
                made = torch.cat([made, made])[: sizes.pop()]
                moves.continue_chain(made)
        advance(count, "")
        found: NDArray[np.float32] = made.numpy()
        return found[representative(found, count, goal.blocks, random)]


def refinement_of(release: Release) -> Refinement | None:
    """The refinement for a release; None if its features do not support it.

    Guarantee:
        Post-processing: reads the release alone. (docs/privacy/proofs.md, statement 10.)

    Args:
        release: of a table.
    """
    if not has_relu_features(release.feature_map):
        return None
    assert isinstance(release.schema, TableSchema)
    mean = released_mean(release)
    return Refinement(release.feature_map, release.schema, mean.values.T.copy(), mean.noise)
