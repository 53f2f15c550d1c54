"""The command `dpntk embed`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import click

from ...common.adjacency import Adjacency
from ...common.cli.default_paths import EMBEDDING, MAGNITUDES, RELEASE
from ...common.cli.options import (
    DataPath,
    FiniteRange,
    device_option,
    elsewhere,
    module_option,
    output_option,
    overwrite_option,
    quiet_values_option,
    seed_option,
    unit_options,
)
from ...common.cli.sections import (
    Section,
    SectionedCommand,
    map_option,
    running_option,
    table_option,
)
from ...common.display.console import console, notice, warning
from ...common.display.text import counted, typed
from ...common.errors import BudgetError, SchemaError
from ...common.features.approx_bounds import approx_bounds_map
from ...common.features.base import FeatureMap
from ...common.ledger import DEFAULT_DELTA, PrivacyBudget, default_delta
from ...common.runtime.ranks import Ranks
from ...common.runtime.threads import use_threads
from ...common.schema.classes import numbered
from ...common.schema.privacy_unit import PrivacyUnit, declared_unit
from ...common.schema.toml import read_draft
from ...common.sources.options import SourceOptions
from ...common.storage.atomic import followed, require_absent
from ...common.storage.container import EMBEDDING_BEGINS
from ..feature_options.base import FeatureOptions
from ..pipeline import embed
from ..run.work_folder import NothingLeft, WorkFolder
from ..sums.data_sets import declare, require_name
from ..sums.file import Embedding, load_embedding
from ..sums.saving import COST, require_not_raised, save_embedding
from .feature_options import MakeOptions, feature_options
from .source_options import say_what_was_looked_up, source_options, with_schema

_MOST_RECORDS: Final = 1 << 62
_LEAST_DELTA: Final = default_delta(Adjacency.REPLACE_ONE, _MOST_RECORDS)
"""The least delta that a ceiling can get by default: the number of records decides it later."""


@click.command("embed", cls=SectionedCommand)
@click.argument("data", type=DataPath())
@output_option(
    "Where to write the embedding. It is SENSITIVE: keep it where the records are. [default: "
    "embedding.h5; magnitudes.h5 with --private-bounds]"
)
@overwrite_option("Replace an embedding that is already there; the new one takes over its ledger.")
@click.option(
    "--budget-eps", type=float, metavar="EPSILON",
    help="Set a ceiling: all releases from this embedding together may not spend more.",
)  # fmt: skip
@click.option(
    "--budget-delta", type=float, metavar="DELTA",
    help="Delta of the ceiling [default: that of 'dpntk release']",
)  # fmt: skip
@click.option(
    "--data-set", metavar="NAME",
    help="Your name for these records, if you embed them more than once: releases from all "
    "embeddings with that name are added up.",
)  # fmt: skip
@feature_options
@seed_option(
    "Seed of the feature map's random weights (never of noise: noise has no seed).",
    0,
    "--feature-seed",
    Section.FEATURES,
)
@module_option(
    "For perceptual: a TorchScript archive, written by torch.jit.script(module).save(FILE), that "
    "maps float32 images (b, 1, side, side), or (b, 3, side, side) in colour, with values 0 to 1, "
    "to numbers (b, ...). It is a program and will be run. Whoever generates needs the same file.",
    Section.FEATURES,
)
@map_option(
    "--module-is-public", is_flag=True,
    help="For perceptual: declare that the module was trained on public data only. The guarantee "
    "does not cover what it was trained on.",
)  # fmt: skip
@device_option
@source_options
@unit_options
@running_option(
    "--capacity", type=click.IntRange(1, _MOST_RECORDS), metavar="N",
    help="Make room for this many records in all, if shards are to be added up later "
    "[default: 1048576, or as many as there are if that is more]",
)  # fmt: skip
@running_option(
    "--restart", is_flag=True,
    help="Throw away the progress of an interrupted run, and begin anew.",
)  # fmt: skip
@running_option(
    "--checkpoint-every", type=FiniteRange(0), metavar="SECONDS",
    help="How often to save the progress [default: every 30 seconds, or less often if that would "
    "cost more than 2 % of the time]",
)  # fmt: skip
@quiet_values_option
@table_option(
    "--private-bounds", is_flag=True,
    help="Count only the order of magnitude of each number, so that 'dpntk bounds' can find bounds "
    'for the columns that have bounds = "private" in the schema.',
)  # fmt: skip
def command(
    data: Path | str,
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
    """Stream the records in DATA once and keep only their class-wise feature sums.

    With --schema, DATA is a table: a CSV (.csv, .csv.gz) or Parquet file, or a folder of them.

    Otherwise DATA holds images. It is a folder with one folder of PNG, JPEG, TIFF, BMP or WebP
    files for each class, MNIST-style IDX files (gzipped or not, also in shards), arrays x.npy and
    y.npy, train.npz, CIFAR-10's binary files, Parquet files or tar shards; or a single .npz,
    .parquet or .tar file. Images without labels form one class.

    DATA may lie in object storage, as in s3://bucket/folder; credentials come from the environment.

    After an interruption, the same command continues where it stopped. Several processes share the
    work if they are started together: torchrun --nproc-per-node 2 --no-python dpntk embed DATA.
    """
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
    work = WorkFolder(output, Ranks.from_environment(), interval=checkpoint_every, restart=restart)
    may_write = partial(
        require_absent, output, overwrite=overwrite, cost=COST, begins=EMBEDDING_BEGINS
    )
    if not work.may_be_finished:
        may_write()
    use_threads(threads)
    # An existing ledger will be taken over.
    require_not_raised(account.ceiling(_LEAST_DELTA), output)
    with work:
        try:
            embedding = embed(
                data,
                chosen,
                source,
                device=device,
                capacity=capacity,
                carry_out=partial(work.carry_out, may_write=may_write),
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
            declare(self.data_set, made, output)


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
        f"embedded {embedding.records:,} {schema.noun} in "
        f"{counted(len(schema.classes), 'class', 'classes')} as {embedding.sums.shape[0]:,} x "
        f"{embedding.sums.shape[1]} sums"
    )
    if empty := int((embedding.counts == 0).sum()):
        gaps = "; labels that begin at 1, or have gaps, can be named: --class-names 1,2,3"
        warning(
            f"no record is of {counted(empty, 'class', 'classes')} of {len(schema.classes)}: "
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
