"""Classes of images, from labels that are numbers or texts, or a single class."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...arguments import argument
from ...display.console import notice
from ...display.text import some_of
from ...errors import DataError, SchemaError
from ...schema.classes import MOST_CLASSES, numbered
from ...schema.columns.spellings import TRUTHS, number_in, truth_of
from ...schema.origin import Origin
from ..base import require_labels
from ..options import SourceOptions

_WHOLE: Final = re.compile(r"0|-?[1-9][0-9]{0,17}")
_AS_FLOAT: Final = re.compile(r"(-?[0-9]{1,18})\.0+")
NAMED: Final = 20
"""The most classes that an error about another label lists by name."""


@dataclass(frozen=True)
class Classes:
    """The classes of a source, and the labels that stand for them.

    Attributes:
        names: the names of all classes.
        origin: where the names came from.
        labels: the labels that stand for the classes, integers or texts; None if labels are the
            indices of classes, from 0.
    """

    names: tuple[str, ...]
    origin: Origin
    labels: tuple[int, ...] | tuple[str, ...] | None = None

    def indices(self, labels: NDArray[Any], first: int, where: str) -> NDArray[np.int64]:
        """The index of each label's class, int64 (b,).

        Args:
            labels: (b,), as they are stored.
            first: number of the record that `labels[0]` belongs to, from 0.
            where: the file, for messages.

        Raises:
            DataError: a label is not a whole number, or may have been rounded.
            SchemaError: a label stands for no class.
        """
        if labels.dtype.kind == "b":
            _require_truths(self.names, where)
        labels = _plain(labels, first, where)
        if self.labels is None:
            require_labels(labels, len(self.names), first, where)
            return labels
        known = np.array(self.labels)
        order = np.argsort(known)
        places = np.searchsorted(known[order], labels).clip(max=len(known) - 1)
        wrong = np.flatnonzero(known[order][places] != labels)
        if wrong.size:
            raise SchemaError(
                f"{where}: record {first + int(wrong[0])} has a label that is none of the classes "
                f"{some_of(self.names, NAMED)}: correct it, or name its class with "
                f"{argument('class_names')}",
                str(labels[wrong[0]]),
            )
        indices: NDArray[np.int64] = order[places].astype(np.int64)
        return indices


def labelled_classes(
    options: SourceOptions,
    labels: Iterable[NDArray[Any]],
    where: str,
    *,
    texts: bool | None = None,
) -> Classes:
    """The classes of a source that has a label for each record.

    Labels that are texts are the names of classes. So are numbers if all declared names are
    numbers, such as 1 to 26, or 3, 5 and 7. Otherwise numbers are the indices of classes, from 0.

    Guarantee:
        The class of a label follows from the label and the declared names alone. Programs make
        texts of all labels if one of them is a text. So names that are numbers have to mean the
        same class as such a number. (docs/privacy/proofs.md, statement 3.)

    Args:
        options: what is declared.
        labels: all labels, in pieces; read only if nothing is declared.
        where: the data, for messages.
        texts: whether labels are texts; None if this format has no texts.

    Raises:
        DataError: a label is not a whole number.
        SchemaError: there are too many classes, only their number is declared although labels are
            texts, or a name means one class to numbers and another one to texts.
    """
    declared = _declared(options)
    if texts:
        return _named_by_texts(options, declared, labels, where)
    if declared is not None:
        names_numbers = all(map(_WHOLE.fullmatch, declared)) and declared != numbered(len(declared))
        if names_numbers:
            return Classes(declared, Origin.DECLARED, tuple(map(int, declared)))
        if texts is not None:
            _require_one_meaning(declared, where)
        return Classes(declared, Origin.DECLARED)
    largest = max((int(_plain(piece, 0, where).max()) for piece in labels if piece.size), default=0)
    if largest >= MOST_CLASSES:
        raise SchemaError(
            f"{where}: there is a label that is too large: labels are 0 to {MOST_CLASSES - 1} at "
            f"most; if they have gaps, name them with {argument('class_names')}",
            str(largest),
        )
    return Classes(numbered(largest + 1), Origin.FROM_DATA)


def classes_of_texts(
    options: SourceOptions, texts: Collection[str], where: str
) -> tuple[Classes, dict[str, int]]:
    """The classes of labels in a text file, where numbers are texts, too.

    Labels are names of classes. If no program takes a declared name for a number, labels that are
    numbers are indices of classes, from 0.

    Guarantee:
        The class of a label follows from the label and the names of classes alone, not from other
        labels. Other labels decide only the names, and only if none are declared.
        (docs/privacy/proofs.md, statement 3.)

    Args:
        options: what is declared.
        texts: all different labels.
        where: the data, for messages.

    Returns:
        The classes, and the index of each label's class; labels of no class are left out.

    Raises:
        SchemaError: there are too many classes, or only their number is declared although labels
            are texts.
    """
    plain = {text: _whole_as_such(text) for text in texts}
    if options.class_names is None and all(map(_WHOLE.fullmatch, plain.values())):
        numbers = np.array([int(text) for text in plain.values()], dtype=np.int64)
        classes = labelled_classes(options, [numbers], where)
    else:
        classes = labelled_classes(options, [np.array([*plain.values()])], where, texts=True)
    known = {name: index for index, name in enumerate(classes.names)}
    of_numbers = any(number_in(name) is not None for name in classes.names)
    if options.class_names is not None and not of_numbers:
        known = {name: index for index, name in enumerate(numbered(len(classes.names)))} | known
        if any(map(_WHOLE.fullmatch, plain.values())):
            meanings = [f"{index} is {name}" for index, name in enumerate(classes.names)]
            notice(f"{where}: labels are numbers: {some_of(meanings, NAMED)}")
    places = ((text, known.get(text, known.get(plain[text]))) for text in texts)
    return classes, {text: place for text, place in places if place is not None}


def one_class(options: SourceOptions, where: str, hint: str = "") -> Classes:
    """The class of images without labels.

    Args:
        options: what is declared.
        where: the data, for the message.
        hint: advice on how to give labels, for the end of the message.

    Raises:
        SchemaError: several classes are declared.
    """
    declared = _declared(options)
    if declared is None:
        notice(f"{where}: images without labels: all are taken to be of one class{hint}")
        return Classes(numbered(1), Origin.FORMAT)
    if len(declared) > 1:
        raise SchemaError(
            f"{where}: images without labels are all of one class, but {len(declared)} classes are "
            "declared: give the images labels, in a CSV file as well, or declare one class"
        )
    return Classes(declared, Origin.DECLARED)


def one_is_declared(options: SourceOptions) -> bool:
    """Whether a single class is declared, of which all images are."""
    declared = _declared(options)
    return declared is not None and len(declared) == 1


def no_labels(size: int, start: int, stop: int) -> Iterator[NDArray[np.int64]]:
    """The class of the unlabelled records start..stop-1, `size` at a time."""
    for first in range(start, stop, size):
        yield np.zeros(min(size, stop - first), dtype=np.int64)


def _named_by_texts(
    options: SourceOptions,
    declared: tuple[str, ...] | None,
    labels: Iterable[NDArray[Any]],
    where: str,
) -> Classes:
    if options.class_names is not None:
        return Classes(options.class_names, Origin.DECLARED, options.class_names)
    found: set[str] = set()
    for piece in labels:
        found.update(np.unique(piece).tolist())
        if len(found) > MOST_CLASSES:
            raise SchemaError(
                f"{where}: labels are more than {MOST_CLASSES} different texts: is it the column "
                "of labels?"
            )
    if declared is not None and found <= set(declared):
        return Classes(declared, Origin.DECLARED, declared)
    if declared is not None:
        raise SchemaError(
            f"{where}: labels are texts, and {argument('classes', options.classes)} does not say "
            f"which: name all classes with {argument('class_names')}"
        )
    names = tuple(sorted(found))
    return Classes(names, Origin.FROM_DATA, names)


def _require_one_meaning(names: tuple[str, ...], where: str) -> None:
    """Refuse names by which labels have another class once a program has made texts of them.

    Raises:
        SchemaError: a name is a number or a truth value, but not the index of its class.
    """
    for index, name in enumerate(names):
        number = number_in(name)
        read = TRUTHS.get(name.lower()) if number is None else number
        if read not in (None, index):
            raise SchemaError(
                f"{where}: labels are numbers, counted from 0, and number {index} is the class "
                f"{name}, which is another number: store labels as texts, the names of their "
                "classes, or name all classes by numbers or none"
            )


def _require_truths(names: tuple[str, ...], where: str) -> None:
    """Refuse truth values as labels if a name is one, in some program, and means another class.

    Raises:
        SchemaError: there is such a name.
    """
    for index, name in enumerate(names):
        if truth_of(name) not in (None, index):
            raise SchemaError(
                f"{where}: labels are truth values, and the class {name}, which is one in some "
                f"programs, is number {index}: store labels as texts, the names of their classes"
            )


def _plain(labels: NDArray[Any], first: int, where: str) -> NDArray[Any]:
    """Labels as int64, or unchanged if they are texts.

    Raises:
        DataError: a label is not a whole number, or may have been rounded.
    """
    if labels.dtype.kind == "U":
        return labels
    if labels.dtype.kind == "f":
        wrong = np.flatnonzero(~(np.isfinite(labels) & (labels == np.rint(labels))))
        if wrong.size:
            raise DataError(
                f"{where}: record {first + int(wrong[0])} has a label that is no whole number: "
                "correct it",
                str(labels[wrong[0]]),
            )
        # From this size on, floats are inexact: a float may stand for a neighbouring integer, if
        # another label made all of them floats.
        large = np.flatnonzero(np.abs(labels) >= 2.0 ** (np.finfo(labels.dtype).nmant + 1))
        if large.size:
            raise DataError(
                f"{where}: record {first + int(large[0])} has a label so large that "
                f"{labels.dtype} rounds it: store labels as whole numbers or texts",
                str(labels[large[0]]),
            )
    if labels.dtype.kind == "u":
        labels = labels.clip(max=np.iinfo(np.int64).max)  # too large for any class, and not below 0
    return labels.astype(np.int64)


def _whole_as_such(text: str) -> str:
    """A text; a whole number that a program has written as a float, `3.0`, becomes `3`."""
    found = _AS_FLOAT.fullmatch(text)
    return text if found is None else str(int(found[1]))


def _declared(options: SourceOptions) -> tuple[str, ...] | None:
    """The declared names of classes, if labels are numbers; None if nothing is declared."""
    if options.class_names is None and options.classes is not None:
        return numbered(options.classes)
    return options.class_names
