"""An embedding that is written over another one forgets nothing that was spent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dpntk.common.errors import BudgetError, EmbeddingError, OutputError, SchemaError
from dpntk.common.ledger import Ledger, PrivacyBudget
from dpntk.embed import Embedding, embed, load_embedding, open_source, save_embedding
from dpntk.embed.sums import file
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


LOW, HIGH = PrivacyBudget(1.2, 1e-3), PrivacyBudget(3.0, 1e-3)


def refused_by_the_lower(path: Path) -> None:
    with pytest.raises(BudgetError, match=r"the budget of epsilon 1\.2 at delta 0\.001"):
        release_from(path, 1.1)


@pytest.mark.parametrize("spent_first", [True, False])
@pytest.mark.parametrize("order", [(LOW, HIGH), (HIGH, LOW)])
def test_the_lower_of_two_ceilings_binds(
    embedding: Embedding, tmp_path: Path, order: tuple[PrivacyBudget, ...], spent_first: bool
) -> None:
    there, over = tmp_path / "a.h5", tmp_path / "b.h5"
    for path, ceiling in zip((there, over), order, strict=True):
        save_embedding(embedding, path, ceiling=ceiling)
    release_from(there if spent_first else over)
    save_embedding(load_embedding(over), there, overwrite=True)
    assert load_embedding(there).ledger.ceiling == LOW
    refused_by_the_lower(there)


def test_two_ceilings_bind_if_neither_is_lower(embedding: Embedding, tmp_path: Path) -> None:
    """In epsilon one, in delta the other: each is exceeded by what the other one allows."""
    path, other = tmp_path / "a.h5", PrivacyBudget(6.0, 1e-9)
    save_embedding(embedding, path, ceiling=LOW)
    release_from(path, 0.9)
    for _ in range(2):
        save_embedding(replace(embedding, ledger=Ledger(ceiling=other)), path, overwrite=True)
    kept = load_embedding(path).ledger
    assert list(kept._all_ceilings()) == [other, LOW]
    assert [entry.epsilon for entry in kept.all_entries] == [0.9]
    refused_by_the_lower(path)


def test_ceilings_of_parts_are_not_lost_over_one_that_was_released_from(
    embedding: Embedding, tmp_path: Path
) -> None:
    """A site that is merged was promised that nothing which touches its records goes beyond."""
    path = tmp_path / "a.h5"
    save_embedding(embedding, path)
    release_from(path)
    merged = replace(embedding, ledger=Ledger(parts=(Ledger(ceiling=LOW), Ledger())))
    for _ in range(2):  # the second time there is nothing new
        save_embedding(merged, path, overwrite=True)
        assert load_embedding(path).ledger.ceiling == LOW
    refused_by_the_lower(path)
    # What is merged again keeps its parts, and each ceiling binds the part that it was set for.
    save_embedding(merged, tmp_path / "b.h5")
    release_from(tmp_path / "b.h5")
    spent = load_embedding(tmp_path / "b.h5").ledger
    for again in (merged, embedding):
        save_embedding(again, tmp_path / "b.h5", overwrite=True)
        assert load_embedding(tmp_path / "b.h5").ledger == spent
    refused_by_the_lower(tmp_path / "b.h5")


def test_a_damaged_embedding_is_not_replaced(embedding: Embedding, tmp_path: Path) -> None:
    path = tmp_path / "e.h5"
    save_embedding(embedding, path)
    path.write_bytes(path.read_bytes()[:5000])
    before = path.read_bytes()
    with pytest.raises(EmbeddingError, match="damaged"):
        save_embedding(embedding, path, overwrite=True)
    assert path.read_bytes() == before


def test_what_could_not_be_read_back_replaces_nothing(
    embedding: Embedding, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "embedding.h5"
    save_embedding(embedding, path)
    before = path.read_bytes()
    monkeypatch.setattr(file, "_LAYOUT", replace(file._LAYOUT, longest_text=100))
    with pytest.raises(SchemaError, match=r"characters, and an embedding holds 100 at most"):
        file.write_embedding(embedding, path)
    assert path.read_bytes() == before


def test_what_could_not_be_kept_is_refused_before_a_record_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "_LAYOUT", replace(file._LAYOUT, longest_text=100))
    source = open_source(folder)
    monkeypatch.setattr(type(source), "batches", lambda *_: pytest.fail("records are read"))
    with pytest.raises(SchemaError, match=r"characters, and an embedding holds 100 at most"):
        embed(source)
