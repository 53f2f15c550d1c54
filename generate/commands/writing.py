"""What `dpntk generate` does, once its command line is understood."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ...common.display.console import console, notice
from ...common.display.text import counted, typed
from ...common.runtime.threads import use_threads
from ...common.schema.rules.condition import Comparison, Relation
from ...common.schema.table import TableSchema
from ...common.storage.synthetic_folder import CSV, POINTS, PREVIEW
from ...release.file.distilled import AnyOpened, holds_points
from ...release.file.model import Release
from ...release.file.reader import open_any
from ...release.signing.policy import Acceptance
from ..defaults import MOST_IMAGES, option, usual_rows
from ..fit.settings import TrainingSettings
from ..images.export import PREVIEW_CLASSES
from ..images.inducing_points import PointSettings
from ..output.folder import require_replaceable
from ..output.provenance import first_seed, records_of
from ..pipeline import chosen_settings, generate, require_nothing_to_train
from ..synthetic import (
    SavedGenerator,
    Synthetic,
    load_generator,
    points_to,
    require_csv,
    require_pictures,
    sample_to,
)
from ..tables.export import SavedTableGenerator

_ENOUGH_IMAGES: Final = 10_000
"""Beyond this many images, classifiers hardly learn more."""


def write(
    output: Path,
    *,
    release: Path,
    saved: Path | None,
    chosen: Mapping[str, Any],
    count: int | None,
    per_class: int | None,
    where: str,
    seed: int | None,
    safe_csv: bool,
    pictures: bool,
    module: Path | None,
    acceptance: Acceptance,
    device: str,
) -> None:
    """Train on a release and write records, or sample again from a saved generator.

    Args:
        output: the folder to write.
        release: what to train on, if nothing is saved.
        saved: a generator, or the folder that holds it.
        chosen: a recipe, and fields of settings.
        count: how many records; None for as many as usual.
        per_class: how many points of each class to write in place of records; None for records.
        where: a condition that rows fulfil; empty for none.
        seed: of training and sampling; None for the usual one, or with `saved` for a new one.
        safe_csv: whether texts are kept from being formulas.
        pictures: whether each image also gets a file.
        module: of perceptual features.
        acceptance: whose releases to open.
        device: "auto", "cpu" or "cuda".
    """
    first = TrainingSettings().seed if seed is None else seed
    points = None if per_class is None else PointSettings(per_class, seed=first)
    wanted = _Wanted(output, count, points, where, safe_csv, pictures)
    require_replaceable(output)
    use_threads()
    if saved is not None:
        _sample_again(saved, wanted, seed)
    else:
        _train(
            open_any(release, acceptance), wanted, chosen, seed=first, module=module, device=device
        )


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
        settings = chosen_settings(opened, {"seed": seed, **chosen})
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
                    f"{option(name)}: of no effect: these rows are put together without training"
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
        count = wanted.count or _usual_count(generator)
        more = sample_to(
            wanted.output,
            generator,
            count=count,
            seed=seed,
            where=wanted.where,
            safe_csv=wanted.safe_csv,
        )
        made = f"{counted(count, 'record')} of seed {more.seed}{_repaired(more)}"
    if wanted.pictures:
        more.save_pictures()
    console.print(
        f"wrote {wanted.output}, {made} without training", _look_at(wanted.output, classes)
    )


def _usual_count(generator: SavedGenerator) -> int:
    """How many records are made by default without training."""
    if isinstance(generator, SavedTableGenerator):
        return usual_rows(generator.model.schema, records_of(generator.origin))
    return MOST_IMAGES


def _loss(made: Synthetic) -> str:
    if not made.losses:
        return ""
    noise = f"of which the release's noise is {made.noise_floor:.4f}"
    return f"; loss {made.losses[-1].loss:.4f}, {noise}"


def _repaired(made: Synthetic) -> str:
    if made.repaired is None:
        return ""
    rules = () if made.schema is None else made.schema.rules
    exact = any(isinstance(rule, Comparison) and rule.relation is Relation.EQUAL for rule in rules)
    usual = ", as nearly all are where numbers have to add up" if exact else ""
    return f"; {made.repaired:.1%} of the rows were repaired to keep the constraints{usual}"


def _look_at(output: Path, classes: int | None) -> str:
    """Where to look at the records: a table, or a picture of the first classes."""
    if classes is None:
        return f"look at {output / CSV}"
    first = f", of the first {PREVIEW_CLASSES} of {classes:,} classes"
    return f"look at {output / PREVIEW}{first if classes > PREVIEW_CLASSES else ''}"
