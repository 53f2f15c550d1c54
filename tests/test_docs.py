"""The documentation and the code point at one another."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROOMS = ("common", "embed", "release", "generate")


def test_every_numbered_statement_is_cited_by_the_code_that_relies_on_it() -> None:
    statements = set(re.findall(r"^\*\*(\d+)\.", (ROOT / "docs/privacy.md").read_text(), re.M))
    cited: set[str] = set()
    for room in ROOMS:
        for file in (ROOT / room).rglob("*.py"):
            text = " ".join(file.read_text().split())
            for numbers in re.findall(r"docs/privacy\.md, statements? ([\d and]+)", text):
                cited |= set(re.findall(r"\d+", numbers))
    assert statements == set(map(str, range(1, 21)))
    assert cited == statements


def test_files_that_the_proofs_name_exist() -> None:
    named = re.findall(
        r"`((?:common|embed|release)/(?:\w+/)*\w+\.py)`", (ROOT / "docs/privacy.md").read_text()
    )
    assert len(named) > 8
    assert [name for name in named if not (ROOT / name).is_file()] == []
