"""Bounds of a table's columns, found in its rows with differential privacy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from scipy.special import ndtri

from ...common.adjacency import Adjacency
from ...common.arguments import argument
from ...common.errors import BudgetError, SchemaError
from ...common.features.approx_bounds import approx_bounds_map, bounds_from
from ...common.features.marginals.cells import MOST_CELLS
from ...common.features.marginals.map import MarginalFeatures
from ...common.ledger import Ledger
from ...common.schema.draft import Draft
from ...common.schema.private_bounds import approx_bounds_schema
from ...common.storage.atomic import followed
from ...common.storage.locks import locked
from ...embed.sums.file import load_embedding, require_embedding
from ..mechanism.composition import Total
from ..mechanism.gaussian import add_noise
from .parameters import PrivacyParameters, noise_for
from .pipeline import enter_release

_BY_CHANCE: Final = 1e-3
"""Largest probability that any empty cell, of any column, counts as not empty."""
_NO_FILE: Final = "'dpntk embed DATA --private-bounds' makes one"


def standing_out(columns: int) -> float:
    """How many standard deviations of the noise a cell has to hold to count as not empty.

    Guarantee:
        Of the cells of all columns, were they all empty, one holds as much with probability at most
        1/1000: each of them with at most its share of that. It depends on the number of columns
        alone, which is public. (docs/privacy/proofs.md, statement 20.)

    Args:
        columns: how many columns' bounds are to be found.
    """
    return -float(ndtri(_BY_CHANCE / (columns * MOST_CELLS)))


def rows_to_stand_out(feature_map: MarginalFeatures, sigma: float) -> float:
    """How many rows of one magnitude are seen through nearly any noise.

    Args:
        feature_map: that counts magnitudes.
        sigma: standard deviation of the noise on every sum, in units of the norm of a feature.
    """
    return standing_out(len(feature_map.columns)) * sigma / feature_map.entry


def find_bounds(
    path: Path,
    draft: Draft,
    parameters: PrivacyParameters,
    compose: Callable[[Total], bool] = lambda total: False,
) -> Draft:
    """Find the bounds of the columns that are marked for it, and enter what that spends.

    Columns of which no magnitude stands out from the noise, or of which most rows seem to be beyond
    those that do, stay marked, so that they can be declared or looked at again; what was spent is
    counted in any case.

    Guarantee:
        The noisy counts satisfy (epsilon, delta) differential privacy as every release does: they
        are sums of marginals, with the noise of `gaussian.calibrate`, and their entry is on the
        disk before the noise is drawn. The bounds, and which columns get none, are a function of
        them and of the draft, and, under replace-one, of the number of records, which is public
        there. So is whether too few are refused before anything is spent: under add-remove, where
        that would show how many records there are, they never are.
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
        BudgetError: the parameters make no sense; something was spent under another adjacency;
            there are, in all, too few records to stand out from the noise; or no bounds are found
            for any column, and the draft has none that were found before.
    """
    require_embedding(path, _NO_FILE)
    path = followed(path)
    with locked(path):
        embedding = load_embedding(path)
        if (unit := embedding.schema.privacy_unit) is not None:
            draft = draft.with_privacy_unit(unit)
        schema = approx_bounds_schema(draft.stated, draft.private)
        feature_map = approx_bounds_map(schema)
        if embedding.schema != schema or embedding.feature_map != feature_map:
            raise SchemaError(
                f"{path}: not the magnitudes of the columns that the schema marks: make it by "
                "'dpntk embed DATA --schema SCHEMA.TOML --private-bounds'"
            )
        # Another embedding may have served to find the bounds that the draft has already.
        ledger = embedding.ledger.beginning_with(draft.schema.spent)
        _require_adjacency(ledger, parameters.adjacency)
        public = parameters.adjacency is Adjacency.REPLACE_ONE  # the number of records
        sigma = noise_for(embedding, parameters).sigma / embedding.grid.units_per_one
        least = rows_to_stand_out(feature_map, sigma)
        if public and embedding.records < least:
            raise BudgetError(
                f"{path}: {embedding.records:,} rows are too few: {least:,.0f} of one magnitude "
                "would stand out from the noise: declare the bounds, or spend more; "
                "nothing was spent"
            )
        embedding = replace(embedding, ledger=ledger)
        planned = enter_release(path, embedding, parameters, compose)
        spent = embedding.ledger.with_entry(planned.entry).all_entries
    noisy = add_noise(embedding.sums, embedding.counts, planned.uniform).sums[:, 0]
    cells = noisy / (feature_map.entry * embedding.grid.units_per_one)
    # Of each column every record is in one cell.
    rows = embedding.records if public else float(cells.sum()) / len(schema.columns)
    found: dict[str, tuple[float, float]] = {}
    for column, place in zip(schema.columns, feature_map.places, strict=True):
        bounds = bounds_from(column, cells[place], least, rows)
        if bounds is not None:
            found[column.name] = bounds
    if not found and not draft.schema.private_bounds:
        raise BudgetError(
            f"column {schema.columns[0].name!r}: no magnitude has {least:,.0f} records, which "
            "would stand out from the noise, or most rows are beyond those that have: declare the "
            f"bounds, or spend more; {path} counts what was spent"
        )
    return draft.with_bounds(found, spent)


def _require_adjacency(ledger: Ledger, adjacency: Adjacency) -> None:
    """Check that what was spent on bounds before was spent under the same adjacency."""
    for entry in ledger.all_entries:
        if entry.adjacency is not adjacency:
            raise BudgetError(
                f"something was spent on bounds under {entry.adjacency.value} before: find "
                f"these with {argument('adjacency', entry.adjacency)} too, no release can count "
                "both"
            )
