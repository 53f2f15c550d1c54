"""The ledger of a data set's distillations: a file beside the data.

No embedding file could hold this ledger, so it is kept where the records are: `data.ledger.json`
beside `data`. It reveals nothing about the records and is readable by its owner alone. For a folder
with parts it lies beside the part that was read (`data/train.ledger.json`), whether the user named
the part or the folder. Earlier versions put it beside the named one, so a ledger of the whole
folder counts for each of its parts.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from ...common.adjacency import Adjacency
from ...common.arguments import argument
from ...common.errors import BudgetError, OutputError
from ...common.storage import untrusted_files
from ...common.storage.atomic import SENSITIVE_MODE, followed, write_atomically
from ...common.storage.locks import locked
from ...common.storage.part_names import names_a_part
from ...common.storage.plain import parse_json
from ..mechanism.composition import Total, is_accepted
from ..mechanism.subsampled_gaussian import SampledGaussian, sampled_epsilon

LEDGER_SUFFIX: Final = ".ledger.json"
_LARGEST_FILE: Final = 1 << 30
_FORMAT: Final = "dpntk ledger of distillations 1"


@dataclass(frozen=True)
class Spending:
    """One distillation's entry in the ledger.

    Attributes:
        release_id: the ID of its release.
        created: when it began, in UTC, ISO 8601.
        epsilon: its epsilon; infinite without noise.
        delta: its delta.
        run: its steps; None without noise.
        adjacency: its adjacency.
    """

    release_id: str
    created: str
    epsilon: float
    delta: float
    run: SampledGaussian | None
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def to_json(self) -> dict[str, Any]:
        """A plain mapping that `from_json` reads back; null stands for infinity."""
        noise = self.run is not None
        return asdict(self) | {
            "epsilon": self.epsilon if noise else None,
            "run": None if self.run is None else self.run.to_json(),
            "adjacency": self.adjacency.value,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Spending:
        """Read what `to_json` wrote.

        Raises:
            ValueError: noise and epsilon contradict each other, or a value is invalid.
            BudgetError: a number is out of its range.
            KeyError: an entry is missing.
            TypeError: there is an unknown entry.
        """
        epsilon, run = document["epsilon"], document["run"]
        if (epsilon is None) != (run is None):
            raise ValueError("noise and epsilon contradict each other")
        entry = cls(
            **{
                **document,
                "epsilon": math.inf if epsilon is None else epsilon,
                "run": None if run is None else SampledGaussian.from_json(run),
                "adjacency": Adjacency(document.get("adjacency", Adjacency.ADD_REMOVE.value)),
            }
        )
        if not all(isinstance(text, str) for text in (entry.release_id, entry.created)):
            raise ValueError("a distillation without a name")
        if not all(type(number) in (int, float) for number in (entry.epsilon, entry.delta)):
            raise ValueError("a distillation without a promise")
        possible = 0 < entry.epsilon <= sys.float_info.max or entry.epsilon == math.inf
        if not possible or not 0 < entry.delta < 1:
            raise ValueError("a distillation with an impossible promise")
        return entry


def ledger_of(data: Path) -> Path:
    """The path of a data set's ledger.

    Args:
        data: the file or folder that is read; for a folder with parts, the part.
    """
    resolved = data.resolve()
    return resolved.with_name(resolved.name + LEDGER_SUFFIX)


def ledgers_of_parts(folder: Path) -> tuple[Path, ...]:
    """The existing ledgers of a folder's parts, which lie in the folder."""
    return tuple(path for path in sorted(folder.glob(f"*{LEDGER_SUFFIX}")) if _is_of_a_part(path))


def of_whole_folder(path: Path) -> Path | None:
    """For the ledger of a part, that of the whole folder, if it exists."""
    whole = ledger_of(path.parent) if _is_of_a_part(path) else None
    return whole if whole is not None and os.path.lexists(whole) else None


def read_all(path: Path) -> tuple[Spending, ...]:
    """The entries of a ledger; for a part's ledger, after those of the whole folder's.

    Raises:
        BudgetError: a ledger cannot be read.
    """
    return _behind(of_whole_folder(path), read_ledger(path))


def _behind(whole: Path | None, entries: tuple[Spending, ...]) -> tuple[Spending, ...]:
    """The entries of a ledger after those of the whole folder, each once.

    An entry under the ID of another one, with other figures, is another entry: both count.
    """
    earlier = () if whole is None else read_ledger(whole)
    return tuple(dict.fromkeys((*earlier, *entries)))


def _is_of_a_part(path: Path) -> bool:
    return path.name.endswith(LEDGER_SUFFIX) and names_a_part(path.name[: -len(LEDGER_SUFFIX)])


def read_ledger(path: Path) -> tuple[Spending, ...]:
    """All distillations so far, in order; empty if there is no file.

    Raises:
        BudgetError: it cannot be read.
    """
    if not os.path.lexists(path):
        return ()
    try:
        document: Any = parse_json(untrusted_files.read(path, _LARGEST_FILE, refusal=BudgetError))
        if document["format"] != _FORMAT:
            raise ValueError("of another kind")
        return tuple(map(Spending.from_json, document["entries"]))
    except (ValueError, KeyError, TypeError, BudgetError) as error:
        raise BudgetError(
            f"{path}: the ledger cannot be read ({error}): without it nobody knows what was spent"
        ) from error


def spent_by(
    entries: Sequence[Spending], delta: float, adjacency: Adjacency = Adjacency.ADD_REMOVE
) -> float:
    """The joint epsilon of distillations; infinite if one of them had no noise.

    Args:
        entries: the distillations.
        delta: the delta at which epsilon is taken.
        adjacency: which data sets are indistinguishable.

    Raises:
        BudgetError: delta is not between 0 and 1.
    """
    runs = [entry.run for entry in entries if entry.run is not None]
    if len(runs) < len(entries):
        return math.inf
    return sampled_epsilon(runs, delta, adjacency=adjacency)


def adjacency_of_runs(entries: Sequence[Spending]) -> Adjacency:
    """The adjacency of some distillations if they share one, else replace-one.

    Under replace-one the number of records is public, and a run's delta, and with it its noise, may
    follow from it. So such a run promises nothing under add-remove.
    """
    alike = all(entry.adjacency is Adjacency.ADD_REMOVE for entry in entries)
    return Adjacency.ADD_REMOVE if alike else Adjacency.REPLACE_ONE


def total_of_distillations(
    entries: Sequence[Spending], latest: Spending, delta: float | None = None
) -> Total:
    """The joint guarantee of distillations.

    A single distillation keeps its stated epsilon at its delta, and no more have a smaller one. If
    the runs do not share an adjacency, the loss of those under add-remove follows from their
    sampling, noise and steps.

    Args:
        entries: of the distillations, at least one.
        latest: the one whose release states the joint guarantee.
        delta: at which; the latest one's if None.
    """
    delta, adjacency = delta or latest.delta, adjacency_of_runs(entries)
    stated = latest.epsilon if delta == latest.delta else 0.0
    if len(entries) == 1 and stated:
        return Total(stated, delta, adjacency, 1)
    epsilon = spent_by(entries, delta, adjacency)
    return Total(max(epsilon, stated), delta, adjacency, len(entries))


def enter(path: Path, entry: Spending, compose: Callable[[Total], bool]) -> Total:
    """Enter a distillation, before any of its noise is drawn.

    Args:
        path: the ledger; that of the whole folder counts as well (`read_all`).
        entry: the distillation; if it is in the ledger already, nothing is added.
        compose: if there are other entries, called to ask whether the joint guarantee is
            acceptable.

    Returns:
        The joint guarantee of all distillations, this one included.

    Raises:
        BudgetError: `compose` said no, or the ledger cannot be read.
        OutputError: it cannot be written.
    """
    try:
        return _entered(path, entry, compose)
    except OutputError as error:
        raise OutputError(
            f"{error} ({argument('ledger')} names another place for the ledger)"
        ) from error


def _entered(path: Path, entry: Spending, compose: Callable[[Total], bool]) -> Total:
    whole, path = of_whole_folder(path), followed(path)
    with locked(path):
        own = read_ledger(path)
        before = _behind(whole, own)
        if entry in before:
            return total_of_distillations(before, entry)
        entries = (*before, entry)
        total = total_of_distillations(entries, entry)
        if before and not is_accepted(compose, total):
            raise BudgetError(
                f"{path}: these records were distilled before: with this run the total would be "
                f"{total}; add {argument('compose')} if that is acceptable"
            )
        document = {
            "format": _FORMAT,
            "entries": [each.to_json() for each in (*own, entry)],
        }
        write_atomically(path, json.dumps(document, indent=2).encode(), mode=SENSITIVE_MODE)
    return total
