"""Parsing documents that may come from strangers: only JSON and TOML like those we write.

Parsers accept numbers of any size and arbitrarily nested lists, which later code would fail on in
unpredictable ways. So they are refused when a document is read.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable
from typing import Any, Final, TypeVar

_DEEPEST: Final = 400
"""The deepest nesting. Only ledgers of repeatedly merged embeddings go deeper than ten."""
_LARGEST: Final = 2**64 - 1
_TOO_LARGE: Final = "a whole number that 64 bits do not hold"
_TOO_DEEP: Final = "too many lists or tables in one another"

Text = TypeVar("Text", str, str | bytes)


def parse_json(text: str | bytes) -> Any:  # noqa: ANN401 - what it is, the caller finds out
    """Parse JSON.

    Raises:
        ValueError: it is invalid, or unlike those that we write: see `require_plain`.
    """
    return _parsed(json.loads, text)


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML.

    Raises:
        ValueError: it is invalid, or unlike those that we write: see `require_plain`.
    """
    document: dict[str, Any] = _parsed(tomllib.loads, text)
    return document


def _parsed(parse: Callable[[Text], Any], text: Text) -> Any:  # noqa: ANN401 - as above
    try:
        document = parse(text)
    except (json.JSONDecodeError, tomllib.TOMLDecodeError, UnicodeError):
        raise
    except ValueError as error:  # Python refuses thousands of digits
        raise ValueError(_TOO_LARGE) from error
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error
    require_plain(document)
    return document


def require_plain(document: object) -> None:
    """Check that numbers are finite and fit 64 bits, and that nesting is not too deep.

    Raises:
        ValueError: a number does not fit, or nesting is too deep.
    """
    level = [document]
    for _ in range(_DEEPEST):
        inner: list[object] = []
        for value in level:
            if isinstance(value, dict):
                inner.extend(value.values())
            elif isinstance(value, list):
                inner.extend(value)
            elif isinstance(value, int) and abs(value) > _LARGEST:
                raise ValueError(_TOO_LARGE)
            elif isinstance(value, float) and not math.isfinite(value):
                raise ValueError("a number that is not finite")
        if not inner:
            return
        level = inner
    raise ValueError(_TOO_DEEP)
