"""Lists of attacks: functions that turn an honest file into a hostile one."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import h5py

SECRET = b"\x00\x00\x80\x3f" * 4096
"""Contents of a file that nothing may make a reader show: float32 ones."""

HUGE = 1 << 34

Make = Callable[[bytes, Path], bytes]
Edit = Callable[[h5py.File], None]


@dataclass(frozen=True)
class Attack:
    """A hostile file.

    Attributes:
        make: from the bytes of an honest file, and the path of a file with `SECRET`, to those of
            the hostile one.
        words: in the refusal.
    """

    make: Make
    words: str


class Attacks(dict[str, Attack]):
    """Attacks by their name."""

    def attack(self, words: str) -> Callable[[Make], None]:
        """Put an attack on bytes into the list."""

        def register(make: Make) -> None:
            self[make.__name__] = Attack(make, words)

        return register

    def edit(self, words: str) -> Callable[[Edit], None]:
        """Put an attack that edits the HDF5 file into the list."""

        def register(change: Edit) -> None:
            def make(honest: bytes, secret: Path) -> bytes:
                buffer = io.BytesIO(honest)
                with h5py.File(buffer, "r+", libver=("earliest", "v110")) as file:
                    change(file)
                return buffer.getvalue()

            self[change.__name__] = Attack(make, words)

        return register
