"""Containers have fewer cores than the machine that they run on."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from dpntk.common.runtime import cores
from dpntk.common.runtime.cores import quota, usable_cores


def control_group(folder: Path, **limits: str) -> Path:
    """A folder as Linux shows it; `limits` are file names without "cpu.", and contents."""
    (folder / "cpu").mkdir()
    for name, content in limits.items():
        (folder / ("cpu.max" if name == "max" else f"cpu/cpu.{name}")).write_text(content)
    return folder


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"max": "250000 100000\n"}, 2.5),
        ({"max": "max 100000\n"}, math.inf),
        ({"cfs_quota_us": "50000\n", "cfs_period_us": "100000\n"}, 0.5),
        ({"cfs_quota_us": "-1\n", "cfs_period_us": "100000\n"}, math.inf),
        ({"cfs_quota_us": "-1\n"}, math.inf),
        ({"max": ""}, math.inf),
        ({}, math.inf),
    ],
)
def test_a_quota_is_in_cores(tmp_path: Path, limits: dict[str, str], expected: float) -> None:
    assert quota(control_group(tmp_path, **limits)) == expected


@pytest.mark.parametrize(("limit", "expected"), [("250000", 3), ("1000", 1), ("9900000", 12)])
def test_a_process_uses_no_more_cores_than_its_container_has(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limit: str, expected: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(12)), raising=False)
    monkeypatch.setattr(cores, "CONTROL_GROUP", control_group(tmp_path, max=f"{limit} 100000\n"))
    assert usable_cores() == expected


def test_without_a_container_all_allowed_cores_are_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cores, "CONTROL_GROUP", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5, 7}, raising=False)
    assert usable_cores() == 3
