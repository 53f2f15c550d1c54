"""What leaves the owner's machine, and how to compare it for data sets that differ in one record.

The noise is held: it is such that the noisy sums are the same whatever the records are. So all that
leaves has to be the same as well, to the last byte, for it may depend on the records through the
noisy sums alone. That the noise hides one record is checked beside it: exact sums may differ by
their sensitivity at most. The clock and the identifiers are held, too.
"""

from __future__ import annotations

import fnmatch
import functools
import io
import itertools
import json
import re
import secrets
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

from dpntk.common.adjacency import Adjacency
from dpntk.common.schema import Schema, schema_from_json
from dpntk.common.sources.base import Batch, Source
from dpntk.common.storage import sandbox
from dpntk.embed import pipeline
from dpntk.embed.run import plan as run_plan
from dpntk.embed.sums.file import load_embedding
from dpntk.release import own_key
from dpntk.release.commands import distill as distilling_cli
from dpntk.release.distill import descent as distilling_descent
from dpntk.release.distill import mechanism as distilling_mechanism
from dpntk.release.distill import pipeline as distilling
from dpntk.release.mechanism import gaussian as mechanism
from dpntk.release.mechanism.gaussian import NoiseScale, NoisySums
from dpntk.release.publishing import measurement, parameters, private_bounds
from tests.conftest import Command, Outcome, make_hasty

Integers = NDArray[np.int64]
Write = Callable[[Path], Path]
"""Writes a data set into a folder and returns where it is."""
Step = str | Callable[[Path], None]
"""A command, or what the owner does by hand in the folder."""

BEYOND: Final = "exact sums, by more than their sensitivity"
_LEFT_OUT: Final = "whether {} is left out"
_version: Final = functools.cache(vars(run_plan)["version"])
_NOW: Final = "2026-01-01T00:00:00+00:00"
_OWNERS: Final = ("embed", "merge", "schema", "distill")
"""Commands that read records: what they say is for the owner alone."""


@dataclass(frozen=True)
class Flow:
    """What the owner does with a data set; {data} is where it is, {adjacency} what is hidden.

    Attributes:
        read: the command that reads it last, and what is said of it there.
        options: of that command, whatever the data are.
        release: options of `dpntk release`.
        before: what comes before.
    """

    read: str
    options: str
    release: str = "--eps 1"
    before: tuple[Step, ...] = ()

    @property
    def distills(self) -> bool:
        return self.read.startswith("distill ")


@dataclass(frozen=True, eq=False)
class Seen:
    """What leaves the owner's machine, and what the owner sees and may pass on.

    Attributes:
        parts: all of it, by name. Of a refusal, its words alone.
        schema: that is in the release; None if there is none.
        statement: likewise, or empty.
        noised: exact sums that noise was added to, and their sensitivity in the same units.
        without_records: the parts if nothing were behind the schema but blank records.
    """

    parts: Mapping[str, object]
    schema: Schema | None
    statement: str
    noised: tuple[tuple[Integers, int], ...]
    without_records: Callable[[], Mapping[str, object]]

    @property
    def refusal(self) -> str | None:
        found = self.parts.get("refusal")
        return None if found is None else str(found)


def differences(one: Seen, other: Seen) -> set[str]:
    """Names of what differs, but for noise.

    Other schemas make other releases. What differs then is what differs in the schemas, and all
    that is not in each release as it would be if there were no records behind its schema at all.
    """
    if one.schema is None or other.schema is None or one.schema == other.schema:
        found = _unlike(one.parts, other.parts)
        pairs = zip(one.noised, other.noised, strict=False)
        beyond = any(_beyond(first, second, bound) for (first, bound), (second, _) in pairs)
        if beyond or len(one.noised) != len(other.noised):
            found.add(BEYOND)
        return found
    found = _of_schemas(one.schema, other.schema)
    for seen in (one, other):
        blank = seen.without_records()
        found |= _unlike({name: seen.parts.get(name) for name in blank}, blank)
    return found


def declared_as_looked_up(statement: str) -> set[str]:
    """What a statement says was looked up in the records, by the names of `differences`.

    Whoever is told that a column's description was looked up is told that there is one, too.
    """
    sentence = re.search(r"Looked up in the records: (.*?)\. ", statement)
    if sentence is None:
        return set()
    text = sentence[1]
    said = {
        piece
        for piece, words in (
            ("image size", "image size"),
            ("classes", "number and names of the classes"),
            (_LEFT_OUT.format("*"), "which columns are left out"),
        )
        if re.search(words, text)
    }
    for what, names in re.findall(r"(kinds.*?), of (.*?)(?= and kinds| and which|$)", text):
        for name in names.split(", "):
            said |= {f"{piece} of {name}" for piece in _PIECES.values() if piece in what}
            said.add(_LEFT_OUT.format(name))
    return said


def undeclared_differences(one: Seen, other: Seen) -> set[str]:
    """What differs although one of the two does not say that it was looked up."""
    told = [declared_as_looked_up(seen.statement) for seen in (one, other)]
    return {
        name
        for name in differences(one, other)
        if not all(any(fnmatch.fnmatchcase(name, said) for said in each) for each in told)
    }


_PIECES: Final = {
    "kind": "kind",
    "dtype": "type",
    "format": "type",
    "transform": "scale",
    "step": "scale",
    "decimals": "scale",
    "unit": "scale",
    "lower": "bounds",
    "upper": "bounds",
    "values": "bounds",
    "categories": "categories",
    "other": "categories",
    "missing": "missing",
}
"""What a statement calls the entries of a column."""
_BOUNDS: Final = {"lower", "upper"}


def _unlike(one: Mapping[str, object], other: Mapping[str, object]) -> set[str]:
    return {name for name in {*one, *other} if one.get(name) != other.get(name)}


def _beyond(one: Integers, other: Integers, sensitivity: int) -> bool:
    if one.shape != other.shape:
        return True
    return float(np.linalg.norm((one - other).astype(np.float64))) > sensitivity


def _of_schemas(one: Schema, other: Schema) -> set[str]:
    """Names of what differs between two schemas."""
    first, second = one.to_json(), other.to_json()
    found = _unlike(first, second)
    if "side" in found:
        found = found - {"side"} | {"image size"}
    if "columns" in found:
        found.remove("columns")
        found |= _of_columns(*({c["name"]: c for c in s["columns"]} for s in (first, second)))
    if "left_out" in found:  # by which columns, the others show
        found -= {"left_out", "left_out_origin"}
        lists = [schema["left_out"] for schema in (first, second)]
        both = set(lists[0]) & set(lists[1])
        if len({tuple(name for name in names if name in both) for names in lists}) > 1:
            found.add("order of left_out")
    return found


def _of_columns(
    one: Mapping[str, Mapping[str, object]], other: Mapping[str, Mapping[str, object]]
) -> set[str]:
    found = {_LEFT_OUT.format(name) for name in one.keys() ^ other.keys()}
    both = [name for name in one if name in other]
    if both != [name for name in other if name in one]:
        found.add("order of the columns")
    # Where other magnitudes were counted, they had other noise, and private bounds follow from it.
    counted = _magnitudes(one) == _magnitudes(other)
    for name in both:
        unlike = _unlike(one[name], other[name])
        if not counted and one[name]["origin"] == other[name]["origin"] == "private":
            unlike -= _BOUNDS
        found |= {f"{_PIECES.get(entry, entry)} of {name}" for entry in unlike}
    return found


def _magnitudes(columns: Mapping[str, Mapping[str, object]]) -> dict[str, object]:
    """What is known of the columns whose bounds were found with differential privacy."""
    return {
        name: {entry: value for entry, value in column.items() if entry not in _BOUNDS}
        for name, column in columns.items()
        if column["origin"] == "private"
    }


@dataclass(frozen=True, eq=False)
class _Blank:
    """A source of blank records of the first class: all that is known of them is a schema."""

    schema: Schema
    count: int

    def __len__(self) -> int:
        return self.count

    def batches(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        stop = self.count if stop is None else stop
        for first in range(start, stop, size):
            rows = min(size, stop - first)
            yield Batch(
                np.zeros((rows, self.schema.record_size), np.uint8), np.zeros(rows, np.int64)
            )

    def fingerprint(self) -> str:
        return "blank"


class _Clock:
    """A clock that stands."""

    @staticmethod
    def now(zone: object) -> _Clock:
        return _Clock()

    def isoformat(self, timespec: str) -> str:
        return _NOW


class FixedRandomness:
    """Noise, batches, clock and identifiers, all held: test doubles in place of the real ones."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.noised: list[tuple[Integers, int]] = []
        self.adjacency = Adjacency.REPLACE_ONE
        self._counts = 0
        self._left = np.zeros(0, dtype=np.int64)
        self._records: distilling_descent.LabelledRecords | None = None
        self.begin()
        self._real_token, self._real_sum = secrets.token_hex, distilling_mechanism.clipped_sum
        self._real_add, self._real_counts = mechanism.add_noise, mechanism.noisy_counts
        self._real_read = distilling_descent.read_records
        for module, name, held in (
            (secrets, "token_hex", self._token),
            (parameters, "datetime", _Clock),
            (mechanism, "discrete_gaussian", self._noise),
            (measurement, "noisy_counts", self._noisy_counts),
            (measurement, "add_noise", self._add),
            (private_bounds, "add_noise", self._add_to_magnitudes),
            (distilling, "_now", lambda: _NOW),
            (distilling, "read_records", self._read),
            (distilling_descent, "poisson_sample", self._batch),
            (distilling_mechanism, "discrete_gaussian", self._noise),
            (distilling_mechanism, "clipped_sum", self._clipped_sum),
        ):
            monkeypatch.setattr(module, name, held)

    def begin(self, first: int = 0) -> None:
        """Begin anew, with this identifier."""
        self.noised = []
        self._ids = itertools.count(first)

    def _token(self, size: int) -> str:
        return f"{next(self._ids):032x}" if size == 16 else self._real_token(size)

    def _noise(self, size: int, sigma: int) -> Integers:
        """What makes the noisy sums those that they are held at."""
        wanted = np.random.default_rng(size).normal(0, 4 * sigma, size)
        exact, self._left = self._left[:size], self._left[size:]
        if self._counts and not len(self._left):  # these come last
            wanted[-self._counts :] = np.abs(wanted[-self._counts :])
        return np.rint(wanted).astype(np.int64) - exact

    def _add(self, sums: Integers, counts: Integers | None, scale: NoiseScale) -> NoisySums:
        weighted = np.zeros(0, np.int64) if counts is None else counts * scale.count_weight
        self._counts, weighed = len(weighted), sums
        if scale.factors is not None:
            weighed = np.rint(sums * scale.factors[:, None]).astype(np.int64)
        sigmas = scale.sigmas(len(sums))
        alike = [np.flatnonzero(sigmas == sigma) for sigma in dict.fromkeys(sigmas.tolist())]
        # Rows with the same noise get theirs together.
        self._left = np.concatenate([sums[np.concatenate(alike)].ravel(), weighted])
        noised = np.concatenate([weighed.ravel(), weighted])
        if counts is None:  # all that is released is one vector with one bound
            noised = np.concatenate([self.noised.pop()[0], noised])
        self.noised.append((noised, scale.sensitivity))
        return self._real_add(sums, counts, scale)

    def _noisy_counts(self, counts: Integers, scale: NoiseScale) -> Integers | None:
        """These come first of all that a release is made of."""
        weighted = counts * scale.count_weight if scale.count_weight else counts[:0]
        self._counts, self._left = len(weighted), weighted
        self.noised.append((weighted, scale.sensitivity))
        return self._real_counts(counts, scale)

    def _add_to_magnitudes(self, sums: Integers, counts: Integers, scale: NoiseScale) -> NoisySums:
        """Sums that are counts, all of them."""
        noisy = self._add(sums, counts, scale)
        return replace(noisy, sums=np.abs(noisy.sums))

    def _clipped_sum(self, *arguments: Any, **options: Any) -> Integers:  # noqa: ANN401
        self._counts = 0
        sums = self._real_sum(*arguments, **options)
        self._left = sums.ravel()
        exchanged = self.adjacency is Adjacency.REPLACE_ONE
        self.noised.append((sums.ravel(), distilling_mechanism.ONE * (1 + exchanged)))
        return sums

    def _read(self, source: Source, fingerprint: str) -> distilling_descent.LabelledRecords:
        self._records = self._real_read(source, fingerprint)
        return self._records

    def _batch(self, records: int, rate: float) -> Integers:
        """A coin for each record that is a function of the record, wherever it stands."""
        assert self._records is not None
        step = len(self.noised)
        coins = [
            zlib.crc32(bytes([step, label]) + values.tobytes())
            for values, label in zip(self._records.values, self._records.labels, strict=True)
        ]
        return np.flatnonzero(np.array(coins) < rate * 2**32)


def _parse_here(parser: sandbox.Parser, content: bytes, argument: object) -> object:
    return json.loads(json.dumps(parser(content, argument)))


class Owner:
    """Somebody who makes releases, each in a folder of its own, with what is held held."""

    def __init__(self, dpntk: Command, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._dpntk = dpntk
        self._root = root
        self._monkeypatch = monkeypatch
        self._held = FixedRandomness(monkeypatch)
        own_key()  # made now, so that no command says that it has made one
        # What takes long and has nothing to do with the records.
        make_hasty(monkeypatch)
        monkeypatch.setattr(run_plan, "version", _version)
        monkeypatch.setattr(sandbox, "parse_in_child", _parse_here)

    def seen(
        self, name: str, write: Write, flow: Flow, adjacency: Adjacency, *, watched: bool = False
    ) -> Seen:
        """Make a release and collect what there is to see.

        Args:
            name: of the folder.
            write: the data.
            flow: what to do with it.
            adjacency: what is to be hidden.
            watched: whether to ask every command that shows something, and to generate.
        """
        folder = self._enter(name)
        data = write(folder).relative_to(folder)
        self._held.begin()
        self._held.adjacency = adjacency
        parts: dict[str, object] = {}
        after = _after(flow, adjacency, watched=watched)
        for step in (*flow.before, f"{flow.read} {flow.options}", *after):
            if callable(step):
                step(folder)
                continue
            said = self._run(step.format(data=data, adjacency=adjacency.value))
            if said.code:
                return Seen({"refusal": said.stderr}, None, "", tuple(self._held.noised), dict)
            if step.split()[0] not in _OWNERS:
                parts[f"dpntk {step}"] = said.stdout, said.stderr
        parts |= _parts_of(folder)
        schema = schema_from_json(json.loads(str(parts["attribute schema"])))
        statement = str(parts["attribute statement"])
        noised = tuple(self._held.noised)

        def without_records() -> Mapping[str, object]:
            embedding = folder / "embedding.h5"
            count = load_embedding(embedding).records if embedding.exists() else 7
            if adjacency is Adjacency.ADD_REMOVE:
                count += 5
            return self._blank(f"{name}-blank", _Blank(schema, count), flow, adjacency, watched)

        return Seen(parts, schema, statement, noised, without_records)

    def _blank(
        self, name: str, source: _Blank, flow: Flow, adjacency: Adjacency, watched: bool
    ) -> Mapping[str, object]:
        folder = self._enter(name)
        self._held.begin(len(source.schema.spent))
        parts: dict[str, object] = {}
        with self._monkeypatch.context() as patch:
            for module in (pipeline, distilling_cli):
                patch.setattr(module, "open_source", lambda *_, **__: source)
            command = "distill" if flow.distills else "embed"
            after = _after(flow, adjacency, watched=watched)
            for step in (f"{command} nothing {flow.options}", *after):
                said = self._run(step.format(data="nothing", adjacency=adjacency.value))
                assert said.code == 0, said.stderr
                if step.split()[0] not in _OWNERS:
                    parts[f"dpntk {step}"] = said.stdout, said.stderr
        return parts | _parts_of(folder)

    def _enter(self, name: str) -> Path:
        folder = self._root / name
        folder.mkdir()
        self._monkeypatch.chdir(folder)
        return folder

    def _run(self, line: str) -> Outcome:
        return self._dpntk(*line.split())


def _after(flow: Flow, adjacency: Adjacency, *, watched: bool) -> tuple[str, ...]:
    """The commands that come after the data were read."""
    promise = f"{flow.release} --adjacency {adjacency.value}"
    steps = () if flow.distills else (f"release {promise}",)
    if not watched:
        return steps
    if not flow.distills:
        # Under add-remove the number of records is what the owner would say in public.
        said = " --records 1000" if adjacency is Adjacency.ADD_REMOVE else ""
        steps = f"plan embedding.h5 {promise}{said}", *steps, "budget"
    training = "" if flow.distills else "--steps 2 --batch 8 -n 20"
    shows = "inspect", "inspect --json", "inspect --registry", "verify --how"
    return (*steps, *shows, f"generate {training}")


def _parts_of(folder: Path) -> dict[str, object]:
    """The release file and what was generated from it, taken apart."""
    path = folder / "release.h5"
    content = path.read_bytes()
    parts: dict[str, object] = {
        "files that anybody may read": sorted(
            file.name for file in folder.glob("*.h5") if file.stat().st_mode & 0o077
        ),
        "mode": path.stat().st_mode,
        "size": len(content),
        "user block": content[:512],
        "bytes": content,
    }
    with h5py.File(io.BytesIO(content), "r") as file:
        for name, value in file.attrs.items():
            parts[f"attribute {name}"] = value

        def note(name: str, member: object) -> None:
            parts[f"/{name}"] = (
                (str(member.dtype), member.shape, member[...].tobytes())
                if isinstance(member, h5py.Dataset)
                else "group"
            )

        file.visititems(note)
    for made in sorted(folder.glob("synthetic/*")):
        parts[f"synthetic/{made.name}"] = made.read_bytes()
    return parts
