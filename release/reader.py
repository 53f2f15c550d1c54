"""Opening a release. This is the half of the room that stages three and four may use."""

from __future__ import annotations

import hashlib
import io
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np
from numpy.typing import NDArray

from ..common.adjacency import Adjacency
from ..common.container import (
    EMBEDDING_MAGIC,
    NOT_PRIVATE_MAGIC,
    RELEASE_MAGIC,
    USER_BLOCK,
    user_block,
)
from ..common.errors import FormatError, ReleaseError, SchemaError
from ..common.ntk import OneHiddenLayerNTK
from ..common.schema import ImageSchema
from .contents import Guarantee, Release
from .format import FORMAT_VERSION, attributes_of

UNSIGNED: Final = "unsigned: nobody vouches for where this release comes from"
_LARGEST_FILE: Final = 1 << 34
_LARGEST_NUMBER: Final = sys.float_info.max
_MAY_BE_INFINITE: Final = {"epsilon", "total_epsilon", "epsilon_replace_one"}


@dataclass(frozen=True, eq=False)
class OpenedRelease:
    """A release with what is known of its origin.

    Attributes:
        release: the contents.
        digest: SHA-256 of the file from byte 512 on, in hexadecimal.
        origin: who signed it, in words.
    """

    release: Release
    digest: str
    origin: str


def open_release(path: Path | str) -> OpenedRelease:
    """Read and check a release file.

    Raises:
        ReleaseError: there is no readable file, or it is an embedding.
        FormatError: its bytes are not those of a release that this dpntk reads.
    """
    path = Path(path)
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise FormatError(f"{path}: too large for a release")
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise ReleaseError(
            f"{path}: there is no such file; 'dpntk release' makes one from an embedding"
        ) from error
    except OSError as error:
        raise ReleaseError(f"{path}: {error.strerror or error}") from error
    if content.startswith(EMBEDDING_MAGIC):
        raise ReleaseError(
            f"{path} is an embedding, not a release: it is SENSITIVE and must not leave its "
            "owner; run 'dpntk release' on it first"
        )
    magic = next((m for m in (RELEASE_MAGIC, NOT_PRIVATE_MAGIC) if content.startswith(m)), None)
    if magic is None:
        raise FormatError(f"{path}: not a dpntk release")
    if content[:USER_BLOCK] != user_block(magic):
        raise FormatError(f"{path}: its first {USER_BLOCK} bytes are not those of a release")
    try:
        with h5py.File(io.BytesIO(content), "r") as file:
            release = _parse(file)
        if release.guarantee.private != (magic == RELEASE_MAGIC):
            raise FormatError("its first line and its epsilon disagree about its being private")
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from error
    except (SchemaError, OSError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise FormatError(f"{path}: damaged: {error}") from error
    return OpenedRelease(release, hashlib.sha256(content[USER_BLOCK:]).hexdigest(), UNSIGNED)


def _parse(file: h5py.File) -> Release:
    if set(file) != {"embedding", "class_weights", "feature_map"}:
        raise FormatError("its groups and datasets are not those of a release")
    version = file.attrs.get("format_version")
    if version != FORMAT_VERSION:
        raise FormatError(f"format version {version}, this dpntk reads version {FORMAT_VERSION}")
    adjacency = Adjacency(file.attrs.get("adjacency"))
    kinds = attributes_of(adjacency)
    if set(file.attrs) != set(kinds):
        raise FormatError("its attributes are not those of a release")
    values: dict[str, Any] = {
        name: _attribute(name, file.attrs[name], kind) for name, kind in kinds.items()
    }
    schema = ImageSchema.from_json(json.loads(values["schema"]))
    weights = _member(file, "feature_map", h5py.Group)
    feature_map = OneHiddenLayerNTK.from_spec(
        json.loads(values["feature_map"]),
        {name: _array(weights, name, np.float32, 2) for name in weights},
    )
    embedding = _array(file, "embedding", np.float32, 2)
    class_weights = _array(file, "class_weights", np.float64, 1)
    if embedding.shape != (feature_map.dimension, len(schema.classes)):
        raise FormatError(
            "the embedding's shape does not follow from the feature map and the classes"
        )
    if class_weights.shape != (len(schema.classes),):
        raise FormatError("there is not one weight for each class")
    if not (class_weights > 0).all() or not math.isclose(class_weights.sum(), 1, rel_tol=1e-6):
        raise FormatError("the class weights are not positive shares of 1")
    if schema.inputs != feature_map.inputs or schema.levels != feature_map.levels:
        raise FormatError("schema and feature map disagree about a record's size")
    guarantee = Guarantee(
        epsilon=values["epsilon"],
        delta=values["delta"],
        adjacency=adjacency,
        noise_multiplier=values["noise_multiplier"],
        sensitivity=values["sensitivity"],
        sigma=values["sigma"],
        grid=values["grid"],
        count_weight=values["count_weight"],
        records=values["m"],
        mechanism=values["mechanism"],
        accountant=values["accountant"],
        epsilon_replace_one=values.get("epsilon_replace_one"),
        total_epsilon=values["total_epsilon"],
        total_adjacency=Adjacency(values["total_adjacency"]),
        total_releases=values["total_releases"],
    )
    if min(guarantee.records, guarantee.total_releases) < 1 or not 0 < guarantee.delta < 1:
        raise FormatError("the number of records or of releases, or delta, is impossible")
    if {guarantee.noise_multiplier == 0, guarantee.sigma == 0} != {not guarantee.private}:
        raise FormatError("noise and epsilon contradict each other")
    if min(guarantee.sensitivity, guarantee.grid, guarantee.epsilon) == 0:
        raise FormatError("the sensitivity, the grid or epsilon is 0")
    if values["m_is_exact"] != int(adjacency is Adjacency.REPLACE_ONE):
        raise FormatError("the number of records is exact under replace-one, and only there")
    return Release(
        embedding=embedding,
        class_weights=class_weights,
        feature_map=feature_map,
        schema=schema,
        guarantee=guarantee,
        release_id=values["release_id"],
        created=values["created"],
        dpntk_version=values["dpntk_version"],
        statement=values["statement"],
    )


def _attribute(name: str, value: object, kind: type) -> str | int | float:
    if kind is str and isinstance(value, str):
        return value
    if kind is int and isinstance(value, np.int64):
        return int(value)
    most = math.inf if name in _MAY_BE_INFINITE else _LARGEST_NUMBER
    if kind is float and isinstance(value, np.float64) and 0 <= value <= most:
        return float(value)
    raise FormatError(f"attribute {name} is not what a release holds there")


def _member(group: h5py.Group, name: str, kind: type) -> Any:  # noqa: ANN401 - h5py is untyped
    """What the group holds under `name` itself, not through a link to somewhere else."""
    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        raise FormatError(f"{name} is a link")
    member = group[name]
    if not isinstance(member, kind):
        raise FormatError(f"{name} is not a {kind.__name__.lower()}")
    return member


def _array(group: h5py.Group, name: str, dtype: type, most_dimensions: int) -> NDArray[Any]:
    """A plain, contiguous, finite array; nothing that makes HDF5 fetch or expand anything."""
    dataset = _member(group, name, h5py.Dataset)
    if dataset.dtype != np.dtype(dtype):
        raise FormatError(f"{name} does not hold {np.dtype(dtype)}")
    if not 1 <= dataset.ndim <= most_dimensions:
        raise FormatError(f"{name} has {dataset.ndim} dimensions")
    if dataset.chunks or dataset.external or dataset.is_virtual:
        raise FormatError(f"{name} is not stored in one plain piece")
    if dataset.id.get_storage_size() != dataset.size * dataset.dtype.itemsize:
        raise FormatError(f"{name} is not as large as it says")
    values: NDArray[Any] = dataset[...]
    if not np.isfinite(values).all():
        raise FormatError(f"{name} holds values that are not finite")
    return values
