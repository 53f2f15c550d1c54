"""From the bytes of a release to plain values, through a whitelist.

Nothing of HDF5 that the writer does not use is accepted: no links but hard ones, no external or
virtual storage, no filters, no references, nothing unknown. What a value is and how large it is are
found out before it is read. What the values mean is not this module's business: `reader` checks it.

libhdf5 is not safe on hostile bytes, so `child` runs this for files that this machine has not
signed itself.
"""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import h5py
import numpy as np
from numpy.typing import NDArray

from ..common.adjacency import Adjacency
from ..common.container import USER_BLOCK
from ..common.errors import FormatError
from .format import DISTILLED_ATTRIBUTES, FORMAT_VERSION, attributes_of

_SUPERBLOCK: Final = b"\x89HDF\r\n\x1a\n"
_MEMBERS: Final = {"embedding", "class_weights", "feature_map"}
_DISTILLED_MEMBERS: Final = {"points", "labels"}
_MOST_WEIGHTS: Final = 64
_LONGEST_TEXT: Final = 1 << 20
_MAY_BE_INFINITE: Final = {"epsilon", "total_epsilon", "epsilon_replace_one"}

Value = str | int | float


@dataclass(frozen=True, eq=False)
class Body:
    """The contents of a release as plain values of the right types and sizes.

    Attributes:
        attributes: by name, as `format.ATTRIBUTES` or `format.DISTILLED_ATTRIBUTES` says.
        arrays: "embedding" float32 (d, c), "class_weights" float64 (c,), and the feature map's
            weights as "feature_map/<name>", float32; or "points" float32 (m, D) and "labels" int64
            (m,); all finite.
    """

    attributes: Mapping[str, Value]
    arrays: Mapping[str, NDArray[Any]]

    @property
    def distilled(self) -> bool:
        """Whether it is of a distilled set, and not of an embedding."""
        return "points" in self.arrays


def read_body(content: bytes) -> Body:
    """Read the HDF5 part of a release.

    Args:
        content: the whole file.

    Raises:
        FormatError: there is something in it that is not on the list.
    """
    # A superblock later on would be found too, if this one were missing.
    if content[USER_BLOCK : USER_BLOCK + len(_SUPERBLOCK)] != _SUPERBLOCK:
        raise FormatError("there is no HDF5 file at byte 512")
    try:
        with h5py.File(io.BytesIO(content), "r") as file:
            if file.userblock_size != USER_BLOCK:
                raise FormatError("the HDF5 file does not begin at byte 512")
            return _read(file, len(content))
    except FormatError:
        raise
    except MemoryError as error:
        raise FormatError("damaged: it asks for more memory than a release needs") from error
    except Exception as error:  # whatever h5py makes of hostile bytes
        raise FormatError(f"damaged: {str(error)[:200]}") from error


def _read(file: h5py.File, size: int) -> Body:
    members = set(_names(file))
    if members not in (_MEMBERS, _DISTILLED_MEMBERS):
        raise FormatError("its groups and datasets are not those of a release")
    version = _attribute(file, "format_version", int)
    if version != FORMAT_VERSION:
        raise FormatError(
            f"format version {version}, which another version of dpntk reads; this one reads "
            f"version {FORMAT_VERSION}"
        )
    if members == _DISTILLED_MEMBERS:
        arrays = (file, "points", np.float32, 2), (file, "labels", np.int64, 1)
        return Body(_attributes(file, DISTILLED_ATTRIBUTES), _arrays(arrays, size))
    try:
        kinds = attributes_of(Adjacency(_attribute(file, "adjacency", str)))
    except ValueError as error:
        raise FormatError("its adjacency is neither replace-one nor add-remove") from error
    attributes = _attributes(file, kinds)
    weights = _member(file, "feature_map", h5py.Group)
    names = _names(weights)
    if len(names) > _MOST_WEIGHTS:
        raise FormatError("feature_map holds too many weights")
    wanted = (
        (file, "embedding", np.float32, 2),
        (file, "class_weights", np.float64, 1),
        *((weights, name, np.float32, 4) for name in names),
    )
    return Body(attributes, _arrays(wanted, size))


def _attributes(file: h5py.File, kinds: Mapping[str, type]) -> dict[str, Value]:
    if set(file.attrs) != set(kinds):
        raise FormatError("its attributes are not those of a release")
    return {name: _attribute(file, name, kind) for name, kind in kinds.items()}


def _arrays(
    wanted: Iterable[tuple[h5py.Group, str, type, int]], room: int
) -> dict[str, NDArray[Any]]:
    """Arrays by their paths; together they are not larger than the file."""
    arrays: dict[str, NDArray[Any]] = {}
    for group, name, dtype, dimensions in wanted:
        array = _array(group, name, dtype, dimensions, room)
        room -= array.nbytes
        arrays[f"{group.name}/{name}".lstrip("/")] = array
    return arrays


def _names(group: h5py.Group) -> list[str]:
    if len(group) > _MOST_WEIGHTS:
        raise FormatError(f"{group.name} holds too many things")
    names = list(group)
    if not all(isinstance(name, str) and name.isascii() and name.isidentifier() for name in names):
        raise FormatError(f"{group.name} holds something with an odd name")
    return names


def _attribute(file: h5py.File, name: str, kind: type) -> Value:
    wrong = FormatError(f"attribute {name} is not what a release holds there")
    if name not in file.attrs:
        raise FormatError(f"attribute {name} is missing")
    stored = file.attrs.get_id(name)
    if stored.shape != ():
        raise wrong
    text = h5py.check_string_dtype(stored.dtype)
    if kind is str:
        if text is None or text.encoding != "utf-8" or text.length is not None:
            raise wrong
        value = file.attrs[name]
        if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
            raise wrong
        return value
    if stored.dtype != np.dtype({int: np.int64, float: np.float64}[kind]):
        raise wrong
    number = kind(file.attrs[name])
    most = math.inf if name in _MAY_BE_INFINITE else sys.float_info.max
    if not 0 <= number <= most:  # not a number is neither
        raise wrong
    checked: int | float = number
    return checked


def _member(group: h5py.Group, name: str, kind: type) -> Any:  # noqa: ANN401 - h5py is untyped
    """What the group holds under `name` itself, not through a link to somewhere else."""
    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        raise FormatError(f"{name} is a link")
    member: Any = group[name]
    right_kind = isinstance(member, kind)  # in a variable, or mypy takes it for an object
    if not right_kind:
        raise FormatError(f"{name} is not a {kind.__name__.lower()}")
    if len(member.attrs):
        raise FormatError(f"{name} has attributes")
    return member


def _array(
    group: h5py.Group, name: str, dtype: type, most_dimensions: int, room: int
) -> NDArray[Any]:
    """A plain, contiguous, finite array; nothing that makes HDF5 fetch or expand anything.

    Args:
        group: that holds it.
        name: under which.
        dtype: that it must have.
        most_dimensions: that it may have.
        room: how many bytes of the file can be its values.
    """
    dataset = _member(group, name, h5py.Dataset)
    if dataset.dtype != np.dtype(dtype):
        raise FormatError(f"{name} does not hold {np.dtype(dtype)}")
    if not 1 <= dataset.ndim <= most_dimensions or dataset.maxshape != dataset.shape:
        raise FormatError(f"{name} has a shape that a release does not have there")
    if dataset.external or dataset.is_virtual or dataset.chunks:
        raise FormatError(f"{name} is not stored in one plain piece of the file itself")
    layout = dataset.id.get_create_plist()
    if layout.get_layout() != h5py.h5d.CONTIGUOUS or layout.get_nfilters():
        raise FormatError(f"{name} is not stored in one plain piece of the file itself")
    size = math.prod(dataset.shape) * dataset.dtype.itemsize
    offset = dataset.id.get_offset()
    if not 0 < size <= room or dataset.id.get_storage_size() != size or offset is None:
        raise FormatError(f"{name} is not as large as it says")
    values: NDArray[Any] = dataset[...]
    if not np.isfinite(values).all():
        raise FormatError(f"{name} holds values that are not finite")
    return values
