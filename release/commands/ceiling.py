"""What was spent on a data set, and what is left under its ceiling, in words and figures."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from ...common.display.text import rounded_down
from ...common.ledger import Entry, Ledger
from ..distill.ledger import Spending
from ..mechanism.composition import Total, adjacency_of, remaining, strictest


def loss_figures(made: Entry | Spending | Total) -> dict[str, Any]:
    """A privacy loss, for programs; infinity is the text "inf"."""
    epsilon = made.epsilon if math.isfinite(made.epsilon) else "inf"
    return {"epsilon": epsilon, "delta": made.delta, "adjacency": made.adjacency.value}


def ceiling_figures(ledger: Ledger) -> dict[str, Any]:
    """What `ceiling_remark` says, for programs."""
    limited = strictest(ledger)
    if limited is None or limited.ceiling is None:
        return {"ceiling": None, "left": None, "left_adjacency": None}
    under = adjacency_of(limited).value if limited.all_entries else None  # None: under any
    return {
        "ceiling": asdict(limited.ceiling),
        "left": remaining(limited),
        "left_adjacency": under,
    }


def ceiling_remark(ledger: Ledger) -> str:
    """What one more release may spend under the strictest ceiling; "" without a ceiling.

    After other releases it may spend so much under their adjacency, and less under another one.
    """
    limited = strictest(ledger)
    if limited is None or limited.ceiling is None:
        return ""
    of_part = "" if limited is ledger else " of a part"
    under = f" ({adjacency_of(limited).value})" if limited.all_entries else ""
    ceiling = (
        f"ceiling{of_part}: epsilon {limited.ceiling.epsilon:g} at delta {limited.ceiling.delta:g}"
    )
    left = rounded_down(remaining(limited))
    if left == rounded_down(0.0):
        return f"{ceiling}; nothing is left"
    return f"{ceiling}; one more release may have up to epsilon {left} at the same delta{under}"
