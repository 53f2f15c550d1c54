"""Stage one: reduce sensitive records to an embedding, the exact sums of their features.

Only this stage reads the records. An embedding is as sensitive as they are: keep it where they are.

Example, with the table that `dpntk demo --table` writes::

    from dpntk.embed import SourceOptions, embed, save_embedding

    embedding = embed("demo/train.csv", source=SourceOptions(schema="demo/schema.toml"))
    save_embedding(embedding, "embedding.h5")

A folder of images needs no schema: `embed("images/")`.

The public names, by what they are for:

- Embed records: `embed`, with `SourceOptions` for how to read them. `open_source` opens them
  without embedding them, as `dpntk.release.distill` needs it.
- Keep an embedding: `save_embedding`, `load_embedding`, `Embedding`, and `PrivacyBudget` for a
  ceiling on all its releases.
- Add up embeddings of shards or sites: `merge_files`, or `merge` in memory.
- Describe a table: `TableSchema`, `Column`, and `PrivacyUnit` if a person has several rows;
  `LookupColumn` and `MadeColumn` for columns that are not read; `CsvFormat` for how its files are
  written; `read_schema` and `save_schema` for the schema's own.
- Have a description drafted: `draft_schema`, which gives a `Draft`.
- Choose features (`FeatureOptions`): `TangentOptions` is the default; `PixelOptions`,
  `FourierOptions`, `HermiteOptions` and `PerceptualOptions` are the others, and
  `tangent_features_of` takes a torch network of yours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.lazy import attach

if TYPE_CHECKING:
    from ..common.ledger import PrivacyBudget
    from ..common.schema.columns.column import Column
    from ..common.schema.columns.lookup import LookupColumn
    from ..common.schema.columns.made import MadeColumn
    from ..common.schema.csv_format import CsvFormat
    from ..common.schema.drafts.draft import Draft
    from ..common.schema.drafts.toml import read_schema, save_schema
    from ..common.schema.privacy_unit import PrivacyUnit
    from ..common.schema.table import TableSchema
    from ..common.sources import SourceOptions, open_source
    from .feature_options.base import FeatureOptions
    from .feature_options.drawn import HermiteOptions
    from .feature_options.fourier import FourierOptions
    from .feature_options.perceptual import PerceptualOptions
    from .feature_options.pixels import PixelOptions
    from .feature_options.tangent import TangentOptions
    from .from_torch import tangent_features_of
    from .inference.schema import draft_schema
    from .merging import merge, merge_files
    from .pipeline import embed
    from .sums.file import Embedding, load_embedding
    from .sums.saving import save_embedding

__all__ = [
    "Column",
    "CsvFormat",
    "Draft",
    "Embedding",
    "FeatureOptions",
    "FourierOptions",
    "HermiteOptions",
    "LookupColumn",
    "MadeColumn",
    "PerceptualOptions",
    "PixelOptions",
    "PrivacyBudget",
    "PrivacyUnit",
    "SourceOptions",
    "TableSchema",
    "TangentOptions",
    "draft_schema",
    "embed",
    "load_embedding",
    "merge",
    "merge_files",
    "open_source",
    "read_schema",
    "save_embedding",
    "save_schema",
    "tangent_features_of",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "Column": "..common.schema.columns.column",
        "CsvFormat": "..common.schema.csv_format",
        "Draft": "..common.schema.drafts.draft",
        "Embedding": ".sums.file",
        "FeatureOptions": ".feature_options.base",
        "FourierOptions": ".feature_options.fourier",
        "HermiteOptions": ".feature_options.drawn",
        "LookupColumn": "..common.schema.columns.lookup",
        "MadeColumn": "..common.schema.columns.made",
        "PerceptualOptions": ".feature_options.perceptual",
        "PixelOptions": ".feature_options.pixels",
        "PrivacyBudget": "..common.ledger",
        "PrivacyUnit": "..common.schema.privacy_unit",
        "SourceOptions": "..common.sources",
        "TableSchema": "..common.schema.table",
        "TangentOptions": ".feature_options.tangent",
        "draft_schema": ".inference.schema",
        "embed": ".pipeline",
        "load_embedding": ".sums.file",
        "merge": ".merging",
        "merge_files": ".merging",
        "open_source": "..common.sources",
        "read_schema": "..common.schema.drafts.toml",
        "save_embedding": ".sums.saving",
        "save_schema": "..common.schema.drafts.toml",
        "tangent_features_of": ".from_torch",
    },
)
