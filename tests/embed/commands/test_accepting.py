"""A draft is looked at and confirmed at one go: by a yes to each column, and by nothing else."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from dpntk.common.cli import prompts
from dpntk.common.schema.drafts.toml import read_draft
from dpntk.embed.commands import schema
from tests.conftest import Command

TABLE = "age,ward,b\x1b[31m,note\n" + "".join(
    f"{20 + n},{'ab'[n % 2]},{n % 3},{n} said this\n" for n in range(40)
)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "t.csv").write_text(TABLE)
    monkeypatch.setattr(prompts, "is_terminal", lambda: True)
    monkeypatch.setattr(schema, "is_terminal", lambda: True)
    return tmp_path / "t.csv"


@pytest.mark.parametrize("yes", [(), ("ward",), ("age", "ward", "b", "left out")])
def test_what_is_said_yes_to_is_confirmed(
    yes: tuple[str, ...], dpntk: Command, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def confirm(question: str, err: bool) -> bool:
        asked.append(question)
        return question.startswith(yes) if yes else False

    monkeypatch.setattr(click, "confirm", confirm)
    said = dpntk("schema", table, "--accept")
    assert said.code == 0
    assert [question.split(":")[0] for question in asked] == [
        "age", "ward", "b\\x1b[31m", "left out",
    ]  # fmt: skip
    assert "note" in asked[-1]
    for shown in ("20 to 59", "integer, int64", "a, b", "b\\x1b[31m"):
        assert shown in said.stdout
    assert "\x1b" not in said.stdout
    draft = read_draft(Path("schema.toml"))
    left = [name for name in ("age", "ward", "b\x1b[31m") if not name.startswith(yes or ("-",))]
    assert list(draft.unconfirmed) == left
    assert draft.left_out_confirmed == ("left out" in yes)
    assert ("shows bounds" in said.stderr) == ("left out" not in yes)


def test_all_that_a_yes_confirms_is_shown(
    dpntk: Command, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A single row may have decided a scale, a step, digits, or how dates are written."""
    table.write_text(
        "cost,dose,share,day,limit\n"
        + "".join(
            f"{'9' * 7 if n == 7 else n * 3},{n / 2},{n / 64:.3f},{n % 28 + 1}.3.2001,"
            f"{(n % 4) ** 5}\n"
            for n in range(40)
        )
    )
    monkeypatch.setattr(click, "confirm", lambda question, err: True)
    said = dpntk("schema", table, "--accept")
    assert said.code == 0
    for shown in ("transform log1p", "step 3", "step 0.5", "decimals 3", "format %d.%m.%Y"):
        assert shown in said.stdout
    assert "0, 1, 32, 243" in said.stdout


@pytest.mark.parametrize("are_names", [True, False])
def test_names_that_could_be_values_are_asked_about(
    are_names: bool, dpntk: Command, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.write_text(TABLE.replace("age", "41"))
    asked: list[str] = []

    def confirm(question: str, err: bool) -> bool:
        asked.append(question)
        return are_names or not question.startswith("names of columns")

    monkeypatch.setattr(click, "confirm", confirm)
    said = dpntk("schema", table, "--accept")
    assert said.code == 0
    assert asked[0].startswith("names of columns: some could be values")
    draft = read_draft(Path("schema.toml"))
    assert draft.names_confirmed == are_names
    assert draft.unconfirmed == ()


def test_where_nobody_answers_nothing_is_asked_or_drafted(dpntk: Command, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TABLE)
    said = dpntk("schema", "t.csv", "--accept")
    assert said.code == 2
    assert "--accept asks on a terminal" in said.stderr
    assert not Path("schema.toml").exists()


def test_a_column_that_follows_from_another_is_shown_and_asked_for(
    dpntk: Command, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    towns = "".join(f"town {n % 30},region {n % 30 // 3},{n % 7}\n" for n in range(900))
    table.write_text("town,region,size\n" + towns)
    monkeypatch.setattr(click, "confirm", lambda question, err: question.startswith("region"))
    said = dpntk("schema", table, "--constraints", "--accept")
    assert said.code == 0, said.stderr
    assert "lookup, string" in said.stdout
    assert "town 0 =" in said.stdout
    draft = read_draft(Path("schema.toml"))
    assert draft.unconfirmed == ("town", "size")
    assert draft.schema.lookups["region"].values["town 29"] == "region 9"
