"""Counting one share of the records, with checkpoints on the way."""

from __future__ import annotations

from pathlib import Path

from ...common.display.console import Advance, notice, warning
from ...common.display.text import so_many
from ...common.errors import OutputError, RunError
from ..sums.accumulate import ClassSums
from .checkpoint import Progress, Share, load_progress, save_progress
from .interval import CheckpointInterval
from .job import Job


def _so_many_of(records: int, share: Share) -> str:
    of_all = f"of {share.size:,} records"
    return so_many(records, of_all, of_all, unsaid="some records")


class ShareCount:
    """A share that this process counts.

    Args:
        job: the pass being carried out.
        share: the records to count.
        checkpoint: where the progress is saved.
        run: digest of the run's plan.
        interval: seconds between checkpoints; see `CheckpointInterval`.
    """

    def __init__(
        self, job: Job, share: Share, checkpoint: Path, run: str, interval: float | None = None
    ) -> None:
        self._job = job
        self._share = share
        self._checkpoint = checkpoint
        self._run = run
        self._interval = interval
        self._warned = False

    def finish(self, advance: Advance) -> Progress:
        """Count the share to its end, continuing where an earlier process stopped.

        Args:
            advance: told how many records were counted, those of earlier processes included.

        Raises:
            RunError: it was interrupted, or the checkpoint cannot be continued.
            DataError: a record cannot be read.
            SchemaError: a record does not fit the schema.
        """
        share, sums = self._share, self._job.class_sums()
        done = self._resume(sums)
        safe = done - share.start
        advance(safe, "")
        interval = CheckpointInterval(self._interval)
        try:
            for batch in self._job.source.batches(sums.chunk_size, done, share.stop):
                sums.add(batch.records, batch.labels)
                done += len(batch.labels)
                advance(len(batch.labels), "")
                if done < share.stop and interval.elapsed:
                    with interval.restarted():
                        if self._save(Progress(share, done, sums.totals)):
                            safe = done - share.start
        except KeyboardInterrupt as error:
            raise RunError(
                f"interrupted: {_so_many_of(safe, share)} are counted and saved; "
                "the same command goes on from there"
            ) from error
        return Progress(share, share.stop, sums.totals)

    def _resume(self, sums: ClassSums) -> int:
        """Take over a checkpoint's sums; returns the number of the next record."""
        share = self._share
        if not self._checkpoint.exists():
            return share.start
        found = load_progress(self._checkpoint, share, self._job.grid, self._run)
        sums.resume(found.totals)
        part = f" (share {share.number} of {share.of})" if share.of > 1 else ""
        notice(
            f"going on after {_so_many_of(found.totals.records, share)}{part}, "
            "which were counted before an interruption"
        )
        return found.done

    def _save(self, reached: Progress) -> bool:
        """Write a checkpoint; a full disk costs the checkpoint and not the pass."""
        try:
            save_progress(reached, self._checkpoint, self._run)
        except OutputError as error:
            if not self._warned:
                warning(f"no checkpoint, going on without: {error}")
            self._warned = True
            return False
        return True
