"""Checkpoints, SENSITIVE: how far a share of the records was counted, and its sums so far.

Guarantee:
    The sums and the number of the next record are written together, under a temporary name, and
    replace the earlier ones in one step. So whatever stops the program, the records in a checkpoint
    are exactly those that will not be read again: none is counted twice, none is lost.
    (docs/privacy/proofs.md, statement 13.)
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import h5py
import numpy as np

from ...common.arguments import argument
from ...common.display.representations import RedactedRepr
from ...common.errors import RunError, SchemaError
from ...common.storage.atomic import SENSITIVE_MODE, write_atomically
from ...common.storage.container import CHECKPOINT_MAGIC, build
from ..exact.grid import Grid
from ..sums.file import NOTICE
from ..sums.totals import Totals


@dataclass(frozen=True)
class Share:
    """Consecutive records that one process counts.

    Attributes:
        number: the number of the share, from 1.
        of: how many shares there are.
        start: number of its first record, from 0.
        stop: number after its last record.
    """

    number: int
    of: int
    start: int
    stop: int

    @property
    def size(self) -> int:
        """How many records it has; may be 0."""
        return self.stop - self.start

    @property
    def name(self) -> str:
        """The prefix of its file names."""
        return f"share-{self.number}-of-{self.of}"


def split(records: int, shares: int) -> tuple[Share, ...]:
    """Divide records 0..records-1 into shares of nearly equal size; every record is in one."""
    ends = [records * number // shares for number in range(shares + 1)]
    return tuple(
        Share(number, shares, start, stop)
        for number, (start, stop) in enumerate(pairwise(ends), start=1)
    )


@dataclass(frozen=True, eq=False, repr=False)
class Progress(RedactedRepr):
    """The progress on a share.

    Attributes:
        share: the share of the records.
        done: number of the next record; those from `share.start` up to it are counted.
        totals: the totals over the counted records.
    """

    share: Share
    done: int
    totals: Totals

    def __post_init__(self) -> None:
        if not self.share.start <= self.done <= self.share.stop:
            raise SchemaError("the record that comes next is none of the share's")
        if self.totals.records != self.done - self.share.start:
            raise SchemaError(
                f"{self.totals.records} records were counted where "
                f"{self.done - self.share.start} were read"
            )


def save_progress(progress: Progress, path: Path, run: str) -> None:
    """Write a checkpoint, readable by its owner alone (0600), in place of the earlier one.

    Args:
        progress: what the checkpoint holds.
        path: where to write it.
        run: digest of the run's plan.

    Raises:
        OutputError: it cannot be written; the earlier one is still there.
    """

    def fill(file: h5py.File) -> None:
        file.attrs["SENSITIVE"] = NOTICE
        file.attrs["run"] = run
        file.attrs["records"] = (progress.share.start, progress.share.stop)
        file.attrs["done"] = progress.done
        file.attrs["digest"] = progress.totals.digest()
        # Class by class, as the sums are laid out in memory.
        file.create_dataset("sums", data=np.ascontiguousarray(progress.totals.sums.T))
        file.create_dataset("counts", data=progress.totals.counts)

    write_atomically(path, build(CHECKPOINT_MAGIC, fill), mode=SENSITIVE_MODE)


def load_progress(path: Path, share: Share, grid: Grid, run: str) -> Progress:
    """Read a checkpoint and check that it is whole and belongs here.

    A checkpoint comes from no stranger: only the owner can write to the folder (0700), and whoever
    can do that can read the records. So h5py reads it directly, without a sandboxed process.

    Raises:
        RunError: it is damaged, or belongs to another run.
    """
    remedy = f"begin anew with {argument('restart', True)}, on one process"
    try:
        with h5py.File(path, "r") as file:
            if str(file.attrs["run"]) != run:
                raise SchemaError("it belongs to another run")
            if tuple(file.attrs["records"]) != (share.start, share.stop):
                raise SchemaError("it belongs to another share of the records")
            totals = Totals(file["sums"][...].T, file["counts"][...])
            if totals.sums.dtype != np.int64 or totals.counts.dtype != np.int64:
                raise SchemaError("the sums are not 64-bit integers")
            if totals.digest() != str(file.attrs["digest"]):
                raise SchemaError("its integers have changed")
            totals.require_possible(grid)
            return Progress(share, int(file.attrs["done"]), totals)
    except SchemaError as error:
        raise RunError(f"{path}: cannot be continued: {error}; {remedy}") from error
    except (OSError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise RunError(f"{path}: damaged ({error}); {remedy}") from error
