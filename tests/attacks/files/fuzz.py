"""Random mutations of every kind of file that may come from somebody else, read by what reads them.

`python -m tests.attacks.files.fuzz COUNT SEED [KIND ...]` reads COUNT mutations of honest files of
every kind, or of those named, and prints what became of them as JSON. Workers read one after the
other, forked from a process that has loaded everything, with limits on memory and time. What runs
in a child process otherwise runs in the worker too, which is a hundred times faster, and may end
the worker as it may end the child. What runs in the process that somebody works with may not: that
is a failure.

Nobody signs: a signature over mutated bytes would change nothing of what is read.
"""

from __future__ import annotations

import collections
import gc
import json
import os
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch

from dpntk.common.display.console import console
from dpntk.common.errors import DpntkError
from dpntk.common.schema.preparation import Fit, Preparation
from dpntk.common.sources.options import SourceOptions
from dpntk.common.storage import sandbox
from dpntk.common.storage.sandbox import LIMITS, Limits, Parser
from dpntk.common.storage.synthetic_folder import PROVENANCE
from dpntk.embed import Embedding, TangentOptions, embed, load_embedding, save_embedding
from dpntk.evaluate.distilled import read_points
from dpntk.evaluate.images.records import read_synthetic
from dpntk.evaluate.provenance import heading_of, is_distilled
from dpntk.evaluate.tables.table import is_table, read_synthetic_table
from dpntk.generate import load_generator
from dpntk.generate.distilled import export_points
from dpntk.generate.images.export import SavedImageGenerator, write_synthetic
from dpntk.generate.images.generators.conditional import ConditionalGenerator, GeneratorSpec
from dpntk.generate.images.generators.networks.convolutional import ConvolutionalGenerator
from dpntk.generate.images.generators.networks.resnet import ResidualGenerator, ResidualSpec
from dpntk.generate.images.generators.networks.spec import NetworkSpec
from dpntk.generate.output.generator_file import GENERATOR
from dpntk.generate.tables.export import SavedTableGenerator, write_table
from dpntk.generate.tables.generators.perceptron import PerceptronGenerator, PerceptronSpec
from dpntk.generate.tables.sampling import RowModel
from dpntk.release import Acceptance, PrivacyParameters, SignedBy, open_any
from dpntk.release.file.citation import is_private
from dpntk.release.file.distilled import holds_points
from dpntk.release.file.distilled_codec import serialise_distilled
from dpntk.release.file.model import Opened
from dpntk.release.file.writer import serialise
from dpntk.release.publishing.pipeline import unrecorded_release
from tests.attacks.attacks import SECRET
from tests.attacks.files import mutations
from tests.attacks.files.hostile_embeddings import EMBEDDING_ATTACKS
from tests.attacks.releases.hostile import ATTACKS
from tests.conftest import make_small_embedding, make_small_release
from tests.helpers.processes import overwrite
from tests.helpers.tables import PEOPLE, people, random_generator, random_marginals
from tests.release.file.test_distilled_codec import make_distilled

REACHING_OUT = ["external_storage", "virtual_data_set", "external_link"]
UNSIGNED = Acceptance(allow_unsigned=True)
SECONDS = 3.0
"""Of a processor, for one file."""
SECONDS_IN_A_CHILD = 0.1
"""libhdf5 never comes back from some damaged files; it takes a thousandth for the others."""
SPARE_MEMORY = 1 << 29
GENERATION = 500
"""Files that a worker reads at most."""


@dataclass(frozen=True)
class Seed:
    """An honest file, or one that reaches out.

    Attributes:
        content: of the file.
        path: where its mutations are written, and what is beside them.
        texts: the JSON documents in it.
    """

    content: bytes
    path: Path
    texts: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes:
        seeds: makes them in a folder.
        mutate: changes one.
        read: reads a file as the program does, and gives back what a user could get to see of it.
    """

    seeds: Callable[[Path], list[Seed]]
    mutate: Callable[[Seed, np.random.Generator], bytes]
    read: Callable[[Path], bytes]


# HDF5: releases, distilled sets and embeddings


def _roomy(honest: bytes, path: Path, documents: list[str]) -> Seed:
    """The file with room for other documents in the place of those in its attributes."""
    path.write_bytes(honest)
    with h5py.File(path, "r+", libver=("earliest", "v110")) as file:
        for name in documents:
            file.attrs[name] = file.attrs[name] + " " * 1000
        texts = tuple(file.attrs[name].encode() for name in documents)
    return Seed(path.read_bytes(), path, texts)


def _of_a_table(folder: Path) -> Embedding:
    (folder / "a.csv").write_text(people(50))
    return embed(folder / "a.csv", TangentOptions(width=1), SourceOptions(schema=PEOPLE))


def _release_seeds(folder: Path) -> list[Seed]:
    path, documents = folder / "release.h5", ["schema", "feature_map"]
    honest = bytes(serialise(make_small_release()))
    table = bytes(serialise(unrecorded_release(_of_a_table(folder), PrivacyParameters(1.0, 1e-3))))
    others = [ATTACKS[name].make(honest, folder / "secret.bin") for name in REACHING_OUT]
    roomy = [_roomy(honest, path, documents), _roomy(table, path, documents)]
    return [*roomy, *(Seed(content, path) for content in (honest, honest, *others))]


def _distilled_seeds(folder: Path) -> list[Seed]:
    path, honest = folder / "release.h5", bytes(serialise_distilled(make_distilled()))
    return [_roomy(honest, path, ["schema", "settings"]), Seed(honest, path), Seed(honest, path)]


def _embedding_seeds(folder: Path) -> list[Seed]:
    path, documents = folder / "embedding.h5", ["plan", "ledger"]
    save_embedding(make_small_embedding(), path)
    honest = path.read_bytes()
    save_embedding(_of_a_table(folder), path, overwrite=True)
    roomy = [_roomy(path.read_bytes(), path, documents), _roomy(honest, path, documents)]
    others = [EMBEDDING_ATTACKS[name].make(honest, folder / "secret.bin") for name in REACHING_OUT]
    return [*roomy, *(Seed(content, path) for content in (honest, honest, *others))]


def _mutated_hdf5(seed: Seed, random: np.random.Generator) -> bytes:
    if seed.texts:
        return mutations.of_texts(seed.content, random, seed.texts)
    return mutations.of_bytes(seed.content, random, 512)


def _read_release(path: Path) -> bytes:
    opened = open_any(path, UNSIGNED)
    if holds_points(opened):
        return opened.release.points.tobytes()
    return opened.release.embedding.tobytes()


def _read_embedding(path: Path) -> bytes:
    return load_embedding(path).sums.tobytes()


# What stage three writes


def _folders(folder: Path) -> Iterator[Path]:
    """Folders of images, points and rows."""
    random, shares = np.random.default_rng(0), np.full(2, 0.5)
    generator = ConditionalGenerator(GeneratorSpec(8, 2, factors=1, flows=1)).eval()
    prepared = Preparation(Fit.PAD, (0.0, 9.0), inverted=True)
    known = ("a", "b"), shares, {"release": {"epsilon": 1.0}}, prepared
    saved = SavedImageGenerator(generator, *known)
    images, labels = random.integers(0, 256, (6, 8, 8), dtype=np.uint8), np.arange(6) % 2
    write_synthetic(folder / "images", saved, images, labels, {})
    yield folder / "images"
    by_nobody = SignedBy(None, None)
    export_points(Opened(make_distilled(), "ab", by_nobody), folder / "points")
    yield folder / "points"
    model = RowModel(PEOPLE, random_generator(PEOPLE), random_marginals(PEOPLE, 0))
    rows = SavedTableGenerator(model, shares, {"release": {"private": True}})
    write_table(folder / "rows", rows, rows.draw(6, 0).table, {})
    yield folder / "rows"


def _printed_networks(folder: Path) -> Iterator[Path]:
    """Folders of the generators that papers have, whose files say which one they hold."""
    shares, origin = np.full(2, 0.5), {"release": {"epsilon": 1.0}}
    networks: dict[str, ConvolutionalGenerator | ResidualGenerator] = {
        "cnn": ConvolutionalGenerator(NetworkSpec(8, 2, 3)),
        "resnet": ResidualGenerator(ResidualSpec(8, 2, 3, width=1)),
    }
    for name, network in networks.items():
        images = SavedImageGenerator(network.eval(), ("a", "b"), shares, origin)
        write_synthetic(folder / name, images, *images.sample(6, 0), {})
        yield folder / name
    perceptron = PerceptronGenerator(PerceptronSpec(3, 2, width=4), PEOPLE).eval()
    rows = SavedTableGenerator(RowModel(PEOPLE, perceptron), shares, origin)
    write_table(folder / "mlp", rows, rows.draw(6, 0).table, {})
    yield folder / "mlp"


def _generator_seeds(folder: Path) -> list[Seed]:
    folders = [*_folders(folder), *_printed_networks(folder)]
    paths = [path / GENERATOR for path in folders if (path / GENERATOR).exists()]
    return [Seed(path.read_bytes(), path) for path in paths]


def _mutated_generator(seed: Seed, random: np.random.Generator) -> bytes:
    """What it says of itself more often than its weights, which are most of it."""
    size = int.from_bytes(seed.content[:8], "little")
    said, weights = seed.content[8 : 8 + size], seed.content[8 + size :]
    match int(random.integers(0, 5)):
        case 0:
            return mutations.of_bytes(seed.content, random)
        case 1:
            said = mutations.of_bytes(said, random)
        case 2:
            said = mutations.of_json(said.decode(), random).encode()
        case _:
            header = json.loads(said)
            inner = header["__metadata__"]["dpntk"]
            header["__metadata__"]["dpntk"] = mutations.of_json(inner, random)
            said = json.dumps(header).encode()
    return len(said).to_bytes(8, "little") + said + weights


def _read_generator(path: Path) -> bytes:
    saved = load_generator(path)
    if isinstance(saved, SavedTableGenerator):
        return repr(saved.draw(4, 0).table.to_pydict()).encode()
    return saved.sample(4, 0)[0].tobytes()


def _provenance_seeds(folder: Path) -> list[Seed]:
    paths = [path / PROVENANCE for path in _folders(folder)]
    return [Seed(path.read_bytes(), path) for path in paths]


def _mutated_json(seed: Seed, random: np.random.Generator) -> bytes:
    if random.random() < 0.3:
        return mutations.of_bytes(seed.content, random)
    return mutations.of_json(seed.content.decode(), random).encode()


def _read_provenance(path: Path) -> bytes:
    if is_table(path.parent):
        provenance = read_synthetic_table(path.parent).provenance
    else:
        records = read_synthetic(path.parent)
        provenance = records.provenance
        if is_distilled(provenance):
            read_points(path.parent, provenance, records.classes, records.pixels.shape[1])
    return f"{heading_of(provenance)} {is_private(provenance)}".encode("utf-8", "replace")


KINDS = {
    "release": Kind(_release_seeds, _mutated_hdf5, _read_release),
    "distilled": Kind(_distilled_seeds, _mutated_hdf5, _read_release),
    "embedding": Kind(_embedding_seeds, _mutated_hdf5, _read_embedding),
    "generator": Kind(_generator_seeds, _mutated_generator, _read_generator),
    "provenance": Kind(_provenance_seeds, _mutated_json, _read_provenance),
}


# Workers


@contextmanager
def _no_further_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def work(kind: Kind, seeds: list[Seed], seed: int, numbers: range, pipe: int) -> None:
    """Read some mutations, and write into a pipe what becomes of each.

    "(" where a child process would begin, ")" where it would have ended well and "x" otherwise;
    then "o" for a file that was opened, "r" for one that was refused, "L" for one that leaked.
    """

    def parse_here(
        parser: Parser,
        content: bytes,
        argument: Any,  # noqa: ANN401 - JSON
        limits: Limits = LIMITS,
    ) -> Any:  # noqa: ANN401 - JSON
        os.write(pipe, b"(")
        signal.setitimer(signal.ITIMER_PROF, SECONDS_IN_A_CHILD)
        ended = b"x"
        try:
            with _no_further_files():
                result = json.loads(json.dumps(parser(content, argument)))
            ended = b")"
            return result
        finally:
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            os.write(pipe, ended)

    sandbox.parse_in_child = parse_here
    room = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (room + SPARE_MEMORY, room + SPARE_MEMORY))
    for number in numbers:
        random = np.random.default_rng((seed, number))
        chosen = seeds[number % len(seeds)]
        overwrite(chosen.path, kind.mutate(chosen, random))
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        signal.setitimer(signal.ITIMER_REAL, 20 * SECONDS)  # waiting is limited too
        try:
            seen = kind.read(chosen.path)
            os.write(pipe, b"L" if SECRET[:64] in seen else b"o")
        except DpntkError:
            os.write(pipe, b"r")


def in_a_worker(kind: Kind, seeds: list[Seed], seed: int, numbers: range) -> tuple[bytes, int, int]:
    """What a worker wrote, its exit code (negative for a signal), and its memory in KiB."""
    receiving, sending = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.close(receiving)
            work(kind, seeds, seed, numbers, sending)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(sending)
    with os.fdopen(receiving, "rb") as pipe:
        written = pipe.read()
    _, status, usage = os.wait4(child, 0)
    return written, os.waitstatus_to_exitcode(status), usage.ru_maxrss


def outcomes(name: str, count: int, seed: int, number: int = 0) -> dict[str, int]:
    """Read that many mutated files of a kind, from one number on."""
    kind, stop = KINDS[name], number + count
    found: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "secret.bin").write_bytes(SECRET)
        seeds = kind.seeds(Path(folder))
        for each in seeds:  # loads all that is loaded when it is needed
            with suppress(DpntkError):
                each.path.write_bytes(each.content)
                kind.read(each.path)
        gc.collect()
        gc.freeze()  # workers need not look at what was there before them
        peak = 0
        while number < stop:
            numbers = range(number, min(number + GENERATION, stop))
            written, code, memory = in_a_worker(kind, seeds, seed, numbers)
            peak = max(peak, memory)
            found["opened"] += written.count(b"o")
            found["LEAKED"] += written.count(b"L")
            found["refused by the child"] += written.count(b"xr")
            found["refused"] += written.count(b"r") - written.count(b"xr")
            number += sum(written.count(end) for end in (b"o", b"L", b"r"))
            if code and not written.endswith(b"("):
                raise SystemExit(f"{name} {seed} {number}: the worker ended with {code}")
            if code:
                found[f"the child ended with {code}"] += 1
                number += 1
    return {**found, "peak": peak}


def main(count: int, seed: int, names: Sequence[str]) -> dict[str, dict[str, int]]:
    """Read that many mutated files of every kind that is named."""
    torch.set_num_threads(1)
    console.terminal.quiet = True
    return {name: outcomes(name, count, seed) for name in names}


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:] or list(KINDS))))
