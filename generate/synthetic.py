"""Synthetic records and the generators that make more of them, for images and tables alike."""

from __future__ import annotations

import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..common.arguments import (
    Location,
    argument,
    path_from,
    require_flag,
    seed_from,
    whole_number,
)
from ..common.errors import GeneratorError, OutputError
from ..common.schema.table import TableSchema
from ..common.storage.atomic import write_atomically
from ..common.storage.synthetic_folder import IMAGES, PICTURES
from .fit.descent import LossPoint
from .images.export import (
    SavedImageGenerator,
    understand_image_generator,
    write_found_points,
    write_synthetic,
)
from .images.inducing_points import PointSettings, find_points
from .images.pictures import zip_of_pictures
from .images.sampling import require_no_condition
from .output import generator_file
from .output.folder import require_replaceable
from .output.generator_file import GENERATOR
from .output.provenance import warn_unless_private
from .output.records import read_images, read_rows
from .tables.export import KIND, SavedTableGenerator, understand_table_generator, write_table
from .tables.rows.dataframe import to_dataframe

SavedGenerator = SavedImageGenerator | SavedTableGenerator
"""A trained generator of either kind, with everything that sampling needs."""


@dataclass(frozen=True, eq=False)
class Synthetic:
    """A folder of synthetic records on disk; it can be passed wherever a path is expected.

    Attributes:
        path: the folder.
        generator: what the records were sampled from; None for a distilled set, which has none.
        losses: the training loss, averaged over every few steps; empty if nothing was trained.
        noise_floor: expected contribution of the release's noise to the loss; None if nothing was
            trained.
        repaired: for a table with constraints, the share of its rows that broke one and were
            repaired; None otherwise.
        seed: the seed of the draw; None if no records were drawn.
        schema: the schema of a table; None for images.
    """

    path: Path
    generator: SavedGenerator | None = field(default=None, repr=False)
    losses: tuple[LossPoint, ...] = field(default=(), repr=False)
    noise_floor: float | None = None
    repaired: float | None = None
    seed: int | None = None
    schema: TableSchema | None = field(default=None, repr=False)

    def __fspath__(self) -> str:
        return str(self.path)

    def records(self) -> Any:  # noqa: ANN401 - of two kinds
        """Read the records in the folder.

        Returns:
            For a table, a DataFrame with the declared types. For images, a pair of arrays: images,
            uint8 (n, side, side), or (n, side, side, 3) in colour, and labels, int64 (n,).

        Raises:
            GeneratorError: the folder no longer exists, or pandas is not installed.
        """
        if self.schema is None:
            return read_images(self.path)[:2]
        return to_dataframe(read_rows(self.path), self.schema)

    def save_pictures(self) -> Path:
        """Write `pictures.zip` into the folder: each image as a PNG file in a folder of its class.

        Returns:
            The archive.

        Raises:
            GeneratorError: the records are of a table, or no longer exist.
            OutputError: the archive cannot be written.
        """
        require_pictures(True, is_table=self.schema is not None)
        archive, beside = self.path / PICTURES, self.path / IMAGES
        content = zip_of_pictures(*read_images(self.path))
        mode = stat.S_IMODE(beside.stat().st_mode)  # the pictures get the permissions of the images
        write_atomically(archive, content, mode=mode)
        return archive

    def sample(self, count: int, seed: int | None = None, where: str = "") -> Any:  # noqa: ANN401 - of two kinds
        """Draw more records, in memory and in random order.

        Args:
            count: how many.
            seed: the same seed gives the same records; if None, each call gives new ones.
            where: for a table: a condition that all rows fulfil, such as "age >= 50".

        Returns:
            The same types as `records`.

        Raises:
            GeneratorError: there is no generator, or an argument is out of range.
        """
        if self.generator is None:
            raise GeneratorError(f"{self.path}: of a distilled set, which has no generator")
        return self.generator.sample(count, seed, where)


def load_generator(path: Location) -> SavedGenerator:
    """Read a saved generator of images or of a table.

    Args:
        path: its file, or the folder of synthetic records that contains it.

    Returns:
        The generator: `sample` draws records in memory, `sample_to` writes them.

    Raises:
        GeneratorError: there is no generator there, or it is damaged.
    """
    path = path_from("generator", path, refusal=GeneratorError)
    return generator_file.read(path / GENERATOR if path.is_dir() else path, _understand)


def _understand(
    description: generator_file.Description, weights: generator_file.Weights
) -> SavedGenerator:
    if "kind" in description and description["kind"] == KIND:
        return understand_table_generator(description, weights)
    return understand_image_generator(description, weights)


def sample_to(
    folder: Location,
    generator: SavedGenerator,
    *,
    count: int,
    seed: int | None = None,
    where: str = "",
    safe_csv: bool = False,
) -> Synthetic:
    """Draw records from a generator and write them to a folder.

    Args:
        folder: where to write; an earlier result there is replaced.
        generator: as returned by `load_generator`.
        count: how many records.
        seed: the same seed gives the same records; if None, a new one is drawn. The provenance
            records it.
        where: for a table: a condition that all rows fulfil; empty for none.
        safe_csv: for a table: whether to keep out of `table.csv` whatever a spreadsheet would
            compute.

    Returns:
        The folder, with its `records`.

    Raises:
        GeneratorError: an argument is out of range or does not apply to the generator, or too few
            rows fulfil the condition.
        OutputError: the folder cannot be written.
    """
    folder = path_from("folder", folder, refusal=OutputError)
    count = whole_number("count", count, least=1, refusal=GeneratorError)
    seed = seed_from(seed, GeneratorError)
    sampling: dict[str, Any] = {"records": count, "seed": seed}
    repaired = schema = None
    match generator:
        case SavedTableGenerator():
            require_csv(safe_csv, is_table=True)
            _begin(folder, generator)
            drawn, schema = generator.draw(count, seed, where), generator.model.schema
            repaired = drawn.repaired
            sampling |= {"where": where} if where else {}
            sampling |= {} if repaired is None else {"repaired": repaired}
            write_table(folder, generator, drawn.table, sampling, safe_csv=safe_csv)
        case SavedImageGenerator():
            require_csv(safe_csv, is_table=False)
            require_no_condition(where)
            _begin(folder, generator)
            write_synthetic(folder, generator, *generator.draw(count, seed), sampling)
        case _:
            raise _no_generator(generator)
    return Synthetic(folder, generator, repaired=repaired, seed=seed, schema=schema)


def points_to(folder: Location, generator: SavedGenerator, settings: PointSettings) -> Synthetic:
    """Find inducing points that stand for a generator's images, and write them to a folder.

    Args:
        folder: where to write; an earlier result there is replaced.
        generator: of images, as returned by `load_generator`.
        settings: how many points, and how they are found.

    Returns:
        The folder; its `records` are the points as images.

    Raises:
        GeneratorError: the generator is of a table, or the settings do not fit its classes.
        OutputError: the folder cannot be written.
    """
    folder = path_from("folder", folder, refusal=OutputError)
    match generator:
        case SavedTableGenerator():
            raise no_points_of_tables()
        case SavedImageGenerator():
            require_points(settings, len(generator.classes))
            _begin(folder, generator)
            write_found_points(folder, generator, find_points(generator.generator, settings))
        case _:
            raise _no_generator(generator)
    return Synthetic(folder, generator)


def require_points(settings: PointSettings, classes: int) -> None:
    """Check the settings of points before any work is done.

    Raises:
        GeneratorError: these are no `PointSettings`, or they do not fit the number of classes.
    """
    if not isinstance(settings, PointSettings):
        raise GeneratorError(f"points: PointSettings are wanted, not {type(settings).__name__}")
    settings.require_usable(classes)


def require_csv(safe_csv: bool, *, is_table: bool) -> None:
    """Refuse a safe CSV file of images, of which no CSV is written.

    Raises:
        GeneratorError: one is wanted.
    """
    require_flag("safe_csv", safe_csv, refusal=GeneratorError)
    if safe_csv and not is_table:
        safely = argument("safe_csv")
        raise GeneratorError(f"{safely}: the release is of images, of which no CSV is written")


def require_pictures(wanted: bool, *, is_table: bool) -> None:
    """Refuse to make pictures of a table's rows.

    Raises:
        GeneratorError: pictures are wanted.
    """
    if wanted and is_table:
        said = argument("pictures")
        raise GeneratorError(f"{said}: the release is of a table: they are made of images")


def no_points_of_tables() -> GeneratorError:
    """The error for points of a table."""
    return GeneratorError(
        f"{argument('points')}: the release is of a table, and they are found for images; "
        "'dpntk distill' finds some in a table's rows"
    )


def _no_generator(given: object) -> GeneratorError:
    return GeneratorError(
        f"generator: what load_generator reads is wanted, not {type(given).__name__}"
    )


def _begin(folder: Path, generator: SavedGenerator) -> None:
    require_replaceable(folder)
    warn_unless_private(generator.origin, folder)
