"""Public knowledge: written, read back, and refused when it makes no sense."""

from __future__ import annotations

from typing import Any

import pytest

from dpntk.common.errors import SchemaError
from dpntk.common.schema.image import ImageSchema
from dpntk.common.schema.origin import Origin

SCHEMA = ImageSchema(28, ("cat", "dog"), Origin.FORMAT, Origin.FROM_DATA)


COLOUR = ImageSchema(
    28, ("cat", "dog"), Origin.FORMAT, Origin.DECLARED, 3, channels_origin=Origin.DECLARED
)


@pytest.mark.parametrize("schema", [SCHEMA, COLOUR], ids=["grey", "colour"])
def test_json_gives_back_the_schema(schema: ImageSchema) -> None:
    assert ImageSchema.from_json(schema.to_json()) == schema


def test_grey_images_are_described_as_they_always_were() -> None:
    assert SCHEMA.to_json() == {
        "kind": "image", "side": 28, "side_origin": "format", "channels": 1, "levels": 255,
        "levels_origin": "format", "classes": ["cat", "dog"], "classes_origin": "from-data",
    }  # fmt: skip
    assert SCHEMA.summary == "grey images of 28x28 pixels in 2 classes: cat, dog"
    assert SCHEMA.known == ("image size", "number and names of the classes")


def test_colour_images_have_three_channels_and_say_so() -> None:
    assert COLOUR.record_size == 3 * 28 * 28
    assert COLOUR.summary == "colour images of 28x28 pixels in 2 classes: cat, dog"
    assert COLOUR.known[0] == "image size and channels"
    assert COLOUR.to_json()["channels_origin"] == "declared"


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
        {"classes": ["a", "b" * 1001]},
        {"classes": [1, 2]},
        {"classes": None},
        {"side_origin": "somewhere"},
        {"levels": 127},
        {"channels": 2},
        {"channels": True},
        {"channels": 3.0},
        {"channels_origin": "private"},
        {"channels_origin": "format"},
        {"surprise": 1},
    ],
)
def test_other_documents_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(SchemaError):
        ImageSchema.from_json({**SCHEMA.to_json(), **change})


@pytest.mark.parametrize(
    "change",
    [
        {"fit": "stretch"},
        {"fit": "zoom"},
        {"fit": ["crop"]},
        {"value_range": [0.0, 0.0]},
        {"value_range": [0.0, float("inf")]},
        {"value_range": [0, 9]},
        {"value_range": [0.0]},
        {"value_range": "ab"},
        {"value_range": 3.0},
        {"inverted": False},
        {"inverted": "yes"},
    ],
)
def test_a_preparation_that_nobody_wrote_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(SchemaError):
        ImageSchema.from_json({**SCHEMA.to_json(), **change})
