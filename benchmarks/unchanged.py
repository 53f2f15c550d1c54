"""Whether dpntk writes the same at two commits, to the byte.

Both commits embed the same images and the same rows of a table. From there on both get the first
one's embeddings, releases, and release of a distilled set, because noise is never drawn twice.
Compared are

- the contents of embeddings, except for the digest of the run, which depends on the code;
- the contents of releases of one embedding, except for what is drawn anew for each;
- the label of one release, for people, for programs and for a registry;
- every file that comes from one release with a given seed, and from the generator in its folder.

A commit is run by the entry point that its pyproject.toml names, so its modules may be called
anything. The exit code is 1 if anything differs.

Run: python benchmarks/unchanged.py BEFORE AFTER --images MNIST --table FILE --schema FILE
"""

from __future__ import annotations

import gzip
import io
import itertools
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
import h5py
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

ROOT: Final = Path(__file__).parent.parent
IMAGE_MAPS: Final = (
    "--width 50",
    "--arch cnn_2l --width 3_20",
    "--features rff --frequencies 300",
)
TABLE_MAPS: Final = (
    "--width 50",
    "--width 20 --pairs all",
    "--arch cnn_2l --width 3_20",
    "--features hermite",
)
"""Feature maps to try, as options of `embed`."""
SAID_OF_THE_DRAW: Final = ("class_weights", "created", "release_id", "sha256")
"""What `inspect --json` says and no two releases have in common."""
CHOSEN_BY_NOISE: Final = ("pairs", "pairs_merged", "coarse_merged")
"""What it says of marginals that a release chooses by its own noisy figures."""
SIDE: Final = 28

Parts = Mapping[str, bytes]
"""What is compared, part by part."""


@dataclass(frozen=True)
class Commit:
    """A commit that can be run.

    Attributes:
        label: "before" or "after".
        path: folder to import `dpntk` from.
        entry: module and function of the command line.
        environment: of its processes.
    """

    label: str
    path: Path
    entry: str
    environment: Mapping[str, str]

    @classmethod
    def checked_out(cls, commit: str, label: str, folder: Path) -> Commit:
        """Unpack a commit into a folder, and link its rooms to where they are imported from."""
        command = ["git", "archive", commit]
        archive = subprocess.run(  # noqa: S603
            command, cwd=ROOT, check=True, stdout=subprocess.PIPE
        ).stdout
        tree, path = folder / label / "tree", folder / label / "path"
        with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
            packed.extractall(tree, filter="data")
        project = tomllib.loads((tree / "pyproject.toml").read_text())
        for package, room in project["tool"]["setuptools"]["package-dir"].items():
            link = path / package.replace(".", "/")
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(tree / room)
        environment = {
            **os.environ,
            "PYTHONPATH": str(path),
            "XDG_CONFIG_HOME": str(folder / "configuration"),
            "OMP_NUM_THREADS": "1",
            "COLUMNS": "100",
        }
        return cls(label, path, project["project"]["scripts"]["dpntk"], environment)

    def run(self, *arguments: object) -> bytes:
        """Run a command of `dpntk` and return what it prints."""
        module, function = self.entry.split(":")
        # The rooms of an installed dpntk must not stand in for any that are missing here.
        program = f"import dpntk; dpntk.__path__ = [{str(self.path / 'dpntk')!r}]; "
        program += f"from {module} import {function}; {function}()"
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-P", "-c", program, *map(str, arguments)],
            env=self.environment,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            command = " ".join(map(str, arguments))
            raise click.ClickException(f"{self.label}: dpntk {command}\n{done.stderr.decode()}")
        return done.stdout


class Comparison:
    """What two commits do, side by side.

    Args:
        before: the commit whose embeddings and releases both get.
        after: the other one.
        folder: for all files.
        steps: of training.
    """

    def __init__(self, before: Commit, after: Commit, folder: Path, steps: int) -> None:
        self._commits = (before, after)
        self._folder = folder
        self._training = ("--seed", 1, "--steps", steps, "--batch", 40)
        self._numbers = itertools.count()
        self._found: dict[str, dict[str, str]] = {}
        self.differences: list[str] = []
        before.run("keygen")

    def embedding(self, case: str, data: Path, *options: object) -> None:
        """Compare all that comes of some records."""
        made = self._both(lambda commit, to: commit.run("embed", data, "-o", to, *options))
        self._note(case, "embedding", *map(contents, made))
        given = made[0].read_bytes()  # a release is entered in the embedding

        def release(commit: Commit, to: Path) -> None:
            copy = to.with_suffix(".embedding")
            copy.write_bytes(given)
            commit.run("release", copy, "--eps", 10, "-o", to)

        released = self._both(release)
        said = (
            {"release": without_the_draw(commit.run("inspect", path, "--json"))}
            for commit, path in zip(self._commits, released, strict=True)
        )
        self._note(case, "release", *said)
        folder = self.release(case, released[0], *self._training, "-n", 500)
        again = self._both(
            lambda commit, to: commit.run(
                "generate", "--from", folder, "-n", 300, "--seed", 1, "-o", to
            )
        )
        self._note(case, "generate --from", *map(files, again))

    def distilled(self, case: str, data: Path, *options: object) -> None:
        """Compare all that comes of a distilled set."""
        path = self._folder / f"{next(self._numbers)}.h5"
        self._commits[0].run("distill", data, "--eps", 10, "--steps", 5, "-o", path, *options)
        self.release(case, path)

    def release(self, case: str, path: Path, *options: object) -> Path:
        """Compare all that comes of a release; return the folder that the first commit made."""
        forms = {"for people": (), "--json": ("--json",), "--registry": ("--registry",)}
        labels = (
            {name: commit.run("inspect", path, *form) for name, form in forms.items()}
            for commit in self._commits
        )
        self._note(case, "label", *labels)
        made = self._both(lambda commit, to: commit.run("generate", path, "-o", to, *options))
        self._note(case, "generate", *map(files, made))
        return made[0]

    def points(self, case: str, data: Path, *options: object) -> None:
        """Compare points that stand for a generator of images."""
        embedding, path = self._folder / "points.embedding", self._folder / "points.h5"
        self._commits[0].run("embed", data, "-o", embedding, *options)
        self._commits[0].run("release", embedding, "--eps", 10, "-o", path)
        self.release(case, path, *self._training, "--points", 2)

    def _both(self, make: Callable[[Commit, Path], object]) -> tuple[Path, Path]:
        """Let both commits make something at once, each at a place of its own."""
        number = next(self._numbers)
        before, after = (self._folder / f"{number}-{commit.label}" for commit in self._commits)
        with ThreadPoolExecutor() as pool:
            list(pool.map(make, self._commits, (before, after)))
        return before, after

    def _note(self, case: str, what: str, before: Parts, after: Parts) -> None:
        names = sorted({*before, *after})
        other = [name for name in names if before.get(name) != after.get(name)]
        self._found.setdefault(case, {})[what] = "DIFFERENT" if other else f"equal ({len(names)})"
        self.differences += [f"{case}: {what}: {name}" for name in other]

    def table(self) -> Table:
        """A row for each case; in brackets, how many parts were compared."""
        whats = list(dict.fromkeys(what for found in self._found.values() for what in found))
        table = Table("case", *whats)
        for case, found in self._found.items():
            table.add_row(case, *(found.get(what, "") for what in whats))
        return table


def contents(path: Path) -> Parts:
    """Everything in an embedding but the digest of the run, and how the file begins."""
    found = {"first 512 bytes": path.read_bytes()[:512]}

    def look_at(name: str, node: h5py.Group | h5py.Dataset) -> None:
        for key, value in node.attrs.items():
            found[f"{name}.{key}"] = repr(value).encode()
        if isinstance(node, h5py.Dataset):
            found[name] = f"{node.dtype.str} {node.shape} ".encode() + node[...].tobytes()

    with h5py.File(path, "r") as file:
        look_at("", file)
        file.visititems(look_at)
    del found[".run"]
    return found


def without_the_draw(said: bytes) -> bytes:
    """What `inspect --json` says of a release, but for what no other release has."""
    document = json.loads(said)
    for name in SAID_OF_THE_DRAW:
        del document[name]
    marginals = document.get("feature_map", {}).get("marginals", {})
    if "pairs_length" in marginals:  # the release has chosen, and with it how many rows there are
        del document["embedding_shape"]
        for name in CHOSEN_BY_NOISE:
            marginals.pop(name, None)
    return json.dumps(document).encode()


def files(folder: Path) -> Parts:
    """Every file in a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def first_images(folder: Path, count: int, to: Path) -> Path:
    """The first images of a folder with MNIST's files."""

    def values(kind: str, header: int, size: int) -> NDArray[np.uint8]:
        (path,) = folder.glob(f"train-{kind}-*.gz")
        content = gzip.decompress(path.read_bytes())
        return np.frombuffer(content, np.uint8, count * size, header)

    images, labels = values("images", 16, SIDE**2), values("labels", 8, 1)
    np.savez(to, x=images.reshape(-1, SIDE, SIDE), y=labels)
    return to


def first_rows(path: Path, count: int, to: Path) -> Path:
    """The first rows of a CSV file with a header."""
    with path.open() as source:
        to.write_text("".join(itertools.islice(source, count + 1)))
    return to


@click.command(help="Compare what dpntk writes at the commits BEFORE and AFTER.")
@click.argument("before")
@click.argument("after")
@click.option("--images", type=click.Path(path_type=Path), help="Folder with MNIST's IDX files.")
@click.option("--table", type=click.Path(path_type=Path), help="CSV file with a header.")
@click.option("--schema", type=click.Path(path_type=Path), help="The schema.toml of the table.")
@click.option("--records", default=1000, show_default=True, help="Take so many of each.")
@click.option("--steps", default=20, show_default=True, help="Of training.")
def main(
    before: str,
    after: str,
    images: Path | None,
    table: Path | None,
    schema: Path | None,
    records: int,
    steps: int,
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        comparison = Comparison(
            Commit.checked_out(before, "before", folder),
            Commit.checked_out(after, "after", folder),
            folder,
            steps,
        )
        if images is not None:
            data = first_images(images, records, folder / "images.npz")
            for options in IMAGE_MAPS:
                comparison.embedding(f"images {options}", data, "--classes", 10, *options.split())
            comparison.points("images --points", data, "--classes", 10, "--width", 20)
            comparison.distilled("images distilled", data, "--classes", 10, "--per-class", 1)
        if table is not None:
            data = first_rows(table, records, folder / "table.csv")
            for options in TABLE_MAPS:
                comparison.embedding(f"table {options}", data, "--schema", schema, *options.split())
            comparison.distilled("table distilled", data, "--schema", schema, "--per-class", 2)
        Console().print(comparison.table())
        for difference in comparison.differences:
            print("different:", difference)
        sys.exit(bool(comparison.differences))


if __name__ == "__main__":
    main()
