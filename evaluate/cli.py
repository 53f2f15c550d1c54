"""The command `dpntk evaluate`."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from ..common.console import console, warning
from ..common.errors import DataError
from ..common.files import require_absent
from ..release.acceptance import Acceptance
from ..release.contents import NOT_PRIVATE
from ..release.origin_options import origin_options
from ..release.reader import open_release
from .records import Records, read_real, read_synthetic
from .report import as_table, write_report
from .utility import measure


@click.command("evaluate", short_help="Measure how good the synthetic records are.")
@click.argument("synthetic", type=click.Path(path_type=Path), default="synthetic")
@click.option(
    "--test", type=click.Path(path_type=Path), required=True, metavar="DATA",
    help="Real records that were not embedded; their test part, where they have one.",
)  # fmt: skip
@click.option(
    "--baseline", type=click.Path(path_type=Path), metavar="DATA",
    help="Real records to train on, for comparison; their train part, where they have one.",
)  # fmt: skip
@click.option(
    "--release", type=click.Path(path_type=Path), metavar="FILE",
    help="Check that SYNTHETIC was generated from this release, and that its signer is trusted.",
)  # fmt: skip
@origin_options
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the classifiers."
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), default="evaluation.json",
    show_default=True, help="Where to write the figures; an earlier file is replaced.",
)  # fmt: skip
def command(
    synthetic: Path,
    test: Path,
    baseline: Path | None,
    release: Path | None,
    acceptance: Acceptance,
    seed: int,
    output: Path,
) -> None:
    """Train classifiers on SYNTHETIC (default: synthetic/) and test them on real records.

    The figures are computed from real records without noise: publishing them is a small release
    of its own that no epsilon covers.
    """
    require_absent(output, overwrite=True, cost="")
    records = read_synthetic(synthetic)
    if release is not None:
        _require_made_from(release, acceptance, records)
    held_out = read_real(test, "test", records)
    training_sets = {_name(records): records}
    if records.private is False:
        warning(f"{synthetic} is {NOT_PRIVATE}")
    if baseline is not None:
        training_sets["real"] = read_real(baseline, "train", records)
    rows = measure(training_sets, held_out, seed)
    write_report(output, rows, records, held_out, seed)
    Console().print(as_table(rows, held_out))


def _require_made_from(path: Path, acceptance: Acceptance, records: Records) -> None:
    opened = open_release(path, acceptance)
    made_from = records.provenance.get("release")
    if not isinstance(made_from, dict) or made_from.get("digest") != opened.digest:
        raise DataError(f"the synthetic records do not say that they come from {path}")
    console.print(f"made from {path}, {opened.signed_by}")


def _name(records: Records) -> str:
    if records.private is None:
        return "synthetic"
    if not records.private:
        return "synthetic (NOT PRIVATE)"
    epsilon = records.provenance["release"].get("epsilon")
    return f"synthetic (epsilon {epsilon:g})" if isinstance(epsilon, float) else "synthetic"
