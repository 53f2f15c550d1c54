"""Saving an embedding, possibly over an earlier one, without losing the earlier ledger."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from ...common.arguments import argument, path_from, require_kind
from ...common.errors import BudgetError, EmbeddingError, OutputError
from ...common.ledger import Ledger, PrivacyBudget
from ...common.storage.atomic import followed, require_absent
from ...common.storage.container import EMBEDDING_BEGINS
from ...common.storage.locks import locked
from .data_sets import data_sets_of, declare, declared_ledger
from .file import Embedding, load_embedding, write_embedding

COST: Final = "is an embedding that releases may refer to"


def save_embedding(
    embedding: Embedding,
    path: Path | str,
    *,
    overwrite: bool = False,
    ceiling: PrivacyBudget | None = None,
    data_set: str | None = None,
) -> None:
    """Write an embedding, readable by its owner alone (0600).

    Guarantee:
        No release and no ceiling is forgotten: an embedding that replaces an earlier one takes over
        its ledger, its ceilings, of which the lowest binds, and its data sets. Once there are
        releases from the embedding, from the one that it replaces, or from others of the data set,
        a ceiling can be lowered but not raised. (docs/privacy/proofs.md, statement 11.)

    Args:
        embedding: what to write.
        path: the file to write.
        overwrite: whether an existing embedding may be replaced.
        ceiling: the budget for all releases together; if None, the ceilings of the embedding and of
            the one that it replaces remain.
        data_set: the owner's name for the records, if they are embedded more than once: the
            releases from all these embeddings are then added up (`data_sets`).

    Raises:
        OutputError: something is there and may not be replaced, or nothing can be written there;
            nothing is left behind.
        BudgetError: a ceiling would be raised under which releases were made, the name of the data
            set is invalid, or the registry does not know another one that an embedding belongs to.
        EmbeddingError: the existing embedding is damaged, so that its ledger would be lost; or
            `embedding` is not an embedding.
    """
    require_kind(
        "embedding", embedding, Embedding, "what embed or merge has made", refusal=EmbeddingError
    )
    if ceiling is not None:
        wanted = "a PrivacyBudget, such as PrivacyBudget(3.0)"
        require_kind("ceiling", ceiling, PrivacyBudget, wanted, refusal=BudgetError)
    path = followed(path_from("path", path, refusal=OutputError))
    with locked(path):
        require_absent(path, overwrite=overwrite, cost=COST, begins=EMBEDDING_BEGINS)
        replaced = require_not_raised(ceiling, path, data_set)
        before = Ledger() if replaced is None else replaced.ledger
        names = {*([] if replaced is None else data_sets_of(replaced))}
        names |= set() if data_set is None else {data_set}
        embedding = _not_of(data_set, embedding)
        if ceiling is not None:
            _require_not_raised(ceiling, path, before, embedding.ledger, declared_ledger(embedding))
        copied = replaced is not None and replaced.totals.digest() == embedding.totals.digest()
        joined = before.with_copy if copied else before.with_later
        ledger = joined(embedding.ledger).with_earlier(embedding.schema.spent)
        ledger = replace(ledger, ceiling=ceiling or ledger.ceiling)
        of_all = tuple(sorted({*names, *data_sets_of(embedding)}))
        embedding = replace(embedding, ledger=ledger, data_sets=of_all)
        for name in sorted(names):
            declare(name, embedding, path)
        write_embedding(embedding, path)


def add_to_data_set(name: str, path: Path) -> None:
    """Name the data set of an embedding that is there already, in the registry and in its file.

    Raises:
        BudgetError: the name is invalid, or the registry cannot be read.
        EmbeddingError: the embedding is damaged.
        OutputError: the registry or the file cannot be written.
    """
    with locked(path):
        made = load_embedding(path)
        declare(name, made, path)
        if name not in made.data_sets:
            names = tuple(sorted({*made.data_sets, name}))
            write_embedding(replace(made, data_sets=names), path)


def _not_of(data_set: str | None, embedding: Embedding) -> Embedding:
    """The embedding without the name of a data set that is declared anew, known or not."""
    others = tuple(name for name in embedding.data_sets if name != data_set)
    return replace(embedding, data_sets=others)


def require_not_raised(
    ceiling: PrivacyBudget | None, path: Path, data_set: str | None = None
) -> Embedding | None:
    """Check that no ceiling is raised under which releases were made already.

    A ceiling that is raised after somebody has seen a release was not set beforehand
    (docs/privacy/proofs.md, statement 11).

    Args:
        ceiling: the new ceiling; None for none.
        path: of the embedding.
        data_set: a name that is declared anew, which the registry need not know.

    Returns:
        The embedding at `path`, if there is one, not as one of that data set.

    Raises:
        BudgetError: the ceiling would be raised, or the registry does not know another of its data
            sets.
        EmbeddingError: the embedding at `path` is damaged.
    """
    if not path.exists():
        return None
    before = _not_of(data_set, load_embedding(path))
    _require_not_raised(ceiling, path, before.ledger, declared_ledger(before))
    return before


def _require_not_raised(ceiling: PrivacyBudget | None, path: Path, *ledgers: Ledger) -> None:
    """The same for several ledgers of the same records: what is in one counts for all."""
    if ceiling is None or not any(ledger.all_entries for ledger in ledgers):
        return
    for before in (ledger.ceiling for ledger in ledgers):
        if before is not None and not ceiling.keeps(before):
            raise BudgetError(
                f"{path}, or another of its data set, was released from, and has a ceiling of "
                f"epsilon {before.epsilon:g} at delta {before.delta:g}: it can be lowered, not "
                f"raised; leave {argument('ceiling', option='--budget-eps')} out to keep it"
            )
