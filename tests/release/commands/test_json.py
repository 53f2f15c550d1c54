"""With --json, stdout holds one document: the figures that people are shown, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dpntk.common.display.text import rounded_up
from tests.conftest import Command


def document(dpntk: Command, *arguments: object) -> Any:  # noqa: ANN401 - whatever JSON holds
    done = dpntk(*arguments, "--json")
    assert done.code == 0, done.stderr
    return json.loads(done.stdout)


def test_a_plan(dpntk: Command, embedding_file: Path) -> None:
    promise = ("--eps", 1, "--delta", 1e-3)
    shown = dpntk("plan", embedding_file, *promise).stdout
    said = document(dpntk, "plan", embedding_file, *promise)
    for name in ("noise_multiplier", "sensitivity", "sigma"):
        assert f"{said[name]:.4g}" in shown
    for name in ("noise_per_coordinate", "noise_norm", "signal_bound", "loss_floor", "blur"):
        assert f"{said[name]:.3g}" in shown
    assert (said["records"], said["classes"], said["dimension"]) == (200, 3, 859)
    assert said["budget"]["releases"] == 0
    facts = ("--records", 200, "--classes", 3, "--image-size", 8, "--front", "pixels")
    public = document(dpntk, "plan", *facts, "--width", 13, *promise)
    assert public.pop("budget") is None
    assert said.items() >= public.items()


def test_a_budget(dpntk: Command, folder: Path) -> None:
    for arguments in (
        ("embed", folder, "--width", 5, "--budget-eps", 3, "--budget-delta", 1e-3),
        ("release", "--eps", 1, "--delta", 1e-3),
    ):
        assert dpntk(*arguments).code == 0
    said = document(dpntk, "budget")
    (made,) = said["releases"]
    assert (made["epsilon"], made["delta"], made["adjacency"]) == (1, 1e-3, "replace-one")
    assert made["id"] == document(dpntk, "inspect")["release_id"]
    (total,) = said["spent"]
    shown = dpntk("budget").stdout
    assert f"spent: epsilon {rounded_up(total['epsilon'])} at delta 0.001" in shown
    assert said["ceiling"] == {"epsilon": 3, "delta": 1e-3}
    assert 1 < said["left"] < 3
    assert document(dpntk, "plan", "embedding.h5", "--eps", 1, "--delta", 1e-3)["budget"] == {
        "releases": 1, **total, "ceiling": said["ceiling"], "left": said["left"],
        "left_adjacency": "replace-one",
    }  # fmt: skip


def test_a_release_without_noise_has_infinity_as_a_text(dpntk: Command, folder: Path) -> None:
    assert dpntk("embed", folder, "--width", 5).code == 0
    done = dpntk("release", "--eps", "inf", "--not-private", "--delta", 1e-3)
    assert done.code == 0, done.stderr
    said = document(dpntk, "budget")
    assert said["releases"][0]["epsilon"] == said["spent"][0]["epsilon"] == "inf"


def test_a_distillations_budget(dpntk: Command, tmp_path: Path) -> None:
    (tmp_path / "data.ledger.json").write_text(
        json.dumps({"format": "dpntk ledger of distillations 1", "entries": []})
    )
    assert document(dpntk, "budget", "data") == {
        "releases": [], "spent": [], "ceiling": None, "left": None, "left_adjacency": None,
    }  # fmt: skip


@pytest.mark.parametrize("command", ["plan", "budget", "inspect"])
def test_mistakes_leave_stdout_empty(command: str, dpntk: Command) -> None:
    done = dpntk(command, "missing.h5", "--json", *(("--eps", 1) if command == "plan" else ()))
    assert (done.code, done.stdout) == (1, "")
