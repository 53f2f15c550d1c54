"""Merging the embeddings of disjoint shards or sites into that of one pass over all records.

Guarantee:
    All merged embeddings have the same plan, no sum overflows, and no embedding is added twice. So
    a record that is in one shard contributes once, as statement 5 assumes. The sums cannot show
    whether two different shards share a record: the owner answers for that. The privacy loss of a
    record so far is that in its own shard's ledger. (docs/privacy/proofs.md, statement 14.)
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from ..common.arguments import argument, path_from, require_kind
from ..common.display.console import warning
from ..common.errors import MergeError, OutputError, SchemaError
from ..common.ledger import Ledger
from ..common.storage.atomic import followed, require_absent, write_failures
from ..common.storage.container import EMBEDDING_BEGINS
from ..common.storage.locks import locked
from .run.plan import changes
from .sums.data_sets import data_sets_of, declare
from .sums.file import (
    Embedding,
    load_embedding,
    plan_of,
    require_embedding,
    write_embedding,
)
from .sums.saving import COST

_SAME_OPTIONS: Final = "embed both with the same options, capacity and classes among them"


def merge(paths: Sequence[Path | str]) -> Embedding:
    """Add up embedding files. They are read one after another, so memory holds only two.

    Args:
        paths: two or more embeddings of disjoint sets of records.

    Returns:
        The embedding of all their records, with sums int64 (d, c) like theirs: SENSITIVE. Its
        ledger contains theirs as parts.

    Guarantee:
        The result equals that of one pass over all records, to the bit, if no record is in two of
        them. The owner answers for that: a record in two of them counts twice, and is protected
        half as well. The merged ledger does not include later releases from a part; `merge_files`
        blocks releases from the parts until the sum is written. (docs/privacy/proofs.md, statement
        14.)

    Raises:
        EmbeddingError: one of them is not a whole embedding.
        MergeError: their plans differ, they hold more records than the sums have room for, the
            same records are in two of them, or they protect rows of one person together.
    """
    require_kind("paths", paths, (list, tuple), "a list of embedding files", refusal=MergeError)
    paths = [path_from("a path", path, refusal=MergeError) for path in paths]
    if len(paths) < 2:
        raise MergeError("there is nothing to merge: name two embeddings at least")
    whole = load_embedding(paths[0])
    owner = dict.fromkeys(_contents(whole), paths[0])
    named = dict.fromkeys(whole.data_sets, paths[0])
    if (unit := whole.schema.privacy_unit) is not None:
        raise MergeError(
            f"{paths[0]}: rows of one {unit.column} may be in several of these, and each has let "
            f"{unit.rows:,} of them count: embed all data at once, as files of one folder"
        )
    parts = [whole.ledger]
    for path in paths[1:]:
        part = load_embedding(path)
        if part.plan_digest != whole.plan_digest:
            reasons = "; ".join(changes(_plan(whole), _plan(part), instead="and not"))
            raise MergeError(f"{path} cannot be added to {paths[0]}: {reasons}; {_SAME_OPTIONS}")
        for content in _contents(part):
            if content in owner:
                raise MergeError(
                    f"{owner[content]} and {path} hold the same records: counted twice, they would "
                    "be protected half as well; name each shard once"
                )
        owner |= dict.fromkeys(_contents(part), path)
        named |= dict.fromkeys(part.data_sets, path)
        parts.append(part.ledger)
        try:
            totals = whole.totals.plus(part.totals, whole.grid)
        except SchemaError as error:
            raise MergeError(f"{path} does not fit in: {error}") from error
        whole = replace(whole, sums=totals.sums, counts=totals.counts)
    ledger = Ledger(parts=tuple(parts)).with_earlier(whole.schema.spent)
    whole = replace(whole, ledger=ledger, run="", shards=tuple(sorted(owner)), data_sets=())
    known = data_sets_of(whole)
    for name in sorted(set(named) - set(known)):
        warning(
            f"{named[name]} is of data set {name!r} of another user or machine: what was released "
            "from other embeddings of that one is not counted here"
        )
    return replace(whole, data_sets=known)


def merge_files(
    paths: Sequence[Path | str], output: Path | str, *, overwrite: bool = False
) -> Embedding:
    """Merge embedding files and write the sum, blocking releases from them meanwhile.

    Example::

        merge_files(["north.h5", "south.h5"], "both.h5")

    Args:
        paths: two or more embeddings of disjoint sets of records.
        output: where to write the sum, readable by its owner alone (0600).
        overwrite: whether an existing embedding may be replaced, if no ledger is lost with it.

    Returns:
        The embedding of all their records: SENSITIVE.

    Guarantee:
        That of `merge`. The merged ledger has every release made from a part before the sum was
        written. From then on, release from the sum only. A sum that replaces another embedding
        takes over its data sets, as that of `save_embedding` does.

    Raises:
        EmbeddingError: one of them is not a whole embedding.
        MergeError: see `merge`.
        OutputError: something is there and may not be replaced, or nothing can be written there.
    """
    require_kind("paths", paths, (list, tuple), "a list of embedding files", refusal=MergeError)
    parts = [followed(path_from("a path", path, refusal=MergeError)) for path in paths]
    output = followed(path_from("output", output, refusal=OutputError))
    may_write = partial(
        require_absent, output, overwrite=overwrite, cost=COST, begins=EMBEDDING_BEGINS
    )
    may_write()
    for path in parts:
        require_embedding(path)
    with _all_locked((*parts, output)):
        whole = merge(parts)
        may_write()
        new = not output.exists() or any(output.samefile(path) for path in parts)
        replaced = None if new else load_embedding(output)
        if replaced is not None and (lost := _would_be_lost(replaced.ledger, whole.ledger)):
            other = argument("output", option="-o")
            raise OutputError(f"{output} {lost} would be lost: choose another name with {other}")
        names = () if replaced is None else data_sets_of(replaced)
        whole = replace(whole, data_sets=tuple(sorted({*whole.data_sets, *names})))
        for name in names:
            declare(name, whole, output)
        write_embedding(whole, output)
    return whole


def _plan(embedding: Embedding) -> dict[str, object]:
    return plan_of(embedding.schema, embedding.feature_map, embedding.grid)


def _contents(embedding: Embedding) -> frozenset[str]:
    """Digests of all embeddings whose records are in this one, its own included."""
    return frozenset({*embedding.shards, embedding.totals.digest()})


@contextlib.contextmanager
def _all_locked(paths: Sequence[Path]) -> Iterator[None]:
    """Block releases from these files, and from others in their folders.

    Raises:
        OutputError: a folder does not exist, or cannot be locked.
    """
    folders: dict[tuple[int, int], Path] = {}
    for path in paths:
        with write_failures(path.parent):
            status = path.parent.stat()
        folders[status.st_dev, status.st_ino] = path
    with contextlib.ExitStack() as held:
        for _, path in sorted(folders.items()):  # in a fixed order, to avoid deadlock
            held.enter_context(locked(path))
        yield


def _would_be_lost(there: Ledger, ledger: Ledger) -> str:
    """What a replaced file's ledger records and the parts' ledgers do not; empty if nothing."""
    if ledger.covers(there):
        return ""
    return "was released from, and its ledger" if there.all_entries else "has a ceiling, and it"
