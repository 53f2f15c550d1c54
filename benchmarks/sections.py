"""One document of results, to which each benchmark writes a section of its own."""

from __future__ import annotations

from pathlib import Path

from dpntk.common.files import write_atomically

TABLE = Path(__file__).parent / "results.md"


def put_section(section: str, path: Path = TABLE) -> None:
    """Write a section, in place of the one that has the same first line.

    Args:
        section: Markdown whose first line, and no other, begins with "# ".
        path: the document.
    """
    heading = section.split("\n", 1)[0]
    text = path.read_text() if path.exists() else ""
    sections = [f"# {part.strip()}\n" for part in f"\n{text}".split("\n# ")[1:]]
    others = [part for part in sections if part.split("\n", 1)[0] != heading]
    written = sorted([*others, section.strip() + "\n"])
    write_atomically(path, "\n".join(written).encode())
