"""What users install holds all that runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("common", "embed", "release", "generate", "evaluate")


def test_the_wheel_holds_every_module_and_its_types(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in (*ROOMS, "dpntk", "pyproject.toml", "README.md", "LICENSE"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tree / name)
    build = "from setuptools.build_meta import build_wheel; build_wheel('.')"
    subprocess.run([sys.executable, "-c", build], cwd=tree, check=True, capture_output=True)

    with zipfile.ZipFile(next(tree.glob("*.whl"))) as wheel:
        packed = {name for name in wheel.namelist() if name.startswith("dpntk/")}
    expected = {
        f"dpntk/{file.relative_to(ROOT)}" for room in ROOMS for file in (ROOT / room).rglob("*.py")
    } | {f"dpntk/{room}/py.typed" for room in ROOMS}
    expected |= {str(file.relative_to(ROOT)) for file in (ROOT / "dpntk").glob("*.py")}
    expected.add("dpntk/py.typed")
    for folder in ("evaluate/html", "release/label"):
        templates = (ROOT / folder / "templates").iterdir()
        expected |= {f"dpntk/{file.relative_to(ROOT)}" for file in templates}
    assert packed == expected
