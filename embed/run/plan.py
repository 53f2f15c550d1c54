"""The run plan: what an interrupted pass and its continuation must have in common."""

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
_COLUMNS: Final = "schema.columns"
_LONG: Final = 40
_BEFORE: Final = 10


@dataclass(frozen=True)
class RunPlan:
    """Everything that shapes the sums: the data, the options, the code and computed tables.

    Two processes whose plans have the same digest add exactly the same integers for each record, so
    one may continue what the other has counted. (docs/privacy/proofs.md, statement 13.)

    Attributes:
        document: plain JSON.
    """

    document: Mapping[str, Any]

    @classmethod
    def of(cls, job: Job) -> RunPlan:
        """The plan of a job; no record is read.

        Raises:
            DataError: a file of the data is gone.
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
        """Describe in words what has changed since an earlier document was written."""
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
    """Describe in words the first differences between two plans of embeddings (`file.plan_of`).

    Args:
        before: one of them.
        now: the other.
        instead: the words between the present value and the earlier one.
    """
    old, new = _flatten(before), _flatten(now)
    changed = [name for name in {*old, *new} if old.get(name) != new.get(name)]
    changed.sort(key=lambda name: (not name.startswith(_COLUMNS), name))
    if changed and changed[0].startswith(_COLUMNS):  # the feature map may differ for that reason
        changed = [name for name in changed if name.startswith("schema.")]
    if {"feature_map.arch", "feature_map.width"} & set(changed):
        changed = [name for name in changed if name != "feature_map.layers"]  # which they imply
    if changed == ["weights"] and new.get("feature_map.features") == "perceptual":
        return ["the module computes something else here: another processor, or version of torch"]
    if changed == ["weights"]:
        return ["the random weights are others (--feature-seed)"]
    if _COLUMNS in changed:  # a column is added, removed or moved: report that only
        changed = [name for name in changed if not name.startswith(f"{_COLUMNS}.")]
    reasons = []
    for name in changed:
        if name == "weights":
            continue
        value, other = _shortened(new.get(name), old.get(name))
        reasons.append(f"{_in_words(name)} is {value} {instead} {other}")
    return reasons[:_MOST_DIFFERENCES]


def _flatten(document: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten {"a": {"b": 1}} to {"a.b": 1}; columns give their names and each one's entries."""
    flat: dict[str, Any] = {}
    for name, value in document.items():
        if f"{prefix}{name}" == _COLUMNS and isinstance(value, list):
            columns = {str(column.get("name")): column for column in value}
            flat[_COLUMNS] = list(columns)
            flat |= _flatten(columns, f"{_COLUMNS}.")
        elif isinstance(value, Mapping):
            # A network's options keep their names, whatever features stand beside it.
            flat |= _flatten(value, prefix if name == "tangent" else f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _in_words(name: str) -> str:
    if name.startswith(f"{_COLUMNS}."):  # the column's own name stays as it is
        column, _, entry = name.removeprefix(f"{_COLUMNS}.").rpartition(".")
        return f"{entry.replace('_', ' ')} of column {column!r}"
    return name.replace(".", " ").replace("_", " ")


def _shortened(*values: object) -> tuple[str, ...]:
    """Values as JSON; long ones are cut to a part around their first difference."""
    texts = [json.dumps(value) for value in values]
    apart = (place for place, signs in enumerate(zip(*texts, strict=False)) if len(set(signs)) > 1)
    start = max(0, next(apart, 0) - _BEFORE) if max(map(len, texts)) > _LONG else 0
    return tuple(_cut(text, start) for text in texts)


def _cut(text: str, start: int) -> str:
    text = f"...{text[start:]}" if start else text
    return text if len(text) <= _LONG else f"{text[: _LONG - 3]}..."


def code_files() -> dict[str, Path]:
    """The source files that shape the sums, by name: two whole packages, to forget nothing."""
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
    """SHA-256 of all numbers that an exact map precomputes, before it sees a record.

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
        case None | bool() | int() | float() | str() | slice() | np.generic():
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
        # Anything else is a device, which changes no sum, or part of a public module, of which the
        # map has the digest of its file.


def parse_plan(content: bytes) -> tuple[Mapping[str, Any], int]:
    """Read what `serialise_plan` made: the plan's document and the number of shares.

    Raises:
        ValueError: the content is not such a file.
    """
    try:
        stored = parse_json(content)
        document, shares = stored["plan"], stored["shares"]
    except (KeyError, TypeError) as error:
        raise ValueError("not a plan") from error
    if not isinstance(document, dict) or type(shares) is not int or shares < 1:
        raise ValueError("not a plan")
    return document, shares


def serialise_plan(plan: RunPlan, shares: int) -> bytes:
    """The plan and the number of shares, as JSON."""
    return canonical_json({"plan": dict(plan.document), "shares": shares}).encode()
