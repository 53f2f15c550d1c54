"""The documentation and the code point at one another."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpntk.common.errors import OutputError
from dpntk.embed import TableSchema, load_embedding
from dpntk.generate import TableSettings, TrainingSettings
from dpntk.release import OpenedRelease
from tests.conftest import Command

ROOT = Path(__file__).parents[2]
ROOMS = ("common", "embed", "release", "generate")


def test_every_numbered_statement_is_cited_by_the_code_that_relies_on_it() -> None:
    statements = set(
        re.findall(r"^\*\*(\d+)\.", (ROOT / "docs/privacy/proofs.md").read_text(), re.M)
    )
    cited: set[str] = set()
    for room in ROOMS:
        for file in (ROOT / room).rglob("*.py"):
            text = " ".join(file.read_text().split())
            for numbers in re.findall(r"docs/privacy/proofs\.md, statements? ([\d and]+)", text):
                cited |= set(re.findall(r"\d+", numbers))
    assert statements == set(map(str, range(1, 24)))
    assert cited == statements


def test_the_readmes_python_run_twice_spends_once(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever runs it again is refused before anything is erased or spent anew."""
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    folder.rename(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    few_steps = TrainingSettings(steps=2)
    monkeypatch.setattr("dpntk.generate.pipeline.default_settings", lambda _: few_steps)
    program = compile(
        example.replace("epsilon=1.0", "epsilon=1.0, delta=1e-3"), "README.md", "exec"
    )
    exec(program, {})  # noqa: S102 - it is what users are told to run
    written = {file: file.read_bytes() for file in tmp_path.glob("*.h5")}
    assert len(written) == 2
    with pytest.raises(OutputError, match=r"embedding.h5 already exists"):
        exec(program, {})  # noqa: S102
    assert {file: file.read_bytes() for file in tmp_path.glob("*.h5")} == written
    assert len(load_embedding(Path("embedding.h5")).ledger.entries) == 1


def python_in(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / f"docs/{page}.md").read_text(), re.DOTALL)


@pytest.mark.usefixtures("hasty_rows", "two_kinds")
def test_python_that_begins_with_a_data_frame_runs(
    dpntk: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From top to bottom, as a reader would: what one block makes, the next may use."""
    blocks = python_in("guide/pandas")
    assert python_in("quickstart") == blocks[:1]
    assert dpntk("demo", "--table").code == 0
    few = pd.read_csv("demo/train.csv", nrows=100)
    few.to_csv("demo/train.csv", index=False)
    np.savez("images.npz", x=np.zeros((60, 8, 8), dtype=np.uint8), y=np.arange(60) % 3)
    monkeypatch.setattr("dpntk.generate.pipeline.default_settings", brief_settings)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "pandas.md", "exec"), names)  # noqa: S102
    synthetic = names["synthetic"]
    assert isinstance(synthetic, pd.DataFrame)
    assert list(synthetic.columns) == list(few.columns)
    assert len(synthetic) == 1000
    assert load_embedding("work/embedding.h5").ledger.all_entries[0].epsilon == 1.0


def brief_settings(opened: OpenedRelease) -> TrainingSettings:
    """A few steps, of either kind."""
    is_table = isinstance(opened.release.schema, TableSchema)
    return TableSettings(steps=2, batch=20) if is_table else TrainingSettings(steps=2, batch=6)


def test_files_that_the_proofs_name_exist() -> None:
    named = re.findall(
        r"`((?:common|embed|release)/(?:\w+/)*\w+\.py)`",
        (ROOT / "docs/privacy/proofs.md").read_text(),
    )
    assert len(named) > 8
    assert [name for name in named if not (ROOT / name).is_file()] == []
