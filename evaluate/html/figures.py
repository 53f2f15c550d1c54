"""The figures of an `evaluation.json`, as a report shows them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ...common.errors import DataError
from ...common.storage import untrusted_files
from ...common.storage.plain import parse_json

_LARGEST_FILE: Final = 1 << 26
_MEANINGS: Final = ("measure", "distances", "attacks", "classifiers")
"""Entries in which an evaluation explains its figures."""


@dataclass(frozen=True)
class Figures:
    """Figures of utility and privacy.

    Attributes:
        trained_on: heading of each column of figures.
        rows: name of a figure, its values (empty where there is none), and its meaning.
        notes: what a reader of the figures needs to know.
        test_records: number of real records that they are measured on.
    """

    trained_on: list[str]
    rows: list[tuple[str, list[str], str]]
    notes: list[str]
    test_records: int


def read_figures(path: Path, digest: str) -> Figures:
    """Read what `dpntk evaluate` wrote.

    Args:
        path: of `evaluation.json`.
        digest: of the release that its synthetic records must come from.

    Raises:
        DataError: it cannot be read, or is about another release.
    """
    try:
        document = parse_json(untrusted_files.read(path, _LARGEST_FILE, refusal=DataError))
    except ValueError as error:
        raise _damaged(path) from error
    return figures_of(document, digest, path)


def figures_of(document: Any, digest: str, where: object) -> Figures:  # noqa: ANN401 - checked here
    """Parse what `dpntk evaluate` wrote.

    Args:
        document: the content of `evaluation.json`.
        digest: of the release that its synthetic records must come from.
        where: source of the document, for the message.

    Raises:
        DataError: it is not such a document, or is about another release.
    """
    try:
        cited = document["synthetic"]
        releases = [
            one["release"]["digest"] for one in ([cited] if isinstance(cited, dict) else cited)
        ]
        figures = _understood(document)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(where) from error
    if set(releases) != {digest}:
        raise DataError(f"{where}: about synthetic records of another release")
    return figures


def _damaged(where: object) -> DataError:
    return DataError(f"{where}: not an evaluation.json; 'dpntk evaluate' writes one")


def _understood(document: dict[str, Any]) -> Figures:
    rows: list[dict[str, Any]] = document["rows"]
    said = [part for name in _MEANINGS if isinstance(part := document.get(name), dict)]
    meanings = {name: text for part in said for name, text in part.items()}
    names = dict.fromkeys(
        name for row in rows for name, value in row.items() if isinstance(value, int | float)
    )
    return Figures(
        trained_on=[str(row["trained_on"]) for row in rows],
        rows=[
            (name, [_written(row.get(name)) for row in rows], _text(meanings.get(name)))
            for name in names
        ],
        notes=[str(note) for note in document.get("notes", [])],
        test_records=int(document["test_records"]),
    )


def _written(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else ""


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
