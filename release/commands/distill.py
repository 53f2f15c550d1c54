"""The command `dpntk distill`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ...common.adjacency import Adjacency
from ...common.cli.default_paths import RELEASE
from ...common.cli.options import (
    PATH,
    count_from,
    output_option,
    overwrite_option,
    quiet_values_option,
    seed_option,
)
from ...common.cli.sections import Section, SectionedCommand, running_option, training_option
from ...common.display.console import console, warning
from ...common.display.text import promised, rounded_up, typed
from ...common.errors import BudgetError
from ...common.sources import SourceOptions, open_source, place_of
from ...embed.commands.source_options import say_what_was_looked_up, source_options, with_schema
from ..distill.ledger import ledger_of
from ..distill.settings import PRESETS, WITHOUT_NOISE, Settings, name_in_files
from ..file.statement import NOT_PRIVATE
from ..signing.prompts import accepts_total
from .options import key_option, promise_options, signing_key

_DEFAULTS = Settings()


@click.command("distill", cls=SectionedCommand)
@click.argument("data", type=PATH)
@promise_options(
    adjacency="What is hidden: adding or removing one record, or exchanging one (their number is "
    "public), which needs about twice the noise.",
    default=Adjacency.ADD_REMOVE,
)
@click.option(
    "--per-class", type=count_from(0), metavar="N",
    help=f"Points in each class [default: {_DEFAULTS.per_class}]",
)  # fmt: skip
@training_option(
    "--preset", type=click.Choice(list(PRESETS)),
    help="Settings for a data set of the literature. They were tuned on it, which no guarantee "
    "covers; the release says so.",
)  # fmt: skip
@training_option(
    "--sampling-prob", type=float, metavar="PROBABILITY",
    help="Probability with which a record is in a step's batch. Public: do not derive it from the "
    f"exact number of records [default: {_DEFAULTS.sampling_prob:.4g}]",
)  # fmt: skip
@training_option(
    "--steps", type=count_from(0), metavar="N",
    help=f"Gradient steps [default: {_DEFAULTS.steps}]",
)  # fmt: skip
@training_option(
    "--clip-norm", type=float, metavar="NORM",
    help="Length to which what a record adds to a step's sums is cut "
    f"[default: {_DEFAULTS.clip_norm:g}]",
)  # fmt: skip
@training_option(
    "--lr", "learning_rate", type=float, metavar="RATE",
    help=f"Learning rate at the start [default: {_DEFAULTS.learning_rate:g}]",
)  # fmt: skip
@training_option(
    "--ridge", type=float, metavar="LAMBDA",
    help=f"Regularisation of the kernel regression [default: {_DEFAULTS.ridge:g}]",
)  # fmt: skip
@training_option(
    "--smoothing", type=float, metavar="PIXELS",
    help="For images: smooth noisy gradients with a Gaussian of this width; 0 for not at all "
    f"[default: {_DEFAULTS.smoothing:g}]",
)  # fmt: skip
@seed_option(
    "Seed of the random start, which is public. Noise has no seed.", section=Section.TRAINING
)
@click.option(
    "--not-private", is_flag=True,
    help="Together with --eps inf: exact gradients, without clipping or noise (KIP). For research "
    "on data that are not sensitive.",
)  # fmt: skip
@output_option("Where to write the release. It may be given to anybody.", RELEASE)
@click.option(
    "--ledger", type=PATH, metavar="FILE",
    help="File that lists what has been spent on these records [default: DATA.ledger.json, beside "
    "DATA, or beside the part of DATA that is read]",
)  # fmt: skip
@click.option(
    "--compose", is_flag=True,
    help="Go on although the ledger has other entries; the total is printed.",
)  # fmt: skip
@overwrite_option("Replace a release that is already there.")
@running_option(
    "--restart", is_flag=True,
    help="Throw away the progress of an interrupted run. What it has spent stays spent.",
)  # fmt: skip
@quiet_values_option
@source_options
@key_option
def command(
    data: Path,
    epsilon: float,
    delta: float | None,
    adjacency: Adjacency,
    preset: str | None,
    output: Path,
    not_private: bool,
    ledger: Path | None,
    compose: bool,
    overwrite: bool,
    restart: bool,
    source: SourceOptions,
    accept_from_data: bool,
    threads: int | None,
    key_path: Path | None,
    **chosen: Any,  # noqa: ANN401 - fields of Settings
) -> None:
    """Find a few labelled points from which kernel regression learns what DATA would teach it.

    The points are found by noisy steps that spend EPSILON in all (DP-KIP). They are a release like
    any other: 'dpntk generate' writes them as images or as a table, and 'dpntk evaluate' measures
    how well one learns from them. DATA is any path that 'dpntk embed' reads; the records are held
    in memory.

    For grey images, 'dpntk embed', 'dpntk release' and 'dpntk generate --points' make better
    points.

    After an interruption, the same command continues where it stopped and spends nothing again.
    """
    from ...common.runtime.threads import use_threads  # --help need not wait for torch
    from ..distill.pipeline import distill, require_word

    given = {name: value for name, value in chosen.items() if value is not None}
    require_word(epsilon, not_private=not_private)
    if not_private and "clip_norm" in given:
        raise BudgetError(
            "--clip-norm means something with noise only: --not-private clips nothing"
        )
    bundle = (PRESETS[preset] if preset else {}) | (WITHOUT_NOISE if not_private else {})
    settings = replace(Settings(), **(bundle | given))
    if preset and set(given) - {"seed"}:
        names = ", ".join(sorted(map(name_in_files, given)))
        settings = replace(settings, origin=f"{settings.origin}; changed: {names}")
    source = with_schema(source, accept_from_data=accept_from_data)
    use_threads(threads)
    opened = open_source(data, source)
    made = distill(
        opened,
        output,
        ledger or ledger_of(Path(str(place_of(data, source)))),
        key=signing_key(key_path),
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency,
        settings=settings,
        not_private=not_private,
        compose=lambda total: compose or accepts_total("distillation", total),
        overwrite=overwrite,
        restart=restart,
    ).release
    schema, promise = made.schema, made.guarantee
    say_what_was_looked_up(schema)
    if not promise.private:
        warning(f"{output} is {NOT_PRIVATE}; only you can read it (0600)")
    console.print(
        f"distilled {output}: {len(made.points):,} points in {len(schema.classes)} classes; "
        f"epsilon {promised(promise.epsilon)}, delta {promised(promise.delta)}, "
        f"{promise.adjacency.value}"
    )
    if promise.total_releases > 1:
        console.print(
            f"release number {promise.total_releases} from these records: together they have "
            f"epsilon {rounded_up(promise.total_epsilon)} ({promise.total_adjacency.value})"
        )
    console.print(f"next: dpntk generate {typed(output)}")
