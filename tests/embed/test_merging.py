"""Embeddings of disjoint records add up to what one pass gives; others are refused."""

from __future__ import annotations

import fcntl
import functools
import importlib
import itertools
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpntk.common.errors import MergeError, OutputError, SchemaError
from dpntk.common.ledger import PrivacyBudget
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import Embedding, embed, load_embedding, merge, merge_files, save_embedding
from dpntk.embed.exact.grid import Grid
from dpntk.embed.feature_options.kinds import options_for
from dpntk.embed.sums.file import write_embedding
from dpntk.embed.sums.totals import Totals
from dpntk.release import PrivacyParameters, release
from tests.conftest import SIDE, Command, draw_records, refused

SHARDS = 5
RECORDS, LABELS = draw_records(303, seed=8)


def write(path: Path, rows: slice) -> Path:
    np.savez(path, x=RECORDS[rows].reshape(-1, SIDE, SIDE), y=LABELS[rows])
    return path


def embedded(
    folder: Path,
    name: str,
    rows: slice,
    capacity: int | None = None,
    **options: Any,  # noqa: ANN401 - of either kind
) -> Path:
    data = write(folder / f"{name}.npz", rows)
    known = {name: options.pop(name) for name in ("classes", "image_size") if name in options}
    source = replace(SourceOptions(classes=3, image_size=SIDE, channels=1), **known)
    features = options_for(**{"kind": "ntk", "width": 5, **options})
    made = embed(data, features, source, capacity=capacity)
    save_embedding(made, folder / f"{name}.h5")
    return folder / f"{name}.h5"


def make_shards(tmp_path: Path) -> list[Path]:
    """Embeddings of unequal shards of the records."""
    ends = [0, 1, 50, 120, 300, 303]
    return [
        embedded(tmp_path, f"shard{n}", slice(*rows))
        for n, rows in enumerate(itertools.pairwise(ends))
    ]


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    return make_shards(tmp_path)


def same(one: Embedding, other: Embedding) -> bool:
    return (
        np.array_equal(one.sums, other.sums)
        and np.array_equal(one.counts, other.counts)
        and one.plan_digest == other.plan_digest
    )


def test_shards_in_every_order_make_the_bits_of_one_pass(
    shards: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("dpntk.embed.merging")  # each file is read once, not 120 times
    monkeypatch.setattr(module, "load_embedding", functools.cache(load_embedding))
    whole = load_embedding(embedded(tmp_path, "whole", slice(None)))
    files = set()
    for order in itertools.permutations(shards):
        merged = merge(order)
        assert same(merged, whole)
        write_embedding(replace(merged, ledger=whole.ledger), tmp_path / "merged.h5")
        files.add((tmp_path / "merged.h5").read_bytes())
    assert len(files) == 1


def test_a_link_is_followed_to_the_file_that_is_replaced(
    shards: list[Path], tmp_path: Path, dpntk: Command
) -> None:
    (tmp_path / "sum.h5").symlink_to(tmp_path / "there.h5")
    assert dpntk("merge", *shards[:2], "-o", "sum.h5").code == 0
    assert (tmp_path / "sum.h5").is_symlink()
    assert load_embedding(tmp_path / "there.h5").records == 50


def test_merged_embeddings_merge_again(shards: list[Path], tmp_path: Path, dpntk: Command) -> None:
    assert dpntk("merge", *shards[:2], "-o", "ab.h5").code == 0
    assert dpntk("merge", *shards[2:4], "-o", "cd.h5").code == 0
    outcome = dpntk("merge", "ab.h5", shards[4], "cd.h5", "-o", "all.h5")
    assert outcome.code == 0
    assert "merged 3 embeddings: 303 images of 8x8 pixels in 3 classes" in outcome.stderr
    assert "SENSITIVE" in outcome.stderr
    whole = embedded(tmp_path, "whole", slice(None))
    assert same(load_embedding(tmp_path / "all.h5"), load_embedding(whole))
    assert (tmp_path / "all.h5").stat().st_mode & 0o777 == 0o600


def test_the_same_records_twice_are_refused(tmp_path: Path, dpntk: Command) -> None:
    """Under whatever name, in whatever order, and inside what was merged before."""
    shards = make_shards(tmp_path)
    copy = tmp_path / "copy.h5"
    copy.write_bytes(shards[3].read_bytes())
    backwards = np.s_[299:119:-1]  # the same records as shard 3
    again = embedded(tmp_path, "again", backwards)
    assert dpntk("merge", shards[3], shards[4], "-o", "ab.h5").code == 0
    assert dpntk("merge", "ab.h5", shards[1], "-o", "abc.h5").code == 0
    both_at_once = embedded(tmp_path, "both", slice(120, 303))
    for pair in (
        (shards[3], shards[3]),
        (shards[3], copy),
        (again, shards[3]),
        ("ab.h5", shards[3]),
        (again, "ab.h5"),
        ("abc.h5", "ab.h5"),
        ("abc.h5", again),
        ("ab.h5", both_at_once),
        (both_at_once, "abc.h5"),
    ):
        outcome = dpntk("merge", *pair, "-o", "all.h5")
        refused(outcome, f"{pair[0]} and {pair[1]} hold the same records", "name each shard once")
        assert not (tmp_path / "all.h5").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"width": 6}, 'feature map width is "6" and not "5"; embed'),
        ({"seed": 1}, "the random weights are others (--feature-seed)"),
        ({"kind": "hermite", "width": None}, 'feature map features is "hermite" and not "ntk"'),
        ({"capacity": 3_000_000}, "grid capacity is 3000000 and not 1048576"),
        ({"classes": 4}, "feature map outputs is 4 and not 3"),
        ({"classes": None}, 'schema classes origin is "from-data" and not "declared"'),
        ({"image_size": 9}, "schema side is 9 and not 8"),
    ],
)
def test_another_plan_is_refused_and_named(
    shards: list[Path],
    tmp_path: Path,
    dpntk: Command,
    options: dict[str, Any],
    words: str,
) -> None:
    other = embedded(tmp_path, "other", slice(120, 300), **options)
    outcome = dpntk("merge", shards[0], other, "-o", "all.h5")
    refused(outcome, f"{other} cannot be added to {shards[0]}: ", words, "the same options")
    assert not (tmp_path / "all.h5").exists()


AGE = (
    '[[columns]]\nname = "age_of_all"\nkind = "integer"\ndtype = "int64"\nlower = 0\nupper = 120\n'
)
JOB = """[[columns]]
name = "job"
kind = "categorical"
dtype = "string"
categories = ["a carpenter of houses", "a carpenter of ships", "a plumber"]
"""


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("upper = 120", "upper = 110", "upper of column 'age_of_all' is 110 and not 120; embed"),
        (
            "a plumber", "a miner",
            """of column 'job' is ...hips", "a miner"] and not ...hips", "a plumber"]; embed""",
        ),
        (AGE, "", """: schema columns is ["job"] and not ["age_of_all", "job"]; schema left out"""),
    ],
)  # fmt: skip
def test_of_two_schemas_it_is_said_what_differs(
    tmp_path: Path, dpntk: Command, before: str, after: str, words: str
) -> None:
    for name, schema in {"one": AGE + JOB, "two": (AGE + JOB).replace(before, after)}.items():
        left_out = "" if "age" in schema else 'left_out = ["age_of_all"]\n'
        Path("schema.toml").write_text(left_out + schema)
        Path("table.csv").write_text(f"age_of_all,job\n{len(name)},a carpenter of ships\n")
        made = dpntk("embed", "table.csv", "--schema", "schema.toml", "-o", f"{name}.h5")
        assert made.code == 0, made.stderr
    refused(dpntk("merge", "one.h5", "two.h5", "-o", "all.h5"), words)


def test_more_records_than_there_is_room_for_are_refused(tmp_path: Path, dpntk: Command) -> None:
    first = embedded(tmp_path, "first", slice(0, 100), capacity=200)
    second = embedded(tmp_path, "second", slice(100, 200), capacity=200)
    third = embedded(tmp_path, "third", slice(200, 201), capacity=200)
    assert merge([first, second]).records == 200
    refused(
        dpntk("merge", first, second, third, "-o", "all.h5"),
        f"{third} does not fit in: the sums have room for 200 records, and there are more in all",
        "--capacity of at least their number",
    )


def test_one_embedding_is_not_merged(shards: list[Path], dpntk: Command) -> None:
    refused(dpntk("merge", shards[0], "-o", "all.h5"), "name two embeddings at least")


def test_what_is_no_embedding_is_refused(
    shards: list[Path], tmp_path: Path, dpntk: Command
) -> None:
    refused(dpntk("merge", shards[0], tmp_path / "none.h5", "-o", "all.h5"), "no such file")
    refused(dpntk("merge", shards[0], tmp_path / "shard0.npz", "-o", "all.h5"), "not a dpntk")
    refused(dpntk("merge", *shards, "-o", "no/all.h5"), "is not a folder")


def test_an_embedding_that_was_released_is_not_replaced(
    shards: list[Path], tmp_path: Path, dpntk: Command
) -> None:
    assert dpntk("merge", *shards[:3], "-o", "all.h5").code == 0
    refused(dpntk("merge", *shards, "-o", "all.h5"), "already exists", "--overwrite")
    assert dpntk("merge", *shards, "-o", "all.h5", "--overwrite").code == 0
    assert load_embedding(tmp_path / "all.h5").records == 303
    release(tmp_path / "all.h5", tmp_path / "release.h5", PrivacyParameters(1.0, 1e-3))
    before = (tmp_path / "all.h5").read_bytes()
    refused(
        dpntk("merge", *shards[:3], "-o", "all.h5", "--overwrite"),
        "was released from, and its ledger would be lost",
    )
    assert (tmp_path / "all.h5").read_bytes() == before


def test_a_ceiling_is_not_replaced(shards: list[Path], tmp_path: Path, dpntk: Command) -> None:
    save_embedding(load_embedding(shards[0]), shards[0], overwrite=True, ceiling=PrivacyBudget(3.0))
    for _ in range(2):  # the parts' own are there the second time, too
        assert dpntk("merge", *shards[:3], "-o", "all.h5", "--overwrite").code == 0
    whole, ceiling = load_embedding(tmp_path / "all.h5"), PrivacyBudget(1.0)
    save_embedding(whole, tmp_path / "all.h5", overwrite=True, ceiling=ceiling)
    before = (tmp_path / "all.h5").read_bytes()
    refused(
        dpntk("merge", *shards, "-o", "all.h5", "--overwrite"),
        "has a ceiling, and it would be lost",
    )
    assert (tmp_path / "all.h5").read_bytes() == before


def test_a_part_may_be_replaced_by_the_sum(
    shards: list[Path], tmp_path: Path, dpntk: Command
) -> None:
    """Its ledger is in the sum's."""
    release(shards[3], tmp_path / "release.h5", PrivacyParameters(1.0, 1e-3))
    assert dpntk("merge", shards[3], shards[4], "-o", shards[3], "--overwrite").code == 0
    (entry,) = load_embedding(shards[3]).ledger.all_entries
    assert entry.epsilon == 1.0


def test_what_identifies_the_shards_stays_in_the_embedding(
    shards: list[Path], tmp_path: Path, dpntk: Command
) -> None:
    """A digest of exact sums would let a recipient check a guess at the records."""
    assert dpntk("merge", *shards, "-o", "all.h5").code == 0
    merged = load_embedding(tmp_path / "all.h5")
    assert len(merged.shards) == SHARDS
    assert dpntk("release", "all.h5", "--eps", "1", "--delta", "1e-3", "-o", "r.h5").code == 0
    content = (tmp_path / "r.h5").read_bytes()
    once = load_embedding(shards[3])
    for digest in (*merged.shards, merged.totals.digest(), once.totals.digest()):
        assert bytes.fromhex(digest) not in content
        assert digest.encode() not in content


def test_the_digest_of_a_run_stays_in_the_embedding(tmp_path: Path, dpntk: Command) -> None:
    write(tmp_path / "data.npz", slice(None))
    assert dpntk("embed", "data.npz", "--width", "5", "--classes", "3").code == 0
    run = load_embedding(tmp_path / "embedding.h5").run
    assert len(run) == 64
    assert dpntk("release", "--eps", "1", "--delta", "1e-3").code == 0
    content = (tmp_path / "release.h5").read_bytes()
    assert run.encode() not in content
    assert bytes.fromhex(run) not in content


def test_a_sum_is_not_what_the_run_of_a_part_has_made(shards: list[Path], tmp_path: Path) -> None:
    """That run, continued, would take the sum for its own result and go."""
    part = replace(load_embedding(shards[0]), run="ab" * 32)
    write_embedding(part, tmp_path / "part.h5")
    assert merge([tmp_path / "part.h5", shards[1]]).run == ""


GRID = Grid.for_capacity(255, 1000)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda t: t.sums.__setitem__((0, 0), 10 * GRID.units_per_one + 1), "cannot have"),
        (lambda t: t.sums.__setitem__((1, 1), -(2**63)), "cannot have"),
        (lambda t: t.counts.__setitem__(1, -1), "impossible class counts"),
        (lambda t: t.counts.__setitem__(1, 991), "impossible class counts"),
    ],
)
def test_sums_that_could_overflow_are_never_added(
    spoil: Callable[[Totals], None], words: str
) -> None:
    good = Totals(np.zeros((4, 2), dtype=np.int64), np.array([10, 10]))
    largest = Totals(np.full((4, 2), 10 * GRID.units_per_one), np.array([10, 10]))
    assert good.plus(largest, GRID).records == 40
    spoilt = Totals(good.sums.copy(), good.counts.copy())
    spoil(spoilt)
    for one, other in ((good, spoilt), (spoilt, good)):
        with pytest.raises(SchemaError, match=words):
            one.plus(other, GRID)


def test_all_files_are_locked_while_they_are_read(
    shards: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release from a part cannot slip in between reading its ledger and writing the sum."""
    held = []

    def probe(paths: tuple[Path, ...]) -> Embedding:
        for folder in {path.parent for path in (*paths, tmp_path / "out" / "all.h5")}:
            descriptor = os.open(folder / ".dpntk.lock", os.O_RDWR)
            with pytest.raises(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.close(descriptor)
            held.append(folder)
        return merge(paths)

    (tmp_path / "out").mkdir()
    (tmp_path / "b").mkdir()
    moved = shards[1].rename(tmp_path / "b" / "embedding.h5")
    module = importlib.import_module("dpntk.embed.merging")
    monkeypatch.setattr(module, "merge", probe)
    parts, output = [shards[0], moved, shards[2]], tmp_path / "out" / "all.h5"
    made = merge_files(parts, output)
    assert len(held) == 3
    assert load_embedding(output).totals.digest() == made.totals.digest()
    with pytest.raises(OutputError, match="overwrite=True"):
        merge_files(parts, output)


def test_what_was_written_during_a_merge_is_not_replaced(
    shards: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, output = importlib.import_module("dpntk.embed.merging"), tmp_path / "all.h5"

    def slow(paths: list[Path]) -> Embedding:
        write_embedding(load_embedding(shards[4]), output)
        return merge(paths)

    monkeypatch.setattr(module, "merge", slow)
    with pytest.raises(OutputError, match="overwrite=True"):
        merge_files(shards[:2], output)
    assert load_embedding(output).records == 3


def test_what_python_merges_it_writes_over_no_release(shards: list[Path], tmp_path: Path) -> None:
    merge_files(shards[:2], output := tmp_path / "all.h5")
    release(output, tmp_path / "release.h5", PrivacyParameters(1.0))
    with pytest.raises(OutputError, match="its ledger would be lost: choose another name"):
        merge_files(shards[:2], output, overwrite=True)
    assert load_embedding(output).ledger.all_entries


def test_merging_needs_two(tmp_path: Path) -> None:
    with pytest.raises(MergeError):
        merge([])
