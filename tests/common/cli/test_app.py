"""The command line: quick, lazy, and one line for every error."""

from __future__ import annotations

import errno
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import click
import numpy as np
import pytest

from dpntk.common.cli import app as command
from dpntk.common.cli.app import COMMANDS
from dpntk.common.display.console import TextTable, show
from dpntk.common.errors import DataError
from tests.conftest import Command, refused

IMPORTED = """
import json, sys
from dpntk.common.cli.app import run
code = run(sys.argv[1:])
print(json.dumps([code, sorted(sys.modules)]))
"""


def modules_after(*arguments: str) -> set[str]:
    finished = subprocess.run(
        [sys.executable, "-c", IMPORTED, *arguments], capture_output=True, text=True, check=True
    )
    code, modules = json.loads(finished.stdout.splitlines()[-1])
    assert code == 0
    return set(modules)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_needs_no_heavy_library(arguments: list[str]) -> None:
    heavy = {"torch", "numpy", "h5py", "sklearn", "autodp", "pyarrow"}
    assert not heavy & modules_after(*arguments)


def test_help_on_a_command_waits_for_nothing_that_computes() -> None:
    """Nor does a shell that completes its options."""
    modules = [f"dpntk.{module}" for module, _ in COMMANDS.values()]
    program = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    command = [sys.executable, "-c", program]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not {"torch", "scipy", "sklearn", "pandas", "autodp"} & set(finished.stdout.split())


def test_the_version_comes_with_those_of_what_matters(dpntk: Command) -> None:
    said = dpntk("--version")
    versions = ", ".join(f"{name} {version(name)}" for name in ("torch", "numpy", "h5py"))
    expected = f"dpntk {version('dpntk')} (Python {platform.python_version()}, {versions})\n"
    assert (said.code, said.stdout, said.stderr) == (0, expected, "")


def test_the_package_can_be_run_as_a_module(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dpntk"]
    finished = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True)
    assert finished.stdout.startswith("Usage: dpntk [OPTIONS] COMMAND")
    missing = tmp_path / "none.h5"
    refused = subprocess.run([*command, "inspect", missing], capture_output=True, text=True)
    assert refused.returncode == 1
    assert (refused.stdout, refused.stderr.count("\n")) == ("", 1)
    assert str(missing) in refused.stderr


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("dpntk pl", ["plain,plan"]), ("dpntk evaluate --mem", ["plain,--members"])],
)
def test_a_shell_completes_what_is_typed(typed: str, offered: list[str]) -> None:
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    asked = {**os.environ, "_DPNTK_COMPLETE": "bash_complete", **words}
    program = "from dpntk.common.cli.app import main; main([])"
    done = subprocess.run(
        [sys.executable, "-c", program], env=asked, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == offered


def test_commands_are_offered_without_loading_any() -> None:
    before = set(sys.modules)
    found = command.dpntk.shell_complete(click.Context(command.dpntk), "")
    assert [item.value for item in found] == list(COMMANDS)
    assert {name for name in set(sys.modules) - before if ".commands." in name} == set()


def test_every_command_is_listed_and_has_a_command_of_its_name(dpntk: Command) -> None:
    listing = dpntk("--help").stdout
    assert "\n    dpntk release --eps 1        embedding.h5      -> release.h5 " in listing
    for name in COMMANDS:
        assert f"\n  {name} " in listing
        outcome = dpntk(name, "--help")
        assert outcome.code == 0
        assert f"Usage: dpntk {name}" in outcome.stdout


def test_an_option_means_the_same_in_every_command() -> None:
    """By its name one knows what it takes, and what is on offer; help and default may differ."""
    shared = ("output", "overwrite", "schema", "module", "device", "seed", "threads", "json")
    meant: dict[str, set[str]] = {name: set() for name in shared}
    for name in COMMANDS:
        found = command.dpntk.get_command(click.Context(command.dpntk), name)
        assert found is not None
        for option in found.params:
            for long in {opt.removeprefix("--") for opt in option.opts} & set(shared):
                said = (option.name, option.opts, option.to_info_dict()["type"], option.metavar)
                meant[long].add(repr(said))
    assert {name: len(meanings) for name, meanings in meant.items()} == dict.fromkeys(shared, 1)


def test_wrong_usage_exits_with_2(dpntk: Command) -> None:
    for arguments in (["nonsense"], ["embed"], ["embed", "--nonsense"], ["evaluate", "x"]):
        outcome = dpntk(*arguments)
        assert outcome.code == 2
        assert "Usage:" in outcome.stderr


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (DataError("what,\nwhere"), "error: what,\\nwhere\n"),
        (KeyboardInterrupt(), "error: interrupted\n"),
        (ValueError("oops"), "error: ValueError: oops; this is a bug"),
    ],
)
def test_errors_are_one_line(
    error: BaseException,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(command.dpntk, "main", fail)
    assert command.run([]) == 1
    printed = capfd.readouterr().err
    assert printed.startswith(line)
    assert printed.count("\n") == 1


@pytest.mark.parametrize(
    "line",
    [
        "embed images --length-scale nan",
        "embed images --length-scale inf",
        "embed images --marginals nan",
        "generate --lr nan",
        "evaluate --test images --keep-negatives nan",
        "audit --eps 1 --confidence nan",
    ],
)
def test_what_is_no_number_is_refused(dpntk: Command, line: str) -> None:
    outcome = dpntk(*line.split())
    assert outcome.code == 1
    assert "is not a finite number" in outcome.stderr


@pytest.mark.parametrize("columns", ["20", "40", "200"])
def test_a_narrow_terminal_loses_no_figure(
    columns: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    table = TextTable()
    for name in ("records", "accuracy", "remarks"):
        table.add_column(name, wrap=name == "remarks")
    table.add_row("60,000", "0.966", "of all images that were held out")
    show(table)
    printed = capfd.readouterr().out
    for text in ("records", "accuracy", "60,000", "0.966", "held out"):
        assert text in printed


@pytest.mark.parametrize("columns", range(60, 100))
def test_a_table_keeps_its_right_border(
    columns: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Rich narrows a column to less than its least width, and then cuts off what is too much."""
    monkeypatch.setenv("COLUMNS", str(columns))
    table = TextTable()
    table.add_column(wrap=False)
    for name, least in (("synthetic", 9), ("real", 4), ("independent columns of real", 11)):
        table.add_column(name, right=True, min_width=least)
    table.add_column("constant", right=True, min_width=8)
    table.add_row("rank correlations off by", *["0.000 / 4563.652"] * 4)
    show(table)
    lines = capfd.readouterr().out.splitlines()
    assert len(set(map(len, lines))) == 1
    assert [line[-1] for line in lines if line[0] in "┏┡│└"] == [
        {"┏": "┓", "┡": "┩", "│": "│", "└": "┘"}[line[0]] for line in lines if line[0] in "┏┡│└"
    ]
    assert {line[0] for line in lines} >= set("┏┡│└")


def test_the_installed_program_runs(
    dpntk_process: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    finished = dpntk_process("embed", "nowhere", cwd=tmp_path)
    assert finished.returncode == 1
    assert finished.stdout == ""
    assert finished.stderr == "error: nowhere: there is no such file or folder\n"


@pytest.mark.parametrize(("wanted", "used"), [(None, "PASSIVE"), ("active", "ACTIVE")])
def test_threads_that_wait_leave_their_cores_to_others(
    monkeypatch: pytest.MonkeyPatch,
    dpntk_process: Callable[..., subprocess.CompletedProcess[str]],
    tmp_path: Path,
    wanted: str | None,
    used: str,
) -> None:
    """Unless the user decides otherwise. OpenMP itself says what it was told."""
    monkeypatch.setenv("OMP_DISPLAY_ENV", "true")
    if wanted is None:
        monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    else:
        monkeypatch.setenv("OMP_WAIT_POLICY", wanted)
    np.savez(tmp_path / "a.npz", x=np.zeros((4, 8, 8), np.uint8), y=np.arange(4) % 2)
    finished = dpntk_process("embed", "a.npz", "--width", 2, cwd=tmp_path)
    assert finished.returncode == 0
    (policy,) = set(re.findall(r"OMP_WAIT_POLICY *= *'(\w+)'", finished.stderr))
    assert policy == used


@pytest.mark.parametrize("words", ["--quiet demo --table", "demo --table -q", "-q demo --table -q"])
def test_quiet_leaves_results_warnings_and_errors(dpntk: Command, words: str) -> None:
    said = dpntk(*words.split())
    assert (said.code, said.stdout, said.stderr) == (0, "", "")
    assert dpntk("--quiet", "--version").stdout.startswith("dpntk ")
    drafted = dpntk("schema", "demo/train.csv", "--quiet")
    assert drafted.stderr.startswith("warning: schema.toml shows bounds")
    assert drafted.stderr.count("\n") == 1
    assert dpntk("demo", "--quiet").stderr.startswith("error: demo is there already")
    assert "wrote more" in dpntk("demo", "--table", "-o", "more").stderr  # as long as it was said


def test_a_forbidden_place_is_no_bug(dpntk: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(self: Path, **_: object) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr(Path, "is_dir", forbidden)
    said = dpntk("keygen", "-o", "hidden/key")
    refused(said, "hidden: permission denied: choose a place that you may use")


def test_the_bare_command_shows_its_help_and_nothing_else(dpntk: Command) -> None:
    bare, asked = dpntk(), dpntk("--help")
    assert (bare.stdout + bare.stderr).strip() == asked.stdout.strip()
