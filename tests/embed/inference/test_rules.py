"""Rules that a draft proposes: those that all rows keep, said to be looked up until confirmed."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from dpntk.common.cli import prompts
from dpntk.common.errors import SchemaError
from dpntk.common.schema.drafts.draft import Draft
from dpntk.common.schema.drafts.toml import read_draft
from dpntk.common.schema.origin import Origin
from dpntk.common.schema.table import TableSchema
from dpntk.embed import PrivacyUnit, draft_schema
from dpntk.embed.commands import schema
from tests.conftest import Command

ROWS = 600
RULES = (
    "total = drugs + `home care`",
    "stay = discharge - admission",
    "admission <= discharge",
    "low <= high",
    "if died = no then cause is missing",
    "if died = yes then cause is not missing",
    "if ward in (icu, surgery) then `home care` = 0",
    "if ward = medicine then `home care` > 0",
    'if test in (neg, pos) then sex = "f or x"',
    'if test = "n/a" then sex = m',
)


def _table(rows: int = ROWS, seed: int = 0) -> dict[str, list[object]]:
    random = np.random.default_rng(seed)
    ward = random.choice(["medicine", "surgery", "icu"], rows)
    died, sex = random.random(rows) < 0.3, random.random(rows) < 0.5
    drugs = random.integers(100, 90_000, rows)
    care = np.where(ward == "medicine", random.integers(1, 90_000, rows), 0)
    admission = random.integers(18_000, 18_700, rows)
    stay = random.integers(0, 300, rows)
    low = np.round(random.normal(36, 0.5, rows), 1)
    days = pa.array(admission, pa.int32()).cast(pa.date32())
    left = pa.array(admission + stay, pa.int32()).cast(pa.date32())
    return {
        "drugs": list(drugs / 100),
        "home care": list(care / 100),
        "total": list((drugs + care) / 100),
        "admission": days.to_pylist(),
        "discharge": left.to_pylist(),
        "stay": list(map(int, stay)),
        "low": list(low),
        "high": list(np.round(low + np.abs(random.normal(0, 0.5, rows)), 1)),
        "died": ["yes" if dead else "no" for dead in died],
        "cause": [random.choice(["a", "b", "c"]) if dead else None for dead in died],
        "ward": list(ward),
        "sex": ["m" if man else "f or x" for man in sex],
        "test": ["n/a" if man else random.choice(["neg", "pos"]) for man in sex],
        "smokes": list(random.choice(["never", "once", "often"], rows)),
        "age": list(map(int, random.integers(18, 90, rows))),
    }


def _csv(columns: dict[str, list[object]], file: Path) -> Path:
    rows = zip(*columns.values(), strict=True)
    lines = [",".join("" if value is None else str(value) for value in row) for row in rows]
    file.write_text("\n".join([",".join(columns), *lines]) + "\n")
    return file


def test_the_rules_that_rows_were_made_by_are_found(tmp_path: Path) -> None:
    columns = _table()
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    for data in (pa.table(columns), tmp_path / "a.parquet", _csv(columns, tmp_path / "a.csv")):
        draft = draft_schema(data, "died", constraints=True)
        assert set(draft.schema.constraints) == set(RULES)
        assert draft.schema.constraints_origin is Origin.FROM_DATA
    assert draft_schema(pa.table(columns)).schema.constraints == ()


BROKEN: dict[str, dict[str, object]] = {
    "total = drugs + `home care`": {"total": 901.01},
    "stay = discharge - admission": {"stay": 301},
    "admission <= discharge": {"admission": pa.scalar(20_000, pa.date32()).as_py()},
    "low <= high": {"low": 40.0},
    "if died = no then cause is missing": {"died": "no", "cause": "a"},
    "if died = yes then cause is not missing": {"died": "yes", "cause": None},
    "if ward in (icu, surgery) then `home care` = 0": {"ward": "icu", "home care": 7.0},
    'if test = "n/a" then sex = m': {"test": "n/a", "sex": "f or x"},
}


@pytest.mark.parametrize("rule", BROKEN)
def test_a_rule_that_one_row_breaks_is_not_proposed(rule: str, tmp_path: Path) -> None:
    """It is the last row of a second file: rules are looked for in the first ones."""
    for name, seed in (("a", 0), ("b", 1)):
        columns = _table(1 << 14, seed)
        if name == "b":
            for column, value in BROKEN[rule].items():
                columns[column][-1] = value
        parquet.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    found = draft_schema(tmp_path, constraints=True).schema.constraints
    assert rule not in found
    assert len(found) >= len(RULES) - 3


def test_columns_that_have_nothing_to_do_with_each_other_keep_no_rule(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for seed in range(5):
        random = np.random.default_rng(seed)
        gaps = random.random(300) < 0.1
        columns = {
            "small": random.integers(0, 5, 300),
            "large": random.integers(1_000, 5_000, 300),
            "rare": [None if gap else "ab"[number] for gap, number in zip(
                gaps, random.integers(0, 2, 300), strict=True)],
            "code": random.choice(list("abcdefghijklmnop"), 300),
            "one": np.where(random.random(300) < 0.02, "x", "y"),
            "zero": np.where(random.random(300) < 0.5, 0.0, random.random(300)),
        }  # fmt: skip
        assert draft_schema(pa.table(columns), constraints=True).schema.constraints == ()
    assert capsys.readouterr().err.count("constraints: no rule was found") == 5


def test_names_and_categories_with_other_signs_are_quoted() -> None:
    yes = np.random.default_rng(0).random(ROWS) < 0.5
    columns = {
        "if": np.where(yes, "and", "12 'o'clock\""),
        "a b": np.where(yes, 'say "a"', "-1"),
        "tick`": np.where(yes, "u", "v"),
        "x": np.where(yes, 3.5, np.arange(ROWS)),
        "not": [None if found else number for number, found in enumerate(yes)],
    }
    found = draft_schema(pa.table(columns), constraints=True).schema.constraints
    assert "if `a b` = 'say \"a\"' then `not` is missing" in found
    assert 'if `a b` = "-1" then `not` is not missing' in found
    assert 'if `a b` = "-1" then `if` = "and"' not in found
    assert not any("tick" in rule or "clock" in rule for rule in found)


def test_rules_are_confirmed_or_the_schema_says_where_they_are_from() -> None:
    draft = draft_schema(pa.table(_table()), constraints=True)
    assert Draft.from_toml(draft.to_toml(), "a") == draft
    by_names = draft.confirm(*draft.unconfirmed)
    with pytest.raises(SchemaError, match="which constraints rows keep was looked up"):
        by_names.settled()
    accepted = by_names.settled(accept_from_data=True)
    assert accepted.from_data == ("which constraints all rows keep",)
    assert TableSchema.from_json(accepted.to_json()) == accepted
    assert Draft.from_toml(Draft(accepted).to_toml(), "a").settled() == accepted
    chosen = by_names.confirm(constraints=["low <= high"]).settled()
    assert chosen.constraints == ("low <= high",)
    assert chosen.from_data == ()
    assert by_names.confirm(constraints=[]).settled().constraints == ()


def test_a_unit_is_in_no_rule() -> None:
    columns = _table() | {"who": [*range(ROWS // 2)] * 2}
    draft = draft_schema(pa.table(columns), privacy_unit=PrivacyUnit("who", 2), constraints=True)
    assert set(draft.schema.constraints) == set(RULES)


def test_a_release_says_that_rules_were_looked_up(dpntk: Command, tmp_path: Path) -> None:
    _csv(_table(), tmp_path / "a.csv")
    drafted = dpntk("schema", "a.csv", "--constraints")
    assert f"shows {len(RULES)} constraints that no row breaks" in drafted.stderr
    text = (tmp_path / "schema.toml").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("confirmed = false")]
    (tmp_path / "schema.toml").write_text("\n".join(lines))
    refused = dpntk("embed", "a.csv", "--schema", "schema.toml", "--width", 10)
    assert refused.code == 1
    assert "remove 'constraints_confirmed = false'" in refused.stderr

    arguments = ("embed", "a.csv", "--schema", "schema.toml", "--width", 10)
    assert dpntk(*arguments, "--accept-from-data").code == 0
    assert dpntk("release", "--eps", 1).code == 0
    said = " ".join(dpntk("inspect").stdout.replace("│", " ").split())
    assert "Looked up in the records: which constraints all rows keep." in said

    kept = [line for line in lines if not line.startswith("constraints_confirmed")]
    (tmp_path / "schema.toml").write_text("\n".join(kept))
    assert dpntk(*arguments, "-o", "b.h5").code == 0
    assert dpntk("release", "b.h5", "--eps", 1, "-o", "c.h5").code == 0
    assert "Looked up" not in dpntk("inspect", "c.h5").stdout


def test_with_accept_each_rule_is_asked_for(
    dpntk: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompts, "is_terminal", lambda: True)
    monkeypatch.setattr(schema, "is_terminal", lambda: True)
    monkeypatch.setattr(click, "confirm", lambda question, err: "<=" in question)
    _csv(_table(), tmp_path / "a.csv")
    assert dpntk("schema", "a.csv", "--constraints", "--accept").code == 0
    draft = read_draft(Path("schema.toml"))
    assert set(draft.schema.constraints) == {"admission <= discharge", "low <= high"}
    assert draft.constraints_confirmed


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_of_two_dates_alone_the_time_between_is_drafted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    columns = _table()
    drafted = draft_schema(pa.table(columns), constraints=True).stated
    assert not any(column.between for column in drafted.columns)  # there is a column, stay
    assert "drafted as a column" not in capsys.readouterr().err
    del columns["stay"]
    drafted = draft_schema(pa.table(columns), constraints=True).stated
    assert "admission <= discharge" not in drafted.constraints
    assert drafted.by_name["admission to discharge"].between == ("admission", "discharge")
    said = " ".join(capsys.readouterr().err.split())
    assert said.count("admission <= discharge: drafted as a column of its own") == 1


def test_that_there_are_no_rules_was_looked_up_too(
    dpntk: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A single row breaks a rule: then a release must not be silent that rules were sought."""
    random = np.random.default_rng(0)
    low = random.random(200)
    table = pa.table({"low": low, "high": low + 0.3 * random.random(200)})
    assert draft_schema(table, constraints=True).stated.constraints == ("low <= high",)
    broken = pa.table({"low": [2.5, *low[1:]], "high": table["high"]})
    draft = draft_schema(broken, constraints=True)
    assert draft.stated.constraints == ()
    with pytest.raises(SchemaError, match="which constraints rows keep was looked up"):
        draft.confirm("low", "high").settled()
    taken = draft.settled(accept_from_data=True)
    assert "which constraints all rows keep" in taken.from_data
    assert TableSchema.from_json(taken.to_json()) == taken
    assert Draft.from_toml(draft.to_toml(), "it") == draft
    assert draft.confirm("low", "high", constraints=[]).settled().from_data == ()
    assert draft_schema(broken).constraints_confirmed  # where none were sought
    parquet.write_table(broken, tmp_path / "a.parquet")
    said = dpntk("schema", "a.parquet", "--constraints")
    assert "schema.toml has no constraints, because rows break all" in said.stderr
