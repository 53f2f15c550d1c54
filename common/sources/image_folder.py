"""A folder with one folder of PNG or JPEG files for each class."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ..console import notice
from ..errors import DataError, SchemaError
from ..schema import ImageSchema, Origin
from .base import Batch, files_fingerprint, square_side

_SUFFIXES: Final = frozenset({".png", ".jpg", ".jpeg"})
_GREY_MODES: Final = frozenset({"1", "L", "LA"})
_PNG_END: Final = b"IEND\xaeB`\x82"
_COLOUR_MODES: Final = frozenset({"P", "PA", "RGB", "RGBA", "CMYK", "YCbCr"})


@dataclass(frozen=True)
class ImageFolderSource:
    """Image files, class by class in the order of the classes, sorted by name within a class."""

    folder: Path
    files: tuple[tuple[Path, int], ...]
    height: int
    width: int
    resized: bool
    schema: ImageSchema

    @classmethod
    def open(
        cls, folder: Path, image_size: int | None, class_names: tuple[str, ...] | None
    ) -> ImageFolderSource:
        """List the files, and read the first one for its size.

        Args:
            folder: holds one folder for each class.
            image_size: resize every image to this many pixels a side.
            class_names: the classes to expect; the folders' names if None.

        Raises:
            DataError: no class folders, one of them without images, or one of an unknown class.
            SchemaError: sizes or classes that are not supported.
        """
        classes = sorted(
            entry for entry in folder.iterdir() if entry.is_dir() and entry.name[0] != "."
        )
        if not classes:
            raise DataError(
                f"{folder}: nothing to read: it holds neither class folders with images, "
                "nor IDX files such as train-images-idx3-ubyte.gz"
            )
        names = class_names or tuple(entry.name for entry in classes)
        files: list[tuple[Path, int]] = []
        for entry in classes:
            if entry.name not in names:
                raise DataError(
                    f"{entry}: {entry.name} is not one of the classes {', '.join(names)}"
                )
            images = sorted(f for f in entry.iterdir() if f.suffix.lower() in _SUFFIXES)
            if not images:
                raise DataError(
                    f"{entry}: a class folder without a PNG or JPEG file: fill it or remove it"
                )
            files += [(image, names.index(entry.name)) for image in images]
        with _opened(files[0][0]) as image:
            width, height = image.size
            if image.mode in _COLOUR_MODES:
                notice(f"{files[0][0].name} is in colour; colour images are read as shades of grey")
        side, side_origin = square_side(height, width, image_size, str(files[0][0]))
        schema = ImageSchema(side, names, side_origin, Origin.FORMAT)
        return cls(folder, tuple(files), height, width, image_size is not None, schema)

    def __len__(self) -> int:
        return len(self.files)

    def batches(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """Yield the images class by class."""
        wanted = self.files[start:stop]
        for first in range(0, len(wanted), size):
            part = wanted[first : first + size]
            records = np.stack([self._read(path).reshape(-1) for path, _ in part])
            yield Batch(records, np.array([label for _, label in part], dtype=np.int64))

    def fingerprint(self) -> str:
        """Of all files' names, sizes and times."""
        return files_fingerprint((file for file, _ in self.files), self.folder, "folder")

    def _read(self, path: Path) -> NDArray[np.uint8]:
        side = self.schema.side
        with _opened(path) as image:
            if not self.resized and image.size != (self.width, self.height):
                raise SchemaError(
                    f"{path} is {image.height}x{image.width} pixels but {self.files[0][0]} is "
                    f"{self.height}x{self.width}: --image-size {side} resizes every image to "
                    f"{side}x{side}"
                )
            try:
                grey = image.convert("L")
                if self.resized:
                    grey = grey.resize((side, side), Image.Resampling.BILINEAR)
            except (OSError, ValueError, SyntaxError) as error:
                raise DataError(f"{path}: damaged: {error}; replace or remove it") from error
            return np.asarray(grey)


def _opened(path: Path) -> Image.Image:
    """Read an image's header.

    Raises:
        DataError: the file is no image, cut short, or one of a kind that is not supported.
    """
    try:
        content = path.read_bytes()
        image = Image.open(io.BytesIO(content), formats=("PNG", "JPEG"))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else None
        raise DataError(
            f"{path}: {reason or 'not a whole PNG or JPEG image'}; replace or remove it"
        ) from error
    # The decoder is content once it has all pixels, whether or not the file goes on as it should.
    if image.format == "PNG" and _PNG_END not in content:
        raise DataError(f"{path}: damaged: cut short; replace or remove it")
    if image.mode not in _GREY_MODES | _COLOUR_MODES:
        raise DataError(f"{path}: pixels of kind {image.mode}: 8 bits a channel are supported")
    return image
