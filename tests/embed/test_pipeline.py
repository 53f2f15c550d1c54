"""One pass over data that may change beneath it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpntk.common.errors import DataError
from dpntk.common.sources.base import Batch
from dpntk.common.sources.tables.rows import Rows
from dpntk.embed import SourceOptions, TangentOptions, embed, open_source
from tests.helpers.tables import PEOPLE, people


@pytest.mark.parametrize("opened_before", [False, True])
def test_files_that_change_while_they_are_read_are_refused(
    opened_before: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever opens them: otherwise a person might count twice, in the old rows and in the new."""
    file = tmp_path / "people.csv"
    file.write_text(people(300))
    read = Rows.batches

    def then_changed(
        rows: Rows, size: int, start: int = 0, stop: int | None = None
    ) -> Iterator[Batch]:
        yield from read(rows, size, start, stop)
        os.utime(file, (0, 0))  # however coarse the clock of the file system is

    monkeypatch.setattr(Rows, "batches", then_changed)
    options, features = SourceOptions(schema=PEOPLE), TangentOptions(width=4)
    source = (open_source(file, options), None) if opened_before else (file, options)
    with pytest.raises(DataError, match="the data changed while they were read"):
        embed(source[0], features, source[1])
