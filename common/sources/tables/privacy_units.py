"""Tables in which a person may have several rows: the first few count, the rest are left out.

Guarantee:
    Which rows of a person count depends only on the order of that person's own rows: the first ones
    do. So adding or removing all rows of a person does not change which rows of others count, and
    changes the sums by at most as many records as count. Whoever makes the table must keep the
    order of other persons' rows: a shuffle with a fixed seed changes it. (docs/privacy/proofs.md,
    statement 21.)
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from ...display.console import notice, warning
from ...display.representations import RedactedRepr
from ...display.text import so_many
from ...errors import DataError, SchemaError
from ...schema.csv_format import CsvFormat
from ...schema.privacy_unit import PrivacyUnit
from ...schema.table import TableSchema
from ..arrow_types import type_name
from ..base import Batch, Source, regrouped
from ..prefetch import read_ahead
from .frames import FrameSource
from .rows import missing_in, plain
from .table import TableSource

if TYPE_CHECKING:
    import pyarrow as pa

_TEXTS: Final = "texts"
_WHOLE_NUMBERS: Final = "whole numbers"
_BLANKS: Final = r"[\s\p{Z}\p{Cf}]+"
"""Spaces and invisible characters, such as a byte order mark at a text's beginning."""
_ZEROS: Final = r"^0*([0-9]+)(?:\.0*)?$"
"""A whole number with zeros around it: a program may turn 7 into 7.0 in a float column, or 007 into
7."""


@dataclass(frozen=True, eq=False, repr=False)
class BoundedSource(RedactedRepr):
    """The rows of a table that count: the first ones of each person, in the table's order.

    Attributes:
        table: the whole table.
        counts: bool (n,), whether each row counts.
    """

    table: TableSource | FrameSource
    counts: NDArray[np.bool_]

    @property
    def schema(self) -> TableSchema:
        """See `Source`."""
        return self.table.schema

    def __len__(self) -> int:
        """The number of rows that count."""
        return int(self.counts.sum())

    def fingerprint(self) -> str:
        """See `Source`."""
        state = hashlib.sha256(self.table.fingerprint().encode())
        state.update(np.packbits(self.counts).data)
        return state.hexdigest()

    def batches(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """See `Source`. Rows between those that count are read and checked, too."""
        places = np.flatnonzero(self.counts)[start:stop]
        if not places.size:
            return
        first, last = int(places[0]), int(places[-1]) + 1
        yield from regrouped(self._counting(size, first, last), size)

    def _counting(self, size: int, first: int, last: int) -> Iterator[Batch]:
        for batch in self.table.batches(size, first, last):
            counts = self.counts[first : first + len(batch.labels)]
            first += len(batch.labels)
            yield Batch(batch.records[counts], batch.labels[counts])


def with_bounded_units(source: Source) -> Source:
    """Limit a source to as many rows per person as its schema declares.

    The number of rows left out is shown to the user, and stored nowhere.

    Args:
        source: an open source; returned unchanged if its records are protected one by one.

    Raises:
        DataError: a row lacks the privacy unit's value.
        SchemaError: the unit's column does not exist, or holds neither texts nor integers.
    """
    unit = source.schema.privacy_unit
    if unit is None or isinstance(source, BoundedSource):
        return source
    if not isinstance(source, TableSource | FrameSource):
        raise SchemaError(
            f"a privacy unit, {unit.column!r}: rows are told apart in tables that dpntk opens"
        )
    persons = _persons(source, unit)
    places = _places(persons)
    counts = places < unit.rows
    surplus = int(np.count_nonzero(~counts))
    if surplus:
        owners, among = len(np.unique(persons[~counts])), f"of {int(persons.max()) + 1:,}"
        whose = so_many(
            owners, f"value {among} has", f"values {among} have", unsaid="some values have"
        )
        notice(
            f"{unit.column}: {so_many(surplus, 'row')} left out: {whose} more than the "
            f"{unit.rows:,} that count"
        )
    return BoundedSource(source, counts)


def _persons(source: TableSource | FrameSource, unit: PrivacyUnit) -> NDArray[np.int64]:
    """The person of each row, int64 (n,): the index of its distinct value, from 0."""
    import pyarrow

    parts, kind = [], ""
    with contextlib.closing(read_ahead(source.only(unit.column))) as rows:
        for where, first, part in rows:
            values = plain(part.column(0))
            found = _kind(values, where, unit)
            if found != (kind or found):
                raise SchemaError(
                    f"{where}: column {unit.column!r} holds {found}, and elsewhere {kind}: write "
                    "them in one way, or a person's rows are taken for those of two"
                )
            kind = found
            _require_there(values, source.schema.csv, unit, where, first)
            parts.append(values.cast(pyarrow.large_string()))
    # Not in one piece, which could hold at most 2 GB of texts.
    encoded = pyarrow.chunked_array(parts).dictionary_encode().unify_dictionaries()
    if kind == _TEXTS:
        _warn_of_near_alike(encoded.chunk(0).dictionary, unit)
    persons: NDArray[np.int64] = np.concatenate(
        [chunk.indices.to_numpy(zero_copy_only=False) for chunk in encoded.chunks], dtype=np.int64
    )
    return persons


def _warn_of_near_alike(values: pa.Array, unit: PrivacyUnit) -> None:
    """Warn if one person may count as two, each with the full number of rows.

    Args:
        values: the column's distinct values.
        unit: the privacy unit.
    """
    from pyarrow import compute

    texts = compute.utf8_normalize(values, form="NFKC")
    texts = compute.replace_substring_regex(texts, _BLANKS, "")
    bare = compute.replace_substring_regex(compute.utf8_lower(texts), _ZEROS, r"\1")
    twins = len(values) - compute.count_distinct(bare).as_py()
    if twins:
        warning(
            f"{unit.column}: {so_many(twins, 'value differs', 'values differ')} from another one "
            "in case, spaces, unseen characters, the form of letters, or zeros around a number "
            "alone, as 7, 007 and 7.0 do: they are taken for different persons; if they are not, "
            "write them in one way"
        )


def _kind(values: pa.Array, where: str, unit: PrivacyUnit) -> str:
    from pyarrow import types

    if types.is_string(values.type):
        return _TEXTS
    if types.is_integer(values.type):
        return _WHOLE_NUMBERS
    raise SchemaError(
        f"{where}: column {unit.column!r} is {type_name(values.type)}: whose a row is, texts or "
        "whole numbers say"
    )


def _require_there(
    values: pa.Array, form: CsvFormat, unit: PrivacyUnit, where: str, first: int
) -> None:
    """Check that each row has the privacy unit's value; white space is not a value."""
    from pyarrow import compute, types

    missing = missing_in(values, form)
    if types.is_string(values.type):
        blank = compute.utf8_is_space(values).fill_null(True)
        missing |= blank.to_numpy(zero_copy_only=False)
    if missing.any():
        row = first + int(np.flatnonzero(missing)[0]) + 1
        raise DataError(
            f"{where}: row {row}, column {unit.column!r}: there is no value, so nobody knows "
            "whose row it is: correct or remove the row"
        )


def _places(persons: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each row, the number of earlier rows of the same person."""
    order = np.argsort(persons, kind="stable")
    starts = np.searchsorted(persons[order], persons[order], side="left")
    places = np.empty(len(persons), dtype=np.int64)
    places[order] = np.arange(len(persons)) - starts
    return places
