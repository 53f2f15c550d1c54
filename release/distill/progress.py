"""The progress folder of a distillation: a step is recorded on disk before its noise is drawn.

Beside `release.h5` it is `.release.h5.distill`, 0700, with

    plan.json           what is done, under which entry of the ledger
    begun               how many steps were begun: written before a step's batch and noise are drawn
    state.safetensors   the support points and the optimiser's state after a step
    lock                held by the process at work

Guarantee:
    The number of steps in `begun` never falls, and is on the disk before the step's randomness is
    drawn. So no step is taken twice, and none without being counted. If the program dies and the
    result of a begun step is lost, the step counts as taken, and the run continues with the next.
    Whatever happens, no more than the accounted number of steps see the records.
    (docs/privacy/proofs.md, statement 19.)
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from ...common.arguments import argument
from ...common.errors import RunError
from ...common.storage.atomic import SENSITIVE_MODE, collect_stale, write_atomically, write_failures
from ...common.storage.canonical_json import canonical_json
from ...common.storage.locks import folder_locked
from ...common.storage.plain import parse_json
from .optimiser import State

_PLAN: Final = "plan.json"
_BEGUN: Final = "begun"
_STATE: Final = "state.safetensors"
_MATRICES: Final = ("points", "momentum", "spread", "mean")


class RunFolder:
    """The progress folder of a distillation; `held` locks it."""

    def __init__(self, output: Path) -> None:
        self.path = output.parent / f".{output.name}.distill"

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Lock the folder against other processes.

        Raises:
            RunError: another process is at work.
            OutputError: the folder cannot be made.
        """
        busy = f"{self.path}: another process is distilling there: wait for it, or end it first"
        with folder_locked(self.path, busy=busy) as is_ours:
            try:
                for name in (_PLAN, _BEGUN, _STATE):
                    collect_stale(self.path / name)
                yield
            finally:
                with contextlib.suppress(OSError):
                    # A folder that another process has made since ours was removed is not ours.
                    if is_ours() and not (self.path / _PLAN).exists():
                        shutil.rmtree(self.path)

    def plan(self) -> dict[str, Any] | None:
        """The plan in the folder; None if there is none.

        Raises:
            RunError: it is damaged.
        """
        file = self.path / _PLAN
        if not file.exists():
            return None
        try:
            document = parse_json(file.read_bytes())
        except (OSError, ValueError) as error:
            raise self._damaged(file) from error
        if not isinstance(document, dict):
            raise self._damaged(file)
        return document

    def write_plan(self, document: Mapping[str, Any]) -> None:
        """Begin a run: from here on it can be continued, and an earlier run no longer can."""
        with write_failures(self.path):
            # The plan is removed first: without its progress, its run would start anew under its
            # entry.
            for name in (_PLAN, _BEGUN, _STATE):
                (self.path / name).unlink(missing_ok=True)
        self._write(_PLAN, canonical_json(document).encode())

    def begin_step(self, state: State) -> State:
        """Count the next step. Only then may its batch and noise be drawn."""
        counted = replace(state, begun=state.begun + 1)
        self._write(_BEGUN, str(counted.begun).encode())
        return counted

    def save(self, state: State) -> None:
        """Save the result of a step."""
        matrices = {name: getattr(state, name) for name in _MATRICES}
        numbers = np.array([state.begun, state.taken], dtype=np.int64)
        self._write(_STATE, save({**matrices, "steps": numbers}))

    def resume(self, start: State) -> State:
        """The state after the last step whose result is on disk, with all begun steps counted.

        Args:
            start: the state before the first step.

        Raises:
            RunError: it is damaged.
        """
        begun_file, state_file = self.path / _BEGUN, self.path / _STATE
        try:
            begun = int(begun_file.read_text()) if begun_file.exists() else 0
            if not state_file.exists():
                state = start
            else:
                found = load(state_file.read_bytes())
                known, taken = map(int, found.pop("steps"))
                matrices = {name: found[name].copy() for name in _MATRICES}  # writable
                state = State(**matrices, begun=known, taken=taken)
        except (OSError, ValueError, TypeError, KeyError, SafetensorError) as error:
            raise self._damaged(state_file) from error
        alike = all(getattr(state, each).shape == getattr(start, each).shape for each in _MATRICES)
        if not alike or not state.taken <= state.begun <= begun:
            raise self._damaged(state_file)
        return replace(state, begun=begun)

    def remove(self) -> None:
        """Delete the folder; call this once the release is on the disk."""
        (self.path / _PLAN).unlink(missing_ok=True)
        shutil.rmtree(self.path, ignore_errors=True)

    def _write(self, name: str, content: bytes) -> None:
        write_atomically(self.path / name, content, mode=SENSITIVE_MODE)

    def _damaged(self, file: Path) -> RunError:
        return RunError(
            f"{file}: damaged; {argument('restart', True)} begins anew, and what was spent stays "
            "in the ledger"
        )
