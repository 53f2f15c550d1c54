"""An embedding that is written over another one forgets nothing that was spent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dpntk.common.errors import BudgetError, EmbeddingError, OutputError
from dpntk.common.ledger import Ledger, PrivacyBudget
from dpntk.embed import Embedding, load_embedding, save_embedding
from dpntk.release import PrivacyParameters, release


def release_from(path: Path, epsilon: float = 1.0) -> None:
    output = path.with_name(f"{path.stem}-{epsilon}.h5")
    release(path, output, PrivacyParameters(epsilon, 1e-3), compose=lambda _: True)


def test_an_embedding_is_not_replaced_unasked(embedding_file: Path, embedding: Embedding) -> None:
    release_from(embedding_file)
    before = embedding_file.read_bytes()
    with pytest.raises(OutputError, match="already exists and is an embedding"):
        save_embedding(embedding, embedding_file)
    assert embedding_file.read_bytes() == before


def test_what_replaces_it_takes_ledger_and_ceiling_over(
    embedding: Embedding, tmp_path: Path
) -> None:
    path = tmp_path / "e.h5"
    save_embedding(embedding, path, ceiling=PrivacyBudget(3.0, 1e-3))
    release_from(path)
    spent = load_embedding(path).ledger
    assert len(spent.entries) == 1
    save_embedding(embedding, str(path), overwrite=True)
    assert load_embedding(path).ledger == spent
    with pytest.raises(BudgetError, match="does not allow this release"):
        release_from(path, 2.9)


def test_the_spendings_of_both_are_counted_once_each(embedding: Embedding, tmp_path: Path) -> None:
    for name in "ab":
        save_embedding(embedding, tmp_path / f"{name}.h5")
        release_from(tmp_path / f"{name}.h5")
    a, b = (load_embedding(tmp_path / f"{name}.h5") for name in "ab")
    both = (*b.ledger.entries, *a.ledger.entries)
    for _ in range(2):  # a second time nothing is added
        save_embedding(a, tmp_path / "b.h5", overwrite=True)
        assert load_embedding(tmp_path / "b.h5").ledger.entries == both
    # Of parts that are not known there, every release counts for every record.
    merged = replace(a, ledger=Ledger(parts=(a.ledger, b.ledger)))
    save_embedding(merged, tmp_path / "c.h5")
    assert load_embedding(tmp_path / "c.h5").ledger == merged.ledger
    save_embedding(embedding, tmp_path / "d.h5")
    release_from(tmp_path / "d.h5")
    (own,) = load_embedding(tmp_path / "d.h5").ledger.entries
    save_embedding(merged, tmp_path / "d.h5", overwrite=True)
    assert load_embedding(tmp_path / "d.h5").ledger.entries == (
        own,
        *a.ledger.entries,
        *b.ledger.entries,
    )


def test_a_ceiling_is_lowered_and_not_raised(embedding: Embedding, tmp_path: Path) -> None:
    path = tmp_path / "e.h5"
    save_embedding(embedding, path, ceiling=PrivacyBudget(3.0, 1e-3))
    save_embedding(
        embedding, path, overwrite=True, ceiling=PrivacyBudget(4.0, 1e-3)
    )  # nothing is spent
    release_from(path)
    made = load_embedding(path)
    for higher in (PrivacyBudget(5.0, 1e-3), PrivacyBudget(4.0, 1e-2)):
        with pytest.raises(BudgetError, match="it can be lowered, not raised"):
            save_embedding(embedding, path, overwrite=True, ceiling=higher)
        with pytest.raises(BudgetError, match="it can be lowered, not raised"):
            save_embedding(made, tmp_path / "other.h5", ceiling=higher)
    assert not (tmp_path / "other.h5").exists()
    save_embedding(embedding, path, overwrite=True, ceiling=PrivacyBudget(2.0, 1e-3))
    assert load_embedding(path).ledger == replace(made.ledger, ceiling=PrivacyBudget(2.0, 1e-3))


def test_a_damaged_embedding_is_not_replaced(embedding: Embedding, tmp_path: Path) -> None:
    path = tmp_path / "e.h5"
    save_embedding(embedding, path)
    path.write_bytes(path.read_bytes()[:5000])
    before = path.read_bytes()
    with pytest.raises(EmbeddingError, match="damaged"):
        save_embedding(embedding, path, overwrite=True)
    assert path.read_bytes() == before
