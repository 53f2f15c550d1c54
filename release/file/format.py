"""The layout of a release file: one list that both the writer and the reader follow.

bytes 0..511    user block: the magic line (another one if the release is NOT PRIVATE), then zeros
bytes 512..     an HDF5 file
    /embedding              float32 (d, c)   noisy sum / m
    /class_weights          float64 (c,)
    /feature_map/<weight>   float32          the map's weights by name
    attributes of /         see ATTRIBUTES
and if it is of a distilled set instead of an embedding
    /points                 float32 (m, D)   support points
    /labels                 int64 (m,)       their classes
    attributes of /         see DISTILLED_ATTRIBUTES
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...common.adjacency import Adjacency
from ...common.errors import BudgetError
from ...common.storage.layout import FLOAT32, FLOAT64, INT64, INTEGER, NUMBER, TEXT, Layout, Rule

FORMAT_VERSION: Final = 1
LONGEST_TEXT: Final = 1 << 22
"""The most characters in an attribute; readers refuse more."""

ATTRIBUTES: Final[dict[str, type]] = {
    "format_version": int,
    "release_id": str,
    "created": str,
    "dpntk_version": str,
    "statement": str,
    "epsilon": float,
    "delta": float,
    "adjacency": str,
    "noise_multiplier": float,
    "sensitivity": float,
    "sigma": float,
    "grid": float,
    "count_weight": float,
    "m": int,
    "m_is_exact": int,
    "mechanism": str,
    "accountant": str,
    "total_epsilon": float,
    "total_adjacency": str,
    "total_releases": int,
    "schema": str,
    "feature_map": str,
}
"""Attributes of the root group and their types. Texts are UTF-8, `schema` and `feature_map` are
JSON; numbers are float64 and int64."""


def attributes_of(adjacency: Adjacency) -> dict[str, type]:
    """The attributes of a release under an adjacency."""
    if adjacency is Adjacency.ADD_REMOVE:
        return {**ATTRIBUTES, "epsilon_replace_one": float}
    return ATTRIBUTES


DISTILLED_ATTRIBUTES: Final[dict[str, type]] = {
    "format_version": int,
    "kind": str,
    "release_id": str,
    "created": str,
    "dpntk_version": str,
    "statement": str,
    "epsilon": float,
    "delta": float,
    "adjacency": str,
    "noise_multiplier": float,
    "rate": float,
    "steps": int,
    "clip_norm": float,
    "grid": float,
    "sigma": float,
    "mechanism": str,
    "accountant": str,
    "total_epsilon": float,
    "total_releases": int,
    "schema": str,
    "bias_variance": float,
    "centre": int,
    "ridge": float,
    "settings": str,
}
"""The same for a distilled set. `schema` and `settings` are JSON."""


def distilled_attributes(*, total_adjacency: bool) -> dict[str, type]:
    """The attributes of a distilled set.

    Args:
        total_adjacency: whether the total holds under another adjacency than the release itself.
    """
    if total_adjacency:
        return {**DISTILLED_ATTRIBUTES, "total_adjacency": str}
    return DISTILLED_ATTRIBUTES


def require_readable(texts: Mapping[str, str]) -> None:
    """Check, before anything is spent, that readers will take the texts of a release.

    Args:
        texts: attributes by name.

    Raises:
        BudgetError: one of them is too long.
    """
    for name, text in texts.items():
        if len(text) > LONGEST_TEXT:
            raise BudgetError(
                f"the {name} in the release would have {len(text):,} characters, and readers take "
                f"{LONGEST_TEXT:,} at most: embed with fewer columns, categories or pairs, or with "
                "shorter names; nothing was spent"
            )


_KINDS: Final = {int: INTEGER, float: NUMBER, str: TEXT}


def _layout(
    datasets: dict[str, Rule],
    attributes: dict[str, type],
    groups: dict[str, Rule],
    *,
    always: dict[str, type],
) -> Layout:
    kinds = {name: _KINDS[kind] for name, kind in attributes.items()}
    optional = tuple(set(attributes) - set(always))
    return Layout("a release", FORMAT_VERSION, datasets, kinds, groups, optional, LONGEST_TEXT)


LAYOUTS: Final = (
    _layout(
        {"embedding": Rule(FLOAT32, 2), "class_weights": Rule(FLOAT64, 1)},
        attributes_of(Adjacency.ADD_REMOVE),
        {"feature_map": Rule(FLOAT32, 4)},
        always=ATTRIBUTES,
    ),
    _layout(
        {"points": Rule(FLOAT32, 2), "labels": Rule(INT64, 1)},
        distilled_attributes(total_adjacency=True),
        {},
        always=DISTILLED_ATTRIBUTES,
    ),
)
"""The possible layouts of a release."""
