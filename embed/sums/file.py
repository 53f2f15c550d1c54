"""The embedding file, SENSITIVE: everything that a release needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import h5py
import numpy as np
from numpy.typing import NDArray

from ...common.arguments import path_from
from ...common.display.representations import RedactedRepr
from ...common.errors import EmbeddingError, SchemaError
from ...common.features.approx_bounds import is_approx_bounds
from ...common.features.base import FeatureMap, weights_digest
from ...common.features.columns_of_schema import require_columns_of
from ...common.features.registry import feature_map_from_spec
from ...common.ledger import Ledger
from ...common.schema import Schema, schema_from_json
from ...common.storage import untrusted_files
from ...common.storage.atomic import SENSITIVE_MODE, write_atomically
from ...common.storage.canonical_json import canonical_json, digest
from ...common.storage.container import EMBEDDING_MAGIC, USER_BLOCK, build, user_block
from ...common.storage.contents import Contents, contents_of
from ...common.storage.layout import FLOAT32, INT64, INTEGER, TEXT, UINT8, Layout, Rule
from ...common.storage.plain import parse_json
from ...common.storage.sandbox import Refused
from ..exact.grid import Grid
from .totals import Totals

FORMAT_VERSION: Final = 1
_LAYOUT: Final = Layout(
    what="an embedding",
    version=FORMAT_VERSION,
    datasets={"sums": Rule(INT64, 2), "counts": Rule(INT64, 1), "shards": Rule(UINT8, 2)},
    attributes={
        "SENSITIVE": TEXT,
        "format_version": INTEGER,
        "plan": TEXT,
        "plan_digest": TEXT,
        "records": INTEGER,
        "run": TEXT,
        "ledger": TEXT,
        "data_sets": TEXT,
    },
    groups={"feature_map": Rule(FLOAT32, 4)},
    optional=("shards", "run", "data_sets"),
    longest_text=1 << 22,
)
_LARGEST_FILE: Final = 1 << 36
_AGAIN: Final = "embed the records again"
_NO_FILE: Final = "'dpntk embed DATA' makes one"
_DIGEST_SIZE: Final = 32
NOTICE: Final = (
    "This file holds exact sums over sensitive records. It is not differentially private. "
    "Keep it where the records are; share only what 'dpntk release' makes of it."
)


@dataclass(frozen=True, eq=False, repr=False)
class Embedding(RedactedRepr):
    """Exact class-wise feature sums of a data set, with everything needed to interpret them.

    Attributes:
        sums: S, int64 (d, c), in grid units.
        counts: records in each class, int64 (c,).
        schema: what is publicly known of the records.
        feature_map: phi, with its weights.
        grid: the unit of `sums`.
        ledger: what has been released from it.
        run: digest of the data, options and code that made it; empty if it was merged, or made in
            memory without a work folder.
        shards: digests of the embeddings that it was merged from, directly or through other merges;
            empty if it was made in one pass.
        data_sets: the owner's names for its records, of which the registry has to know
            (`data_sets`).
    """

    sums: NDArray[np.int64]
    counts: NDArray[np.int64]
    schema: Schema
    feature_map: FeatureMap
    grid: Grid
    ledger: Ledger = field(default_factory=Ledger)
    run: str = ""
    shards: tuple[str, ...] = ()
    data_sets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        shape = (self.feature_map.dimension, len(self.schema.classes))
        if self.sums.shape != shape or self.counts.shape != shape[1:]:
            raise SchemaError("embedding: the sums do not have the shape that the plan gives them")
        self.totals.require_possible_counts(self.grid)
        if self.schema.record_size != self.feature_map.record_size:
            raise SchemaError("embedding: schema and feature map disagree about a record's size")
        if not self.schema.levels == self.feature_map.levels == self.grid.levels:
            raise SchemaError("embedding: schema, feature map and grid disagree about the levels")

        unit = self.schema.privacy_unit
        protected = None if unit is None else unit.column
        if any(entry.privacy_unit != protected for entry in self.ledger.all_entries):
            raise SchemaError(
                "embedding: releases from it, or from others of its data set, protect another "
                "privacy unit, and what unlike ones promise cannot be added up: keep to one of them"
            )

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
        """SHA-256 over everything that shapes the sums except the records themselves."""
        return digest(plan_of(self.schema, self.feature_map, self.grid))


def plan_of(schema: Schema, feature_map: FeatureMap, grid: Grid) -> dict[str, Any]:
    """Everything that shapes the sums except the records themselves, as plain JSON."""
    return {
        "format": FORMAT_VERSION,
        "schema": schema.to_json(),
        "feature_map": feature_map.spec(),
        "weights": weights_digest(feature_map),
        "grid": {"levels": grid.levels, "shift": grid.shift, "capacity": grid.capacity},
    }


def require_storable(schema: Schema, feature_map: FeatureMap, grid: Grid) -> str:
    """The text of a plan, which has to be short enough for an embedding's file.

    Raises:
        SchemaError: it is longer than what can be read back.
    """
    plan = canonical_json(plan_of(schema, feature_map, grid))
    if len(plan) > _LAYOUT.longest_text:
        raise SchemaError(
            f"schema and features have {len(plan):,} characters, and an embedding holds "
            f"{_LAYOUT.longest_text:,} at most: leave out columns, categories or pairs, or shorten "
            "names"
        )
    return plan


def write_embedding(embedding: Embedding, path: Path) -> None:
    """Write an embedding, readable by its owner alone (0600), over whatever is there.

    The ledger of an embedding that is overwritten is lost unless the caller takes it over, as
    `saving.save_embedding` does.

    Raises:
        OutputError: it cannot be written; nothing is left behind.
        SchemaError: it could not be read back; what is there stays.
    """
    plan = require_storable(embedding.schema, embedding.feature_map, embedding.grid)

    def fill(file: h5py.File) -> None:
        file.attrs["SENSITIVE"] = NOTICE
        file.attrs["format_version"] = FORMAT_VERSION
        file.attrs["plan"] = plan
        file.attrs["plan_digest"] = embedding.plan_digest
        file.attrs["records"] = embedding.records
        file.attrs["run"] = embedding.run
        file.attrs["ledger"] = canonical_json(embedding.ledger.to_json())
        if embedding.data_sets:
            file.attrs["data_sets"] = canonical_json({"names": list(embedding.data_sets)})
        file.create_dataset("sums", data=embedding.sums)
        file.create_dataset("counts", data=embedding.counts)
        if embedding.shards:
            shards = np.frombuffer(bytes.fromhex("".join(embedding.shards)), np.uint8)
            file.create_dataset("shards", data=shards.reshape(-1, _DIGEST_SIZE))
        weights = file.create_group("feature_map")  # present even if the map has no weights
        for name, weight in embedding.feature_map.weights().items():
            weights.create_dataset(name, data=weight)

    write_atomically(path, build(EMBEDDING_MAGIC, fill), mode=SENSITIVE_MODE)


def require_embedding(path: Path, hint: str = _NO_FILE) -> None:
    """Check by a file's first line that it is an embedding.

    Args:
        path: the file.
        hint: how to make an embedding, for the error message.

    Raises:
        EmbeddingError: there is none, or it cannot be read.
    """
    with untrusted_files.opened(path, _LARGEST_FILE, refusal=EmbeddingError, hint=hint) as file:
        magic = file.read(len(EMBEDDING_MAGIC))
    if magic != EMBEDDING_MAGIC:
        raise EmbeddingError(f"{path}: not a dpntk embedding; {hint}")


def load_embedding(path: Path | str) -> Embedding:
    """Read an embedding and check that it is whole.

    A file does not show who made it, and `merge` adds up other sites' embeddings. So every
    embedding is read as warily as a stranger's release.

    Args:
        path: the file, as `save_embedding` or 'dpntk embed' wrote it.

    Returns:
        The embedding: SENSITIVE.

    Raises:
        EmbeddingError: there is none at `path`, or it is damaged or of another version.
    """
    path = path_from("path", path, refusal=EmbeddingError)
    contents = _contents(path)
    try:
        return _understand(contents)
    except SchemaError as error:
        raise EmbeddingError(f"{path}: damaged: {error}; {_AGAIN}") from error
    except (LookupError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise EmbeddingError(f"{path}: damaged; {_AGAIN} ({error})") from error


def run_of(path: Path) -> str:
    """Digest of the run that wrote the embedding at `path`; empty if there is none."""
    try:
        return str(_contents(path).attributes.get("run", ""))
    except EmbeddingError:
        return ""


def _contents(path: Path) -> Contents:
    require_embedding(path)
    content = untrusted_files.read(path, _LARGEST_FILE, refusal=EmbeddingError)
    try:
        if content[:USER_BLOCK] != user_block(EMBEDDING_MAGIC):
            raise Refused("damaged: there is more than the first line before the HDF5 part")
        return contents_of(content, [_LAYOUT])
    except Refused as error:
        raise EmbeddingError(f"{path}: {error}; {_AGAIN}") from error


def _names_in(text: str | None) -> tuple[str, ...]:
    """The names of data sets in a file, if there are any."""
    names = [] if text is None else parse_json(text)["names"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise SchemaError("the names of data sets are no names")
    return tuple(names)


def _understand(contents: Contents) -> Embedding:
    attributes: Mapping[str, Any] = contents.attributes
    arrays = dict(contents.arrays)
    plan: Mapping[str, Any] = parse_json(attributes["plan"])
    if plan["format"] != FORMAT_VERSION:
        raise SchemaError(f"format {plan['format']}, this dpntk reads {FORMAT_VERSION}")
    sums, counts = arrays.pop("sums"), arrays.pop("counts")
    shards = arrays.pop("shards", np.zeros((0, _DIGEST_SIZE), np.uint8))
    if shards.shape[1:] != (_DIGEST_SIZE,):
        raise SchemaError("the shards' digests are not those of embeddings")
    embedding = Embedding(
        sums=sums,
        counts=counts,
        schema=schema_from_json(plan["schema"]),
        feature_map=feature_map_from_spec(
            plan["feature_map"],
            {path.removeprefix("feature_map/"): weight for path, weight in arrays.items()},
        ),
        grid=Grid(**plan["grid"]),
        ledger=Ledger.from_json(parse_json(attributes["ledger"])),
        run=attributes.get("run", ""),
        shards=tuple(row.tobytes().hex() for row in shards),
        data_sets=_names_in(attributes.get("data_sets")),
    )
    if embedding.plan_digest != attributes["plan_digest"]:
        raise SchemaError("the plan digest does not match the plan")
    if embedding.records != attributes["records"]:
        raise SchemaError("the number of records does not match the class counts")
    if not embedding.records:
        raise SchemaError("no record was added up")
    embedding.totals.require_possible(embedding.grid)
    # Counts of magnitudes, from which bounds are found, have more cells than other marginals.
    if not is_approx_bounds(embedding.schema, embedding.feature_map):
        require_columns_of(embedding.schema, embedding.feature_map)
    return embedding
