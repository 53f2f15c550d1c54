"""The embedding file: everything the release needs, and SENSITIVE."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np
from numpy.typing import NDArray

from ..common.container import EMBEDDING_MAGIC, build
from ..common.errors import EmbeddingError, SchemaError
from ..common.feature_map import FeatureMap, weights_digest
from ..common.feature_maps import feature_map_from_spec
from ..common.files import SENSITIVE_MODE, write_atomically
from ..common.ledger import Ledger
from ..common.schema import canonical_json, digest
from ..common.schemas import Schema, schema_from_json
from .grid import Grid
from .totals import Totals

FORMAT_VERSION: Final = 1
_DIGEST_SIZE: Final = 32
NOTICE: Final = (
    "This file holds exact sums over sensitive records. It is not differentially private. "
    "Keep it where the records are; share only what 'dpntk release' makes of it."
)


@dataclass(frozen=True, eq=False)
class Embedding:
    """Exact class-wise feature sums of a data set, with all that gives them meaning.

    Attributes:
        sums: S, int64 (d, c), in grid units.
        counts: records in each class, int64 (c,).
        schema: what is publicly known of the records.
        feature_map: phi, with its weights.
        grid: the unit of `sums`.
        ledger: what has been released from it.
        run: digest of the data, options and code that it was made with; empty if it was merged, or
            made without a file in mind.
        shards: digests of the embeddings that it was merged from, and of those that these were
            merged from; empty if it was made in one pass.
    """

    sums: NDArray[np.int64]
    counts: NDArray[np.int64]
    schema: Schema
    feature_map: FeatureMap
    grid: Grid
    ledger: Ledger = field(default_factory=Ledger)
    run: str = ""
    shards: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        shape = (self.feature_map.dimension, len(self.schema.classes))
        if self.sums.shape != shape or self.counts.shape != shape[1:]:
            raise SchemaError("embedding: the sums do not have the shape that the plan gives them")
        if self.counts.min() < 0 or self.records > self.grid.capacity:
            raise SchemaError("embedding: impossible class counts")
        if self.schema.record_size != self.feature_map.record_size:
            raise SchemaError("embedding: schema and feature map disagree about a record's size")

    @property
    def records(self) -> int:
        """n, the number of records."""
        return int(self.counts.sum())

    @property
    def totals(self) -> Totals:
        """Sums and counts."""
        return Totals(self.sums, self.counts)

    @cached_property
    def plan_digest(self) -> str:
        """SHA-256 over all that shapes the sums except the records themselves."""
        return digest(plan_of(self.schema, self.feature_map, self.grid))


def plan_of(schema: Schema, feature_map: FeatureMap, grid: Grid) -> dict[str, Any]:
    """All that shapes the sums except the records themselves, as plain JSON."""
    return {
        "format": FORMAT_VERSION,
        "schema": schema.to_json(),
        "feature_map": feature_map.spec(),
        "weights": weights_digest(feature_map),
        "grid": {"levels": grid.levels, "shift": grid.shift, "capacity": grid.capacity},
    }


def write_embedding(embedding: Embedding, path: Path) -> None:
    """Write an embedding, readable by its owner alone (0600), over whatever is there.

    The caller answers for the ledger of an embedding that is there; `saving.save_embedding` takes
    it over.

    Raises:
        OutputError: it cannot be written; nothing is left behind.
    """

    def fill(file: h5py.File) -> None:
        file.attrs["SENSITIVE"] = NOTICE
        file.attrs["format_version"] = FORMAT_VERSION
        file.attrs["plan"] = canonical_json(
            plan_of(embedding.schema, embedding.feature_map, embedding.grid)
        )
        file.attrs["plan_digest"] = embedding.plan_digest
        file.attrs["records"] = embedding.records
        file.attrs["run"] = embedding.run
        file.attrs["ledger"] = canonical_json(embedding.ledger.to_json())
        file.create_dataset("sums", data=embedding.sums)
        file.create_dataset("counts", data=embedding.counts)
        if embedding.shards:
            shards = np.frombuffer(bytes.fromhex("".join(embedding.shards)), np.uint8)
            file.create_dataset("shards", data=shards.reshape(-1, _DIGEST_SIZE))
        weights = file.create_group("feature_map")  # there even if the map has none
        for name, weight in embedding.feature_map.weights().items():
            weights.create_dataset(name, data=weight)

    write_atomically(path, build(EMBEDDING_MAGIC, fill), mode=SENSITIVE_MODE)


def require_embedding(path: Path) -> None:
    """Check by its first line that there is an embedding at `path`.

    Raises:
        EmbeddingError: there is none, or it cannot be read.
    """
    if not path.is_file():
        raise EmbeddingError(f"{path}: there is no such file; 'dpntk embed DATA' makes one")
    try:
        with path.open("rb") as opened:
            magic = opened.read(len(EMBEDDING_MAGIC))
    except OSError as error:
        raise EmbeddingError(f"{path}: {error.strerror}") from error
    if magic != EMBEDDING_MAGIC:
        raise EmbeddingError(f"{path}: not a dpntk embedding; 'dpntk embed DATA' makes one")


def load_embedding(path: Path) -> Embedding:
    """Read an embedding and check that it is whole.

    Raises:
        EmbeddingError: there is none at `path`, or it is damaged or of another version.
    """
    require_embedding(path)
    try:
        with h5py.File(path, "r") as file:
            return _parse(file)
    except SchemaError as error:
        raise EmbeddingError(f"{path}: damaged: {error}; embed the records again") from error
    except (OSError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise EmbeddingError(f"{path}: damaged; embed the records again ({error})") from error


def run_of(path: Path) -> str:
    """Digest of the run that wrote an embedding; empty if there is none at `path`."""
    try:
        require_embedding(path)
        with h5py.File(path, "r") as file:
            return str(file.attrs.get("run", ""))
    except (EmbeddingError, OSError, RuntimeError):
        return ""


def _parse(file: h5py.File) -> Embedding:
    plan: Mapping[str, Any] = json.loads(str(file.attrs["plan"]))
    if plan["format"] != FORMAT_VERSION:
        raise SchemaError(f"format {plan['format']}, this dpntk reads {FORMAT_VERSION}")
    weights = {name: dataset[...] for name, dataset in file["feature_map"].items()}
    embedding = Embedding(
        sums=file["sums"][...],
        counts=file["counts"][...],
        schema=schema_from_json(plan["schema"]),
        feature_map=feature_map_from_spec(plan["feature_map"], weights),
        grid=Grid(**plan["grid"]),
        ledger=Ledger.from_json(json.loads(str(file.attrs["ledger"]))),
        run=str(file.attrs.get("run", "")),
        shards=tuple(row.tobytes().hex() for row in file["shards"]) if "shards" in file else (),
    )
    if embedding.sums.dtype != np.int64 or embedding.counts.dtype != np.int64:
        raise SchemaError("the sums are not 64-bit integers")
    if embedding.plan_digest != file.attrs["plan_digest"]:
        raise SchemaError("the plan digest does not match the plan")
    if embedding.records != file.attrs["records"]:
        raise SchemaError("the number of records does not match the class counts")
    return embedding
