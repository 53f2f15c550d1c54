"""Labels of images in a CSV file, whose rows name the images' files."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...arguments import argument
from ...display.console import notice
from ...display.representations import RedactedRepr
from ...display.text import counted, so_many, some_of
from ...errors import DataError, SchemaError
from ..options import SourceOptions
from ..paths import AnyPath, located, read
from .decoding.encoded import SUFFIXES
from .labels import NAMED, Classes, classes_of_texts

_MOST_BYTES: Final = 1 << 28
_BOM: Final = "\ufeff"
_SUFFIXES: Final = (".csv", ".tsv", ".txt")
_SEPARATORS: Final = (",", ";", "\t")
_OF_FILES: Final = (
    "file", "file_name", "filename", "image", "image_name", "image_id", "image_index", "img",
    "image_path", "file_path", "filepath", "path", "id", "name",
)  # fmt: skip
_OF_LABELS: Final = (
    "label", "labels", "class", "target", "y", "cls", "category", "diagnosis", "dx",
)  # fmt: skip
"""Usual names of columns, the likeliest first; case, blanks and hyphens may differ."""
_OF_A_PATH: Final = re.compile(r"[/\\]")


@dataclass(frozen=True, repr=False)
class _Row(RedactedRepr):
    """One row of a file of labels.

    Attributes:
        number: its number, from 1 after the header.
        file: the name of an image's file, as written.
        label: the label as written, without surrounding blanks; may be empty.
    """

    number: int
    file: str
    label: str


@dataclass(frozen=True, repr=False)
class LabelFile(RedactedRepr):
    """A CSV file with a column of file names and a column of labels.

    Attributes:
        path: the file's path.
        columns: the names of the two columns.
        rows: all rows.
    """

    path: AnyPath
    columns: tuple[str, str]
    rows: tuple[_Row, ...]

    @classmethod
    def open(cls, options: SourceOptions) -> LabelFile:
        """Read the whole file.

        Args:
            options: the file, and the columns if they are given.

        Raises:
            DataError: it cannot be read, or its columns cannot be found.
        """
        assert options.labels is not None
        path = located(options.labels)
        if path.suffix.lower() not in _SUFFIXES:
            raise DataError(f"{path}: labels are read from a CSV file: save them as one, .csv")
        separator, lines = _lines(path)
        reader = csv.reader(io.StringIO(lines, newline=""), delimiter=separator, strict=True)
        rows: list[_Row] = []
        try:
            header = [name.strip() for name in next(filter(None, reader))]
            columns = _columns(header, options.label_columns, str(path))
            places = [header.index(name) for name in columns]
            for number, values in enumerate(filter(None, reader), 1):
                if len(values) != len(header):
                    raise DataError(
                        f"{path}: row {number} has {counted(len(values), 'value')}, but the header "
                        f"has {len(header)}: correct it, or put what holds a {separator!r} into "
                        "quotes"
                    )
                file, label = (values[place].strip() for place in places)
                rows.append(_Row(number, file, label))
        except csv.Error as error:
            raise DataError(
                f"{path}: row {len(rows) + 1} cannot be read, {error}: close its quotes, or double "
                "those that are meant as themselves"
            ) from error
        if options.label_columns is None:
            notice(f"{path}: names of files are its column {columns[0]}, labels {columns[1]}")
        return cls(path, columns, tuple(rows))

    def labels_of(
        self, images: Iterable[tuple[str, str]], options: SourceOptions
    ) -> tuple[NDArray[np.int64], Classes]:
        """The class of each image.

        Guarantee:
            The label of an image is that of the row with its name, and follows from this row and
            the declared names alone. (docs/privacy/proofs.md, statement 3.)

        Args:
            images: (folder name, file name) of each image.
            options: the declared classes.

        Returns:
            int64 (n,), and the classes.

        Raises:
            DataError: an image has no row or several, or a row matches several images.
            SchemaError: a label is not one of the classes.
        """
        files = list(images)
        chosen = self._rows_of(files)
        used = [row for row in chosen if row is not None]
        missing = [at for at, row in enumerate(chosen) if row is None]
        if missing:
            self._refuse(files, missing)
        others = len(self.rows) - len(used)
        if others:
            notice(f"passed over {so_many(others, 'row')} of {self.path}: no such images are here")
        classes, known = classes_of_texts(options, {row.label for row in used}, str(self.path))
        labels = np.empty(len(used), dtype=np.int64)
        for at, row in enumerate(used):
            index = known.get(row.label)
            if index is None:
                raise SchemaError(
                    f"{self.path}: row {row.number} has a label that is none of the classes "
                    f"{some_of(classes.names, NAMED)}: correct it, or name its class with "
                    f"{argument('class_names')}",
                    row.label,
                )
            labels[at] = index
        return labels, classes

    def _rows_of(self, files: list[tuple[str, str]]) -> list[_Row | None]:
        """The row of each image; None if there is none."""
        places: dict[str, list[int]] = {}
        for at, (_, file) in enumerate(files):
            for name in {file, _stem(file)}:
                places.setdefault(name, []).append(at)
        chosen: list[_Row | None] = [None] * len(files)
        for row in self.rows:
            *folders, name = _OF_A_PATH.split(row.file)
            fitting = [
                at for at in places.get(name, ()) if not folders or files[at][0] == folders[-1]
            ]
            if len(fitting) > 1:
                one, other = ("/".join(files[at]) for at in fitting[:2])
                raise DataError(
                    f"{self.path}: row {row.number} may mean {one} or {other}: write more of "
                    "its name, as here"
                )
            for at in fitting:
                earlier = chosen[at]
                if earlier is not None:
                    raise DataError(
                        f"{self.path}: rows {earlier.number} and {row.number} are both of "
                        f"{'/'.join(files[at])}: an image has one label; keep one of them"
                    )
                if not row.label:
                    raise DataError(
                        f"{self.path}: row {row.number} has no label for {'/'.join(files[at])}: "
                        "write one, or take the image out of the folder"
                    )
                chosen[at] = row
        return chosen

    def _refuse(self, files: list[tuple[str, str]], missing: list[int]) -> None:
        """Raise an error that says which images have no label, and why that may be.

        Raises:
            DataError: always.
        """
        one = "/".join(files[missing[0]])
        of_files, _ = self.columns
        if len(missing) == len(files) and self.rows:
            raise DataError(
                f"{self.path}: no row is of an image here, such as {one}: names are those of files "
                f"in the column {of_files}, with the folder that they lie in or without; "
                f"{argument('label_columns')} says which other column it is",
                self.rows[0].file,
            )
        of_all = f"of {counted(len(files), 'image')}"
        some = so_many(len(missing), of_all, of_all, unsaid="some images")
        raise DataError(
            f"{self.path}: {some} have no row, such as {one}: add rows for them, or take them out "
            "of the folder"
        )


def _lines(path: AnyPath) -> tuple[str, str]:
    """The separator of values, and the text of the file.

    Raises:
        DataError: it is not a CSV file in UTF-8.
    """
    content = read(path, _MOST_BYTES)
    try:
        text = content.decode().removeprefix(_BOM)
    except UnicodeError:
        raise DataError(f"{path}: not a text in UTF-8: save it as CSV in UTF-8") from None
    if not text.strip():
        raise DataError(f"{path}: the file is empty")
    first = text.lstrip("\r\n").splitlines()[0]
    return max(_SEPARATORS, key=first.count), text


def _columns(header: list[str], given: tuple[str, str] | None, where: str) -> tuple[str, str]:
    """The names of the columns with files and labels.

    Raises:
        DataError: they are missing or ambiguous.
    """
    there = f"its columns are {some_of(header, NAMED)}"
    if given is not None:
        if given[0] == given[1]:
            raise DataError(f"{where}: the column {given[0]} is named twice: {there}")
        for name in given:
            if header.count(name) != 1:
                several = "several columns" if name in header else "no column"
                raise DataError(f"{where}: {several} {name}: {there}")
        return given
    if any(name.lower().endswith(tuple(SUFFIXES)) for name in header):
        raise DataError(
            f"{where}: its first line names an image, not columns: put a line such as file,label "
            "before it"
        )
    files, labels = _usual(header, _OF_FILES), _usual(header, _OF_LABELS)
    if len(header) == 2:  # one determines the other
        files = files or next((name for name in header if labels and name != labels), None)
        labels = labels or next((name for name in header if files and name != files), None)
    if files is None or labels is None:
        what = "names of files" if files is None else "labels"
        raise DataError(
            f"{where}: it cannot be told which column holds {what}: {there}; say so with "
            f"{argument('label_columns', 'FILE,LABEL')}"
        )
    return files, labels


def _usual(header: list[str], usual: tuple[str, ...]) -> str | None:
    plain = {re.sub(r"[\s-]+", "_", name.lower()): name for name in header}
    return next((plain[name] for name in usual if name in plain), None)


def _stem(file: str) -> str:
    """A file's name without an image's suffix."""
    stem, dot, suffix = file.rpartition(".")
    return stem if dot and f".{suffix.lower()}" in SUFFIXES else file
