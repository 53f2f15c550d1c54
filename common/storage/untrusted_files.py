"""Files that may come from strangers, which only this module opens.

A name can lead anywhere: to an endless device, to a pipe that nobody writes to, to a file larger
than memory. Only regular files up to a size that the caller allows are opened here. Symbolic links
to such files are fine.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ..errors import DpntkError


def read(path: Path, most: int, *, refusal: type[DpntkError], hint: str = "") -> bytes:
    """All bytes of a regular file.

    Args:
        path: the file, or a symbolic link to it.
        most: how many bytes it may have.
        refusal: the error to raise.
        hint: what to do if there is no such file.

    Raises:
        DpntkError: as `refusal`: there is no such file, it is something else, it is larger, it
            cannot be read, or it grew meanwhile.
    """
    with opened(path, most, refusal=refusal, hint=hint) as file:
        size = os.fstat(file.fileno()).st_size
        content = file.read(size + 1)  # not to its end: a growing file may never end
    if len(content) > size:
        raise refusal(f"{path}: longer than its size, or still being written")
    return content


@contextlib.contextmanager
def opened(
    path: Path, most: int | None, *, refusal: type[DpntkError], hint: str = ""
) -> Iterator[BinaryIO]:
    """Open a regular file for reading; failures inside the block are reported in the same way.

    The checks look at the open file, not at its name, so it cannot be replaced in between. It is
    opened without waiting, because a pipe would wait until somebody writes.

    Args:
        path: the file, or a symbolic link to it.
        most: how many bytes it may have; None if it is never read as a whole.
        refusal: the error to raise.
        hint: what to do if there is no such file.

    Raises:
        DpntkError: as `refusal`: there is no such file, it is something else, it is larger, or
            it cannot be read.
    """
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise refusal(f"{path}: not a regular file")
            if most is not None and status.st_size > most:
                raise refusal(
                    f"{path}: {status.st_size:,} bytes, where {most:,} are the most that is read"
                )
            yield file
    except (FileNotFoundError, NotADirectoryError) as error:
        advice = f"; {hint}" if hint else ""
        raise refusal(f"{path}: there is no such file{advice}") from error
    except IsADirectoryError as error:
        raise refusal(f"{path}: this is a folder; give a file") from error
    except OSError as error:
        raise refusal(f"{path}: {error.strerror or error}") from error


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
