"""The folder in which a pass keeps its progress, alone or together with other processes.

Beside `embedding.h5` it is `.embedding.h5.work`, 0700, with:

    plan.json                what is done, and into how many shares of the records it is divided
    share-1-of-2.checkpoint  how far the first share has been counted, and what the count is
    share-2-of-2.whole       a share that has been counted to its end
    share-1-of-2.lock        held by the process that counts the share, for as long as it lives
    lock                     held while the plan is made, and while the shares are added up

Processes never wait for one another. Each counts its shares, and whichever finds all others whole
when its own is adds them up and writes the embedding. Locks belong to living processes: a killed
one leaves none behind.
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

from ...common.display.console import Advance, progress, warning
from ...common.errors import OutputError, RunError
from ...common.runtime.ranks import Ranks
from ...common.storage.atomic import SENSITIVE_MODE, collect_stale, write_atomically, write_failures
from ...common.storage.locks import LOCK, folder_locked, held
from ..sums.file import Embedding, run_of
from ..sums.totals import Totals
from .checkpoint import Progress, Share, load_progress, save_progress, split
from .job import Job
from .plan import RunPlan, parse_plan, write_plan
from .worker import ShareCount

_PLAN: Final = "plan.json"


class NothingLeft(Exception):
    """There is no embedding for this process to write, and nothing is wrong: says why.

    Attributes:
        written: whether the embedding is at its place already.
    """

    def __init__(self, reason: str, *, written: bool) -> None:
        super().__init__(reason)
        self.written = written


class WorkFolder:
    """Where a pass keeps its progress, so that whatever interrupts it costs little.

    Use it as a context: locks are held until its end.

    Guarantee:
        Every record is in exactly one share, a share is counted by one process at a time and to
        its end, and checkpoints neither lose nor double a record (`checkpoint`). So the sums that
        come out are those of one uninterrupted pass, to the bit, and the sensitivity holds.
        (docs/privacy/proofs.md, statement 13.)
    """

    def __init__(
        self,
        output: Path,
        ranks: Ranks | None = None,
        *,
        pause: float | None = None,
        restart: bool = False,
    ) -> None:
        """Name the folder; nothing is made yet.

        Args:
            output: where the embedding will be written.
            ranks: which of several processes this is; the only one if None.
            pause: seconds between checkpoints; see `dpntk.embed.run.interval`.
            restart: throw away what an interrupted pass has left.

        Raises:
            RunError: several processes were told to restart, each of which would undo the others'.
        """
        self.output = output
        self.path = output.parent / f".{output.name}.work"
        self._ranks = ranks or Ranks()
        self._pause = pause
        self._restart = restart
        self._came_late = bool(self._remains()) and not restart
        self._held = ExitStack()
        if restart and self._ranks.count > 1:
            raise RunError(
                f"--restart is for one process: remove {self.path}, then start them all without it"
            )

    @property
    def may_be_finished(self) -> bool:
        """Whether the result may be there already, and this process only comes late."""
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
            with contextlib.suppress(OutputError):  # there is a worse error to report
                self._remove_if_unused()

    def carry_out(self, job: Job, may_write: Callable[[], None]) -> Embedding:
        """Count this process's shares, going on where an earlier process stopped.

        Args:
            job: what is to be done.
            may_write: raises if the result may not be written where it is to go.

        Returns:
            The embedding of all records. The caller writes it, and then calls `remove`.

        Raises:
            NothingLeft: this process's shares are counted and other processes count the rest, or
                the embedding was written already.
            RunError: the folder holds the progress of another plan, or another process is at work.
            OutputError: the folder cannot be written to.
            DataError: a record cannot be read.
            SchemaError: a record does not fit the schema.
        """
        plan = RunPlan.of(job)
        with folder_locked(self.path):
            shares = split(len(job.source), self._begin(plan, may_write))
            mine = shares[self._ranks.rank :: self._ranks.count]
            for share in mine:
                self._hold(share)
        left = [share for share in mine if not self._whole(share).exists()]
        last: Progress | None = None
        with self._bar(sum(share.size for share in left)) as advance:
            for share in left:
                checkpoint = self._checkpoint(share)
                last = ShareCount(job, share, checkpoint, plan.digest, self._pause).finish(advance)
                if share != left[-1]:
                    self._save_whole(last, plan)
                    last = None  # memory holds one share at a time
        return job.embedding(self._join(job, plan, shares, last), plan.digest)

    def remove(self) -> None:
        """Delete the folder; call it when the embedding is on the disk."""
        # Under another name first: a process that comes late finds all of it or nothing.
        retired = self.path.with_name(f"{self.path.name}.{secrets.token_hex(8)}.old")
        with contextlib.suppress(OSError):
            self.path.rename(retired)
        for folder in self._remains():
            shutil.rmtree(folder, ignore_errors=True)
            if folder.exists():
                warning(f"{folder} could not be deleted and is SENSITIVE: delete it")

    def _remains(self) -> list[Path]:
        """The folder, and what a process that was killed while deleting it has left of it."""
        candidates = self.path.parent.glob(f"{glob.escape(self.path.name)}*")
        return [path for path in candidates if path == self.path or path.suffix == ".old"]

    def _begin(self, plan: RunPlan, may_write: Callable[[], None]) -> int:
        """Write the plan, or check that the one that is there is ours; under the lock.

        Returns:
            The number of shares.
        """
        if self.may_be_finished and run_of(self.output) == plan.digest:
            self.remove()
            raise NothingLeft(
                f"{self.output} holds the embedding of these records already", written=True
            )
        may_write()
        if self._restart:
            self._empty()
        file = self.path / _PLAN
        collect_stale(file)
        if not file.exists():
            self._empty()  # of what a run that was stopped while cleaning up has left
            write_atomically(file, write_plan(plan, self._ranks.count), mode=SENSITIVE_MODE)
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
            return "add --restart to begin anew"
        return "remove the folder to begin anew"

    def _remove_if_unused(self) -> None:
        """Leave no folder behind if there is no progress in it and no process at work on it."""
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
        """Take a share until the end of the context, and clean up after one who was killed."""
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
        """Add up all shares; from here to the end of the context no other process can.

        Args:
            job: what is being done.
            plan: its plan.
            shares: all there are.
            last: the share that is in memory only, if one is.

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
        """The totals over whole shares, and over the one that is in memory if there is one."""
        totals = last.totals if last else None
        for share in whole:
            found = load_progress(self._whole(share), share, job.grid, plan.digest)
            if found.done != share.stop:
                raise RunError(f"{self._whole(share)}: not whole; {self._to_begin_anew}")
            totals = found.totals if totals is None else totals.plus(found.totals, job.grid)
        assert totals is not None  # there is a share at least
        return totals

    def _bar(self, records: int) -> AbstractContextManager[Advance]:
        """One bar for all processes on a terminal: the first one's."""
        if self._ranks.rank == 0:
            return progress("embedding", records, "records")
        return nullcontext(lambda units, remark="": None)
