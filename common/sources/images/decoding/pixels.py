"""Converting stored values to pixels 0..255."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....arguments import argument
from ....errors import DataError
from ....schema.image import PIXEL_LEVELS
from ...options import SourceOptions
from .form import Form

_OR_STORE = "or store pixels as uint8 in 0..255, or as floats in [0, 1]"


def declare_range() -> str:
    """The advice in errors if the values of black and white are unknown."""
    return f"say with {argument('value_range')} which values are black and white, such as"


def require_pixels(dtype: np.dtype[Any], where: str, options: SourceOptions) -> None:
    """Refuse values that are not pixels, or whose range from black to white is unknown.

    Args:
        dtype: the values' type.
        where: their name in messages.
        options: the declared range, if any.

    Raises:
        DataError: they are not numbers; or they are neither uint8 nor floats, and no range is
            declared.
    """
    if dtype.kind not in "iuf":
        raise DataError(f"{where} is {dtype}: store pixels as uint8, or as floats in [0, 1]")
    if options.value_range is None and dtype.kind != "f" and dtype != np.uint8:
        raise DataError(f"{where} is {dtype}: {declare_range()} 0,4095; {_OR_STORE}")


def require_one_meaning(stored: NDArray[Any], where: str, form: Form, first: int) -> None:
    """Refuse images whose meaning would change if their array held floats.

    An array has one type for all images. One image with fractions turns all into floats, and a
    value of 1, nearly black among bytes, is white among floats. An image with larger values, or
    with 0 alone, can be read in only one way.

    Guarantee:
        So no image is read differently because of other images. (docs/privacy/proofs.md, statement
        3.)

    Args:
        stored: (b, ...), numbers.
        where: the array, for messages.
        form: holds the range, if one is declared, in which case the type does not matter; and
            whether images are only compared, in which case the guarantee does not matter.
        first: number of the record that `stored[0]` belongs to, from 0.

    Raises:
        DataError: no range is declared, and the largest of an image's bytes is 1.
    """
    declared = form.preparation.value_range is not None
    if declared or form.only_compared or stored.dtype != np.uint8:
        return
    brightest = stored.reshape(len(stored), -1).max(axis=1, initial=0)
    if (doubtful := _first(brightest == 1)) is not None:
        raise DataError(
            f"{_named(where, first, doubtful)} has no value above 1, which is white in an array of "
            f"floats and next to black in one of bytes: {declare_range()} 0,1 or 0,255"
        )


def to_pixels(
    stored: NDArray[Any], where: str, form: Form, first: int | None = None
) -> NDArray[np.uint8]:
    """Convert stored values to pixels: black to white of the declared range becomes 0..255.

    Args:
        stored: (b, ...), numbers.
        where: the file, for messages.
        form: holds the range, by default 0 to 255, or 0 to 1 for floats; and whether to invert.
        first: number of the record that `stored[0]` belongs to, from 0; None if the file has one
            record.

    Raises:
        DataError: a value is NaN; or, if no range is declared, outside [0, 1].
    """
    value_range = form.preparation.value_range
    if value_range is None and stored.dtype == np.uint8:
        return form.preparation.turned_back(stored)
    # All in one type: products of shorter floats round differently, and the array's type may be due
    # to other records.
    values = stored.astype(np.float64)
    low, high = (0.0, 1.0) if value_range is None else value_range
    record = partial(_named, where, first)
    beyond = _first(~((values >= low) & (values <= high)))
    if beyond is not None:
        if (none := _first(np.isnan(values))) is not None:
            raise DataError(f"{record(none)} has a value that is no number (NaN): replace it")
        if value_range is None:
            raise DataError(
                f"{record(beyond)} has a value outside [0, 1]: {declare_range()} 0,255; {_OR_STORE}"
            )
        cut = f"has values beyond {low:.12g} to {high:.12g}: such values are cut to these"
        form.notice_once(record(beyond), cut)
        values = values.clip(low, high)
    scaled = np.rint((values - low) / (high - low) * PIXEL_LEVELS)
    return form.preparation.turned_back(scaled.astype(np.uint8))


def _named(where: str, first: int | None, index: int) -> str:
    return where if first is None else f"{where}: record {first + index}"


def _first(of_values: NDArray[np.bool_]) -> int | None:
    """The first record that has a true value in (b, ...); None if none has."""
    records = np.flatnonzero(of_values.reshape(len(of_values), -1).any(axis=1))
    return int(records[0]) if records.size else None
