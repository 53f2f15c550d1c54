"""The folder in which one or several processes keep the progress of a pass.

For `embedding.h5` it is `.embedding.h5.work` beside it (mode 0700), with:

    plan.json                the run plan and the number of shares
    share-1-of-2.checkpoint  how far the first share was counted, and its sums so far
    share-2-of-2.whole       the sums of a share that was counted to its end
    share-1-of-2.lock        held by the process that counts the share, for as long as it lives
    lock                     held while the plan is made, and while the shares are added up

Processes never wait for one another. Each counts its shares. The one that finds all others whole
when it has finished its own adds them up and writes the embedding. Locks belong to living
processes: a killed process leaves none behind.
"""

from __future__ import annotations

import contextlib
import glob
import secrets
import shutil
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Final

from ...common.arguments import argument
from ...common.display.console import Advance, progress, warning
from ...common.errors import OutputError, RunError
from ...common.runtime.ranks import Ranks
from ...common.storage.atomic import SENSITIVE_MODE, collect_stale, write_atomically, write_failures
from ...common.storage.locks import LOCK, folder_locked, held
from ..sums.file import Embedding, run_of
from ..sums.totals import Totals
from .checkpoint import Progress, Share, load_progress, save_progress, split
from .job import Job
from .plan import RunPlan, parse_plan, serialise_plan
from .worker import ShareCount

_PLAN: Final = "plan.json"


class NothingLeft(Exception):
    """Nothing is wrong, but this process has no embedding to write; the message says why.

    Attributes:
        written: whether the embedding has been written already.
    """

    def __init__(self, reason: str, *, written: bool) -> None:
        super().__init__(reason)
        self.written = written


class WorkFolder:
    """The folder in which a pass keeps its progress, so that an interruption costs little.

    Use it as a context manager: locks are held until its end.

    Guarantee:
        Every record is in exactly one share, a share is counted to its end by one process at a
        time, and checkpoints neither lose nor double a record (`checkpoint`). So the resulting sums
        equal those of one uninterrupted pass, to the bit, and the sensitivity holds.
        (docs/privacy/proofs.md, statement 13.)
    """

    def __init__(
        self,
        output: Path,
        ranks: Ranks | None = None,
        *,
        interval: float | None = None,
        restart: bool = False,
        may_write: Callable[[], None] | None = None,
    ) -> None:
        """Name the folder; nothing is created yet.

        Args:
            output: where the embedding will be written.
            ranks: which of several processes this is; the only one if None.
            interval: seconds between checkpoints; see `dpntk.embed.run.interval`.
            restart: discard the progress of an interrupted pass.
            may_write: raises an error if the result may not be written to its place.

        Raises:
            RunError: several processes were told to restart: each would undo the others' work.
        """
        self.output = output
        self.path = output.parent / f".{output.name}.work"
        self._ranks = ranks or Ranks()
        self._interval = interval
        self._restart = restart
        self._may_write = may_write or (lambda: None)
        self._came_late = bool(self._remains()) and not restart
        self._held = ExitStack()
        if restart and self._ranks.count > 1:
            raise RunError(
                f"{argument('restart', True)} is for one process: remove {self.path}, then start "
                "them all without it"
            )

    @property
    def may_be_finished(self) -> bool:
        """Whether the result may exist already because this process started late."""
        return self._ranks.count > 1 or self._came_late

    def __enter__(self) -> WorkFolder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._held.close()
        if kind is not None and self.path.exists():
            with contextlib.suppress(OutputError):  # a worse error is being reported
                self._remove_if_unused()

    def carry_out(self, job: Job) -> Embedding:
        """Count this process's shares, continuing where an earlier process stopped.

        Args:
            job: the pass to carry out.

        Returns:
            The embedding of all records. The caller writes it, and then calls `remove`.

        Raises:
            NothingLeft: this process's shares are counted and other processes count the rest, or
                the embedding has been written already.
            RunError: the folder holds the progress of another plan, or another process is at work.
            OutputError: the folder cannot be written to.
            DataError: a record cannot be read.
            SchemaError: a record does not fit the schema.
        """
        plan = RunPlan.of(job)
        with folder_locked(self.path):
            shares = split(len(job.source), self._begin(plan))
            mine = shares[self._ranks.rank :: self._ranks.count]
            for share in mine:
                self._hold(share)
        left = [share for share in mine if not self._whole(share).exists()]
        last: Progress | None = None
        with self._bar(sum(share.size for share in left)) as advance:
            for share in left:
                checkpoint = self._checkpoint(share)
                last = ShareCount(job, share, checkpoint, plan.digest, self._interval).finish(
                    advance
                )
                if share != left[-1]:
                    self._save_whole(last, plan)
                    last = None  # memory holds one share at a time
        return job.embedding(self._join(job, plan, shares, last), plan.digest)

    def remove(self) -> None:
        """Delete the folder; call this once the embedding is on the disk."""
        # Renamed first, so that a process that starts late finds all of it or nothing.
        retired = self.path.with_name(f"{self.path.name}.{secrets.token_hex(8)}.old")
        with contextlib.suppress(OSError):
            self.path.rename(retired)
        for folder in self._remains():
            shutil.rmtree(folder, ignore_errors=True)
            if folder.exists():
                warning(f"{folder} could not be deleted and is SENSITIVE: delete it")

    def _remains(self) -> list[Path]:
        """The folder, and the remains of one whose deletion was interrupted."""
        candidates = self.path.parent.glob(f"{glob.escape(self.path.name)}*")
        return [path for path in candidates if path == self.path or path.suffix == ".old"]

    def _begin(self, plan: RunPlan) -> int:
        """Under the lock, write the plan, or check that an existing one equals ours.

        Returns:
            The number of shares.
        """
        if self.may_be_finished and run_of(self.output) == plan.digest:
            self.remove()
            raise NothingLeft(
                f"{self.output} holds the embedding of these records already", written=True
            )
        self._may_write()
        if self._restart:
            self._empty()
        file = self.path / _PLAN
        collect_stale(file)
        if not file.exists():
            self._empty()  # a run stopped while cleaning up may have left files
            write_atomically(file, serialise_plan(plan, self._ranks.count), mode=SENSITIVE_MODE)
            return self._ranks.count
        try:
            earlier, shares = parse_plan(file.read_bytes())
        except (OSError, ValueError) as error:
            raise RunError(f"{file}: damaged ({error}); {self._to_begin_anew}") from error
        if earlier != plan.document:
            raise RunError(
                f"{self.path}: holds the progress of another pass: "
                f"{plan.differences(earlier)}; {self._to_begin_anew}"
            )
        return shares

    @property
    def _to_begin_anew(self) -> str:
        if self._ranks.count == 1:
            return f"add {argument('restart', True)} to begin anew"
        return "remove the folder to begin anew"

    def _remove_if_unused(self) -> None:
        """Delete the folder if it holds no progress and no process is at work on it."""
        with folder_locked(self.path):
            progress = any(file.suffix in {".checkpoint", ".whole"} for file in self.path.iterdir())
            if progress or self._at_work():
                return
            self.remove()

    def _at_work(self) -> bool:
        """Whether another process holds a share."""
        try:
            with ExitStack() as holding:
                for lock in self.path.glob("*.lock"):
                    self._try_to_hold(lock, holding)
        except RunError:
            return True
        return False

    def _empty(self) -> None:
        """Delete all progress, unless a process is at work on it."""
        with ExitStack() as holding:
            for lock in self.path.glob("*.lock"):
                self._try_to_hold(lock, holding)
        with write_failures(self.path):
            for file in self.path.iterdir():
                if file.name != LOCK:
                    file.unlink()

    def _hold(self, share: Share) -> None:
        """Lock a share until the end of the context, and clean up after a killed process."""
        self._try_to_hold(self.path / f"{share.name}.lock", self._held)
        collect_stale(self._checkpoint(share))
        collect_stale(self._whole(share))

    def _try_to_hold(self, lock: Path, holding: ExitStack) -> None:
        busy = (
            f"{self.path}: another process is at work on {self.output}: wait for it, or end it "
            "first"
        )
        holding.enter_context(held(lock, busy=busy))

    def _checkpoint(self, share: Share) -> Path:
        return self.path / f"{share.name}.checkpoint"

    def _whole(self, share: Share) -> Path:
        return self.path / f"{share.name}.whole"

    def _save_whole(self, counted: Progress, plan: RunPlan) -> None:
        save_progress(counted, self._whole(counted.share), plan.digest)
        self._checkpoint(counted.share).unlink(missing_ok=True)

    def _join(
        self, job: Job, plan: RunPlan, shares: tuple[Share, ...], last: Progress | None
    ) -> Totals:
        """Add up all shares; until the end of the context no other process can.

        Args:
            job: the pass being carried out.
            plan: its plan.
            shares: all shares.
            last: the share that is in memory only, if any.

        Raises:
            NothingLeft: a share is not whole yet, or another process has added them up.
        """
        others = [share for share in shares if last is None or share != last.share]
        with ExitStack() as lock:
            lock.enter_context(folder_locked(self.path))
            names = {file.name for file in self.path.iterdir()}
            if others and _PLAN not in names:
                self.remove()
                if run_of(self.output) == plan.digest:
                    raise NothingLeft(f"{self.output} was written by another process", written=True)
                raise RunError(f"{self.path}: removed while it was in use; run the command again")
            missing = [share for share in others if self._whole(share).name not in names]
            if not missing:
                self._held.push(lock.pop_all())
        if not missing:
            return self._add_up(job, plan, others, last)
        if last is not None:
            self._save_whole(last, plan)
            return self._join(job, plan, shares, None)
        raise NothingLeft(
            f"this process's share is counted, {len(missing)} of {len(shares)} are not yet; "
            f"the process that finishes last writes {self.output}",
            written=False,
        )

    def _add_up(
        self, job: Job, plan: RunPlan, whole: Sequence[Share], last: Progress | None
    ) -> Totals:
        """The totals over whole shares, including the one in memory, if any."""
        totals = last.totals if last else None
        for share in whole:
            found = load_progress(self._whole(share), share, job.grid, plan.digest)
            if found.done != share.stop:
                raise RunError(f"{self._whole(share)}: not whole; {self._to_begin_anew}")
            totals = found.totals if totals is None else totals.plus(found.totals, job.grid)
        assert totals is not None  # there is a share at least
        return totals

    def _bar(self, records: int) -> AbstractContextManager[Advance]:
        """A progress bar; of several processes on a terminal, only the first shows one."""
        if self._ranks.rank == 0:
            return progress("embedding", records, "records")
        return nullcontext(lambda units, remark="": None)
