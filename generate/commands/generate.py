"""The command `dpntk generate`."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import click

from ...common.cli.default_paths import RELEASE, SYNTHETIC
from ...common.cli.options import (
    PATH,
    FiniteRange,
    count_from,
    device_option,
    module_option,
    output_option,
    seed_option,
)
from ...common.cli.sections import SectionedCommand, image_option, table_option, training_option
from ...release.commands.options import acceptance_options
from ...release.signing.policy import Acceptance
from ..defaults import MOST_IMAGES, MOST_ROWS, option
from ..fit.recipe import (
    GALLERY,
    GENERATORS,
    IMAGES,
    OBJECTIVES,
    OF_A_GALLERY,
    RECIPES,
    RUNNING,
    SCHEDULES,
    TABLES,
    USUAL_CODE,
)
from ..fit.settings import STEPS_IN_COLOUR, TableSettings, TrainingSettings

_DEFAULTS = TrainingSettings()
_FOR_TABLES = TableSettings()


@click.command("generate", cls=SectionedCommand)
@click.argument("release", type=PATH, required=False)
@click.option(
    "--from", "saved", type=PATH, metavar="GENERATOR",
    help="Sample from the generator.safetensors of an earlier run, or from the folder that holds "
    "it, without training.",
)  # fmt: skip
@click.option(
    "-n", "--records", "count", type=count_from(1), metavar="N",
    help=f"How many records [default: as many as the release was made from, at most "
    f"{MOST_IMAGES:,} images or {MOST_ROWS:,} rows; images {MOST_IMAGES:,} with --from]",
)  # fmt: skip
@table_option(
    "--where", default="", metavar="CONDITION",
    help='Make only rows that fulfil this condition, such as "sex = F and age >= 50".',
)  # fmt: skip
@image_option(
    "--points", "per_class", type=count_from(1), metavar="N",
    help="In place of images, write N points of each class from which kernel regression learns "
    "nearly what it would learn from the records.",
)  # fmt: skip
@training_option(
    "--recipe", type=click.Choice(list(RECIPES)),
    help="Train as in DP-NTK's paper: --generator cnn (resnet for colour, mlp for tables), "
    "--objective mmd, --schedule constant, and --code, --steps, --batch and --lr of its table 5. "
    "Options that are given beside it take precedence. Meant for embeddings that were made with "
    "'dpntk embed --preset'.",
)  # fmt: skip
@training_option(
    "--generator", type=click.Choice([name for of in GENERATORS.values() for name in of]),
    help="For images: a deformable template of each class, one of the paper's networks, or a "
    "gallery of images that are trained themselves; for tables: dpntk's own, or the paper's fully "
    f"connected network [default: {GENERATORS[IMAGES][0]}; {GALLERY} for colour images and "
    f"features of a module; {GENERATORS[TABLES][0]} for tables]",
)  # fmt: skip
@training_option(
    "--objective", type=click.Choice(list(dict.fromkeys(itertools.chain(*OBJECTIVES.values())))),
    help="Which distance to minimise: the paper's plain one (mmd, its equation 6); with --features "
    "rff, one whose weights an adversary learns (pearl); one of running means, for small batches "
    f"(running); or dpntk's own [default: {OBJECTIVES[IMAGES][0]}; {RUNNING} for a {GALLERY}; "
    f"{OBJECTIVES[TABLES][0]} for tables]",
)  # fmt: skip
@training_option(
    "--code", type=count_from(1), metavar="N",
    help=f"Length of the latent code of cnn, resnet and mlp [default: {USUAL_CODE}]",
)  # fmt: skip
@training_option(
    "--steps", type=count_from(1), metavar="N",
    help="Largest number of training steps: towards mean images, and of a gallery, training stops "
    f"as soon as noise explains the distance [default: {_DEFAULTS.steps}, or {STEPS_IN_COLOUR} in "
    "colour, fewer if there is much noise; "
    f"{OF_A_GALLERY['steps']} for a {GALLERY}, likewise; {_FOR_TABLES.steps} for tables, if a "
    "network is trained]",
)  # fmt: skip
@training_option(
    "--batch", type=count_from(2), metavar="N",
    help="Records in a step, over all classes (at least two of each class) "
    f"[default: {_DEFAULTS.batch}; {OF_A_GALLERY['batch']} for a {GALLERY}; "
    f"{_FOR_TABLES.batch} for tables]",
)  # fmt: skip
@training_option(
    "--lr", "learning_rate", type=FiniteRange(0, 10, min_open=True), metavar="RATE",
    help=f"Learning rate at the start [default: {_DEFAULTS.learning_rate}; "
    f"{OF_A_GALLERY['learning_rate']} for a {GALLERY}; {_FOR_TABLES.learning_rate} for tables]",
)  # fmt: skip
@training_option(
    "--schedule", type=click.Choice(SCHEDULES),
    help="Whether the learning rate falls to 0 along a cosine, or stays as it is "
    f"[default: {SCHEDULES[0]}]",
)  # fmt: skip
@seed_option(
    "Seed of training and sampling; another seed gives other records [default: "
    f"{_DEFAULTS.seed}; with --from, a new one for every run, which provenance.json records]"
)
@module_option(
    "For a release with perceptual features: the module that they were made with. It is a "
    "program and will be run; the release says which SHA-256 the file must have."
)
@table_option(
    "--safe-csv", is_flag=True,
    help="In table.csv, put a single quote before texts that a spreadsheet would take for "
    "formulas. This changes the texts; table.parquet keeps them as they are.",
)  # fmt: skip
@image_option(
    "--pictures", is_flag=True,
    help="Also write pictures.zip, with a PNG file for each image in a folder of its class.",
)  # fmt: skip
@acceptance_options
@device_option
@output_option(
    "Folder to write; an earlier result there is replaced, if nothing else is in it.", SYNTHETIC
)
def command(
    release: Path | None,
    saved: Path | None,
    count: int | None,
    where: str,
    per_class: int | None,
    seed: int | None,
    module: Path | None,
    safe_csv: bool,
    pictures: bool,
    acceptance: Acceptance,
    device: str,
    output: Path,
    **of_training: Any,  # noqa: ANN401 - a recipe, and fields of settings
) -> None:
    """Train a generator from RELEASE alone (default: release.h5) and sample synthetic records.

    A distilled set is written as it is: there is nothing to train.

    This costs no privacy, however often it is done, and needs no access to the records. It writes
    images.npz (x, y, and the names of classes) and preview.png, or table.csv and table.parquet; and
    beside them generator.safetensors and provenance.json. With --points, points.npz holds the
    points themselves, and the images show them.
    """
    chosen = {name: said for name, said in of_training.items() if said is not None}
    if release is not None and saved is not None:
        raise click.UsageError("give either RELEASE or --from GENERATOR, not both")
    if saved is not None:
        if module is not None:
            raise click.UsageError("--module goes with RELEASE: --from GENERATOR needs none")
        if acceptance.signer is not None or acceptance.allow_unsigned:
            raise click.UsageError(
                "--signer and --allow-unsigned go with RELEASE: --from GENERATOR reads no release"
            )
        if useless := next(iter(["device"] if device != "auto" else chosen), None):
            raise click.UsageError(
                f"{option(useless)} is for training, and --from GENERATOR does none"
            )
    if per_class is not None and count is not None:
        raise click.UsageError("give either --records or --points, not both")
    if per_class is not None and where:
        raise click.UsageError("--where is for records: points have no conditions")
    from .writing import write  # --help need not wait for torch

    write(
        output,
        release=release or Path(RELEASE),
        saved=saved,
        chosen=chosen,
        count=count,
        per_class=per_class,
        where=where,
        seed=seed,
        safe_csv=safe_csv,
        pictures=pictures,
        module=module,
        acceptance=acceptance,
        device=device,
    )
