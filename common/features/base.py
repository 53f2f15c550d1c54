"""The interface of feature maps: the properties on which the mechanism relies."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..adjacency import Adjacency
from ..errors import SchemaError
from ..registry import Registry
from ..schema import Schema

Weights = Mapping[str, NDArray[np.float32]]
Map = TypeVar("Map", bound="FeatureMap")


class FeatureMap(Protocol):
    """A fixed function phi from records to vectors, drawn without looking at any record."""

    @property
    def record_size(self) -> int:
        """Number of values in a record."""
        ...

    @property
    def levels(self) -> int:
        """Records hold integers 0..levels, which stand for the values 0..1."""
        ...

    @property
    def dimension(self) -> int:
        """Length d of phi(x)."""
        ...

    @property
    def norm_bound(self) -> float:
        """An upper bound on ||phi(x)|| over all admissible records."""
        ...

    @property
    def nonnegative(self) -> bool:
        """Whether <phi(x), phi(x')> >= 0 for every pair of admissible records."""
        ...

    def describe(self, schema: Schema) -> str:
        """A description for readers of a release of records with this schema."""
        ...

    def spec(self) -> dict[str, Any]:
        """Everything beside `weights` that is needed to rebuild the map, as plain JSON."""
        ...

    def weights(self) -> Weights:
        """The drawn weights by name; they are part of the release file."""
        ...


class Rebuilt(Protocol):
    """A class of feature maps that can be rebuilt from its description."""

    def from_spec(self, spec: Mapping[str, Any], weights: Mapping[str, NDArray[Any]]) -> FeatureMap:
        """Rebuild a map from its `spec()` and `weights()`, which a stranger may have written.

        Raises:
            SchemaError: they do not describe such a map.
        """
        ...


@runtime_checkable
class Drawable(Rebuilt, Protocol):
    """A class of feature maps that a record's form and a seed determine."""

    def draw(self, record_size: int, *, levels: int, seed: int) -> FeatureMap:
        """Draw a map, without looking at any record.

        Args:
            record_size: number of values in a record.
            levels: largest integer in a record.
            seed: the seed of the map's weights alone.
        """
        ...


FEATURE_MAPS: Final[Registry[str, Rebuilt]] = Registry(__package__ or "")
"""The classes of feature maps, by the name under `features` in their `spec`."""


def described_so(rebuilt: Map, spec: Mapping[str, Any]) -> Map:
    """A map that was rebuilt from a `spec()`, after checking that it describes itself so.

    Raises:
        SchemaError: it does not: there is something else in the spec.
    """
    if rebuilt.spec() != dict(spec):
        raise SchemaError("feature map: not one that this dpntk knows")
    return rebuilt


def weights_digest(feature_map: FeatureMap) -> str:
    """SHA-256 over the weights' names, shapes and bytes (little-endian), in hexadecimal."""
    state = hashlib.sha256()
    for name, weight in sorted(feature_map.weights().items()):
        state.update(f"{name} {weight.shape}\n".encode())
        state.update(np.ascontiguousarray(weight, dtype="<f4").tobytes())
    return state.hexdigest()


def sensitivity(feature_map: FeatureMap, adjacency: Adjacency, *, count_weight: float) -> float:
    """L2 sensitivity of the class-wise sums and the weighted class counts together.

    One record x with label y contributes phi(x) to column y and `count_weight` to the count of
    class y: a vector of norm at most sqrt(b^2 + w^2), where b is the map's norm bound.

    Guarantee:
        Under add-remove adjacency one contribution appears or vanishes: sqrt(b^2 + w^2).

        Under replace-one adjacency two such contributions u, u' differ by
        ||u - u'||^2 = ||u||^2 + ||u'||^2 - 2 <u, u'>. Records of different classes have
        <u, u'> = 0, which gives sqrt(2 (b^2 + w^2)). Records of one class share the count entry,
        which cancels: the difference is then ||phi(x) - phi(x')||, at most sqrt(2) b if the map is
        nonnegative and 2 b in general. The larger of the two is returned. (docs/privacy/proofs.md,
        statement 5.)

    Args:
        feature_map: gives the norm bound and non-negativity.
        adjacency: which data sets are neighbours.
        count_weight: weight w of a class count in the joint vector; 0 if counts are not released.

    Returns:
        The sensitivity in units of one record's feature.
    """
    bound = feature_map.norm_bound
    match adjacency:
        case Adjacency.REPLACE_ONE:
            across_classes = math.sqrt(2) * math.hypot(bound, count_weight)
            within_class = (math.sqrt(2) if feature_map.nonnegative else 2.0) * bound
            return max(across_classes, within_class)
        case Adjacency.ADD_REMOVE:
            return math.hypot(bound, count_weight)


def share_of_exchange(
    feature_map: FeatureMap, adjacency: Adjacency, *, count_weight: float
) -> float:
    """The sensitivity under an adjacency as a fraction of that under replace-one.

    Noise with multiplier z under the adjacency has multiplier z times this under replace-one.

    Args:
        feature_map: gives the norm bound and non-negativity.
        adjacency: which data sets are neighbours.
        count_weight: weight of a class count in the joint vector.
    """
    exchange = sensitivity(feature_map, Adjacency.REPLACE_ONE, count_weight=count_weight)
    return sensitivity(feature_map, adjacency, count_weight=count_weight) / exchange
