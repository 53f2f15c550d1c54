"""Whether a feature map's columns are those of a schema."""

from __future__ import annotations

from dataclasses import replace

from ..errors import SchemaError
from ..schema import Schema
from ..schema.table import TableSchema
from .base import FeatureMap
from .joint import parts_of
from .marginals.cells import CELLS, FEW_CELLS
from .marginals.map import MarginalFeatures
from .moments import MomentFeatures


def require_columns_of(schema: Schema, feature_map: FeatureMap) -> None:
    """Check that marginals and products of columns are those of a schema's columns.

    Embeddings and releases may come from strangers, whose marginals might count what is no column.

    Raises:
        SchemaError: they are not; the message says which.
    """
    parts = parts_of(feature_map)
    if parts.marginals is None:  # and no products, which stand beside marginals only
        return
    if not isinstance(schema, TableSchema) or not _are_marginals_of(schema, parts.marginals):
        raise SchemaError("the marginals are not those of the schema's columns")
    # Which numeric column is the target, and how much more it weighs, is the owner's choice.
    moments = parts.moments
    if moments is None:
        return
    known = (MomentFeatures.of(schema, with_many=with_many) for with_many in (True, False))
    if replace(moments, target=None) not in known:
        raise SchemaError("the products of columns are not those of the schema's columns")


def _are_marginals_of(schema: TableSchema, marginals: MarginalFeatures) -> bool:
    try:
        groups = marginals.names_of_groups(schema)
        usual = (
            replace(
                MarginalFeatures.of(schema, cells, groups=groups, fine=fine),
                group_length=marginals.group_length,
            )
            for cells in (CELLS, FEW_CELLS)
            for fine in (False, True)
        )
        by_level = marginals.by_level and (
            MarginalFeatures.of(schema, groups=groups, fine=True, undecided=True).by_level
        )
        own, is_known = replace(marginals.unmerged, undecided=False), False
        if not groups and any(not column.kind.numeric for column in schema.encoded):
            is_known = own == MarginalFeatures.of(schema, numbers=False)
        return (is_known or own in usual) and marginals.by_level == by_level
    except SchemaError:
        return False
