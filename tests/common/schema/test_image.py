"""Public knowledge: written, read back, and refused when it makes no sense."""

from __future__ import annotations

from typing import Any

import pytest

from dpntk.common.errors import SchemaError
from dpntk.common.schema.image import ImageSchema
from dpntk.common.schema.origin import Origin

SCHEMA = ImageSchema(28, ("cat", "dog"), Origin.FORMAT, Origin.FROM_DATA)


def test_json_gives_back_the_schema() -> None:
    assert ImageSchema.from_json(SCHEMA.to_json()) == SCHEMA


def test_only_what_was_looked_up_counts_as_from_data() -> None:
    assert SCHEMA.from_data == ("number and names of the classes",)
    assert ImageSchema(28, ("a",), Origin.DECLARED, Origin.FORMAT).from_data == ()


@pytest.mark.parametrize(
    "change",
    [
        {"side": 7},
        {"side": 65},
        {"side": 28.0},
        {"side": True},
        {"classes": []},
        {"classes": ["a", "a"]},
        {"classes": [1, 2]},
        {"classes": None},
        {"side_origin": "somewhere"},
        {"levels": 127},
        {"surprise": 1},
    ],
)
def test_other_documents_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(SchemaError):
        ImageSchema.from_json({**SCHEMA.to_json(), **change})
