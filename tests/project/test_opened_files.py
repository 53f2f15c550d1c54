"""Files are opened where they are expected to be, and those of strangers in one module alone.

What opens a file for reading, or makes a library do so, is looked for in the source. A module that
does is listed here, with what it may do and why: a new one is a decision, not an accident.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("common", "embed", "release", "generate", "evaluate", "dpntk")

FUNCTIONS = {
    "open", "os.open", "os.fdopen", "io.open", "h5py.File", "np.load", "np.fromfile", "np.memmap",
    "np.loadtxt", "np.genfromtxt", "torch.load", "torch.jit.load", "zipfile.ZipFile", "gzip.open",
    "tarfile.open", "Image.open", "mmap.mmap", "safe_open", "parquet.ParquetFile",
    "parquet.read_table", "pyarrow.memory_map", "pyarrow.OSFile", "tomllib.load", "json.load",
}  # fmt: skip
METHODS = {"open", "read_bytes", "read_text"}
"""Of paths, and `open` of archives; not of our own classes, whose names begin with a capital."""
NEVER = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "joblib"}
"""Modules that make programs of files."""

UNTRUSTED = {
    "common/storage/untrusted_files.py": {"open", "os.open"},
    # Of bytes in memory, which were read there.
    "common/features/torchscript.py": {"torch.jit.load"},
    "common/storage/hdf5.py": {"h5py.File"},
    "common/storage/parquet_in_sandbox.py": {"parquet.ParquetFile"},
    "generate/output/generator_file.py": {"load"},
    "generate/output/records.py": {"np.load", "parquet.read_table"},
}
OF_OURS = {
    # What is being written, and locks.
    "common/storage/container.py": {"h5py.File"},
    "common/storage/atomic.py": {".open", "os.fdopen", "os.open"},
    "generate/images/pictures.py": {"zipfile.ZipFile"},
    "generate/tables/export.py": {".open"},
    # Who else could write there can read the records: folders of 0700, and beside the records.
    "embed/run/checkpoint.py": {"h5py.File"},
    "embed/run/work_folder.py": {".read_bytes"},
    "release/distill/progress.py": {".read_bytes", ".read_text", "load"},
    # Of this installation, and of the operating system.
    "common/runtime/cores.py": {".read_text"},
    "common/storage/sandbox.py": {"open"},
    "embed/run/plan.py": {".read_bytes"},
}
"""Files that nobody else writes."""
SOURCES = "common/sources/"
"""Records, which are the reader's own or have the formats that these modules check."""


def opened_by(path: Path) -> Iterator[str]:
    """What a module calls that opens files; and what it imports that it never may."""
    tree = ast.parse(path.read_text())
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert (node.module or "").split(".")[0] not in NEVER, path
            if (node.module or "").startswith("safetensors"):
                aliases |= {a.asname or a.name: a.name for a in node.names}
        if isinstance(node, ast.Import):
            assert not NEVER & {name.name.split(".")[0] for name in node.names}, path
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        if name in FUNCTIONS or aliases.get(name) in ("load", "load_file"):
            yield name
        elif isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
            owner = ast.unparse(node.func.value).split(".")[-1]
            if not owner[:1].isupper():
                yield f".{node.func.attr}"


def test_nothing_else_opens_files() -> None:
    found = {
        str(path.relative_to(ROOT)): calls
        for room in ROOMS
        for path in sorted((ROOT / room).rglob("*.py"))
        if (calls := set(opened_by(path)))
    }
    elsewhere = {path: calls for path, calls in found.items() if not path.startswith(SOURCES)}
    assert elsewhere == {**UNTRUSTED, **OF_OURS}


def test_the_walk_finds_what_it_looks_for(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(
        "from safetensors.numpy import load as read, save\n"
        "a = h5py.File(path, 'r')\n"
        "b = path.open('rb').read()\n"
        "c = (folder / 'x').read_bytes()\n"
        "d = read(content)\n"
        "e = TableSource.open(path)\n"
        "f = save(arrays)\n"
        "g = np.load(file)\n"
    )
    found = sorted(opened_by(tmp_path / "module.py"))
    assert found == [".open", ".read_bytes", "h5py.File", "np.load", "read"]
