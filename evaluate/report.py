"""The result of an evaluation of images or tables: a table for people, JSON for programs."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Final

from ..common.arguments import Location, path_from
from ..common.display.console import TextTable, as_text
from ..common.errors import OutputError
from ..common.storage.atomic import SENSITIVE_MODE, write_atomically

REPORT_BEGINS: Final = b'{\n  "measure": '
"""Beginning of `evaluation.json`, for images and tables alike."""
REAL: Final = "real"
"""Name of the figures of real records."""


class Evaluation(ABC):
    """How good synthetic records are; `print` shows it as a table.

    Its figures are computed from real records without noise: publishing them is a small release of
    its own that no epsilon covers.
    """

    @property
    @abstractmethod
    def figures(self) -> Mapping[str, Mapping[str, float]]:
        """The figures by their names, for each training set by its description."""

    @abstractmethod
    def table(self) -> TextTable:
        """All figures, for people."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Everything that is known, for programs: the content of `evaluation.json`."""

    def __str__(self) -> str:
        return as_text(self.table())

    def save(self, path: Location) -> None:
        """Write `evaluation.json`, exact figures of real records: for their owner alone (0600).

        Args:
            path: where; an earlier file is replaced.

        Raises:
            OutputError: it cannot be written.
        """
        content = json.dumps(self.to_json(), indent=2).encode() + b"\n"
        write_atomically(
            path_from("evaluation", path, refusal=OutputError), content, mode=SENSITIVE_MODE
        )
