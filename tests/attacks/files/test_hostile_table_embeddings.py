"""Embeddings of tables whose feature map is of other columns: refused, whoever made them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import pytest

from dpntk.common.errors import EmbeddingError
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import TangentOptions, embed, load_embedding, save_embedding
from tests.attacks.files.hostile_embeddings import replanned
from tests.helpers.tables import PEOPLE, RANKED, people

Change = Callable[[dict[str, Any]], None]
MARGINALS = "the marginals are not those of the schema's columns"
PRODUCTS = "the products of columns are not those of the schema's columns"


@pytest.fixture
def honest(tmp_path: Path) -> Path:
    """Its map may release every pair of columns, numbers by level, and products of columns."""
    (tmp_path / "a.csv").write_text(people(50))
    made = embed(tmp_path / "a.csv", TangentOptions(width=3), SourceOptions(schema=PEOPLE))
    save_embedding(made, tmp_path / "theirs.h5")
    return tmp_path / "theirs.h5"


def _moved(own: int, other: int) -> Change:
    """A column that begins elsewhere in a record, by itself and in pairs."""

    def change(feature_map: dict[str, Any]) -> None:
        marginals = feature_map["marginals"]
        rows = [(row, [0]) for row in marginals["columns"]]
        for row, places in [*rows, *((row, [0, 2]) for row in marginals["pairs"])]:
            for place in places:
                row[place] = other if row[place] == own else row[place]

    return change


def _missing_elsewhere(feature_map: dict[str, Any]) -> None:
    """What says whether a number is missing is part of another number."""
    feature_map["marginals"]["columns"][1][3] -= 1


def _other_products(feature_map: dict[str, Any]) -> None:
    feature_map["moments"]["numbers"][0][0] += 1


def test_the_honest_one_is_read(honest: Path) -> None:
    assert load_embedding(honest).schema == RANKED


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(_moved(47, 46), MARGINALS, id="category"),
        pytest.param(_moved(0, 1), MARGINALS, id="number"),
        pytest.param(_missing_elsewhere, MARGINALS, id="missing"),
        pytest.param(_other_products, PRODUCTS, id="products"),
    ],
)
def test_a_map_of_other_columns_is_refused(honest: Path, change: Change, words: str) -> None:
    """No reader would accept a release of it, which would be counted as spent."""
    with h5py.File(honest, "r+") as file:
        replanned(file, lambda plan: change(plan["feature_map"]))
    with pytest.raises(EmbeddingError, match=words):
        load_embedding(honest)
