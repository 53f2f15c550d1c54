"""The command `dpntk budget`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import click

from ...common.cli.options import FiniteRange
from ...common.console import TextTable, out, show
from ...common.errors import BudgetError
from ...common.ledger import Entry, default_delta
from ...common.text import promised, rounded_down, rounded_up
from ...embed.sums.file import load_embedding
from ..distill.ledger import LEDGER_SUFFIX, Spending, ledger_of, read_ledger
from ..mechanism.composition import adjacency_of, remaining, strictest, total_of
from ..mechanism.subsampled_gaussian import sampled_epsilon


@click.command("budget", short_help="Show what has been spent on records.")
@click.argument("spent_on", metavar="[EMBEDDING|DATA]", type=click.Path(path_type=Path),
                default="embedding.h5")  # fmt: skip
@click.option(
    "--delta", type=FiniteRange(0, 1, min_open=True, max_open=True), metavar="DELTA",
    help="At which the epsilon of all together is taken [default: the ceiling's, or else what the "
    "next release would have; of distillations the last one's]",
)  # fmt: skip
def command(spent_on: Path, delta: float | None) -> None:
    """Show the releases made from EMBEDDING (default: embedding.h5) and what is left to spend.

    For DATA that 'dpntk distill' has read, or its ledger (DATA.ledger.json), show the distillations
    of it. Releases made from copies are in the copies' ledgers, not in this one; and neither kind
    of ledger knows of the other.
    """
    ledger = spent_on if spent_on.name.endswith(LEDGER_SUFFIX) else ledger_of(spent_on)
    if ledger.exists():
        _show_distillations(ledger, delta)
    elif spent_on == ledger or spent_on.is_dir():
        raise BudgetError(f"{ledger}: there is no such ledger; 'dpntk distill DATA' makes one")
    else:
        _show_releases(spent_on, delta)


def _show_distillations(path: Path, wanted: float | None) -> None:
    entries = read_ledger(path)
    show(_grid(f"distillations in {path}", entries))
    if not entries:
        return
    delta = wanted or entries[-1].delta
    runs = [entry.run for entry in entries]
    for adjacency in sorted({entry.adjacency for entry in entries}, key=lambda a: a.value):
        alone = len(entries) == 1 and delta == entries[0].delta
        spent = entries[0].epsilon if alone else sampled_epsilon(runs, delta, adjacency=adjacency)
        out.print(f"spent: epsilon {rounded_up(spent)} at delta {delta:g} ({adjacency.value})")
    out.print("embeddings of the same records have ledgers of their own")


def _show_releases(path: Path, wanted: float | None) -> None:
    embedding = load_embedding(path)
    ledger = embedding.ledger
    show(_grid(f"releases from {path}", ledger.all_entries))
    limited = strictest(ledger)
    ceiling = limited.ceiling if limited else None
    usual = default_delta(adjacency_of(ledger), embedding.records)
    delta = wanted or (ceiling.delta if ceiling else usual)
    total = total_of(ledger, delta)
    out.print(
        f"spent: epsilon {rounded_up(total.epsilon)} at delta {delta:g} ({total.adjacency.value})"
    )
    if ledger.parts:
        out.print(
            f"merged from {len(ledger.parts)} embeddings: releases made from one of them before "
            "count for its records alone"
        )
    if limited is None or ceiling is None:
        out.print("no ceiling was set; 'dpntk embed --budget-eps' sets one")
    else:
        left = remaining(limited)
        of_part = "" if limited is ledger else " of a part"
        out.print(
            f"ceiling{of_part}: epsilon {ceiling.epsilon:g} at delta {ceiling.delta:g}; one more "
            f"release may have up to epsilon {rounded_down(left)} at the same delta"
        )


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
