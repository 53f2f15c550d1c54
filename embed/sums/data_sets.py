"""The registry of data sets: which embeddings share records, and what each has released.

Every embedding has its own ledger, but releases from two embeddings of the same records spend
budget on those records twice. So the owner can name the data set that an embedding belongs to. The
names are kept in a registry in the user's configuration folder, which nobody else can read (0600).
The registry identifies an embedding by a digest of its exact sums, whatever its file is called and
however often it was copied; no release contains that digest. A merged embedding belongs to the data
sets of its parts. Two names of one embedding that was not merged are names of the same records, and
so of one data set. An embedding's file holds its names, too: another user, or one who has lost the
registry, must not be told that nothing was spent.
"""

from __future__ import annotations

import contextlib
import functools
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ...common.arguments import argument, require_kind
from ...common.display.console import notice
from ...common.display.text import some_of
from ...common.errors import BudgetError, SchemaError
from ...common.ledger import Ledger
from ...common.storage import untrusted_files
from ...common.storage.atomic import SENSITIVE_MODE, followed, write_atomically, write_failures
from ...common.storage.canonical_json import canonical_json
from ...common.storage.config import config_folder, make_private, require_our_folder, require_ours
from ...common.storage.locks import locked
from ...common.storage.plain import parse_json
from .file import Embedding

_FORMAT: Final = "dpntk data sets 1"
_LARGEST_FILE: Final = 1 << 30
_LONGEST_NAME: Final = 200
_POWER: Final = "what was spent on data sets"
"""Of others who could change the registry, for messages."""


@dataclass(frozen=True)
class Member:
    """An embedding that belongs to a data set.

    Attributes:
        path: where its file was when last written.
        ledger: its releases up to then.
    """

    path: str
    ledger: Ledger


DataSets = dict[str, dict[str, Member]]
"""Maps the name of a data set, then the digest of an embedding's sums, to the embedding."""


def registry_path() -> Path:
    """Where the registry is kept."""
    return config_folder() / "data_sets" / "registry.json"


def members_of(name: str) -> tuple[Member, ...]:
    """The embeddings of a data set, under all of its names, those merged from the most parts first.

    Raises:
        BudgetError: nothing was declared under this name, or the registry cannot be read.
    """
    registry = _read(registry_path())
    if name not in registry:
        known = f"there are {some_of(sorted(registry))}" if registry else "there is none"
        raise BudgetError(f"no data set {name!r} was declared: {known}; 'dpntk embed --data-set'")
    of_all = [registry[each] for each in sorted(_with_other_names(registry, {name}))]
    members = {digest: member for some in of_all for digest, member in some.items()}.values()
    return tuple(sorted(members, key=lambda member: len(member.ledger.parts), reverse=True))


def data_sets_of(embedding: Embedding) -> tuple[str, ...]:
    """The names under which an embedding, or a part it was merged from, was declared.

    Other names of the same data sets are among them.

    Raises:
        BudgetError: the registry cannot be read, or does not know one of the names in its file.
    """
    return tuple(sorted(_names(_read(registry_path()), embedding)))


def joint_ledger(ledgers: Iterable[Ledger]) -> Ledger:
    """All releases from several embeddings of the same records, each counted once.

    Guarantee:
        The joint ledger never understates what was spent: releases from parts count as releases
        from the whole, except those of the first ledger. Every ceiling set for one of the
        embeddings, or for a part of one, binds all of them. (docs/privacy/proofs.md, statement 11.)
    """
    return functools.reduce(Ledger.with_later, ledgers)


def spent_on_records_of(embedding: Embedding) -> Ledger:
    """The ledger of an embedding, with all releases from its data sets' other embeddings.

    Raises:
        BudgetError: the registry cannot be read, or does not know one of the names in its file.
    """
    registry, digest = _read(registry_path()), embedding.totals.digest()
    members = [registry[name] for name in sorted(_names(registry, embedding))]
    own = [some[digest].ledger for some in members if digest in some]
    joint = functools.reduce(Ledger.with_copy, own, embedding.ledger)
    for some in members:
        for key, each in some.items():
            if key != digest:
                joint = joint.with_later(each.ledger, of_part=key in embedding.shards)
    return joint


def declared_ledger(embedding: Embedding) -> Ledger:
    """The ledger last registered for an embedding, with all releases from its data sets.

    Raises:
        BudgetError: the registry cannot be read, or does not know one of the names in its file.
    """
    registry, digest = _read(registry_path()), embedding.totals.digest()
    known = [m[digest].ledger for m in registry.values() if digest in m]
    own = functools.reduce(Ledger.with_later, known, Ledger())
    return replace(spent_on_records_of(embedding), ceiling=own.ceiling)


@contextlib.contextmanager
def nobody_else_spends(embedding: Embedding) -> Iterator[tuple[str, ...]]:
    """Make releases from the same data sets' other embeddings wait until this one is noted.

    Yields:
        The names of its data sets, for `note`.

    Raises:
        BudgetError: the registry cannot be read, or does not know one of the names in its file.
        OutputError: its folder cannot be locked.
    """
    if not data_sets_of(embedding):  # nobody has to wait
        yield ()
        return
    with locked(followed(registry_path())):
        yield data_sets_of(embedding)


def require_name(name: str) -> None:
    """Check that a data set can have this name, and that it is not taken for another's.

    Raises:
        BudgetError: it cannot, it looks like the name of a data set but is another, or the registry
            cannot be read.
    """
    require_kind("data_set", name, str, "a name", refusal=BudgetError)
    if not (name.strip() and name.isprintable() and len(name) <= _LONGEST_NAME):
        raise BudgetError(
            f"{argument('data_set', name)}: give a name of up to {_LONGEST_NAME} characters that "
            "can be read"
        )
    if name != name.strip():
        raise BudgetError(f"{argument('data_set', name)}: there are blanks around the name")
    known = _read(registry_path())
    alike = [other for other in sorted(known) if _seen(other) == _seen(name)]
    if alike and name not in known:
        raise BudgetError(
            f"{argument('data_set', name)}: there is a data set {alike[0]!r} already: if that is "
            "the one, write its name in the same way; otherwise choose one that looks different"
        )


def _seen(name: str) -> str:
    """What people see of a name: neither capitals nor blanks, nor how an accent is stored."""
    return "".join(unicodedata.normalize("NFKC", name).casefold().split())


def declare(name: str, embedding: Embedding, path: Path) -> None:
    """Register an embedding under a data set, or update its releases if it is there.

    The owner is told of a new name: a slip of the pen would make a data set of its own.

    Raises:
        BudgetError: the name is invalid, or the registry cannot be read.
        OutputError: the registry cannot be written.
    """
    require_name(name)
    place = followed(registry_path())
    with write_failures(place):
        make_private(place.parent)
    with locked(place):
        _enter((name,), embedding, path)


def note(embedding: Embedding, path: Path, names: tuple[str, ...]) -> None:
    """Register what has been released from an embedding, if it belongs to a data set.

    The caller holds the lock: `nobody_else_spends`. While the owner is asked about the total,
    another process may declare the embedding under a new name, which may have releases that the
    total misses.

    Args:
        embedding: with what has been released from it.
        path: where it lies.
        names: its data sets when its releases were added up.

    Raises:
        BudgetError: it belongs to other data sets now, or the registry cannot be read.
        OutputError: the registry cannot be written.
    """
    if data_sets_of(embedding) != names:
        raise BudgetError(
            f"{path} was declared to be of a data set in the meantime, whose releases count as "
            "well: run the command again"
        )
    if names:
        _enter(names, embedding, path)


def _names(registry: Mapping[str, Mapping[str, Member]], embedding: Embedding) -> set[str]:
    digests = {embedding.totals.digest(), *embedding.shards}
    found = {name for name, members in registry.items() if not digests.isdisjoint(members)}
    if lost := sorted(set(embedding.data_sets) - found):
        raise BudgetError(
            f"the embedding belongs to data set {lost[0]!r}, but {registry_path()} does not know "
            "of it, nor what was released from its other embeddings: release as the user and on "
            "the machine that embedded the records, or put a copy of that file back; to begin "
            f"anew, embed them with {argument('data_set', lost[0])}"
        )
    return _with_other_names(registry, found)


def _with_other_names(registry: Mapping[str, Mapping[str, Member]], names: set[str]) -> set[str]:
    """All names of data sets, of which some are known.

    A data set that was given another name has an embedding under both. A merged embedding has the
    names of several data sets, which are not one for that.
    """
    found = set(names)
    while True:
        digests = {
            digest
            for name in found
            for digest, member in registry[name].items()
            if not member.ledger.is_merged
        }
        more = {name for name, some in registry.items() if not digests.isdisjoint(some)} - found
        if not more:
            return found
        found |= more


def _enter(names: Iterable[str], embedding: Embedding, path: Path) -> None:
    place, digest = followed(registry_path()), embedding.totals.digest()
    registry = _read(place)
    for name in names:
        if name not in registry:
            beside = f", beside {some_of(sorted(registry))}" if registry else ""
            notice(f"{name!r} is the name of a new data set{beside}")
        members = registry.setdefault(name, {})
        known = members[digest].ledger if digest in members else Ledger()
        if not any(member.ledger.all_entries for member in members.values()):
            known = replace(known, ceiling=None)  # it may still be raised
        ledger = embedding.ledger.with_copy(known)  # a copy may have been released from
        members[digest] = Member(str(path.resolve()), ledger)
    document = {
        "format": _FORMAT,
        "data_sets": {
            name: {
                digest: {"path": member.path, "ledger": member.ledger.to_json()}
                for digest, member in members.items()
            }
            for name, members in registry.items()
        },
    }
    write_atomically(place, canonical_json(document).encode(), mode=SENSITIVE_MODE)


def _read(path: Path) -> DataSets:
    """The registry's contents; empty if there is certainly no registry."""
    try:
        path.lstat()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _unreadable(path, error.strerror) from error
    try:
        require_ours(path, path.stat(), _POWER, BudgetError)
        require_our_folder(path, _POWER, BudgetError)
    except OSError as error:
        raise _unreadable(path, error.strerror) from error
    try:
        document: Any = parse_json(untrusted_files.read(path, _LARGEST_FILE, refusal=BudgetError))
        if document["format"] != _FORMAT:
            raise ValueError("of another kind")
        return {
            str(name): {
                str(digest): Member(str(entry["path"]), Ledger.from_json(entry["ledger"]))
                for digest, entry in members.items()
            }
            for name, members in document["data_sets"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError, SchemaError, BudgetError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, reason: object) -> BudgetError:
    return BudgetError(
        f"{path}: the registry of data sets cannot be read ({reason}): without it nobody knows "
        "what was spent on them: put a copy back"
    )
