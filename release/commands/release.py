"""The command `dpntk release`."""

from __future__ import annotations

from pathlib import Path

import click

from ...common.adjacency import Adjacency
from ...common.cli.default_paths import EMBEDDING, RELEASE
from ...common.cli.options import PATH, output_option, overwrite_option
from ...common.display.console import console, warning
from ...common.display.text import promised, rounded_up, typed
from ...common.storage.atomic import require_absent
from ...common.storage.container import RELEASE_BEGINS, RELEASE_COST
from ..file.statement import NOT_PRIVATE
from ..publishing.parameters import ClassCounts, PrivacyParameters
from ..signing.prompts import accepts_total
from .class_counts import class_count_options
from .options import key_option, promise_options, signing_key


@click.command("release")
@click.argument("embedding", type=PATH, default=EMBEDDING)
@promise_options(
    adjacency="What is hidden: exchanging one record (their number is public), or adding or "
    "removing one (their number gets noise too).",
)
@class_count_options
@output_option("Where to write the release. It may be given to anybody.", RELEASE)
@key_option
@click.option(
    "--not-private", is_flag=True,
    help="Together with --eps inf: write the exact sums, without noise. For research on data that "
    "are not sensitive.",
)  # fmt: skip
@click.option(
    "--compose", is_flag=True,
    help="Release although there are earlier releases; the total is printed.",
)  # fmt: skip
@overwrite_option("Replace a release that is already there.")
def command(
    embedding: Path,
    epsilon: float,
    delta: float | None,
    adjacency: Adjacency,
    class_counts: str,
    count_weight: float,
    output: Path,
    key_path: Path | None,
    not_private: bool,
    compose: bool,
    overwrite: bool,
) -> None:
    """Add noise to EMBEDDING (default: embedding.h5) once, and write a file to give away.

    Every release spends its epsilon anew: two releases of epsilon 1 from the same records tell
    more about them than one.
    """
    from ...embed.sums.file import require_embedding  # --help need not wait for torch
    from ..publishing.pipeline import release

    parameters = PrivacyParameters(
        epsilon, delta, adjacency, ClassCounts(class_counts), count_weight, not_private
    )
    require_embedding(embedding)
    require_absent(output, overwrite=overwrite, cost=RELEASE_COST, begins=RELEASE_BEGINS)
    key = signing_key(key_path)
    made = release(
        embedding,
        output,
        parameters,
        key=key,
        compose=lambda total: compose or accepts_total("release", total),
        overwrite=overwrite,
    ).release
    promise = made.guarantee
    if not promise.private:
        warning(f"{output} is {NOT_PRIVATE}; only you can read it (0600)")
    console.print(
        f"released {output}: epsilon {promised(promise.epsilon)}, delta {promised(promise.delta)}, "
        f"{promise.adjacency.value}, m {promise.records:,}, sigma {promise.sigma:.4g} on every sum"
    )
    if made.blur >= 1:
        warning(
            f"the noise of a class's mean ({made.blur:.2g}) exceeds all that it can show (1): "
            "nothing will be learnt from this release; 'dpntk plan' says what would be enough"
        )
    if promise.total_releases > 1:
        console.print(
            f"release number {promise.total_releases} from these records: together they have "
            f"epsilon {rounded_up(promise.total_epsilon)} ({promise.total_adjacency.value})"
        )
    console.print(
        f"signed by {key.public.fingerprint}; whoever is to trust it needs this line, from you "
        "yourself:",
        key.public.line,
        f"next: dpntk generate {typed(output)}",
    )
