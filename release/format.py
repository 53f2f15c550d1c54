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

from typing import Final

from ..common.adjacency import Adjacency

FORMAT_VERSION: Final = 1

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
"""Attribute of the root group to its type. Texts are UTF-8, `schema` and `feature_map` JSON;
numbers are float64 and int64."""


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
"""The same of a distilled set. `schema` and `settings` are JSON."""
