"""Serialising a release, and writing its file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np

from ...common.adjacency import Adjacency
from ...common.storage.atomic import PUBLIC_MODE, SENSITIVE_MODE, write_atomically
from ...common.storage.canonical_json import canonical_json
from ...common.storage.container import NOT_PRIVATE_MAGIC, RELEASE_MAGIC, build
from ..signing.keys import SigningKey
from .format import FORMAT_VERSION, attributes_of
from .model import Release
from .user_block import digest_of, sign_file

_STORED: Final[Mapping[type, type]] = {int: np.int64, float: np.float64, str: str}


def serialise(release: Release) -> memoryview:
    """The bytes of an unsigned release file. Equal releases give equal bytes."""
    guarantee = release.guarantee
    values = {
        **vars(release),
        **guarantee.figures(),
        "format_version": FORMAT_VERSION,
        "m": guarantee.records,
        "m_is_exact": int(guarantee.adjacency is Adjacency.REPLACE_ONE),
        "schema": canonical_json(release.schema.to_json()),
        "feature_map": canonical_json(release.feature_map.spec()),
    }
    kinds = attributes_of(guarantee.adjacency)

    def fill(file: h5py.File) -> None:
        fill_attributes(file, kinds, values)
        file.create_dataset("embedding", data=release.embedding)
        file.create_dataset("class_weights", data=release.class_weights)
        weights = file.create_group("feature_map")  # present even if the map has no weights
        for name, weight in release.feature_map.weights().items():
            weights.create_dataset(name, data=weight)

    return build(RELEASE_MAGIC if guarantee.private else NOT_PRIVATE_MAGIC, fill)


def fill_attributes(file: h5py.File, kinds: Mapping[str, type], values: Mapping[str, Any]) -> None:
    """Write a release's attributes.

    Args:
        file: the file to write to.
        kinds: the name and type of each attribute: int, float or str.
        values: the attributes' values; others are ignored.
    """
    for name, kind in kinds.items():
        file.attrs[name] = _STORED[kind](values[name])


def write_signed(content: memoryview, path: Path, key: SigningKey | None, *, private: bool) -> str:
    """Write a release file, readable by its owner alone (0600) if it is not private.

    Args:
        content: its bytes, not signed yet.
        path: where to write it.
        key: the key that signs it; None leaves it unsigned, and most readers will refuse it.
        private: whether the release is private.

    Returns:
        The file's digest; see `Opened`.

    Raises:
        OutputError: it cannot be written; nothing is left behind.
    """
    if key is not None:
        sign_file(content, key)
    write_atomically(path, content, mode=PUBLIC_MODE if private else SENSITIVE_MODE)
    return digest_of(content)
