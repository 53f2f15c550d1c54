"""Parsing a release's bytes into plain values of the right types and sizes.

`reader` checks what the values mean.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from numpy.typing import NDArray

from ...common.adjacency import Adjacency
from ...common.display.representations import RedactedRepr
from ...common.errors import FormatError
from ...common.storage.contents import contents_of
from ...common.storage.layout import Value
from ...common.storage.sandbox import Refused
from .format import LAYOUTS, attributes_of

_MAY_BE_INFINITE: Final = {"epsilon", "total_epsilon", "epsilon_replace_one", "clip_norm"}


@dataclass(frozen=True, eq=False, repr=False)
class Body(RedactedRepr):
    """The contents of a release as plain values of the right types and sizes.

    Attributes:
        attributes: the attributes of `format.ATTRIBUTES` or `format.DISTILLED_ATTRIBUTES`, by name.
        arrays: "embedding" float32 (d, c), "class_weights" float64 (c,), and the feature map's
            weights as "feature_map/<name>", float32; or "points" float32 (m, D) and "labels" int64
            (m,); all finite.
    """

    attributes: Mapping[str, Value]
    arrays: Mapping[str, NDArray[Any]]

    @property
    def distilled(self) -> bool:
        """Whether the release is a distilled set's, not an embedding's."""
        return "points" in self.arrays


def read_body(content: bytes) -> Body:
    """Read, in this process, the HDF5 part of a release that this machine has signed.

    Args:
        content: the whole file.

    Raises:
        FormatError: the file holds something that is not on the whitelist.
    """
    return _read(content, ours=True)


def read_in_child(content: bytes) -> Body:
    """Like `read_body`, but in a sandboxed process, for a stranger's release.

    Raises:
        FormatError: as for `read_body`, or reading failed in any way.
    """
    return _read(content, ours=False)


def _read(content: bytes, *, ours: bool) -> Body:
    try:
        contents = contents_of(content, LAYOUTS, ours=ours)
    except Refused as error:
        raise FormatError(str(error)) from error
    body = Body(contents.attributes, contents.arrays)
    for name, value in body.attributes.items():
        _require_range(name, value)
    if not body.distilled:
        try:
            kinds = attributes_of(Adjacency(body.attributes["adjacency"]))
        except ValueError as error:
            raise FormatError("its adjacency is neither replace-one nor add-remove") from error
        if set(body.attributes) != set(kinds):
            raise FormatError("its attributes are not those of a release")
    return body


def _require_range(name: str, value: Value) -> None:
    """Check that a number is in the range that some release can have."""
    if isinstance(value, str):
        return
    most = math.inf if name in _MAY_BE_INFINITE else sys.float_info.max
    if not 0 <= value <= most:  # NaN fails this, too
        raise FormatError(f"attribute {name} is not what a release holds there")
