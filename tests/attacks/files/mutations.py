"""Random changes of honest files: of their bytes, and of the JSON in them."""

from __future__ import annotations

import copy
import json
import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

BYTES = [0, 1, 0x7F, 0x80, 0xFF]
NUMBERS = [
    struct.pack("<d", number)
    for number in (0.0, -1.0, 1e-300, 5e-324, 1e300, 2.0**53, math.inf, -math.inf, math.nan)
] + [struct.pack("<q", number) for number in (-1, 1, 1 << 31, 1 << 40, (1 << 62) - 1, -(1 << 63))]
VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2, 63, 255, 1 << 24, 1 << 31, 1 << 53, 1 << 63, 10**30, 10**400,
    0.0, -0.5, 0.5, 1e-300, 1e300, math.inf, math.nan, "", "a", "\0", "\x1b[2J\n", "\ud800",
    "x" * 300, "punycode", "declared", "from-data", "private", "replace-one", "add-remove",
    [], {}, [[]], [0] * 40, {"kind": "table"}, [{}],
]  # fmt: skip
DEEP = "[" * 3000


def of_bytes(content: bytes, random: np.random.Generator, first: int = 0) -> bytes:
    """Change some bytes, or their number.

    Args:
        content: the file.
        random: chooses.
        first: what comes before stays as it is.
    """
    changed = bytearray(content)
    for _ in range(int(random.integers(1, 6))):
        place = int(random.integers(first, len(changed)))
        match int(random.integers(0, 7)):
            case 0:
                changed[place] ^= 1 << int(random.integers(0, 8))
            case 1:
                changed[place] = BYTES[int(random.integers(0, 5))]
            case 2:  # an aligned number gets an extreme value
                size = 1 << int(random.integers(1, 4))
                place -= place % size
                changed[place : place + size] = bytes([BYTES[int(random.integers(0, 5))]]) * size
            case 3:  # something from elsewhere
                size = int(random.integers(1, 64))
                source = int(random.integers(first, len(changed)))
                changed[place : place + size] = changed[source : source + size]
            case 4:
                del changed[place : place + int(random.integers(1, 32))]
            case 5:
                changed[place:place] = random.bytes(int(random.integers(1, 32)))
            case 6:
                place -= place % 8
                changed[place : place + 8] = NUMBERS[int(random.integers(0, len(NUMBERS)))]
    return bytes(changed)


def of_json(text: str, random: np.random.Generator) -> str:
    """Change some values of a document, or which there are."""
    document = json.loads(text)
    for _ in range(int(random.integers(1, 4))):
        places = list(_places(document))
        if not places:
            break
        inside, key = places[int(random.integers(0, len(places)))]
        match int(random.integers(0, 4)):
            case 0 | 1:
                inside[key] = copy.deepcopy(VALUES[int(random.integers(0, len(VALUES)))])
            case 2:  # something from elsewhere
                other, source = places[int(random.integers(0, len(places)))]
                inside[key] = copy.deepcopy(other[source])
            case 3:
                del inside[key]
                break  # the places after it have moved
    changed = json.dumps(document)
    if random.random() < 0.02:
        changed = changed.replace("null", DEEP, 1).replace("1", "9" * 5000, 1)
    return changed


def _places(document: Any) -> Any:  # noqa: ANN401 - pairs of a container and a key of it
    if isinstance(document, dict):
        keys: Any = list(document)
    else:
        keys = range(len(document)) if isinstance(document, list) else ()
    for key in keys:
        yield document, key
        yield from _places(document[key])


def of_texts(content: bytes, random: np.random.Generator, texts: Sequence[bytes]) -> bytes:
    """Change one of the documents in a file, whose place it takes with spaces at the end."""
    text = texts[int(random.integers(0, len(texts)))]
    for _ in range(10):
        changed = of_json(text.decode(), random).encode()
        if len(changed) <= len(text):
            return content.replace(text, changed.ljust(len(text)))
    return content
