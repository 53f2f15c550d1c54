"""The processor cores that this process may use."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Final

CONTROL_GROUP: Final = Path("/sys/fs/cgroup")
"""Where a process in a container on Linux sees its limits."""


def usable_cores() -> int:
    """The cores allowed to this process, or as many as its container's share of time is worth."""
    may_use = getattr(os, "sched_getaffinity", None)  # there is none on macOS
    cores = len(may_use(0)) if may_use else os.cpu_count() or 1
    return max(1, math.ceil(min(cores, quota(CONTROL_GROUP))))


def quota(group: Path) -> float:
    """Seconds of processor time that a control group may take in a second; infinite if unlimited.

    Args:
        group: the folder of its limits, those of version 2 (`cpu.max`) or of version 1.
    """
    try:
        if (group / "cpu.max").exists():
            limit, period = (group / "cpu.max").read_text().split()
        else:
            of_time = (group / "cpu" / f"cpu.cfs_{name}_us" for name in ("quota", "period"))
            limit, period = (file.read_text() for file in of_time)
        found = int(limit) / int(period)
    except (OSError, ValueError, ZeroDivisionError):  # version 2 writes "max" for no limit
        return math.inf
    return found if found > 0 else math.inf  # version 1 writes -1
