"""The rank of this process among several, as torchrun and schedulers set it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import RunError
from .cores import usable_cores


@dataclass(frozen=True)
class Ranks:
    """A process among those that share one job.

    Attributes:
        rank: number of this process, from 0.
        count: the number of processes on all machines.
        local_rank: number of this process on its machine, from 0.
        local_count: the number of processes on this machine.
    """

    rank: int = 0
    count: int = 1
    local_rank: int = 0
    local_count: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.count or not 0 <= self.local_rank < self.local_count:
            raise RunError(
                f"RANK {self.rank} of WORLD_SIZE {self.count}, LOCAL_RANK {self.local_rank} of "
                f"LOCAL_WORLD_SIZE {self.local_count}: ranks are numbered from 0; start the "
                "processes with torchrun, or correct these variables"
            )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Ranks:
        """Read RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE; one process if none is set.

        Processes do not communicate: each knows its share of the work from these values alone.

        Args:
            environment: replaces the process's own environment.

        Raises:
            RunError: the values contradict each other, or are not numbers.
        """
        given = os.environ if environment is None else environment
        if ("RANK" in given) != ("WORLD_SIZE" in given):
            raise RunError("RANK and WORLD_SIZE go together: set both, or neither")
        rank, local_rank = _number(given, "RANK", 0), _number(given, "LOCAL_RANK", 0)
        return cls(
            rank=rank,
            count=_number(given, "WORLD_SIZE", 1),
            local_rank=local_rank,
            local_count=_number(given, "LOCAL_WORLD_SIZE", local_rank + 1),
        )

    @property
    def share_of_cores(self) -> int:
        """The number of cores for each process on this machine; at least 1."""
        return max(1, usable_cores() // self.local_count)


def _number(environment: Mapping[str, str], name: str, default: int) -> int:
    value = environment.get(name, str(default))
    if not value.isascii() or not value.isdigit():
        raise RunError(f"{name}={value!r} in the environment is not a number: correct or unset it")
    return int(value)
