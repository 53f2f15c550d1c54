"""Bounds of a table's columns, found in its rows with differential privacy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from scipy.special import ndtri

from ...common.errors import BudgetError, SchemaError
from ...common.features.approx_bounds import approx_bounds_map, bounds_from
from ...common.features.marginals import MOST_CELLS
from ...common.schema.private_bounds import approx_bounds_schema
from ...common.schema.toml import Draft
from ...common.storage.atomic import followed
from ...common.storage.locks import locked
from ...embed.sums.file import load_embedding, require_embedding
from ..mechanism.composition import Total
from ..mechanism.gaussian import add_noise
from .parameters import PrivacyParameters
from .pipeline import enter_release

_BY_CHANCE: Final = 1e-3
"""Probability, at most, that any cell of any column which is empty counts as not empty."""


def standing_out(columns: int) -> float:
    """How many standard deviations of the noise a cell holds that counts as not empty.

    Guarantee:
        Of the cells of all columns, were they all empty, one holds as much with probability at most
        1/1000: each of them with at most its share of that. It depends on the number of columns
        alone, which is public. (docs/privacy/proofs.md, statement 20.)

    Args:
        columns: how many columns' bounds are to be found.
    """
    return -float(ndtri(_BY_CHANCE / (columns * MOST_CELLS)))


def find_bounds(
    path: Path,
    draft: Draft,
    parameters: PrivacyParameters,
    compose: Callable[[Total], bool] = lambda total: False,
) -> Draft:
    """Find the bounds of the columns that are marked for it, and enter what that spends.

    Columns of which no magnitude stands out of the noise stay marked, so that they can be declared
    or looked at again; what was spent is counted in any case.

    Guarantee:
        The noisy counts satisfy (epsilon, delta) differential privacy as every release does: they
        are sums of marginals, with the noise of `gaussian.calibrate`, and their entry is on the
        disk before the noise is drawn. The bounds are a function of them and of the draft.
        Whatever is embedded with them is composed with them: they carry their entry along.
        (docs/privacy/proofs.md, statement 20.)

    Args:
        path: the embedding of magnitudes; its ledger is rewritten.
        draft: of the schema that it was made with.
        parameters: what is to be promised; class counts are of no use here.
        compose: asked, if something was spent before, whether the joint promise is acceptable.

    Returns:
        The draft with the bounds that were found, and with all that was spent on the records so
        far.

    Raises:
        EmbeddingError: there is no whole embedding.
        SchemaError: it is not of the magnitudes of the draft's columns.
        BudgetError: the parameters make no sense; something was spent under another adjacency; or
            no magnitude of any column stands out of the noise, and the draft has no bounds that
            were found before.
    """
    require_embedding(path)
    path = followed(path)
    with locked(path):
        embedding = load_embedding(path)
        if (unit := embedding.schema.privacy_unit) is not None:
            draft = draft.with_unit(unit)
        schema = approx_bounds_schema(draft.schema, draft.private)
        feature_map = approx_bounds_map(schema)
        if embedding.schema != schema or embedding.feature_map != feature_map:
            raise SchemaError(
                f"{path}: not the magnitudes of the columns that the schema marks: make it by "
                "'dpntk embed DATA --schema SCHEMA.TOML --private-bounds'"
            )
        # Another embedding may have served to find the bounds that the draft has already.
        ledger = embedding.ledger.beginning_with(draft.schema.spent)
        for entry in ledger.all_entries:
            if entry.adjacency is not parameters.adjacency:
                raise BudgetError(
                    f"something was spent on bounds under {entry.adjacency.value} before: find "
                    f"these with --adjacency {entry.adjacency.value} too, no release can count both"
                )
        embedding = replace(embedding, ledger=ledger)
        scale, entry, _ = enter_release(path, embedding, parameters, compose)
        spent = embedding.ledger.with_entry(entry).all_entries
    noisy = add_noise(embedding.sums, embedding.counts, scale).sums[:, 0]
    one_record = feature_map.entry * embedding.grid.units_per_one
    least = standing_out(len(schema.columns)) * scale.sigma / one_record
    found: dict[str, tuple[float, float]] = {}
    for column, place in zip(schema.columns, feature_map.places, strict=True):
        bounds = bounds_from(column, noisy[place] / one_record, least)
        if bounds is not None:
            found[column.name] = bounds
    if not found and not draft.schema.private_bounds:
        raise BudgetError(
            f"column {schema.columns[0].name!r}: no magnitude has {least:,.0f} records, which "
            f"would stand out of the noise: declare the bounds, or spend more; {path} counts "
            "what was spent"
        )
    return draft.with_bounds(found, spent)
