"""The budget that is left under a data set's ceiling, in words."""

from __future__ import annotations

from ...common.display.text import rounded_down
from ...common.ledger import Ledger
from ..mechanism.composition import remaining, strictest


def ceiling_remark(ledger: Ledger) -> str:
    """What one more release may spend under the strictest ceiling; "" without a ceiling."""
    limited = strictest(ledger)
    if limited is None or limited.ceiling is None:
        return ""
    of_part = "" if limited is ledger else " of a part"
    return (
        f"ceiling{of_part}: epsilon {limited.ceiling.epsilon:g} at delta "
        f"{limited.ceiling.delta:g}; one more release may have up to epsilon "
        f"{rounded_down(remaining(limited))} at the same delta"
    )
