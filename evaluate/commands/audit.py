"""The command `dpntk audit`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...common.cli.default_paths import EMBEDDING
from ...common.cli.options import PATH, FiniteRange, count_from, module_option
from ...common.display.console import TextTable, out, show
from ...common.errors import AuditError
from ...release.commands.options import promise_options
from ..privacy.defaults import DEFAULT_CONFIDENCE, DEFAULT_RUNS

if TYPE_CHECKING:
    from ..privacy.audit import Audit


@click.command("audit")
@click.argument("embedding", type=PATH, default=EMBEDDING)
@promise_options(
    epsilon="Epsilon of the guarantee to be tested.",
    delta="Delta of the guarantee.",
    adjacency="Adjacency of the guarantee.",
)
@click.option(
    "--runs", type=count_from(100), default=DEFAULT_RUNS, show_default=True, metavar="N",
    help="Runs of the mechanism on each of two neighbouring data sets.",
)  # fmt: skip
@click.option(
    "--canaries", type=count_from(0), default=0, metavar="N",
    help="Put the farthest of N random pairs of canaries into the embedding's own sums, instead of "
    "a pair that is far apart by construction.",
)  # fmt: skip
@click.option(
    "--confidence", type=FiniteRange(0.5, 1, max_open=True), default=DEFAULT_CONFIDENCE,
    show_default=True, metavar="P", help="Confidence of each lower bound.",
)  # fmt: skip
@module_option("For perceptual features: the module that EMBEDDING was made with.")
def command(
    embedding: Path,
    epsilon: float,
    **given: Any,  # noqa: ANN401 - handed on
) -> None:
    """Run the real mechanism many times on two neighbouring data sets and attack what comes out.

    Nothing is released and EMBEDDING (default: embedding.h5) is not changed: the noisy sums are
    thrown away. The exit code is 1 if the guarantee is refuted. Under add-remove what it prints
    depends on how many records there are, and no epsilon covers that: it is for their owner.
    """
    from ..privacy.audit import SCOPE, audit  # --help need not wait for torch

    found = audit(embedding, epsilon=epsilon, **given)
    show(_table(found))
    noise = found.noise
    low, high = noise.allowed
    out.print(
        f"pair: {found.pair}; {found.distance:.6f} of the sensitivity apart",
        f"noise of a full release: {noise.coordinates:,} coordinates, second moment "
        f"{noise.second_moment:.5f} sigma^2 (right: {low:.5f} to {high:.5f}), largest correlation "
        f"between classes {noise.correlation:.5f} (right: up to {noise.largest_correlation:.5f})",
        SCOPE,
    )
    if found.contradictions:
        raise AuditError(
            f"the guarantee of epsilon {epsilon:g} is refuted: {'; '.join(found.contradictions)}; "
            "release nothing with this version of dpntk, and please report it"
        )


def _table(found: Audit) -> TextTable:
    table = TextTable(f"epsilon at delta {found.delta:g}")
    table.add_column("observed")
    table.add_column("runs", right=True)
    table.add_column(f"at least ({found.confidence:.4g} sure)", right=True)
    table.add_column("claimed", right=True)
    for finding in found.findings:
        table.add_row(
            finding.method, f"{finding.runs:,} x 2", f"{finding.epsilon:.3f}", f"{found.claimed:g}"
        )
    return table
