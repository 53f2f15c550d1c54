"""Find bounds of a table's columns with differential privacy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from scipy.special import ndtri

from ...common.adjacency import Adjacency
from ...common.arguments import argument
from ...common.errors import BudgetError, OutputError, SchemaError
from ...common.features.approx_bounds import approx_bounds_map, bounds_from
from ...common.features.marginals.cells import MOST_CELLS
from ...common.features.marginals.map import MarginalFeatures
from ...common.ledger import Ledger
from ...common.schema.drafts.draft import Draft
from ...common.schema.drafts.private_bounds import approx_bounds_schema
from ...common.schema.table import TableSchema
from ...common.storage.atomic import followed
from ...common.storage.locks import locked
from ...embed.sums.file import Embedding, load_embedding, require_embedding
from ..mechanism.composition import Total
from ..mechanism.gaussian import add_noise
from .parameters import PrivacyParameters, noise_for
from .pipeline import Planned, enter_release

_FALSE_POSITIVE: Final = 1e-3
"""Largest probability that any empty cell of any column counts as occupied."""
_NO_FILE: Final = "'dpntk embed DATA --private-bounds' makes one"


def occupied_threshold(columns: int) -> float:
    """The number of standard deviations of the noise above which a cell counts as occupied.

    Guarantee:
        If all cells of all columns were empty, any of them would exceed this with probability at
        most 1/1000, by a union bound. It depends only on the number of columns, which is public.
        (docs/privacy/proofs.md, statement 20.)

    Args:
        columns: number of columns whose bounds are to be found.
    """
    return -float(ndtri(_FALSE_POSITIVE / (columns * MOST_CELLS)))


def rows_to_exceed_noise(feature_map: MarginalFeatures, sigma: float) -> float:
    """The number of rows of one magnitude that stand out from the noise.

    Args:
        feature_map: counts magnitudes.
        sigma: standard deviation of the noise on every sum, in units of the norm of a feature.
    """
    return occupied_threshold(len(feature_map.columns)) * sigma / feature_map.entry


def find_bounds(
    path: Path,
    draft: Draft,
    parameters: PrivacyParameters,
    compose: Callable[[Total], bool] = lambda total: False,
) -> Draft:
    """Find the bounds of the columns that are marked for it, and record what that spends.

    Columns stay marked, to be declared or tried again, if no magnitude stands out from the noise,
    if most rows seem to lie beyond those that do, or if what was found contradicts a constraint.
    What was spent counts in any case.

    Guarantee:
        The noisy counts satisfy (epsilon, delta) differential privacy as every release does: they
        are sums of marginals, with the noise of `gaussian.calibrate`, and their entry is on the
        disk before the noise is drawn. The bounds, and which columns get none, are a function of
        these and of the draft, and, under replace-one, of the number of records, which is public
        there. So is the refusal of too few records before anything is spent: under add-remove,
        where it would reveal the number of records, there is none. Whatever is embedded with the
        bounds is composed with them: they carry their entry along. (docs/privacy/proofs.md,
        statement 20.)

    Args:
        path: the embedding of magnitudes; its ledger is rewritten.
        draft: of the schema that it was made with.
        parameters: the promise; class counts are not used here.
        compose: called, if something was spent before, to ask whether the joint promise is
            acceptable.

    Returns:
        The draft with the bounds that were found, and with everything spent on the records so far.

    Raises:
        EmbeddingError: there is no complete embedding.
        SchemaError: it is not of the magnitudes of the draft's columns, or all bounds that are
            found contradict constraints, and the draft has none from before.
        OutputError: it was interrupted after something was spent.
        BudgetError: the parameters mean no noise, or do not suit the embedding; something was spent
            under another adjacency; there are too few records to stand out from the noise; or no
            bounds are found for any column, and the draft has none from before.
    """
    if parameters.not_private:
        raise BudgetError(
            "bounds are found with noise only: without any, they are what 'dpntk schema' drafts"
        )
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
        # Bounds that the draft already has may come from another embedding.
        ledger = embedding.ledger.with_earlier(draft.schema.spent)
        _require_adjacency(ledger, parameters.adjacency)
        public = parameters.adjacency is Adjacency.REPLACE_ONE  # the number of records
        sigma = noise_for(embedding, parameters).sigma / embedding.grid.units_per_one
        least = rows_to_exceed_noise(feature_map, sigma)
        if public and embedding.records < least:
            raise BudgetError(
                f"{path}: {embedding.records:,} rows are too few: {least:,.0f} of one magnitude "
                "would stand out from the noise: declare the bounds, or spend more; "
                "nothing was spent"
            )
        embedding = replace(embedding, ledger=ledger)
        planned = enter_release(path, embedding, parameters, compose)
    try:
        return _with_bounds(draft, path, embedding, planned, least=least, public=public)
    except KeyboardInterrupt as error:
        raise OutputError(f"interrupted; {path} counts what was spent all the same") from error


def _with_bounds(
    draft: Draft, path: Path, embedding: Embedding, planned: Planned, *, least: float, public: bool
) -> Draft:
    """Draw the noise of a release that is entered, and read bounds off what has it.

    Args:
        draft: of the schema.
        path: of the embedding.
        embedding: of magnitudes, with everything spent before.
        planned: the release.
        least: as many records of one magnitude stand out from the noise.
        public: whether the number of records is.
    """
    schema, feature_map = embedding.schema, embedding.feature_map
    assert isinstance(schema, TableSchema)
    assert isinstance(feature_map, MarginalFeatures)
    spent = embedding.ledger.with_entry(planned.entry).all_entries
    noisy = add_noise(embedding.sums, embedding.counts, planned.uniform).sums[:, 0]
    cells = noisy / (feature_map.entry * embedding.grid.units_per_one)
    # Every record is in one cell of each column.
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
    try:
        return draft.with_bounds(found, spent)
    except SchemaError as error:
        raise SchemaError(f"{error}: declare the bounds; {path} counts what was spent") from error


def _require_adjacency(ledger: Ledger, adjacency: Adjacency) -> None:
    """Check that earlier spending on bounds was under the same adjacency."""
    for entry in ledger.all_entries:
        if entry.adjacency is not adjacency:
            raise BudgetError(
                f"something was spent on bounds under {entry.adjacency.value} before: find "
                f"these with {argument('adjacency', entry.adjacency)} too, no release can count "
                "both"
            )
