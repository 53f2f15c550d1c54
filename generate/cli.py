"""The command `dpntk generate`."""

from __future__ import annotations

from pathlib import Path

import click

from ..common.console import console
from ..common.device import AUTO
from ..common.files import require_replaceable_folder
from ..release.acceptance import Acceptance
from ..release.origin_options import origin_options
from ..release.reader import open_release
from .export import PREVIEW, PROVENANCE, load_generator
from .pipeline import MOST_BY_DEFAULT, generate, sample_to
from .training import TrainingSettings

_DEFAULTS = TrainingSettings()


@click.command("generate", short_help="Train a generator from a release and sample records.")
@click.argument("release", type=click.Path(path_type=Path), required=False)
@click.option(
    "--from", "generator", type=click.Path(path_type=Path), metavar="GENERATOR",
    help="Sample from a generator.safetensors of an earlier run, without training.",
)  # fmt: skip
@click.option(
    "-n", "--records", "count", type=click.IntRange(1),
    help=f"How many records [default: as many as the release was made from, at most "
    f"{MOST_BY_DEFAULT}]",
)  # fmt: skip
@click.option(
    "--steps", type=click.IntRange(1), default=_DEFAULTS.steps, show_default=True,
    help="Training steps.",
)  # fmt: skip
@click.option(
    "--batch", type=click.IntRange(2), default=_DEFAULTS.batch, show_default=True,
    help="Records in a step, over all classes (at least two of each are made).",
)  # fmt: skip
@click.option(
    "--lr", "learning_rate", type=click.FloatRange(0, 10, min_open=True),
    default=_DEFAULTS.learning_rate, show_default=True, help="Learning rate at the start.",
)  # fmt: skip
@click.option(
    "--seed", type=click.IntRange(0), default=_DEFAULTS.seed, show_default=True,
    help="Of training and sampling; another seed gives other records.",
)  # fmt: skip
@click.option(
    "--module", type=click.Path(path_type=Path), metavar="FILE",
    help="For a release with perceptual features: the module that they were made with. It is a "
    "program and will be run; the release says which SHA-256 the file must have.",
)  # fmt: skip
@origin_options
@click.option("--device", default=AUTO, show_default=True, help="auto, cpu or cuda.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), default="synthetic", show_default=True,
    help="Folder to write; an earlier result there is replaced.",
)  # fmt: skip
def command(
    release: Path | None,
    generator: Path | None,
    count: int | None,
    steps: int,
    batch: int,
    learning_rate: float,
    seed: int,
    module: Path | None,
    acceptance: Acceptance,
    device: str,
    output: Path,
) -> None:
    """Train a generator from RELEASE alone (default: release.h5) and sample synthetic records.

    This costs no privacy, however often it is done, and needs no access to the records. It writes
    images.npz (x, y), preview.png, generator.safetensors and provenance.json.
    """
    if release is not None and generator is not None:
        raise click.UsageError("give either RELEASE or --from GENERATOR, not both")
    if module is not None and generator is not None:
        raise click.UsageError("--module goes with RELEASE: --from GENERATOR needs none")
    require_replaceable_folder(output, marker=PROVENANCE)
    if generator is not None:
        saved = load_generator(generator)
        records = count or MOST_BY_DEFAULT
        sample_to(output, saved, count=records, seed=seed)
        remark = f", {records:,} records without training"
    else:
        opened = open_release(release or Path("release.h5"), acceptance)
        settings = TrainingSettings(steps, batch, seed, learning_rate)
        training = generate(
            opened, output, count=count, settings=settings, module=module, device=device
        )
        remark = (
            f"; loss {training.losses[-1].loss:.4f}, of which the release's noise is "
            f"{training.noise_floor:.4f}\nthe release is {opened.signed_by}"
        )
    console.print(f"wrote {output}{remark}\nlook at {output / PREVIEW}")
