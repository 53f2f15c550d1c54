"""Checks that a release is consistent, so that no epsilon is merely claimed."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from ...common.adjacency import Adjacency
from ...common.errors import FormatError, SchemaError
from ...common.features.base import FeatureMap, sensitivity, share_of_exchange
from ...common.features.columns_of_schema import require_columns_of
from ...common.features.joint import JointFeatures
from ...common.features.joint_image import JointImageFeatures
from ...common.ledger import Entry
from ...common.schema import Schema
from ...common.schema.privacy_unit import PrivacyUnit, rows_per_unit
from ..mechanism.gaussian import SMOOTHING
from .model import EmbeddingGuarantee
from .ranges import require_possible_figures

_TOLERANCE: Final = 1e-6
_OVERSTATED: Final = 1e-7
"""How much a tiny epsilon may exceed the one that follows from the noise, which was rounded up. It
matters where delta is large."""
_LEAST_NOISE: Final = 1e-6
"""Smaller noise multipliers hide nothing, and their squares underflow."""


def log_delta(multiplier: float, epsilon: float) -> float:
    """The logarithm of the smallest delta of the Gaussian mechanism (Balle and Wang, theorem 8).

    This is the figure of `accountant.log_delta` by our own formula (Balle and Wang 2018). So a
    reader checks in another way what a writer has computed, and saves the second that importing
    autodp takes.
    """
    first = float(log_ndtr(0.5 / multiplier - epsilon * multiplier))
    second = epsilon + float(log_ndtr(-0.5 / multiplier - epsilon * multiplier))
    return first + math.log(-math.expm1(second - first)) if second < first else -math.inf


def require_consistent(
    guarantee: EmbeddingGuarantee, feature_map: FeatureMap, schema: Schema
) -> None:
    """Recompute the guarantee from the noise, and refuse figures that contradict each other.

    Args:
        guarantee: the figures.
        feature_map: the release's feature map.
        schema: states what was spent on its bounds, and which rows are protected together.

    Raises:
        FormatError: something does not follow from the rest; the message says what.
    """
    g = guarantee
    if isinstance(feature_map, JointImageFeatures) and feature_map.weight is None:
        raise FormatError("the weight of the pixels has not been chosen")
    if isinstance(feature_map, JointFeatures):
        if feature_map.marginals.undecided:
            raise FormatError("which pairs of columns it has, has not been chosen")
        if feature_map.weights_undecided:
            raise FormatError("the weights of its parts have not been chosen")
    require_possible_figures(g, feature_map.levels)
    _require_sensitivity(g, feature_map, schema.privacy_unit)
    if not g.private:
        finite = g.total_epsilon != math.inf or g.epsilon_replace_one not in (None, math.inf)
        if g.noise_multiplier or g.sigma or finite:
            raise FormatError("noise and epsilon contradict each other")
        return
    if not g.noise_multiplier or not g.sigma:
        raise FormatError("noise and epsilon contradict each other")
    for name, value in (("sigma", g.sigma), ("the sensitivity", g.sensitivity)):
        units = value / g.grid
        # The error of two float64 roundings: small enough to recognise integers below 2^49.
        if abs(units - round(units)) > units * 2.0**-51:
            raise FormatError(f"{name} is not a whole number of grid units")
    needed = math.hypot(g.noise_multiplier * g.sensitivity, SMOOTHING * g.grid)
    if g.sigma < needed * (1 - 1e-12):
        raise FormatError("sigma is smaller than the noise multiplier and the sensitivity demand")
    _require_epsilon("epsilon", g.epsilon, g.noise_multiplier, g.delta)
    if g.epsilon_replace_one is not None:
        share = share_of_exchange(feature_map, g.adjacency, count_weight=g.count_weight)
        exchanged = g.noise_multiplier * share
        _require_epsilon("epsilon under replace-one", g.epsilon_replace_one, exchanged, g.delta)
    if g.total_releases == 1:
        same = g.total_adjacency is g.adjacency
        near = math.isclose(g.total_epsilon, g.epsilon, rel_tol=_TOLERANCE, abs_tol=_OVERSTATED)
        if not same or not near:
            raise FormatError("a first release has no other total than itself")
    elif g.total_epsilon < g.epsilon * (1 - _TOLERANCE):
        raise FormatError("the total epsilon is below the epsilon of this release")
    if schema.spent:
        _require_counted(g, feature_map, schema.spent)


def require_fitting(
    embedding: NDArray[np.float32],
    class_weights: NDArray[np.float64],
    schema: Schema,
    feature_map: FeatureMap,
) -> None:
    """Check that the sizes of matrix, class weights, schema and feature map agree.

    Args:
        embedding: float32 (d, c).
        class_weights: float64 (c,).
        schema: the records' schema.
        feature_map: the release's feature map.

    Raises:
        FormatError: they do not; the message says which.
    """
    classes = len(schema.classes)
    if embedding.shape != (feature_map.dimension, classes):
        raise FormatError(
            "the embedding's shape does not follow from the feature map and the classes"
        )
    if class_weights.shape != (classes,):
        raise FormatError("there is not one weight for each class")
    if not (class_weights > 0).all() or not math.isclose(class_weights.sum(), 1, rel_tol=1e-6):
        raise FormatError("the class weights are not positive shares of 1")
    if schema.record_size != feature_map.record_size or schema.levels != feature_map.levels:
        raise FormatError("schema and feature map disagree about a record's size")
    try:
        require_columns_of(schema, feature_map)
    except SchemaError as error:
        raise FormatError(str(error)) from error


def _require_counted(
    guarantee: EmbeddingGuarantee, feature_map: FeatureMap, spent: tuple[Entry, ...]
) -> None:
    """Check that the total includes the release itself and what was spent on bounds."""
    g = guarantee
    own, before = g.noise_multiplier, [entry.noise_multiplier for entry in spent]
    if any(entry.adjacency is not g.adjacency for entry in spent):
        raise FormatError("the schema's bounds were found under another adjacency")
    if g.total_adjacency is not g.adjacency:
        own *= share_of_exchange(feature_map, g.adjacency, count_weight=g.count_weight)
        before = [entry.noise_multiplier_replace_one for entry in spent]
    if g.total_releases <= len(spent) or min(own, *before) < _LEAST_NOISE:
        raise FormatError("the total does not count what was spent on the schema's bounds")
    together = 1 / math.hypot(*(1 / multiplier for multiplier in (own, *before)))
    if log_delta(together, g.total_epsilon * (1 + _TOLERANCE)) > math.log(g.delta):
        raise FormatError("the total epsilon is below that of the release and its bounds together")


def _require_sensitivity(
    guarantee: EmbeddingGuarantee, feature_map: FeatureMap, unit: PrivacyUnit | None
) -> None:
    g = guarantee
    one_record = sensitivity(feature_map, g.adjacency, count_weight=g.count_weight)
    exact = one_record * rows_per_unit(unit)
    if not exact * (1 - 1e-12) <= g.sensitivity <= exact * (1 + 1e-9) + 2 * g.grid:
        raise FormatError("the sensitivity is not that of its feature map and adjacency")
    if unit is not None and g.adjacency is not Adjacency.ADD_REMOVE:
        raise FormatError("rows of one unit are protected together under add-remove only")
    if g.adjacency is Adjacency.ADD_REMOVE and not g.count_weight:
        raise FormatError("under add-remove the class counts need a weight")


def _require_epsilon(name: str, claimed: float, multiplier: float, delta: float) -> None:
    """Check that epsilon is the smallest at which the noise gives delta: log delta falls in it."""
    target = math.log(delta)
    low, high = claimed * (1 - _TOLERANCE) - _OVERSTATED, claimed * (1 + _TOLERANCE)
    if not log_delta(multiplier, high) <= target <= log_delta(multiplier, low):
        raise FormatError(f"{name} does not follow from sigma, the sensitivity and delta")
