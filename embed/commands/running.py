"""What `dpntk embed` does, once its command line is understood."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from ...common.adjacency import Adjacency
from ...common.cli.default_paths import EMBEDDING, MAGNITUDES, RELEASE
from ...common.cli.options import elsewhere
from ...common.display.console import console, notice, warning
from ...common.display.text import counted, so_many, typed
from ...common.errors import BudgetError, SchemaError
from ...common.features.approx_bounds import approx_bounds_map
from ...common.features.base import FeatureMap
from ...common.ledger import DEFAULT_DELTA, PrivacyBudget, default_delta
from ...common.runtime.ranks import Ranks
from ...common.runtime.threads import use_threads
from ...common.schema.classes import numbered
from ...common.schema.drafts.toml import read_draft
from ...common.schema.privacy_unit import PrivacyUnit, declared_unit
from ...common.sources.options import SourceOptions
from ...common.storage.atomic import followed, require_absent
from ...common.storage.container import EMBEDDING_BEGINS
from ..exact.grid import MOST_RECORDS
from ..feature_options.base import FeatureOptions
from ..pipeline import embed
from ..run.work_folder import NothingLeft, WorkFolder
from ..sums.data_sets import require_name
from ..sums.file import Embedding, load_embedding
from ..sums.saving import COST, add_to_data_set, require_not_raised, save_embedding
from .feature_options import MakeOptions
from .source_options import say_what_was_looked_up, with_schema

_LEAST_DELTA: Final = default_delta(Adjacency.REPLACE_ONE, MOST_RECORDS)
"""The least delta that a ceiling can get by default: the number of records decides it later."""


def run(
    data: Path | str,
    *,
    features: MakeOptions,
    source: SourceOptions,
    unit: str | None,
    rows_per_unit: int | None,
    output: Path | None,
    overwrite: bool,
    budget_eps: float | None,
    budget_delta: float | None,
    data_set: str | None,
    feature_seed: int,
    module: Path | None,
    module_is_public: bool,
    device: str,
    capacity: int | None,
    restart: bool,
    checkpoint_every: float | None,
    threads: int | None,
    accept_from_data: bool,
    private_bounds: bool,
) -> None:
    """Embed records; arguments are the command's options."""
    account = _Account(budget_eps, budget_delta, data_set)
    account.require_possible()
    output = followed(output or Path(MAGNITUDES if private_bounds else EMBEDDING))
    options = features(seed=feature_seed, module=module, module_is_public=module_is_public)
    protected = declared_unit(unit, rows_per_unit)
    bounds_of = source.schema if private_bounds and isinstance(source.schema, Path) else None
    chosen: FeatureOptions | FeatureMap = options
    if private_bounds:
        chosen, source = _magnitudes(options, source, protected, accept_from_data)
    else:
        source = with_schema(source, accept_from_data=accept_from_data, privacy_unit=protected)
    may_write = partial(
        require_absent, output, overwrite=overwrite, cost=COST, begins=EMBEDDING_BEGINS
    )
    work = WorkFolder(
        output,
        Ranks.from_environment(),
        interval=checkpoint_every,
        restart=restart,
        may_write=may_write,
    )
    if not work.may_be_finished:
        may_write()
    use_threads(threads)
    # An existing ledger will be taken over.
    require_not_raised(account.ceiling(_LEAST_DELTA), output, data_set)
    with work:
        try:
            embedding = embed(
                data,
                chosen,
                source,
                device=device,
                capacity=capacity,
                carry_out=work.carry_out,
            )
        except NothingLeft as reason:
            if reason.written:
                account.require_kept(output)
            notice(str(reason))
            return
        ceiling = account.ceiling(_usual_delta(embedding))
        # While the records were read, a release or another file may have been made.
        save_embedding(embedding, output, overwrite=overwrite, ceiling=ceiling, data_set=data_set)
        work.remove()
    _say_what_was_made(embedding, output, bounds_of)


@dataclass(frozen=True)
class _Account:
    """The options of the ledger: the ceiling, and the name of the data set.

    Attributes:
        epsilon: the ceiling's epsilon; None for no ceiling.
        delta: the ceiling's delta; None for the default.
        data_set: name of the data set, if any.
    """

    epsilon: float | None
    delta: float | None
    data_set: str | None

    def require_possible(self) -> None:
        """Refuse early what no ledger can hold.

        Raises:
            BudgetError: the ceiling makes no sense, or the name of the data set is invalid.
        """
        if self.epsilon is None and self.delta is not None:
            raise BudgetError("--budget-delta means nothing without --budget-eps")
        self.ceiling(_LEAST_DELTA)
        if self.data_set is not None:
            require_name(self.data_set)

    def ceiling(self, usual: float) -> PrivacyBudget | None:
        """The ceiling, with the delta `usual` if none is given."""
        if self.epsilon is None:
            return None
        return PrivacyBudget(self.epsilon, usual if self.delta is None else self.delta)

    def require_kept(self, output: Path) -> None:
        """Check that an existing result has this ceiling, and name its data set.

        Raises:
            BudgetError: it has another ceiling.
        """
        made = load_embedding(output)
        ceiling = self.ceiling(_usual_delta(made))
        if ceiling and made.ledger.ceiling != ceiling:
            raise BudgetError(
                f"{output} holds the embedding of these records already, with another ceiling: "
                "set it with --overwrite, on one process"
            )
        if self.data_set is not None:
            add_to_data_set(self.data_set, output)


def _magnitudes(
    features: FeatureOptions,
    source: SourceOptions,
    unit: PrivacyUnit | None,
    accept_from_data: bool,
) -> tuple[FeatureMap, SourceOptions]:
    """The map that counts the magnitudes of columns to find their bounds, and their schema."""
    path = source.schema
    if not isinstance(path, Path):
        raise SchemaError("--private-bounds means nothing without --schema")
    draft = read_draft(path)
    draft = draft if unit is None else draft.with_privacy_unit(unit)
    table = draft.approx_bounds_schema(str(path), accept_from_data=accept_from_data)
    features.refuse_all("--private-bounds counts how large numbers are, and nothing else")
    return approx_bounds_map(table), replace(source, schema=table)


def _usual_delta(embedding: Embedding) -> float:
    """The default delta of a ceiling; if units are protected, it must not depend on n."""
    alone = embedding.schema.privacy_unit is None
    return default_delta(Adjacency.REPLACE_ONE, embedding.records) if alone else DEFAULT_DELTA


def _say_what_was_made(embedding: Embedding, output: Path, bounds_of: Path | None) -> None:
    """Tell the owner what the file holds, that it is sensitive, and what comes next.

    Args:
        embedding: the embedding.
        output: its file.
        bounds_of: the schema whose bounds will be found from it; None if it will be released.
    """
    schema = embedding.schema
    say_what_was_looked_up(schema)
    console.print(
        f"embedded {so_many(embedding.records, schema.noun, schema.noun)} in "
        f"{counted(len(schema.classes), 'class', 'classes')} as {embedding.sums.shape[0]:,} x "
        f"{embedding.sums.shape[1]} sums"
    )
    if empty := int((embedding.counts == 0).sum()):
        gaps = "; labels that begin at 1, or have gaps, can be named: --class-names 1,2,3"
        warning(
            f"no record is of {so_many(empty, 'class', 'classes')} of "
            f"{len(schema.classes)}: "
            "what a release shows of such a class is noise alone"
            f"{gaps if schema.classes == numbered(len(schema.classes)) else ''}"
        )
    warning(f"{output} is SENSITIVE: it is not private, and only you can read it (0600)")
    adjacency, number = "", ""
    if schema.privacy_unit is not None:
        adjacency = " --adjacency add-remove"
        number = " --records N (what you would say in public of how many rows there are)"
    if bounds_of is not None:
        bounds = f"dpntk bounds {typed(output)} --schema {typed(bounds_of)} --eps 0.1"
        console.print(
            f"next: {bounds}{adjacency}",
            f"how many rows that needs: dpntk plan {typed(output)} --eps 0.1{adjacency}{number}",
        )
    else:
        console.print(
            f"next: dpntk release {typed(output)} --eps 1{adjacency}"
            f"{elsewhere(RELEASE, f'{output.stem}-release.h5')}",
            f"how noisy that would be: dpntk plan {typed(output)} --eps 1{adjacency}{number}",
        )
