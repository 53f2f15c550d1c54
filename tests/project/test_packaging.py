"""What users install holds all that runs."""

from __future__ import annotations

import shutil
import site
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import h5py
import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("common", "embed", "release", "generate", "evaluate")
TEMPLATES = ("evaluate/html", "release/label")
FIRST_DAY = """
import os, sys
import dpntk
from dpntk.common.cli.app import run

assert dpntk.__path__[0].startswith(sys.prefix), dpntk.__path__
for line in (
    "demo --table",
    "embed demo/train.csv --schema demo/schema.toml --width 3",
    "release --eps 1",
    "inspect --page officer.html",
):
    assert run(line.split()) == 0, line
assert os.path.getsize("officer.html") > 1000
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the source distribution, as for those who have no checkout."""
    tree = tmp_path_factory.mktemp("tree")
    for name in (*ROOMS, "dpntk", "pyproject.toml", "README.md", "LICENSE"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tree / name)
    build("sdist", tree)
    (sources,) = tree.glob("*.tar.gz")
    with tarfile.open(sources) as archive:
        archive.extractall(tree / "unpacked", filter="data")
    (unpacked,) = (tree / "unpacked").iterdir()
    build("wheel", unpacked)
    (built,) = unpacked.glob("*.whl")
    return built


def build(what: str, folder: Path) -> None:
    code = f"from setuptools.build_meta import build_{what}; build_{what}('.')"
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, capture_output=True)


def test_the_wheel_holds_every_module_and_its_types(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("dpntk/")}
    expected = {
        f"dpntk/{file.relative_to(ROOT)}" for room in ROOMS for file in (ROOT / room).rglob("*.py")
    } | {f"dpntk/{room}/py.typed" for room in ROOMS}
    expected |= {str(file.relative_to(ROOT)) for file in (ROOT / "dpntk").glob("*.py")}
    expected.add("dpntk/py.typed")
    for folder in TEMPLATES:
        templates = (ROOT / folder / "templates").iterdir()
        expected |= {f"dpntk/{file.relative_to(ROOT)}" for file in templates}
    assert packed == expected


def test_the_wheel_runs_in_an_environment_of_its_own(wheel: Path, tmp_path: Path) -> None:
    """A bare one, which sees the packages that dpntk needs and not this checkout."""
    bare = tmp_path / "bare"
    venv.create(bare, symlinks=True)
    python = bare / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps"]
    subprocess.run(
        [*install, "--no-index", "--quiet", "--disable-pip-version-check", str(wheel)],
        check=True, capture_output=True,
    )  # fmt: skip
    (packages,) = bare.glob("lib/*/site-packages")
    needed = Path(h5py.__file__).parents[1]
    assert str(needed) in [*site.getsitepackages(), *sys.path]
    (packages / "needed.pth").write_text(f"{needed}\n")
    surroundings = {"PATH": "/usr/bin:/bin", "XDG_CONFIG_HOME": str(tmp_path / "config")}
    done = subprocess.run(
        [python, "-I", "-c", FIRST_DAY], cwd=tmp_path, env=surroundings, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = subprocess.run(
        [bare / "bin" / "dpntk", "--help"], capture_output=True, text=True, check=True
    )
    assert "dpntk" in said.stdout


def test_the_container_file_copies_all_that_is_built_and_runs_as_nobody_special() -> None:
    lines = (ROOT / "Containerfile").read_text().replace("\\\n", " ").splitlines()
    words = [line.split() for line in lines if line and not line.startswith("#")]
    copied = {name.rstrip("/") for verb, *names in words if verb == "COPY" for name in names}
    assert copied >= {*ROOMS, "dpntk", "pyproject.toml", "README.md", "LICENSE", "constraints.txt"}
    (user,) = [name for verb, name, *_ in words if verb == "USER"]
    assert user not in {"root", "0"}
    assert [verb for verb, *_ in words].index("USER") > max(
        place for place, (verb, *_) in enumerate(words) if verb == "RUN"
    )
    assert "^torch==" in "".join(lines)
    assert "\ntorch==" in (ROOT / "constraints.txt").read_text()
