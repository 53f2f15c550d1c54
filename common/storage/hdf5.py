"""Taking inventory of an HDF5 file's bytes, through a whitelist.

Features of HDF5 that our writers do not use are refused: only hard links are allowed, one to each
dataset; no external, virtual, compact or chunked storage, no filters, no references, only plain
types, nothing unknown. The type, size and place of datasets are determined, but no value of a
dataset is read here, and no memory is allocated for one.

libhdf5 is not safe on hostile bytes, so `contents` runs this in a sandboxed process, unless this
machine has signed the file itself.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import h5py
import numpy as np

from .container import USER_BLOCK
from .layout import (
    FLOAT32,
    FLOAT64,
    INT64,
    INTEGER,
    NUMBER,
    TEXT,
    UINT8,
    Inventory,
    Layout,
    Place,
    Rule,
    Value,
)
from .sandbox import Refused

_SUPERBLOCK: Final = b"\x89HDF\r\n\x1a\n"
_MOST_MEMBERS: Final = 64
_LONGEST_NAME: Final = 64
_VERSION: Final = "format_version"
_STORED: Final = {
    FLOAT32: h5py.h5t.IEEE_F32LE,
    FLOAT64: h5py.h5t.IEEE_F64LE,
    INT64: h5py.h5t.STD_I64LE,
    UINT8: h5py.h5t.STD_U8LE,
    INTEGER: h5py.h5t.STD_I64LE,
    NUMBER: h5py.h5t.IEEE_F64LE,
}
_READ_AS: Final = {TEXT: h5py.string_dtype(), INTEGER: np.dtype("<i8"), NUMBER: np.dtype("<f8")}


def inventory(content: bytes, layouts: Sequence[Layout]) -> Inventory:
    """Determine what is in a file.

    Args:
        content: the whole file.
        layouts: the allowed layouts, one of which it must have.

    Raises:
        Refused: it holds something that is not on the whitelist.
    """
    # If this superblock were missing, HDF5 would look for one further on.
    if content[USER_BLOCK : USER_BLOCK + len(_SUPERBLOCK)] != _SUPERBLOCK:
        raise Refused(f"there is no HDF5 file at byte {USER_BLOCK}")
    try:
        with h5py.File(io.BytesIO(content), "r") as file:
            if file.userblock_size != USER_BLOCK:
                raise Refused(f"the HDF5 file does not begin at byte {USER_BLOCK}")
            return _inventory(file, layouts, len(content))
    except Refused:
        raise
    except MemoryError as error:
        raise Refused(f"damaged: it asks for more memory than {layouts[0].what} needs") from error
    except Exception as error:  # anything that h5py raises for hostile bytes
        plain = repr(str(error)[:200])[1:-1]  # it may quote the file's content
        raise Refused(f"damaged: {plain}") from error


def inventory_as_json(content: bytes, layouts: Sequence[Mapping[str, Any]]) -> Inventory:
    """`inventory` in the form for `sandbox`, with layouts as JSON."""
    return inventory(content, [Layout.from_json(layout) for layout in layouts])


def _inventory(file: h5py.File, layouts: Sequence[Layout], size: int) -> Inventory:
    names = _names(file)
    layout = next(
        (each for each in layouts if each.allows(set(names), {*each.datasets, *each.groups})), None
    )
    if layout is None:
        raise Refused(f"its groups and datasets are not those of {layouts[0].what}")
    stored = file.attrs
    version = _attribute(stored, _VERSION, INTEGER, layout)
    if version != layout.version:
        raise Refused(
            f"format version {version}, which another version of dpntk reads; this one reads "
            f"version {layout.version}"
        )
    kinds = {name: layout.attributes.get(name, "") for name in stored}
    if not layout.allows(set(kinds), set(layout.attributes)):
        raise Refused(f"its attributes are not those of {layout.what}")
    attributes = {name: _attribute(stored, name, kind, layout) for name, kind in kinds.items()}
    wanted = [(file, name, rule) for name, rule in layout.datasets.items() if name in names]
    for name, rule in layout.groups.items():
        group = _member(file, name, h5py.Group)
        wanted += [(group, member, rule) for member in _names(group)]
    places = {
        f"{group.name}/{name}".lstrip("/"): _place(group, name, rule, layout, size)
        for group, name, rule in wanted
    }
    return Inventory(attributes, places)


def _names(group: h5py.Group) -> list[str]:
    if len(group) > _MOST_MEMBERS:
        raise Refused(f"{group.name} holds too many things")
    names = list(group)
    for name in names:
        plain = isinstance(name, str) and name.isascii() and name.isidentifier()
        if not plain or len(name) > _LONGEST_NAME:
            raise Refused(f"{group.name} holds something with an odd name")
    return names


def _attribute(attributes: h5py.AttributeManager, name: str, kind: str, layout: Layout) -> Value:
    if name not in attributes:
        raise Refused(f"attribute {name} is missing")
    wrong = Refused(f"attribute {name} is not what {layout.what} holds there")
    stored = attributes.get_id(name)
    dtype = stored.get_type()
    if stored.get_space().get_simple_extent_type() != h5py.h5s.SCALAR or dtype.committed():
        raise wrong
    if kind == TEXT:
        known = isinstance(dtype, h5py.h5t.TypeStringID) and dtype.is_variable_str()
        if not known or dtype.get_cset() != h5py.h5t.CSET_UTF8:
            raise wrong
    elif not dtype.equal(_STORED[kind]):
        raise wrong
    value = np.empty((), _READ_AS[kind])
    stored.read(value)
    if kind != TEXT:
        number: int | float = value.item()
        return number
    text = bytes(value.item()).decode()
    if len(text) > layout.longest_text:
        raise wrong
    return text


def _member(group: h5py.Group, name: str, kind: type) -> Any:  # noqa: ANN401 - h5py is untyped
    """The member of a group under `name`, which must have no other name."""
    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        raise Refused(f"{name} is a link")
    member: Any = group[name]
    right_kind = isinstance(member, kind)  # in a variable, because mypy would infer `object`
    if not right_kind:
        raise Refused(f"{name} is not a {kind.__name__.lower()}")
    if h5py.h5o.get_info(member.id).rc != 1:
        raise Refused(f"{name} has another name as well")
    if len(member.attrs):
        raise Refused(f"{name} has attributes")
    return member


def _place(group: h5py.Group, name: str, rule: Rule, layout: Layout, size: int) -> Place:
    """The place of a plain, contiguous array; found without making HDF5 fetch or expand data.

    Args:
        group: the group that holds it.
        name: its name in the group.
        rule: the rule for it.
        layout: the file's layout.
        size: the file's size in bytes.
    """
    dataset = _member(group, name, h5py.Dataset)
    dtype = dataset.id.get_type()
    if dtype.committed() or not dtype.equal(_STORED[rule.dtype]):
        raise Refused(f"{name} does not hold {np.dtype(rule.dtype)}")
    if not 1 <= dataset.ndim <= rule.dimensions or dataset.maxshape != dataset.shape:
        raise Refused(f"{name} has a shape that {layout.what} does not have there")
    stored = dataset.id.get_create_plist()
    if (
        stored.get_layout() != h5py.h5d.CONTIGUOUS
        or stored.get_external_count()
        or stored.get_nfilters()
    ):
        raise Refused(f"{name} is not stored in one plain piece of the file itself")
    wanted = math.prod(dataset.shape) * dtype.get_size()
    offset = dataset.id.get_offset()
    there = wanted and offset is not None and offset + wanted <= size
    if not there or dataset.id.get_storage_size() != wanted:
        raise Refused(f"{name} is not as large as it says")
    return Place(rule.dtype, tuple(map(int, dataset.shape)), int(offset))
