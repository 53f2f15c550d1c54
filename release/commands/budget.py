"""The command `dpntk budget`."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import click

from ...common.adjacency import Adjacency
from ...common.cli.default_paths import EMBEDDING
from ...common.cli.options import PATH, FiniteRange, json_option
from ...common.display.console import TextTable, out, show, show_json
from ...common.display.text import counted, promised
from ...common.errors import BudgetError
from ...common.ledger import DEFAULT_DELTA, Entry, Ledger, default_delta
from ..distill.ledger import (
    LEDGER_SUFFIX,
    Spending,
    ledger_of,
    ledgers_of_parts,
    of_whole_folder,
    read_all,
    total_of_distillations,
)
from ..mechanism.composition import Total, adjacency_of, strictest, total_of
from .ceiling import ceiling_figures, ceiling_remark, loss_figures

_NO_CEILING: Final = "no ceiling was set; 'dpntk embed --budget-eps' sets one"


@click.command("budget")
@click.argument("spent_on", metavar="[EMBEDDING|DATA]", type=PATH,
                default=EMBEDDING)  # fmt: skip
@click.option(
    "--delta", type=FiniteRange(0, 1, min_open=True, max_open=True), metavar="DELTA",
    help="Delta at which the total epsilon is computed [default: the ceiling's, or else what the "
    "next release would have; for distillations, the last one's]",
)  # fmt: skip
@click.option(
    "--data-set", metavar="NAME",
    help="Show the releases from all embeddings that were made with 'dpntk embed --data-set NAME'.",
)  # fmt: skip
@json_option()
@click.pass_context
def command(
    context: click.Context,
    spent_on: Path,
    delta: float | None,
    data_set: str | None,
    as_json: bool,
) -> None:
    """Show the releases made from EMBEDDING (default: embedding.h5) and what is left to spend.

    For DATA that 'dpntk distill' has read, or its ledger (DATA.ledger.json), show its
    distillations. Releases made from copies of EMBEDDING are in the copies' ledgers, not in this
    one, and neither kind of ledger knows of the other. With --data-set, show the releases from all
    embeddings of these records, and from their copies.
    """
    ledger = _ledger_for(spent_on)
    if data_set is not None:
        if context.get_parameter_source("spent_on") is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError("give a file or --data-set, not both")
        spent = _of_data_set(data_set, delta)
    elif ledger.exists():
        spent = _by_distillations(ledger, delta)
    elif spent_on == ledger or spent_on.is_dir():
        raise BudgetError(f"{ledger}: there is no such ledger; 'dpntk distill DATA' makes one")
    else:
        spent = _by_releases(spent_on, delta)
    if as_json:
        show_json(spent.to_json())
        return
    show(_grid(spent.title, spent.entries))
    for total in spent.totals:
        out.print(f"spent: {total}")
    out.print(*spent.remarks)


def _ledger_for(data: Path) -> Path:
    """The ledger of some data's distillations, or the named ledger itself.

    Raises:
        BudgetError: several parts of the data were distilled.
    """
    if data.name.endswith(LEDGER_SUFFIX):
        return data
    of_parts = ledgers_of_parts(data)
    if len(of_parts) > 1:
        raise BudgetError(
            f"{data}: several parts of it were distilled: name the ledger of one: "
            f"{', '.join(map(str, of_parts))}"
        )
    return of_parts[0] if of_parts else ledger_of(data)


@dataclass(frozen=True)
class _Spent:
    """What has been spent on some records.

    Attributes:
        title: what the figures are about.
        entries: one for each release.
        totals: the joint guarantee; empty if an existing ledger has no entries.
        remarks: notes for people.
        ledger: the one that ceilings, and what is left under them, are read from.
    """

    title: str
    entries: Sequence[Entry | Spending]
    totals: tuple[Total, ...]
    remarks: tuple[str, ...] = ()
    ledger: Ledger = field(default_factory=Ledger)

    def to_json(self) -> dict[str, Any]:
        """The figures for programs."""
        return {
            "releases": [
                {"id": entry.release_id, "created": entry.created, **loss_figures(entry)}
                for entry in self.entries
            ],
            "spent": [loss_figures(total) for total in self.totals],
            **ceiling_figures(self.ledger),
        }


def _by_distillations(path: Path, wanted: float | None) -> _Spent:
    entries = read_all(path)
    title = f"distillations in {path}"
    if not entries:
        return _Spent(title, entries, ())
    totals = (total_of_distillations(entries, entries[-1], wanted),)
    remarks = ["embeddings of the same records have ledgers of their own"]
    if (whole := of_whole_folder(path)) is not None:
        remarks.append(f"distillations in {whole}, of the whole folder, are counted as well")
    return _Spent(title, entries, totals, tuple(remarks))


def _by_releases(path: Path, wanted: float | None) -> _Spent:
    # --help need not wait for torch.
    from ...embed.sums.data_sets import data_sets_of, spent_on_records_of
    from ...embed.sums.file import load_embedding

    embedding = load_embedding(path)
    ledger = embedding.ledger
    limited = strictest(ledger)
    ceiling = limited.ceiling if limited else None
    adjacency = adjacency_of(ledger)
    if embedding.schema.privacy_unit is not None:  # nothing else will be possible
        adjacency = Adjacency.ADD_REMOVE
    usual = default_delta(adjacency, embedding.records)
    total = total_of(ledger, wanted or (ceiling.delta if ceiling else usual))
    if not ledger.all_entries:
        total = replace(total, adjacency=adjacency)
    remarks = []
    if len(ledger.parts) > 1:  # a single part only holds its own ceiling
        remarks.append(
            f"merged from {len(ledger.parts)} embeddings: releases made from one of them before "
            "count for its records alone"
        )
    joint = spent_on_records_of(embedding)  # by the next release, under any ceiling
    remarks.append(ceiling_remark(joint) or _NO_CEILING)
    remarks += [
        f"{entry.release_id[:12]} is what bounds of columns were found with"
        for entry in embedding.schema.spent
    ]
    remarks += [
        f"of data set {name}: 'dpntk budget --data-set {shlex.quote(name)}' adds up what was "
        "released from all of its embeddings"
        for name in data_sets_of(embedding)
    ]
    title = f"releases from {path}"
    return _Spent(title, ledger.all_entries, (total,), tuple(remarks), joint)


def _of_data_set(name: str, wanted: float | None) -> _Spent:
    from ...embed.sums.data_sets import joint_ledger, members_of  # --help need not wait for torch

    members = members_of(name)
    ledger = joint_ledger(member.ledger for member in members)
    entries = sorted(ledger.all_entries, key=lambda entry: entry.created)
    total = total_of(
        ledger, wanted or min([entry.delta for entry in entries], default=DEFAULT_DELTA)
    )
    remarks = (
        ceiling_remark(ledger) or _NO_CEILING,
        f"from {counted(len(members), 'embedding')}: {', '.join(m.path for m in members)}",
        "distillations of the same records have ledgers of their own",
    )
    return _Spent(f"releases from data set {name}", entries, (total,), remarks, ledger)


def _grid(title: str, entries: Iterable[Entry | Spending]) -> TextTable:
    table = TextTable(title)
    for column in ("created", "release", "epsilon", "delta", "adjacency"):
        table.add_column(column, wrap=column not in {"created", "adjacency"})
    for entry in entries:
        table.add_row(
            entry.created,
            entry.release_id[:12],
            "NOT PRIVATE" if math.isinf(entry.epsilon) else promised(entry.epsilon),
            promised(entry.delta),
            entry.adjacency.value,
        )
    return table
