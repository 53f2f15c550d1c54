"""Choose rows among those of a table's generator.

A generator comes close to the released mean features, but neither as close as the noise allows nor,
under strong noise, with the least change. So its rows are only candidates. Rows of a class are
drawn from them with probabilities proportional to exp <theta, phi(x)>: the generator's distribution
P_0 is reweighted (exponential tilting), with natural parameters theta. Among all distributions P,
the reweighted one minimises

    || mu - E_P phi ||^2 + lambda KL(P || P_0),

with mu the released mean feature of the class; theta is 2 / lambda times the remaining
mu - E_P phi.

For a low-signal class, the generator only knows what all classes have in common
(`mean_embedding.pooled_mean`), and everything particular to the class comes from the tilt (or from
`resample`, with features that support it). A classifier trained on such rows learns
<theta, phi(x)>, in which the noise of thousands of entries averages out. A generator trained
towards such a mean would follow the noise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...common.display.console import progress
from ...common.errors import GeneratorError
from ...common.features.base import FeatureMap
from ...common.features.joint import parts_of
from ...common.schema.table import TableSchema
from ...release.file.model import Release
from ..fit.descent import require_finite
from ..kernels.base import Features
from ..kernels.mean_embedding import released_mean
from ..kernels.registry import kernel_of
from ..output.generator_file import Arrays, arrays_of_map, map_from

RIDGE: Final = 0.15
"""lambda is twice this many standard deviations of the noise on an entry of mu, which limits how
far noise alone can tilt a row. Chosen on held-out rows (docs/design/table-generator.md)."""
_LEAST: Final = 5e-4
"""lambda is at least twice this: the pool of rows that theta is found on is too small for less."""
_POOL: Final = 40_000
"""Rows in the pool, over all classes; but see `_LEAST_POOL`."""
_LEAST_POOL: Final = 2_000
"""Least number of rows in the pool of each class."""
_ROUNDS: Final = 30
_SPARE: Final = 2
"""Factor on the number of candidates that a draw with replacement would need: without replacement,
the last rows drawn are less probable than the first."""
_OWN: Final = ("theta", "candidates", "pooled")
MOST_CANDIDATES: Final = 200
"""Most candidates for each row that is kept."""
_DIVERGED: Final = "reweighting: the release's numbers are too large to be computed with"

Rows = Callable[[int, int], NDArray[np.float32]]
"""Makes rows from a class and a count: (n, record size), values 0..1."""
BATCH: Final = 4000
_MOST_NUMBERS: Final = 1 << 28


@dataclass(frozen=True, eq=False)
class Reweighting:
    """Chooses rows by their tilted probabilities.

    Attributes:
        feature_map: phi.
        theta: natural parameters of each class, float32 (c, d).
        candidates: number of candidates for each row kept, by class, int64 (c,).
        pooled: whether a class's candidates come from the mean over all classes, bool (c,).
    """

    feature_map: FeatureMap
    theta: NDArray[np.float32]
    candidates: NDArray[np.int64]
    pooled: NDArray[np.bool_]

    @cached_property
    def _batch(self) -> int:
        return rows_that_fit(self.feature_map, BATCH)

    def draw(
        self, label: int, count: int, rows: Rows, random: np.random.Generator
    ) -> NDArray[np.float32]:
        """Draw distinct rows of a class.

        The rows with the largest <theta, phi(x)> plus a Gumbel variable are a draw without
        replacement (Kool, van Hoof and Welling 2019, arXiv 1903.06059, section 2.3).

        Args:
            label: the class.
            count: how many.
            rows: draws from P_0.
            random: of the draw.

        Returns:
            float32 (count, record size), in random order.
        """
        theta = torch.from_numpy(self.theta[label])
        kept = np.empty((0, self.feature_map.record_size), dtype=np.float32)
        keys = np.empty(0)
        wanted = count * int(self.candidates[label])
        for start in range(0, wanted, self._batch):
            new = rows(label, min(self._batch, wanted - start))
            tilted = RowFeatures(self.feature_map, new).inner(theta).numpy()
            keys = np.concatenate([keys, tilted + random.gumbel(size=len(new))])
            best = np.argsort(-keys, kind="stable")[:count]
            kept, keys = np.concatenate([kept, new])[best], keys[best]
        return kept[random.permutation(count)]

    def to_arrays(self) -> Arrays:
        """Everything needed to restore it, beside the feature map's `spec`."""
        own: Arrays = {name: getattr(self, name) for name in _OWN}
        return arrays_of_map(self.feature_map) | own

    @classmethod
    def from_arrays(
        cls, arrays: Arrays, spec: Mapping[str, Any], schema: TableSchema
    ) -> Reweighting:
        """Restore a reweighting from arrays that `to_arrays` made.

        Args:
            arrays: by name.
            spec: of the feature map.
            schema: of the table.

        Raises:
            GeneratorError: they contradict each other.
            KeyError: one is missing.
            SchemaError: there is no such feature map.
        """
        theta, candidates, pooled = (arrays.pop(name) for name in _OWN)
        feature_map = map_from(spec, arrays)
        if arrays:
            raise GeneratorError("its weights do not fit its description")
        shape = len(schema.classes), feature_map.dimension
        if (
            feature_map.record_size != schema.record_size
            or theta.shape != shape
            or theta.dtype != np.float32
            or candidates.shape != shape[:1]
            or candidates.dtype != np.int64
            or pooled.shape != shape[:1]
            or pooled.dtype != np.bool_
            or not np.isfinite(theta).all()
            or not 1 <= candidates.min() <= candidates.max() <= MOST_CANDIDATES
        ):
            raise GeneratorError("its classes and tilts contradict each other")
        return cls(feature_map, theta, candidates, pooled)


def reweighting_of(release: Release, rows: Rows) -> Reweighting:
    """Find the tilt of every class.

    Guarantee:
        Post-processing: reads the release alone. (docs/privacy/proofs.md, statement 10.)

    Args:
        release: of a table.
        rows: draws from P_0.
    """
    mean, feature_map = released_mean(release), release.feature_map
    classes = len(mean.noise)
    pool = rows_that_fit(feature_map, max(_LEAST_POOL, _POOL // classes))
    theta = np.empty((classes, feature_map.dimension), dtype=np.float32)
    candidates = np.empty(classes, dtype=np.int64)
    with progress("reweighting", classes, "classes") as advance:
        for label in range(classes):
            features = RowFeatures(feature_map, rows(label, pool))
            ridge = max(_LEAST, RIDGE * float(mean.noise[label]))
            direction = best_tilt(features, torch.tensor(mean.values[:, label]), ridge)
            shares = features.inner(direction).softmax(0)
            needed = pool * float(shares.square().sum())  # 1 if all rows have the same share
            theta[label] = direction.numpy()
            candidates[label] = min(MOST_CANDIDATES, round(_SPARE * needed))
            advance(1, "")
    return Reweighting(feature_map, theta, candidates, np.isin(np.arange(classes), mean.low_signal))


def best_tilt(features: RowFeatures, mu: Tensor, ridge: float) -> Tensor:
    """Find theta on a pool of rows.

    It maximises the dual of the objective in the module's docstring:

        <theta, mu> - log E_0 exp <theta, phi> - lambda / 4 ||theta||^2

    (Dudik, Phillips and Schapire 2007, "Maximum Entropy Density Estimation with Generalized
    Regularization", section 3). It is concave, and the last term contributes so much of the
    curvature that few rounds are enough.

    Args:
        features: of the pool.
        mu: float32 (d,).
        ridge: lambda / 2.

    Returns:
        float32 (d,).

    Raises:
        GeneratorError: numbers overflow.
    """
    theta = torch.zeros_like(mu, requires_grad=True)
    optimiser = torch.optim.LBFGS([theta], max_iter=_ROUNDS, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimiser.zero_grad()
        partition = features.inner(theta).logsumexp(0)
        found: Tensor = partition - theta @ mu + ridge / 2 * theta.square().sum()
        require_finite([found], _DIVERGED)
        torch.autograd.backward(found)
        return found.detach()

    optimiser.step(loss)
    require_finite([theta], _DIVERGED)
    return theta.detach()


class RowFeatures:
    """phi(x) of rows, for every feature map of tables.

    `dpntk.generate.kernels` gives features as functions of the records; this class stores them.
    Marginals are those of rows as read back.

    Args:
        feature_map: phi.
        records: float32 (n, record size), values 0..1.
    """

    def __init__(self, feature_map: FeatureMap, records: NDArray[np.float32]) -> None:
        parts = parts_of(feature_map)
        self._split, self._size = parts.split, parts.main_weight
        self._marginal_place, self._moment_place = parts.marginal_place, parts.moment_place
        self._parts: list[Features] = []
        if parts.main is not None:
            kernel = kernel_of(parts.main, torch.device("cpu"))
            for start in range(0, len(records), BATCH):
                batch = torch.from_numpy(records[None, start : start + BATCH])
                self._parts.append(kernel.features(batch))
        self._hits: Tensor | None = None
        if (marginals := parts.marginals) is not None:
            levels = np.rint(records.clip(0, 1) * marginals.levels).astype(np.uint8)
            self._hits = marginals.hits(torch.from_numpy(levels))
            self._entries = torch.from_numpy(parts.weight * marginals.entries).float()
        self._numbers: Tensor | None = None
        if (moments := parts.moments) is not None:
            levels = np.rint(records.clip(0, 1) * moments.levels).astype(np.uint8)
            numbers = moments.steps(torch.from_numpy(levels)).float()
            self._numbers = torch.nn.functional.normalize(numbers) * parts.moment_weight**0.5

    def numbers(self) -> int:
        """How many numbers are stored."""
        cells = 0 if self._hits is None else self._hits.numel()
        numbers = 0 if self._numbers is None else self._numbers.numel()
        return cells + numbers + sum(part.numbers() for part in self._parts)

    def inner(self, vector: Tensor) -> Tensor:
        """<vector, phi(x)> of every row.

        Args:
            vector: float32 (d,); gradients flow back to it.

        Returns:
            float32 (n,).
        """
        found = vector.new_zeros(())
        if self._parts:
            main = vector[None, : self._split]
            found = self._size * torch.cat([part.inner(main)[0] for part in self._parts])
        if self._hits is not None:
            cells = vector[self._marginal_place].index_select(0, self._hits.flatten())
            found = found + cells.view(self._hits.shape) @ self._entries
        if self._numbers is not None:
            products = vector[self._moment_place].view(-1, self._numbers.shape[1])
            found = found + torch.linalg.vecdot(self._numbers @ products, self._numbers)
        return found


def rows_that_fit(feature_map: FeatureMap, wanted: int) -> int:
    """The wanted number of rows, limited to those whose features fit into a gigabyte."""
    one = RowFeatures(feature_map, np.zeros((1, feature_map.record_size), dtype=np.float32))
    return max(1, min(wanted, _MOST_NUMBERS // one.numbers()))
