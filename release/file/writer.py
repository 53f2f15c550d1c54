"""From a release to the bytes of its file."""

from __future__ import annotations

import h5py
import numpy as np

from ...common.adjacency import Adjacency
from ...common.storage.canonical_json import canonical_json
from ...common.storage.container import NOT_PRIVATE_MAGIC, RELEASE_MAGIC, build
from .format import FORMAT_VERSION, attributes_of
from .model import Release


def serialise(release: Release) -> memoryview:
    """The bytes of a release file that is not signed yet. Equal releases give equal bytes."""
    guarantee = release.guarantee
    values = {
        **guarantee.figures(),
        "format_version": FORMAT_VERSION,
        "release_id": release.release_id,
        "created": release.created,
        "dpntk_version": release.dpntk_version,
        "statement": release.statement,
        "m": guarantee.records,
        "m_is_exact": int(guarantee.adjacency is Adjacency.REPLACE_ONE),
        "schema": canonical_json(release.schema.to_json()),
        "feature_map": canonical_json(release.feature_map.spec()),
    }
    kinds = attributes_of(guarantee.adjacency)

    def fill(file: h5py.File) -> None:
        for name, kind in kinds.items():
            value = values[name]
            file.attrs[name] = {int: np.int64, float: np.float64, str: str}[kind](value)
        file.create_dataset("embedding", data=release.embedding)
        file.create_dataset("class_weights", data=release.class_weights)
        weights = file.create_group("feature_map")  # there even if the map has none
        for name, weight in release.feature_map.weights().items():
            weights.create_dataset(name, data=weight)

    return build(RELEASE_MAGIC if guarantee.private else NOT_PRIVATE_MAGIC, fill)
