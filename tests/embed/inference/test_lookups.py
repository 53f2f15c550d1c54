"""Drafting columns that follow from another one: which ones do, and which only seem to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpntk.common.schema.drafts.draft import Draft
from dpntk.embed import draft_schema

ROWS = 1500
RANDOM = np.random.default_rng(0)
TOWN = RANDOM.integers(24, size=ROWS)


def drafted(label: str | None = None, **columns: Any) -> Draft:  # noqa: ANN401 - any column
    return draft_schema(pd.DataFrame(columns), label, constraints=True)


def towns() -> dict[str, Any]:
    """Towns in districts in states, the number of the district, and numbers of their own."""
    return {
        "state": [f"state {code // 8}" for code in TOWN],
        "town": [f"town {code:02d}" for code in TOWN],
        "district": [f"district {code // 3}" for code in TOWN],
        "code": TOWN // 3 + 101,
        "age": RANDOM.integers(90, size=ROWS),
        "sex": RANDOM.choice(["f", "m"], ROWS),
    }


def test_all_follow_from_the_finest(capsys: pytest.CaptureFixture[str]) -> None:
    draft = drafted(**towns())
    schema = draft.stated
    assert [column.name for column in schema.described] == list(towns())
    assert {each.name: each.of for each in schema.lookups.values()} == {
        "state": "town", "district": "town", "code": "town",
    }  # fmt: skip
    assert schema.lookups["code"].values == {f"town {n:02d}": str(n // 3 + 101) for n in range(24)}
    assert schema.lookups["code"].dtype == "int64"
    assert schema.lookups["state"].values["town 09"] == "state 1"
    assert {"state", "district", "code"} <= set(draft.unconfirmed)
    assert not schema.constraints
    assert "district: follows from town in all rows" in capsys.readouterr().err
    taken = draft.settled(accept_from_data=True)
    assert any("values of state for each town" in text for text in taken.from_data)
    plain = draft_schema(pd.DataFrame(towns())).stated  # only where rules are asked for
    assert not plain.lookups


def test_one_row_more_and_it_does_not_follow() -> None:
    columns = towns()
    columns["state"][500] = f"state {(TOWN[500] // 8 + 1) % 3}"
    columns["code"][3] += 1
    assert set(drafted(**columns).stated.lookups) == {"district"}


def test_it_is_missing_where_the_other_is_and_nowhere_else() -> None:
    columns = towns()
    for name in ("town", "district"):
        columns[name] = [None if row % 50 == 0 else each for row, each in enumerate(columns[name])]
    assert set(drafted(**columns).stated.lookups) == {"district"}


def test_the_label_is_no_lookup_but_others_may_follow_from_it() -> None:
    schema = drafted("district", **towns()).stated
    assert {each.name: each.of for each in schema.lookups.values()} == {
        "state": "town", "code": "town",
    }  # fmt: skip
    schema = drafted("town", **towns()).stated
    assert {each.of for each in schema.lookups.values()} == {"town"}


def test_what_a_rule_can_say_is_left_to_rules() -> None:
    """Two columns with few categories: neither is so fine that the other is only its name."""
    test = [("n/a", "neg", "pos")[code % 3] for code in TOWN]
    sex = ["m" if each == "n/a" else "f" for each in test]
    schema = drafted(test=test, sex=sex, age=RANDOM.integers(90, size=ROWS)).stated
    assert not schema.lookups
    assert 'if test = "n/a" then sex = m' in schema.constraints


def test_of_two_that_say_the_same_one_stays() -> None:
    names: dict[str, Any] = {
        "code": [f"c{code}" for code in TOWN],
        "name": [f"n{code}" for code in TOWN],
    }
    names["age"] = RANDOM.integers(90, size=ROWS)
    schema = drafted(**names).stated
    assert len(schema.lookups) == 1
    (only,) = schema.lookups.values()
    assert only.of in schema.by_name


def test_what_rows_would_not_contradict_by_chance_is_no_lookup() -> None:
    """Nearly all rows have one value, or nearly every row has a category of its own."""
    rare = ["yes" if code == 7 and row < 60 else "no" for row, code in enumerate(TOWN)]
    assert "rare" not in drafted(town=towns()["town"], rare=rare).stated.lookups
    few = 40
    own = [f"p{row // 2}" for row in range(few)]
    kind = ["a" if row // 2 % 2 else "b" for row in range(few)]
    assert not drafted(own=own, kind=kind, age=np.arange(few) % 30).stated.lookups


def test_numbers_that_are_no_integers_are_measured_and_not_looked_up() -> None:
    columns = {**towns(), "share": TOWN / 7.0, "flag": TOWN > 5}
    schema = drafted(**columns).stated
    assert "share" in schema.by_name
    assert "flag" in schema.by_name
