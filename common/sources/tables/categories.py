"""Finding a value's category from the value itself, however its column is stored or written."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ...errors import SchemaError
from ...schema.columns.codes import MISSING
from ...schema.columns.column import Column
from ...schema.columns.spellings import number_in, truth_of
from ...schema.csv_format import CsvFormat
from ..arrow_types import type_name

if TYPE_CHECKING:
    import pyarrow as pa

Number = int | float | Decimal
"""Equal numbers have equal hashes in Python, whatever their types: 1, 1.0, True,
Decimal("1.00")."""

_SEVERAL: Final = MISSING - 100
"""What is found for a number that may be in several categories."""
_MOST_EXACT: Final = {16: 2**11, 32: 2**24, 64: 2**53}
"""Maps the bits of a float to the size from which it rounds integers."""


class CategoryFinder:
    """Finds values among the categories of a column.

    A text belongs to the category that is written the same. Otherwise equal numbers belong to the
    same category: 1, 1.0, Decimal("1.00"), True, and the texts "1.0", "+1" and "true" all belong to
    "1", unless one of them is a category itself. If several categories are the same number, numbers
    belong to the shortest.

    Guarantee:
        A value's category depends only on the value and the schema. Programs choose the type of a
        column by all of its values: integers become floats if one of them is missing, and decimals
        get the digits of the longest. So the type decides nothing, and a type that may have rounded
        one category to another is refused. So is a number or truth value in such a column if texts
        of it may be in several categories, such as "1" and "1.0", because texts become numbers if
        all of them can. (docs/privacy/proofs.md, statement 3.)
    """

    def __init__(self, column: Column, form: CsvFormat) -> None:
        self._column, self._decimal = column, form.decimal
        floats: dict[str, Callable[[Number], float]] = {"float32": _float32, "float64": float}
        self._floats = floats.get(column.dtype)
        claims = self._claims()
        self._numbers = {number: found[0] for number, found in claims.items()}
        self._several = {number for number, found in claims.items() if len(set(found)) > 1}
        whole = (
            n
            for n in map(self._number, column.categories)
            if n is not None and n.is_finite() and n == n.to_integral_value()
        )
        self._largest = max(map(abs, whole), default=Decimal(0))

    def codes(self, values: pa.Array, where: str) -> NDArray[np.int64]:
        """The indices of values' categories, int64 (n,); `MISSING` for values in none.

        Args:
            values: texts, numbers or truth values.
            where: their place, for messages.

        Raises:
            SchemaError: they have another type, or one that may have rounded them.
        """
        from pyarrow import types

        kind = values.type
        if types.is_string(kind):
            return self._codes_of_texts(values)
        if not (types.is_integer(kind) or types.is_floating(kind)
                or types.is_decimal(kind) or types.is_boolean(kind)):  # fmt: skip
            raise SchemaError(
                f"{where}: column {self._column.name!r} is {type_name(kind)}, not categories"
            )
        rounds = types.is_floating(kind) and self._largest >= _MOST_EXACT[kind.bit_width]
        if rounds and self._floats is None:
            raise SchemaError(
                f"{where}: column {self._column.name!r} is {kind}, which rounds numbers as large "
                "as its categories: store it as whole numbers (Int64 in pandas) or texts"
            )
        codes = for_each(values, self._of_stored)
        if (codes == _SEVERAL).any():
            raise SchemaError(
                f"{where}: column {self._column.name!r} is {type_name(kind)}, and several of its "
                "categories are the same number: store it as texts, or keep one of them"
            )
        return codes

    def _codes_of_texts(self, texts: pa.Array) -> NDArray[np.int64]:
        import pyarrow
        from pyarrow import compute

        categories = pyarrow.array(self._column.categories, pyarrow.string())
        listed = compute.index_in(texts, value_set=categories).fill_null(MISSING)
        codes: NDArray[np.int64] = listed.to_numpy(zero_copy_only=False).astype(np.int64)
        others = codes == MISSING
        if self._numbers and others.any():
            codes[others] = for_each(texts.filter(pyarrow.array(others)), self._of_text)
        return codes

    def _of_text(self, text: str) -> int:
        number: Number | None = self._number(text)
        number = truth_of(text) if number is None else number
        return MISSING if number is None else self._of_number(number)

    def _number(self, text: str) -> Decimal | None:
        return number_in(text, self._decimal)

    def _of_stored(self, number: Number) -> int:
        """The category of a number that no text was, or may have been; `_SEVERAL` if unknown."""
        held = self._held(number)
        unknown = held in self._several or float(held) in self._several
        return _SEVERAL if unknown else self._of_number(number)

    def _of_number(self, number: Number) -> int:
        held = self._held(number)
        if (found := self._numbers.get(held)) is not None:
            return found
        # The nearest float may be that of a category which is written with other digits: of a
        # fraction, since floats round large whole numbers to others.
        near = float(held)
        large = near % 1 == 0 and abs(near) >= _MOST_EXACT[64]
        return MISSING if large else self._numbers.get(near, MISSING)

    def _held(self, number: Number) -> Number:
        """A number, as the column's type stores it."""
        return number if self._floats is None else self._floats(number)

    def _claims(self) -> dict[Number, list[int]]:
        """The indices of categories that are a number, by number; the preferred one comes first."""
        ranked = sorted(enumerate(self._column.categories), key=lambda each: len(each[1]))
        numbers = [(n, index) for index, text in ranked if (n := self._number(text)) is not None]
        found: dict[Number, list[int]] = {}
        for number, index in numbers:
            found.setdefault(self._held(number), []).append(index)
        # Floats round fractions, and very large numbers to infinity. 32-bit floats keep their
        # values when a program converts them to 64 bits.
        in_memory: tuple[Callable[[Number], float], ...] = (float, _float32)
        for rounded in in_memory:
            for number, index in numbers:
                if (value := rounded(number)) % 1:  # of infinity this is not a number
                    found.setdefault(value, []).append(index)
        for index, text in ranked:
            if (truth := truth_of(text)) is not None:
                found.setdefault(truth, []).append(index)
        return found


def for_each(values: pa.Array, find: Callable[[Any], int]) -> NDArray[np.int64]:
    """Apply `find` to each value, once for each distinct value; int64 (n,).

    Args:
        values: numbers, truth values or texts.
        find: gives the result for a value; null values give `MISSING`.
    """
    import pyarrow
    from pyarrow import types

    if types.is_decimal(values.type) and values.type.bit_width < 128:  # Arrow cannot look these up
        values = values.cast(pyarrow.decimal128(values.type.precision, values.type.scale))
    if types.is_float16(values.type):  # older versions cannot, either
        values = values.cast(pyarrow.float32())
    encoded = values.dictionary_encode()
    found = [find(value) for value in encoded.dictionary.to_pylist()]
    indices = encoded.indices.fill_null(len(found)).to_numpy(zero_copy_only=False)
    answers: NDArray[np.int64] = np.array([*found, MISSING], dtype=np.int64)[indices]
    return answers


class StandIns:
    """The texts that stand for missing values, and the numbers and truth values that these are.

    Guarantee:
        Numbers are compared as the nearest float, because a program may have converted integers to
        floats if another row lacks a value. So the type decides nothing. (docs/privacy/proofs.md,
        statement 3.)
    """

    def __init__(self, form: CsvFormat) -> None:
        self._decimal = form.decimal
        numbers = [n for text in form.missing if (n := number_in(text, form.decimal)) is not None]
        # Also fractions as 32-bit floats round them, however these are stored now.
        fractions = {
            short for short in map(_float32, numbers) if math.isfinite(short) and short % 1
        }
        self._numbers = {float(number) for number in numbers} | fractions
        self._truths = {truth for text in form.missing if (truth := truth_of(text)) is not None}

    def are(self, values: pa.Array) -> NDArray[np.bool_]:
        """Which values are one of these numbers or truth values, however they are written.

        Args:
            values: texts, numbers or truth values; of any others, none is.
        """
        from pyarrow import types

        kind = values.type
        of_numbers = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
        found = np.zeros(len(values), dtype=np.bool_)
        if self._numbers and of_numbers:
            found = for_each(values, lambda value: self._as_float(value) in self._numbers) == 1
        elif self._truths and types.is_boolean(kind):
            found = for_each(values, lambda value: value in self._truths) == 1
        elif (self._numbers or self._truths) and types.is_string(kind):
            found = for_each(values, self._is) == 1
        return found

    def _is(self, text: str) -> bool:
        number = number_in(text, self._decimal)
        if number is None:
            return truth_of(text) in self._truths
        return self._as_float(number) in self._numbers

    def _as_float(self, number: Number) -> float:
        return float(number)


def _float32(number: Number) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(float(number)))
