"""No dataclass that may hold records, or what was computed from them, prints its arrays.

What an object says of itself ends up in notebooks, logs and tracebacks. Which fields may hold
values of records is looked for in the source: a class that shows one is listed here, with why.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
NEAR_RECORDS = (
    "common/schema", "common/sources", "common/storage", "embed", "evaluate", "release/distill",
    "release/mechanism", "release/publishing", "dpntk",
)  # fmt: skip
HOLD_VALUES = ("NDArray", "Tensor", "Frame", "pa.", "Any", "bytes", "_Row", "set[")
"""What the type of such a field says."""
OF_NO_RECORD = {
    "_Kind": "how files of images begin",
    "ImageEvaluation": "the figures themselves, and what a folder of synthetic records says",
    "TableEvaluation": "the same",
    "Learner": "a kind of classifier",
    "RunPlan": "options and digests",
    "NoiseScale": "public",
    "ReleaseLayout": "public, or a function of noisy counts",
    "_Segment": "a part of it",
    "Dependence": "functions of noisy sums",
    "_Simulation": "drawn from the schema",
    "_Similarity": "drawn from the schema",
    "ArrayFile": "the header of a file",
}


def shown(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Class and field of what dataclasses of a module show, and may hold values."""
    for kind in ast.walk(tree):
        if not isinstance(kind, ast.ClassDef):
            continue
        by = [ast.unparse(each) for each in kind.decorator_list]
        made = next((each for each in by if each.startswith("dataclass")), None)
        if made is None or "repr=False" in made or "BriefRepr" in map(ast.unparse, kind.bases):
            continue
        for field in kind.body:
            if isinstance(field, ast.AnnAssign):
                hidden = field.value is not None and "repr=False" in ast.unparse(field.value)
                said = ast.unparse(field.annotation).replace("AnyPath", "Path")
                if not hidden and any(each in said for each in HOLD_VALUES):
                    yield kind.name, ast.unparse(field.target)


def test_what_may_hold_values_of_records_is_not_shown() -> None:
    found = {
        (name, field)
        for folder in NEAR_RECORDS
        for path in (ROOT / folder).rglob("*.py")
        for name, field in shown(ast.parse(path.read_text()))
    }
    assert {name for name, _ in found} - set(OF_NO_RECORD) == set(), sorted(found)
    assert set(OF_NO_RECORD) == {name for name, _ in found}, "a class that is listed in vain"


def test_a_class_that_shows_an_array_is_found() -> None:
    planted = (
        "@dataclass(frozen=True)\nclass Sums:\n    n: int\n    sums: NDArray[np.int64]\n"
        "@dataclass(repr=False)\nclass Hidden(RedactedRepr):\n    sums: NDArray[np.int64]\n"
        "@dataclass\nclass Options:\n    members: Frame | None = field(default=None, repr=False)\n"
    )
    assert list(shown(ast.parse(planted))) == [("Sums", "sums")]
