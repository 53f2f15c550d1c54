"""Image files: in one folder per class, or side by side, with a file of labels or without."""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...arguments import argument
from ...display.console import notice
from ...display.representations import RedactedRepr
from ...display.text import counted, so_many, some_of
from ...errors import DataError, SchemaError
from ...schema.classes import numbered
from ...schema.image import ImageSchema
from ...schema.origin import Origin
from ..base import Batch, decoded, named_fingerprint, reading
from ..options import SourceOptions
from ..part_folders import folders_in
from ..paths import AnyPath, read
from ..remote import RemotePath
from ..shards import pieces
from .decoding.decoder import ImageDecoder
from .decoding.encoded import MOST_BYTES, READ, SUFFIXES
from .label_file import LabelFile
from .labels import NAMED, Classes, one_class

_PIECE: Final = 64
_NUL: Final = b"\0"
_BY_THEMSELVES: Final = frozenset({"thumbs.db", "desktop.ini"})
"""Files that file managers create by themselves."""


@dataclass(frozen=True, eq=False, repr=False)
class _FolderListing(RedactedRepr):
    """The images of one folder, sorted by name: a million of them take 20 MB.

    Attributes:
        folder: the folder.
        label: the index of their class, or int64 (n,), one index for each.
        names: the names one after another, each followed by a NUL, which no file name contains.
        ends: int64 (n + 1,), where each name begins, and finally where all end.
        kinds: the kinds of image files, by their suffixes.
        others: the number of other entries, and the name of one, without the files that file
            managers create.
    """

    folder: AnyPath
    label: int | NDArray[np.int64]
    names: bytes
    ends: NDArray[np.int64]
    kinds: frozenset[str]
    others: tuple[int, str]

    @classmethod
    def of(cls, folder: AnyPath, label: int = 0, read_too: Collection[str] = ()) -> _FolderListing:
        """List a folder once; names in `read_too` do not count as other entries."""
        names: list[bytes] = []
        kinds: set[str] = set()
        others, other = 0, ""
        with reading(folder), _entries(folder) as entries:
            for entry in entries:
                kind = SUFFIXES.get(os.path.splitext(entry.name)[1].lower())
                if kind is not None:
                    names.append(os.fsencode(entry.name))
                    kinds.add(kind)
                    if not (entry.is_file() or entry.is_dir() or entry.is_symlink()):
                        raise DataError(f"{folder}/{entry.name}: not a file: replace or remove it")
                elif not (
                    entry.name[0] == "."
                    or entry.name.lower() in _BY_THEMSELVES
                    or entry.name in read_too
                ):
                    others, other = others + 1, max(other, entry.name)
        names.sort()
        ends = np.zeros(len(names) + 1, dtype=np.int64)
        np.cumsum(np.fromiter((len(name) + 1 for name in names), np.int64), out=ends[1:])
        joined = _NUL.join(names) + _NUL
        return cls(folder, label, joined, ends, frozenset(kinds), (others, other))

    def __len__(self) -> int:
        return len(self.ends) - 1

    def files(self, start: int, stop: int) -> list[str]:
        """The names of files start..stop-1."""
        names = self.names[self.ends[start] : self.ends[stop] - 1].split(_NUL)
        return [os.fsdecode(name) for name in names]

    def labels(self, start: int, stop: int) -> NDArray[np.int64]:
        """The classes of files start..stop-1, int64."""
        if isinstance(self.label, int):
            return np.full(stop - start, self.label, dtype=np.int64)
        return self.label[start:stop]


@dataclass(frozen=True)
class ImageFolderSource:
    """Image files, folder by folder in the order of their names, sorted by name within a folder.

    Names are compared as bytes, so that the order is the same on every machine.

    Attributes:
        folder: the folder of the data set.
        listings: the listing of that folder, and those of its subfolders.
        decoder: turns the images into pixels.
        schema: what is publicly known of the records.
        label_file: the file with their labels; None if folders are classes, or there are no labels.
    """

    folder: AnyPath
    listings: tuple[_FolderListing, ...]
    decoder: ImageDecoder
    schema: ImageSchema
    label_file: LabelFile | None = None

    @classmethod
    def open(cls, folder: AnyPath, options: SourceOptions) -> ImageFolderSource:
        """List the files, and read the first image for its size.

        Args:
            folder: holds one folder for each class, or images of one class.
            options: the wanted size and channels, and the declared classes; a class without a
                record may have an empty folder or none. If no classes are declared, the folders'
                names are the classes. With a file of labels, folders' names have no meaning.

        Raises:
            DataError: there are no images, a folder of an unknown class, or, if no classes are
                declared, a folder without images; images lie beside class folders, and several
                classes are not declared; or an image does not have exactly one label in the file of
                labels.
            SchemaError: sizes or classes are not supported.
        """
        found = folders_in(folder)
        entries = [folder / name for name in found]
        loose = _FolderListing.of(folder)
        if not entries and not len(loose):
            raise DataError(
                f"{folder}: nothing to read{_instead((loose,))}: it holds neither class folders "
                "with images, nor images side by side, IDX files such as "
                "train-images-idx3-ubyte.gz, x.npy, train.npz, data_batch_1.bin, Parquet files, or "
                "tar shards"
            )
        if options.labels is not None:
            return cls._with_labels(folder, entries, options)
        if not entries:
            hint = f"; to take labels from a CSV file, give {argument('labels')}"
            return cls._of(folder, (loose,), options, one_class(options, str(folder), hint))
        classes = _classes(folder, found, options)
        if len(loose):
            if not options.only_compared:
                _require_no_single_class(folder, loose, classes)
            notice(f"passed over {so_many(len(loose), 'image')} beside the class folders")
        names = classes.names
        for name in found:
            if name not in names:
                raise DataError(
                    f"{folder / name}: {name} is not one of the classes {some_of(names, NAMED)}"
                )
        listings = tuple(_FolderListing.of(folder / name, names.index(name)) for name in found)
        empty = [listing for listing in listings if not len(listing)]
        if empty and classes.origin is not Origin.DECLARED:
            raise DataError(
                f"{empty[0].folder}: a class folder without an image"
                f"{_instead(empty[:1])}: fill it or remove it, or declare all classes with "
                f"{argument('class_names')}"
            )
        if not any(map(len, listings)):
            raise DataError(f"{folder}: no class folder holds an image{_instead(listings)}")
        return cls._of(folder, listings, options, classes)

    @classmethod
    def _with_labels(
        cls, folder: AnyPath, folders: Sequence[AnyPath], options: SourceOptions
    ) -> ImageFolderSource:
        """Open images in a folder and its subfolders, with labels in a file."""
        file = LabelFile.open(options)
        read_too = {file.path.name, *(entry.name for entry in folders)}
        loose = _FolderListing.of(folder, read_too=read_too)
        listings = (loose, *map(_FolderListing.of, folders))
        if not any(map(len, listings)):
            raise DataError(f"{folder}: holds no image{_instead(listings)}")
        files = (
            (listing.folder.name, name)
            for listing in filter(len, listings)
            for name in listing.files(0, len(listing))
        )
        labels, classes = file.labels_of(files, options)
        ends = np.cumsum([len(listing) for listing in listings])[:-1]
        listings = tuple(
            replace(listing, label=part)
            for listing, part in zip(listings, np.split(labels, ends), strict=True)
        )
        return replace(cls._of(folder, listings, options, classes), label_file=file)

    @classmethod
    def _of(
        cls,
        folder: AnyPath,
        listings: tuple[_FolderListing, ...],
        options: SourceOptions,
        classes: Classes,
    ) -> ImageFolderSource:
        _notice_others(listings)
        filled = next(listing for listing in listings if len(listing))
        first = filled.files(0, 1)[0]
        decoder = ImageDecoder.of_first(*_content(filled.folder, first), options)
        schema = decoder.form.schema(classes)
        return cls(folder, listings, decoder, schema)

    def __len__(self) -> int:
        return sum(map(len, self.listings))

    def batches(self, size: int, start: int = 0, stop: int | None = None) -> Iterator[Batch]:
        """Yield the images folder by folder."""
        yield from decoded(self._decode, self._pieces(start, stop), piece_size=_PIECE, size=size)

    def fingerprint(self) -> str:
        """Digest of all files' names, sizes and times."""
        if self.label_file is None:
            return named_fingerprint(self._files(), "folder", self.schema.classes)
        file, columns = self.label_file.path, self.label_file.columns
        files = itertools.chain([("labels", file)], self._files())
        return named_fingerprint(files, "folder with labels", self.schema.classes, columns)

    def _files(self) -> Iterator[tuple[str, AnyPath | str]]:
        for listing, start, stop in self._pieces():
            folder = listing.folder
            within = "" if folder == self.folder else f"{folder.name}/"
            for name in listing.files(start, stop):
                file = folder / name if isinstance(folder, RemotePath) else f"{folder}/{name}"
                yield f"{within}{name}", file

    def _pieces(
        self, start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[_FolderListing, int, int]]:
        counts = tuple(map(len, self.listings))
        for index, first, last in pieces(counts, start, stop, _PIECE):
            yield self.listings[index], first, last

    def _decode(self, piece: tuple[_FolderListing, int, int]) -> Batch:
        listing, start, stop = piece
        names = listing.files(start, stop)
        records = [self.decoder.decode(*_content(listing.folder, name)) for name in names]
        return Batch(np.stack(records), listing.labels(start, stop))


def require_no_images_beside(part: AnyPath, folder: AnyPath) -> None:
    """Refuse images beside the folder of a part, which without that would be the data set.

    Raises:
        DataError: there are such images.
    """
    if loose := len(_FolderListing.of(folder)):
        raise DataError(
            f"{folder}: holds {so_many(loose, 'image')} beside {part.name}/, which are read "
            f"without this folder, and not with it: give {part} to read it alone"
        )


def require_nothing_beside(folder: AnyPath, kind: str) -> None:
    """Refuse images and folders beside data of another kind, which alone is read.

    Guarantee:
        No record decides whether others are read: a single file of such data would make everything
        beside it passed over. (docs/privacy/proofs.md, statement 3.)

    Args:
        folder: holds the data.
        kind: what they are, in the plural.

    Raises:
        DataError: there are images or folders, which would be read without these data.
    """
    folders = [f"{name}/" for name in folders_in(folder)]
    loose = len(_FolderListing.of(folder))
    if beside := [*folders[:1], *([so_many(loose, "image")] if loose else [])]:
        raise DataError(
            f"{folder}: holds {' and '.join(beside)} beside {kind}: what lies beside such data is "
            "read without them, and not with them: move either elsewhere, or give the one file "
            "that is meant"
        )


def notice_images_beside(folder: AnyPath, kind: str) -> None:
    """Report images of a folder that are not read, because it holds data of another kind."""
    if loose := len(_FolderListing.of(folder)):
        notice(f"{folder}: read the {kind}, and passed over {so_many(loose, 'image')} beside them")


def _classes(folder: AnyPath, found: Sequence[str], options: SourceOptions) -> Classes:
    """The names of all classes, and their origin.

    The set of folders depends on the records: removing the last record of a class removes its
    folder. So the classes are public knowledge only if the owner has declared them; a number alone
    declares classes named by their numbers, unless no folder is.

    Raises:
        SchemaError: only some folders are, or their number is another one.
    """
    declared, count = options.class_names, options.classes
    if declared is None and count is not None and (some := set(found) & set(numbered(count))):
        if others := [name for name in found if name not in some]:
            raise SchemaError(
                f"{folder}: {argument('classes', count)} declares the classes 0 to {count - 1}, "
                f"and {min(some)} is one of its folders, but {others[0]} is another: name all "
                f"classes with {argument('class_names')}"
            )
        declared = numbered(count)
    names = tuple(found) if declared is None else declared
    if count not in (None, len(names)):
        raise SchemaError(
            f"{folder}: its folders name {counted(len(names), 'class', 'classes')}, but {count} "
            f"are declared: name all of them with {argument('class_names')}"
        )
    return Classes(names, Origin.FROM_DATA if declared is None else Origin.DECLARED)


def _require_no_single_class(folder: AnyPath, loose: _FolderListing, classes: Classes) -> None:
    """Refuse images beside class folders if, without these, they would be read as one class.

    Guarantee:
        No record decides whether others are read: the only one in a class folder would make all
        beside it passed over. (docs/privacy/proofs.md, statement 3.)

    Raises:
        DataError: several classes are not declared.
    """
    if classes.origin is Origin.DECLARED and len(classes.names) > 1:
        return
    raise DataError(
        f"{folder}: holds {so_many(len(loose), 'image')} beside class folders, which are read "
        "without these folders, and not with them: move either elsewhere, or declare several "
        f"classes with {argument('class_names')} to pass such images over"
    )


def _notice_others(listings: Iterable[_FolderListing]) -> None:
    """Report what is ignored, because it may be records in another format or in deeper folders.

    Also report if several kinds of files are read: some may hold the same pictures, or masks.
    """
    many, one = _others(listings)
    if many:
        notice(f"passed over {many} beside the images, such as {one}: {READ} are read")
    if len(kinds := sorted(set().union(*(listing.kinds for listing in listings)))) > 1:
        notice(f"read {' and '.join(kinds)} files: each of them is a record")


def _instead(listings: Iterable[_FolderListing]) -> str:
    """What folders without an image hold, to follow the statement that they have none."""
    many, one = _others(listings)
    return f" (but {many}, such as {one}; {READ} are read)" if many else ""


def _others(listings: Iterable[_FolderListing]) -> tuple[str, str]:
    """The number of other entries in folders and the path of one, as texts; empty if none."""
    having = [listing for listing in listings if listing.others[0]]
    if not having:
        return "", ""
    count = sum(listing.others[0] for listing in having)
    many = counted(count, "other file or folder", "other files or folders")
    return many, f"{having[0].folder}/{having[0].others[1]}"


def _entries(
    folder: AnyPath,
) -> AbstractContextManager[Iterator[os.DirEntry[str]] | Iterator[RemotePath]]:
    return nullcontext(folder.iterdir()) if isinstance(folder, RemotePath) else os.scandir(folder)


def _content(folder: AnyPath, name: str) -> tuple[bytes, str]:
    """The bytes of a file, and its name in messages."""
    return read(folder / name, MOST_BYTES), f"{folder}/{name}"
