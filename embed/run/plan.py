"""What an interrupted pass must have in common with the one that continues it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from ...common import errors
from ...common.storage.canonical_json import canonical_json, digest
from ...common.storage.plain import parse_json
from ..exact.registry import exact_map
from ..sums.file import plan_of
from .job import Job

_PACKAGES: Final = ("dpntk", "h5py", "numpy", "pillow", "pyarrow", "torch")
_ROOMS: Final = ("embed", "common")
_MOST_DIFFERENCES: Final = 3


@dataclass(frozen=True)
class RunPlan:
    """All that shapes the sums: the data, the options, the code, the tables that were computed.

    Two processes whose plans have the same digest add exactly the same integers for each record,
    so what one has counted the other may go on from. (docs/privacy/proofs.md, statement 13.)

    Attributes:
        document: plain JSON.
    """

    document: Mapping[str, Any]

    @classmethod
    def of(cls, job: Job) -> RunPlan:
        """The plan of a job; no record is read.

        Raises:
            DataError: a file of the data is not there any more.
        """
        exact = exact_map(job.feature_map, job.grid, torch.device("cpu"), job.module)
        document = {
            "data": job.source.fingerprint(),
            "records": len(job.source),
            "options": plan_of(job.source.schema, job.feature_map, job.grid),
            "tables": _constants_digest(exact),
            "code": {**{name: version(name) for name in _PACKAGES}, "source": _code_digest()},
        }
        return cls(json.loads(canonical_json(document)))  # as it will be read back

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the document."""
        return digest(self.document)

    def differences(self, earlier: Mapping[str, Any]) -> str:
        """In words, what has changed since an earlier document was written."""
        before, now = _flatten(earlier), _flatten(self.document)
        changed = {name for name in {*before, *now} if before.get(name) != now.get(name)}
        reasons: list[str] = []
        if {"data", "records"} & changed:
            reasons.append("the data have changed (files, sizes or times)")
        options = earlier.get("options")
        if isinstance(options, dict):
            reasons += changes(options, self.document["options"])
        for package in _PACKAGES:
            if f"code.{package}" in changed:
                name = f"code.{package}"
                reasons.append(f"{package} is {now.get(name)} and was {before.get(name)}")
        if "code.source" in changed:
            reasons.append("the code of dpntk has changed")
        if changed == {"tables"}:
            reasons.append("this machine's mathematics library rounds differently")
        return "; ".join(reasons) or "it was written by another version of dpntk"


def changes(
    before: Mapping[str, Any], now: Mapping[str, Any], *, instead: str = "and was"
) -> list[str]:
    """In words, the first differences between two plans of embeddings (`file.plan_of`).

    Args:
        before: one of them.
        now: the other.
        instead: what stands between the value that is and the one before.
    """
    old, new = _flatten(before), _flatten(now)
    changed = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    if {"feature_map.arch", "feature_map.width"} & set(changed):
        changed = [name for name in changed if name != "feature_map.layers"]  # these two name it
    if changed == ["weights"] and new.get("feature_map.features") == "perceptual":
        return ["the module computes something else here: another processor, or version of torch"]
    if changed == ["weights"]:
        return ["the random weights are others (--feature-seed)"]
    return [
        f"{name.replace('.', ' ').replace('_', ' ')} is {_short(new.get(name))} {instead} "
        f"{_short(old.get(name))}"
        for name in changed
        if name != "weights"
    ][:_MOST_DIFFERENCES]


def _flatten(document: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """{"a": {"b": 1}} as {"a.b": 1}."""
    flat: dict[str, Any] = {}
    for name, value in document.items():
        if isinstance(value, Mapping):
            flat |= _flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def code_files() -> dict[str, Path]:
    """The source of what makes the sums, by name: two whole rooms, so that nothing is forgotten."""
    rooms = Path(errors.__file__).parents[1]
    files = [file for room in _ROOMS for file in sorted((rooms / room).rglob("*.py"))]
    return {file.relative_to(rooms).as_posix(): file for file in files}


@cache
def _code_digest() -> str:
    """SHA-256 of `code_files`."""
    state = hashlib.sha256()
    for name, file in code_files().items():
        state.update(f"{name}\n".encode())
        state.update(file.read_bytes())
    return state.hexdigest()


def _constants_digest(exact: object) -> str:
    """SHA-256 of all numbers that an exact map has computed before it sees a record.

    Cosines and the like come from the machine's mathematics library, which may differ by a unit in
    the last place from one kind of processor to another.
    """
    state = hashlib.sha256()
    _digest_into(state, exact)
    return state.hexdigest()


def _digest_into(state: Any, value: object) -> None:  # noqa: ANN401
    match value:
        case torch.Tensor():
            _digest_into(state, value.cpu().numpy())
        case np.ndarray():
            state.update(f"{value.dtype.str} {value.shape}\n".encode())
            state.update(np.ascontiguousarray(value))
        case None | bool() | int() | float() | str():
            state.update(f"{value!r}\n".encode())
        case Mapping():
            for name in sorted(value, key=str):
                state.update(f"{name}: ".encode())
                _digest_into(state, value[name])
        case Sequence():
            for item in value:
                _digest_into(state, item)
        case _ if type(value).__module__.startswith("dpntk."):
            _digest_into(state, vars(value))


def parse_plan(content: bytes) -> tuple[Mapping[str, Any], int]:
    """Read what `write_plan` made: the plan's document and the number of shares.

    Raises:
        ValueError: it is nothing of the kind.
    """
    try:
        stored = parse_json(content)
        document, shares = stored["plan"], stored["shares"]
    except (KeyError, TypeError) as error:
        raise ValueError("not a plan") from error
    if not isinstance(document, dict) or type(shares) is not int or shares < 1:
        raise ValueError("not a plan")
    return document, shares


def write_plan(plan: RunPlan, shares: int) -> bytes:
    """The plan and into how many shares the records are divided, as JSON."""
    return canonical_json({"plan": dict(plan.document), "shares": shares}).encode()
