"""Write images and their generator, and read the generator back."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ...common.arguments import seed_from, whole_number
from ...common.display.representations import RedactedRepr
from ...common.errors import GeneratorError
from ...common.schema.preparation import AS_STORED, Preparation
from ...common.storage.synthetic_folder import IMAGES, POINTS, PREVIEW
from ..output import generator_file
from ..output.folder import results
from ..output.generator_file import GENERATOR
from .generators.registry import ImageGenerator, described, generator_from
from .inducing_points import InducingPoints
from .sampling import require_no_condition, sample

PREVIEW_CLASSES: Final = 20
"""`preview.png` shows at most this many classes, the first ones."""
_PREVIEW_COLUMNS: Final = 12
_PREVIEW_SIDE: Final = 56


@dataclass(frozen=True, eq=False, repr=False)
class SavedImageGenerator(RedactedRepr):
    """A trained generator of images, what else sampling needs, and its origin.

    Attributes:
        generator: in evaluation mode.
        classes: name of each class.
        class_weights: released share of each class, float64 (c,).
        origin: the release's id, digest, epsilon and the rest, and how the generator was trained.
        preparation: how the real images were prepared.
    """

    generator: ImageGenerator
    classes: tuple[str, ...]
    class_weights: NDArray[np.float64]
    origin: dict[str, Any]
    preparation: Preparation = AS_STORED

    def sample(
        self, count: int, seed: int | None = None, where: str = ""
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Draw images and labels, in random order.

        Args:
            count: how many.
            seed: the same seed gives the same images; if None, each call gives new ones.
            where: as of tables; refused unless empty, as images have no columns.

        Returns:
            Images, uint8 (count, side, side[, 3]), and labels, int64 (count,).

        Raises:
            GeneratorError: a number is out of range, or there is a condition.
        """
        require_no_condition(where)
        count = whole_number("count", count, least=1, refusal=GeneratorError)
        return self.draw(count, seed_from(seed, GeneratorError))

    def draw(self, count: int, seed: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Draw images and labels as `sample` does, with a given seed."""
        images, labels = sample(self.generator, count, self.class_weights, seed)
        return self.preparation.turned_back(images), labels


def write_synthetic(
    folder: Path,
    saved: SavedImageGenerator,
    images: NDArray[np.uint8],
    labels: NDArray[np.int64],
    sampling: dict[str, Any],
) -> None:
    """Write the folder of results, which appears whole or not at all.

    Args:
        folder: where; an earlier such folder is replaced.
        saved: the generator that made the records.
        images: uint8 (n, side, side), or in colour (n, side, side, 3).
        labels: int64 (n,).
        sampling: how the records were drawn, for the provenance.

    Raises:
        OutputError: the folder cannot be written.
    """
    with _with_generator(folder, saved, {"sampling": sampling}) as temporary:
        write_images(temporary, images, labels, saved.classes)


def write_found_points(folder: Path, saved: SavedImageGenerator, points: InducingPoints) -> None:
    """Write the folder of results with points instead of records, like that of a distilled set.

    Args:
        folder: where; an earlier such folder is replaced.
        saved: the generator that the points stand for.
        points: the points.

    Raises:
        OutputError: the folder cannot be written.
    """
    more = {"kernel": points.kernel, "points": asdict(points.settings)}
    with _with_generator(folder, saved, more) as temporary:
        images = saved.preparation.turned_back(points.images(saved.generator.spec.channels))
        write_images(temporary, images, points.labels, saved.classes)
        write_points(temporary, points.values, points.labels)


@contextlib.contextmanager
def _with_generator(
    folder: Path, saved: SavedImageGenerator, more: dict[str, Any]
) -> Iterator[Path]:
    """A folder of results that contains the generator and its origin."""
    of_images = images_described(saved.classes, saved.preparation)
    with results(folder, {**saved.origin, **of_images, **more}) as temporary:
        yield temporary
        (temporary / GENERATOR).write_bytes(_serialise(saved))


def images_described(classes: tuple[str, ...], preparation: Preparation) -> dict[str, Any]:
    """What a folder's provenance says about its images, as plain JSON."""
    prepared = preparation.to_json()
    return {"classes": list(classes), **({"preparation": prepared} if prepared else {})}


def write_images(
    folder: Path, images: NDArray[np.uint8], labels: NDArray[np.int64], classes: tuple[str, ...]
) -> None:
    """Write `images.npz` and `preview.png` into a folder.

    Args:
        folder: an existing folder.
        images: uint8 (n, side, side), or in colour (n, side, side, 3).
        labels: int64 (n,).
        classes: the name of each.
    """
    np.savez_compressed(folder / IMAGES, x=images, y=labels, classes=np.array(classes))
    (folder / PREVIEW).write_bytes(_preview(images, labels, len(classes)))


def write_points(folder: Path, values: NDArray[np.float32], labels: NDArray[np.int64]) -> None:
    """Write `points.npz` into a folder: the exact points, for kernel regression.

    Args:
        folder: an existing folder.
        values: float32 (m, D).
        labels: int64 (m,).
    """
    np.savez_compressed(folder / POINTS, x=values, y=labels)


def understand_image_generator(
    description: generator_file.Description, weights: generator_file.Weights
) -> SavedImageGenerator:
    """Rebuild the generator from a file that `write_synthetic` wrote, for `generator_file.read`."""
    make, count = generator_from(description)
    classes = tuple(map(str, description["classes"]))
    class_weights = generator_file.class_shares(description["class_weights"], count)
    if len(classes) != count:
        raise GeneratorError("its classes and weights contradict each other")
    generator = generator_file.restored(make, weights)
    preparation = Preparation.from_json(description.get("preparation", {}))
    origin = dict(description["origin"])
    return SavedImageGenerator(generator, classes, class_weights, origin, preparation)


def _serialise(saved: SavedImageGenerator) -> bytes:
    description = {
        **described(saved.generator),
        **images_described(saved.classes, saved.preparation),
        "class_weights": saved.class_weights.tolist(),
        "origin": saved.origin,
    }
    return generator_file.serialise(description, saved.generator.state_dict())


def _preview(images: NDArray[np.uint8], labels: NDArray[np.int64], classes: int) -> bytes:
    """A PNG with a row of enlarged images for each of the first `PREVIEW_CLASSES` classes.

    Images of a single class fill several rows.
    """
    side = images.shape[1]
    scale = max(1, _PREVIEW_SIDE // side)
    cell = side * scale + 2
    if classes == 1:
        shown = np.arange(min(len(images), _PREVIEW_COLUMNS**2))
        rows = np.split(shown, range(_PREVIEW_COLUMNS, len(shown), _PREVIEW_COLUMNS))
    else:
        rows = [np.flatnonzero(labels == row) for row in range(min(classes, PREVIEW_CLASSES))]
    size = (_PREVIEW_COLUMNS * cell + 2, len(rows) * cell + 2)
    sheet = Image.new("L", size, 96) if images.ndim == 3 else Image.new("RGB", size, (96, 96, 96))
    for row, places in enumerate(rows):
        for column, index in enumerate(places[:_PREVIEW_COLUMNS]):
            image = Image.fromarray(images[index])
            enlarged = image.resize((side * scale, side * scale), Image.Resampling.NEAREST)
            sheet.paste(enlarged, (column * cell + 2, row * cell + 2))
    content = io.BytesIO()
    sheet.save(content, format="PNG")
    return content.getvalue()
