"""The command `dpntk generate`."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ...common.arguments import argument
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
from ...common.display.console import console, notice
from ...common.display.text import counted, typed
from ...common.runtime.threads import use_threads
from ...common.schema.table import TableSchema
from ...common.storage.synthetic_folder import CSV, POINTS, PREVIEW
from ...release.commands.options import acceptance_options
from ...release.file.distilled import AnyOpened, holds_points
from ...release.file.model import Release
from ...release.file.reader import open_any
from ...release.signing.policy import Acceptance
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
from ..images.export import PREVIEW_CLASSES
from ..images.inducing_points import PointSettings
from ..output.folder import require_replaceable
from ..output.provenance import first_seed
from ..pipeline import (
    MOST_IMAGES,
    MOST_ROWS,
    OPTIONS,
    chosen_settings,
    generate,
    require_nothing_to_train,
)
from ..synthetic import (
    Synthetic,
    load_generator,
    points_to,
    require_csv,
    require_pictures,
    sample_to,
)
from ..tables.export import SavedTableGenerator

_ENOUGH_IMAGES = 10_000
"""Beyond this many images, classifiers hardly learn more."""
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
    f"{MOST_IMAGES:,} images or {MOST_ROWS:,} rows; with --from {MOST_IMAGES:,}]",
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
    if module is not None and saved is not None:
        raise click.UsageError("--module goes with RELEASE: --from GENERATOR needs none")
    if saved is not None and chosen:
        raise click.UsageError(
            f"{_option(next(iter(chosen)))} is for training, and --from GENERATOR does none"
        )
    if per_class is not None and count is not None:
        raise click.UsageError("give either --records or --points, not both")
    if per_class is not None and where:
        raise click.UsageError("--where is for records: points have no conditions")
    first = _DEFAULTS.seed if seed is None else seed
    points = None if per_class is None else PointSettings(per_class, seed=first)
    wanted = _Wanted(output, count, points, where, safe_csv, pictures)
    require_replaceable(output)
    use_threads()
    if saved is not None:
        _sample_again(saved, wanted, seed)
    else:
        opened = open_any(release or Path(RELEASE), acceptance)
        _train(opened, wanted, chosen, seed=first, module=module, device=device)


@dataclass(frozen=True)
class _Wanted:
    """What to write.

    Attributes:
        output: the folder.
        count: how many records; None for as many as usual.
        points: how many points to write in place of records; None for records.
        where: a condition that rows fulfil; empty for none.
        safe_csv: whether texts are kept from being formulas.
        pictures: whether each image also gets a file.
    """

    output: Path
    count: int | None
    points: PointSettings | None
    where: str
    safe_csv: bool
    pictures: bool


def _train(
    opened: AnyOpened,
    wanted: _Wanted,
    chosen: Mapping[str, Any],
    *,
    seed: int,
    module: Path | None,
    device: str,
) -> None:
    """Train on a release and write the results; write a distilled set as it is."""
    schema = opened.release.schema
    is_table = isinstance(schema, TableSchema)
    require_pictures(wanted.pictures, is_table=is_table)
    settings: TrainingSettings | None = None
    if holds_points(opened):
        require_nothing_to_train(chosen)
    else:
        given = {name: said for name, said in chosen.items() if name != "recipe"}
        bundle = RECIPES[chosen["recipe"]] if "recipe" in chosen else None
        settings = chosen_settings(opened, bundle, {"seed": seed, **given})
    made = generate(
        opened,
        wanted.output,
        count=wanted.count,
        settings=settings,
        points=wanted.points,
        module=module,
        where=wanted.where,
        safe_csv=wanted.safe_csv,
        device=device,
    )
    if wanted.pictures:
        made.save_pictures()
    if holds_points(opened):
        points_are = f"the release's {len(opened.release.labels):,} points as they are in {POINTS}"
        done = f"wrote {wanted.output}, {points_are}"
    else:
        done = f"wrote {wanted.output}{_loss(made)}{_repaired(made)}"
        for name in ("steps", "batch", "learning_rate", "schedule"):
            if name in chosen and not made.losses:
                notice(
                    f"{_option(name)}: of no effect: these rows are put together without training"
                )
    classes = None if is_table else len(schema.classes)
    console.print(done, f"the release is {opened.signed_by}", _look_at(wanted.output, classes))
    by_default = not is_table and wanted.count is None and wanted.points is None
    if by_default and isinstance(opened.release, Release):
        _offer_more(wanted.output, opened.release.guarantee.records)


def _offer_more(output: Path, images: int) -> None:
    """Say how to make more images, if classifiers would learn more from them."""
    if images < _ENOUGH_IMAGES:
        notice(
            f"classifiers learn more from more images than the release's {images:,}: "
            f"'dpntk generate --from {typed(output)} -o more' makes {MOST_IMAGES:,} "
            "without training"
        )


def _sample_again(path: Path, wanted: _Wanted, seed: int | None) -> None:
    """Write records of a saved generator, or the points that stand for them."""
    generator = load_generator(path)
    classes = None if isinstance(generator, SavedTableGenerator) else len(generator.classes)
    require_csv(wanted.safe_csv, is_table=classes is None)
    require_pictures(wanted.pictures, is_table=classes is None)
    if wanted.points is not None:
        more = points_to(wanted.output, generator, wanted.points)
        made = f"{counted(wanted.points.per_class, 'point')} of each class"
    else:
        if seed is not None and seed == first_seed(generator.origin):
            notice(
                f"seed {seed} is that of the records that came with the training: as many of them "
                "are the same again; without --seed they are new"
            )
        more = sample_to(
            wanted.output,
            generator,
            count=wanted.count or MOST_IMAGES,
            seed=seed,
            where=wanted.where,
            safe_csv=wanted.safe_csv,
        )
        count = counted(wanted.count or MOST_IMAGES, "record")
        made = f"{count} of seed {more.seed}{_repaired(more)}"
    if wanted.pictures:
        more.save_pictures()
    console.print(
        f"wrote {wanted.output}, {made} without training", _look_at(wanted.output, classes)
    )


def _option(name: str) -> str:
    return argument(name, option=OPTIONS.get(name, ""))


def _loss(made: Synthetic) -> str:
    if not made.losses:
        return ""
    noise = f"of which the release's noise is {made.noise_floor:.4f}"
    return f"; loss {made.losses[-1].loss:.4f}, {noise}"


def _repaired(made: Synthetic) -> str:
    if made.repaired is None:
        return ""
    return f"; {made.repaired:.1%} of the rows were repaired to keep the constraints"


def _look_at(output: Path, classes: int | None) -> str:
    """Where to look at the records: a table, or a picture of the first classes."""
    if classes is None:
        return f"look at {output / CSV}"
    first = f", of the first {PREVIEW_CLASSES} of {classes:,} classes"
    return f"look at {output / PREVIEW}{first if classes > PREVIEW_CLASSES else ''}"
