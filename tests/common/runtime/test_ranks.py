"""A process finds out from the environment which of several it is, and takes its share."""

from __future__ import annotations

import pytest
import torch

from dpntk.common.errors import RunError
from dpntk.common.runtime.device import choose_device
from dpntk.common.runtime.ranks import Ranks
from dpntk.common.runtime.threads import use_threads


def set_ranks(monkeypatch: pytest.MonkeyPatch, rank: int, count: int) -> None:
    for name in ("RANK", "LOCAL_RANK"):
        monkeypatch.setenv(name, str(rank))
    for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.setenv(name, str(count))


def test_without_anything_set_there_is_one_process() -> None:
    assert Ranks.from_environment({}) == Ranks(0, 1, 0, 1)


def test_what_torchrun_sets_is_read() -> None:
    given = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}
    assert Ranks.from_environment(given) == Ranks(5, 8, 1, 4)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"RANK": "0"}, "RANK and WORLD_SIZE go together"),
        ({"WORLD_SIZE": "2"}, "RANK and WORLD_SIZE go together"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, "RANK 2 of WORLD_SIZE 2"),
        ({"RANK": "one", "WORLD_SIZE": "2"}, "RANK='one'"),
        ({"RANK": "0", "WORLD_SIZE": "0"}, "RANK 0 of WORLD_SIZE 0"),
        ({"LOCAL_RANK": "4", "LOCAL_WORLD_SIZE": "4"}, "LOCAL_RANK 4 of LOCAL_WORLD_SIZE 4"),
        ({"LOCAL_RANK": "-1"}, "LOCAL_RANK='-1'"),
    ],
)
def test_contradictions_are_refused(given: dict[str, str], words: str) -> None:
    with pytest.raises(RunError) as caught:
        Ranks.from_environment(given)
    assert words in str(caught.value)


def test_every_process_gets_a_device_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    given = []
    for rank in range(4):
        set_ranks(monkeypatch, rank, 4)
        given.append([choose_device("auto"), choose_device("cuda"), choose_device("cpu")])
    assert given == [
        [torch.device("cuda", n), torch.device("cuda", n), torch.device("cpu")]
        for n in (0, 1, 0, 1)
    ]


def test_threads_are_divided_among_the_processes_of_a_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chosen: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", chosen.append)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    monkeypatch.setattr("dpntk.common.runtime.ranks.usable_cores", lambda: 12)
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert use_threads() == 7  # one process: torch knows best
    assert chosen == []
    set_ranks(monkeypatch, 0, 4)
    assert use_threads() == 3
    assert use_threads(5) == 5
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert use_threads() == 7  # the user's, which torch has read already
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    assert use_threads() == 3  # not the user's but torchrun's
    assert chosen == [3, 5, 3]


def test_one_process_uses_no_more_threads_than_its_container_has_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chosen: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", chosen.append)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 64)
    monkeypatch.setattr("dpntk.common.runtime.ranks.usable_cores", lambda: 2)
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert use_threads() == 2
    assert chosen == [2]


def test_no_process_is_left_without_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpntk.common.runtime.ranks.usable_cores", lambda: 2)
    assert [Ranks(0, 3, 0, count).share_of_cores for count in (1, 2, 3)] == [2, 1, 1]
