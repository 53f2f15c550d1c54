"""Releases of tables whose schema or feature map is hostile: refused, whoever signed them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import pytest

from dpntk.common.errors import FormatError
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import TangentOptions, embed
from dpntk.release import Acceptance, PrivacyParameters, open_release
from dpntk.release.file.parser import read_body
from dpntk.release.file.writer import serialise
from dpntk.release.publishing.pipeline import unrecorded_release
from tests.helpers.tables import PEOPLE, RANKED, people

Document = dict[str, Any]


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("table") / "a.csv"
    path.write_text(people(50))
    return bytes(
        serialise(
            unrecorded_release(
                embed(path, TangentOptions(width=3), SourceOptions(schema=PEOPLE)),
                PrivacyParameters(1.0, 1e-3),
            )
        )
    )


def edited(honest: bytes, name: str, document: Document) -> bytes:
    """The file with another JSON document in an attribute."""
    buffer = io.BytesIO(honest)
    with h5py.File(buffer, "r+", libver=("earliest", "v110")) as file:
        file.attrs[name] = json.dumps(document)
    return buffer.getvalue()


def test_the_honest_one_is_read(honest: bytes, tmp_path: Path) -> None:
    (tmp_path / "r.h5").write_bytes(honest)
    opened = open_release(tmp_path / "r.h5", Acceptance(allow_unsigned=True))
    assert opened.release.schema == RANKED


def _column(number: int, **change: object) -> Callable[[Document], None]:
    return lambda schema: schema["columns"][number].update(change)


def _pairs(*pairs: list[int]) -> Callable[[Document], None]:
    """Pairs that are not of two columns, in their order."""
    return lambda feature_map: feature_map["marginals"].update(pairs=pairs)


def _first_column(start: int) -> Callable[[Document], None]:
    """Cells of a number where none begins."""

    def change(feature_map: Document) -> None:
        feature_map["marginals"]["columns"][0][0] = start

    return change


def _target(target: object) -> Callable[[Document], None]:
    """Products with a target that they cannot have."""
    return lambda feature_map: feature_map["moments"].update(target=target)


def _renamed(schema: Document) -> None:
    schema["columns"][0]["name"] = "pay"


def _many(schema: Document) -> None:
    schema["columns"] *= 1000


def _wide(schema: Document) -> None:
    schema["columns"][3]["categories"] += [str(number) for number in range(9_000)]


def _made(**change: object) -> Callable[[Document], None]:
    made = {"name": "notes", "kind": "made", "pattern": "", **change}
    return lambda schema: schema["columns"].append(made)


def _top(**change: object) -> Callable[[Document], None]:
    return lambda schema: schema.update(change)


@pytest.mark.parametrize(
    "change",
    [
        _column(0, lower=200),
        _column(0, lower=float("nan")),
        _column(0, upper=10**300),
        _column(0, upper=120),  # a valid schema, but not the one of the marginals
        _column(1, missing="refused"),
        _column(1, kind="integer"),
        _column(2, categories=["low"]),
        _column(2, categories=["low", "low", "high"]),
        _column(3, dtype="object"),
        _column(4, categories=["no", "yes", "maybe"]),
        _renamed,
        _many,
        _wide,
        _top(bins=10**12),
        _top(label="nobody"),
        _top(left_out=["x"] * 10_000),
        _top(columns={}),
        _top(columns=[[]]),
        _top(csv=[]),
        _top(csv={"separator": ",", "encoding": "ascii\0", "missing": [""]}),
        _top(csv={"separator": "\n", "encoding": "utf-8", "missing": [""]}),
        _column(0, kind="date"),
        _column(0, kind="date", dtype="date32", lower="1970-01-01", upper="9999-99-99"),
        _column(0, step=10**300),
        _column(0, step=3),
        _column(0, unit="day"),
        _column(0, format="%Y" * 10_000),
        _column(1, decimals=10**9),
        _column(1, decimals=2, step=0.5),
        _column(0, values=[0, 10**300]),
        _column(0, values=[0.5]),
        _column(0, values=[[]]),
        _column(0, values="0, 120"),
        _column(1, values=[float("nan")] * 2),
        _column(1, values=[10**400]),
        _column(1, values=[0.0] * 100_000),
        _column(3, values=[0.0, 1.0]),
        _made(pattern="{number.__class__}"),
        _made(pattern="{number:999999999d}"),
        _made(name="age"),
        _made(place=3),
        _top(constraints="age > 3"),
        _top(constraints=[]),  # which nobody writes
        _top(constraints=["age > 200"]),
        _top(constraints=["nobody > 3"]),
        _top(constraints=["__import__('os')"]),
        _top(constraints=["(" * 900]),
        _top(constraints=["age > 3" + " or age > 3" * 10_000]),
        _top(constraints=[f"age > {number}" for number in range(10_000)]),
        _top(kind="image"),
        _top(surprise=1),
    ],
)
def test_a_hostile_schema_is_refused(
    honest: bytes, tmp_path: Path, change: Callable[[Document], None]
) -> None:
    schema = json.loads(str(read_body(honest).attributes["schema"]))
    change(schema)
    path = tmp_path / "r.h5"
    path.write_bytes(edited(honest, "schema", schema))
    with pytest.raises(FormatError) as caught:
        open_release(path, Acceptance(allow_unsigned=True))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        _top(weight=2.0),
        _top(weight=-0.4),
        _top(marginals={}),
        _top(tangent={"features": "joint"}),
        _first_column(1),
        _first_column(2**23),
        _pairs([0, 1, 1, 20]),
        _pairs([1, 20, 1, 20]),
        _pairs([1, 19, 46, 4]),
        _pairs([46, 4, 1, 20]),
        _pairs([1, 2**24, 1, 2**24]),
        _pairs([46, 4, 1, 20, 42, 3]),
        _pairs([1, 20, 1, 20, 46, 4]),
        _pairs([1, 2**24, 2, 2**24, 3, 2**24]),
        _target([1, 3]),  # no number begins there
        _target([0, 10**9]),
        _target([0, 0]),
        _target([0, 1]),
        _target([0, -3]),
        _target([-1, 3]),
        _target("age"),
        _target({}),
    ],
)
def test_a_hostile_map_is_refused(
    honest: bytes, tmp_path: Path, change: Callable[[Document], None]
) -> None:
    document = json.loads(str(read_body(honest).attributes["feature_map"]))
    change(document)
    path = tmp_path / "r.h5"
    path.write_bytes(edited(honest, "feature_map", document))
    with pytest.raises(FormatError):
        open_release(path, Acceptance(allow_unsigned=True))
