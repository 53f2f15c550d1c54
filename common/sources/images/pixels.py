"""Pixels 0..255 from values as they are stored."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arguments import argument
from ...errors import DataError
from ...schema.image import PIXEL_LEVELS
from ..options import SourceOptions
from .form import Form

_OR_STORE = "or store pixels as uint8 in 0..255, or as floats in [0, 1]"


def declare_range() -> str:
    """What an error asks for where nobody can know which values are black and white."""
    return f"say with {argument('value_range')} which values are black and white, such as"


def require_pixels(dtype: np.dtype[Any], where: str, options: SourceOptions) -> None:
    """Refuse values that are no pixels, or of which nobody said which of them are black and white.

    Args:
        dtype: of the values.
        where: what they are called in messages.
        options: which range is declared.

    Raises:
        DataError: they are not numbers; or others than uint8 and floats, with no range declared.
    """
    if dtype.kind not in "iuf":
        raise DataError(f"{where} is {dtype}: store pixels as uint8, or as floats in [0, 1]")
    if options.value_range is None and dtype.kind != "f" and dtype != np.uint8:
        raise DataError(f"{where} is {dtype}: {declare_range()} 0,4095; {_OR_STORE}")


def require_one_meaning(stored: NDArray[Any], where: str, form: Form, first: int) -> None:
    """Refuse images that would be others if their array were one of floats.

    An array has one type for all images. One image with fractions makes floats of all, and a value
    of 1, next to black among bytes, is white among floats. An image that has larger values, or
    none but 0, can be read in one way only.

    Guarantee:
        So other images decide nothing. (docs/privacy/proofs.md, statement 3.)

    Args:
        stored: (b, ...), numbers.
        where: the array, for messages.
        form: with the range, if one is declared: then the type plays no part; and whether images
            are only compared with others, where the guarantee does not matter.
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
    """Values as they are stored as pixels: from black to white of the declared range 0..255.

    Args:
        stored: (b, ...), numbers.
        where: the file, for messages.
        form: with the range; without one it is 0 to 255, of floats 0 to 1; and whether they are
            inverted.
        first: number of the record that `stored[0]` belongs to, from 0; None if there is one record
            in the file.

    Raises:
        DataError: a value is no number; or, if no range is declared, outside [0, 1].
    """
    value_range = form.preparation.value_range
    if value_range is None and stored.dtype == np.uint8:
        return form.preparation.turned_back(stored)
    # In one type: products of short floats are rounded elsewhere, and an array's type may be due
    # to other records.
    values = stored.astype(np.float64)
    low, high = (0.0, 1.0) if value_range is None else value_range
    record = partial(_named, where, first)
    beyond = _first(~((values >= low) & (values <= high)))
    if beyond is not None and value_range is None:
        raise DataError(
            f"{record(beyond)} has a value outside [0, 1]: {declare_range()} 0,255; {_OR_STORE}"
        )
    if beyond is not None:
        if (none := _first(np.isnan(values))) is not None:
            raise DataError(f"{record(none)} has a value that is no number (NaN): replace it")
        cut = f"has values beyond {low:.12g} to {high:.12g}: such values are cut to these"
        form.say_once(record(beyond), cut)
        values = values.clip(low, high)
    scaled = np.rint((values - low) / (high - low) * PIXEL_LEVELS)
    return form.preparation.turned_back(scaled.astype(np.uint8))


def _named(where: str, first: int | None, index: int) -> str:
    return where if first is None else f"{where}: record {first + index}"


def _first(of_values: NDArray[np.bool_]) -> int | None:
    """The first record in which something is true of a value, (b, ...); None if there is none."""
    records = np.flatnonzero(of_values.reshape(len(of_values), -1).any(axis=1))
    return int(records[0]) if records.size else None
