"""The benchmark of a card: what its figures are of, and what it says where there is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from benchmarks import gpu
from dpntk.common.features.ntk.map import TangentFeatures


def test_without_such_a_device_it_says_so_in_one_line(tmp_path: Path) -> None:
    done = CliRunner().invoke(gpu.main, ["--device", "cuda:99", "--json", str(tmp_path / "g.json")])
    assert done.exit_code == 0
    assert done.output.startswith("gpu: nothing was measured: ")
    assert done.output.count("\n") <= 2  # of a narrow terminal
    assert not (tmp_path / "g.json").exists()


def test_a_pass_ends_with_its_records_or_its_time() -> None:
    done: list[int] = []

    def action() -> int:
        done.append(7)
        return 7

    gpu.Device(torch.device("cpu"), seconds=60.0).rate(action, most=20)
    assert done == [7] * 4  # the first one warms up
    assert gpu.Device(torch.device("cpu"), seconds=0.0).rate(action) == 0


def test_all_that_was_measured_is_in_the_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, feature_map: TangentFeatures
) -> None:
    monkeypatch.setattr(gpu, "of_name", lambda name: feature_map)
    monkeypatch.setattr(gpu, "step_of", lambda batch, on, steps: batch / steps)
    out = tmp_path / "g.json"
    done = CliRunner().invoke(gpu.main, ["--device", "cpu", "--quick", "--json", str(out)])
    assert done.exit_code == 0, done.output
    figures = json.loads(out.read_text())
    assert [rates["map"] for rates in figures["rates"]] == list(gpu.MAPS)
    for rates in figures["rates"]:
        assert min(rates["embedding"]["2000"], rates["plain"]) > 0
        assert rates["copying"] is None  # a processor has them already
    assert figures["steps"] == {"400": 200}
    assert figures["run"] == {}
    assert f"figures: {out}" in done.output.replace("\n", "")
