"""The command `dpntk budget`."""

from __future__ import annotations

import math
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from ..embed.artifact import load_embedding
from .accountant import DEFAULT_DELTA
from .composition import most_left, strictest, total_of


@click.command("budget", short_help="Show what has been released from an embedding.")
@click.argument("embedding", type=click.Path(path_type=Path), default="embedding.h5")
def command(embedding: Path) -> None:
    """Show the releases made from EMBEDDING (default: embedding.h5) and what is left to spend.

    Releases made from copies of the file are in the copies' ledgers, not in this one.
    """
    ledger = load_embedding(embedding).ledger
    table = Table(title=f"releases from {embedding}")
    for column in ("created", "release", "epsilon", "delta", "adjacency"):
        table.add_column(column, no_wrap=column in {"created", "adjacency"})
    for entry in ledger.all_entries:
        table.add_row(
            entry.created,
            entry.release_id[:12],
            "NOT PRIVATE" if math.isinf(entry.epsilon) else f"{entry.epsilon:g}",
            f"{entry.delta:g}",
            entry.adjacency.value,
        )
    out = Console(markup=False, highlight=False)
    out.print(table)
    limited = strictest(ledger)
    ceiling = limited.ceiling if limited else None
    delta = ceiling.delta if ceiling else DEFAULT_DELTA
    total = total_of(ledger, delta)
    out.print(f"spent: epsilon {total.epsilon:.4g} at delta {delta:g} ({total.adjacency.value})")
    if ledger.parts:
        out.print(
            f"merged from {len(ledger.parts)} embeddings: releases made from one of them before "
            "count for its records alone"
        )
    if limited is None or ceiling is None:
        out.print("no ceiling was set; 'dpntk embed --budget-eps' sets one")
    else:
        left = most_left(limited)
        of_part = "" if limited is ledger else " of a part"
        out.print(
            f"ceiling{of_part}: epsilon {ceiling.epsilon:g}; one more release may have up to "
            f"epsilon {left:.4g} at the same delta"
        )
