"""Every hostile embedding is refused, by whatever reads one, before anything is taken from it."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

import pytest

from dpntk.common.errors import EmbeddingError
from dpntk.embed import load_embedding
from tests.attacks.attacks import SECRET
from tests.attacks.files.hostile_embeddings import EMBEDDING_ATTACKS
from tests.conftest import Command, refused

PRIVATE_BOUNDS = """
bins = 20
[[columns]]
name = "a"
kind = "continuous"
dtype = "float64"
bounds = "private"
"""


@pytest.fixture
def hostile(request: pytest.FixtureRequest, embedding_file: Path, tmp_path: Path) -> Path:
    secret = tmp_path / "secret.bin"
    secret.write_bytes(SECRET)
    path = tmp_path / "theirs.h5"
    path.write_bytes(EMBEDDING_ATTACKS[request.param].make(embedding_file.read_bytes(), secret))
    return path


@pytest.mark.parametrize(
    ("hostile", "name"), [(name, name) for name in EMBEDDING_ATTACKS], indirect=["hostile"]
)
def test_the_attack_is_refused(hostile: Path, name: str) -> None:
    start = time.monotonic()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(EmbeddingError) as caught:
        load_embedding(hostile)
    assert str(caught.value).startswith(f"{hostile}: ")
    assert EMBEDDING_ATTACKS[name].words in str(caught.value)
    assert str(caught.value).isprintable()
    assert time.monotonic() - start < 60
    # in KiB: neither a bomb nor a declared size was made room for
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 18


@pytest.mark.parametrize("hostile", ["external_storage", "virtual_data_set"], indirect=True)
def test_nothing_of_it_is_merged(hostile: Path, dpntk: Command) -> None:
    for parts in (["embedding.h5", "theirs.h5"], ["theirs.h5", "embedding.h5"]):
        refused(dpntk("merge", *parts, "-o", "all.h5"), f"{hostile.name}: sums is not stored")
        assert not hostile.with_name("all.h5").exists()


@pytest.mark.parametrize("hostile", ["external_link"], indirect=True)
def test_ones_own_sums_are_not_added_to_themselves(hostile: Path, dpntk: Command) -> None:
    refused(dpntk("merge", "mine.h5", "theirs.h5", "-o", "all.h5"), "theirs.h5: sums is a link")
    assert not hostile.with_name("all.h5").exists()


@pytest.mark.parametrize("hostile", ["external_storage"], indirect=True)
@pytest.mark.parametrize(
    "command",
    [
        ["release", "theirs.h5", "--eps", "1", "-o", "new"],
        ["plan", "theirs.h5", "--eps", "1"],
        ["budget", "theirs.h5"],
        ["bounds", "theirs.h5", "--schema", "schema.toml", "--eps", "1", "-o", "new"],
        ["audit", "theirs.h5", "--eps", "1"],
    ],
    ids=lambda command: command[0],
)
def test_no_command_takes_anything_from_it(
    hostile: Path, command: list[str], dpntk: Command
) -> None:
    hostile.with_name("schema.toml").write_text(PRIVATE_BOUNDS)
    content = hostile.read_bytes()
    outcome = dpntk(*command)
    assert outcome.code == 1
    assert outcome.stderr.splitlines()[-1].startswith(f"error: {hostile.name}: sums is not stored")
    assert hostile.read_bytes() == content
    assert not hostile.with_name("new").exists()


@pytest.mark.parametrize("name", ["/dev/zero", "pipe", "folder"])
def test_what_is_no_file_is_refused_at_once(name: str, dpntk: Command, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "theirs.h5").symlink_to(name)
    for command in (
        ["plan", "theirs.h5", "--eps", "1"],
        ["merge", "theirs.h5", "theirs.h5", "-o", "all.h5"],
    ):
        outcome = dpntk(*command)
        refused(outcome)
        assert outcome.stderr.endswith(
            (": not a regular file\n", ": this is a folder; give a file\n")
        )
