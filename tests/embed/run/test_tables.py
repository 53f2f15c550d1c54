"""However the rows of a table are divided, and whatever interrupts, the bits are those of one pass.

Of the default feature map, which has parts of its own for tables: marginals, products of columns,
and counts of all pairs among which a release chooses.
"""

from __future__ import annotations

import itertools
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpntk.common.features.joint import JointFeatures, parts_of
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.kinds import ColumnKind, Missing
from dpntk.common.schema.drafts.toml import save_schema
from dpntk.common.schema.privacy_unit import PrivacyUnit
from dpntk.common.schema.table import TableSchema
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import Embedding, TangentOptions, embed, load_embedding, merge
from dpntk.embed.sums.accumulate import ClassSums
from tests.embed.run.test_torchrun import torchrun
from tests.embed.run.test_work_folder import names
from tests.helpers.processes import embed_in_a_child, finish, kill_at, start

ROWS = 12_000
"""Of which a chunk has fewer than 3,000, so that there are three also where few rows count."""
TOWNS, WARDS = ("Ulm", "Bonn", "Celle"), ("A", "B")
FIRST = 18_262
"""Day of 2020-01-01, counted from 1970."""
SCHEMA = TableSchema(
    (
        Column("age", ColumnKind.INTEGER, "int64", 0, 99),
        Column("pay", ColumnKind.CONTINUOUS, "float64", 0.0, 500.0, missing=Missing.INDICATOR),
        Column("seen", ColumnKind.DATE, "string", FIRST, FIRST + 730, missing=Missing.INDICATOR),
        Column.categorical("town", TOWNS, missing=True),
        Column.categorical("ward", WARDS),
        Column.boolean("ill", ["no", "yes"]),
    ),
    "ill",
    left_out=("person",),
)
WIDTH = 3
KINDS = {
    "rows": (),
    "target": ("--target", "pay"),
    "unit": ("--unit", "person", "--rows-per-unit", "3"),
}


def draw_rows() -> pd.DataFrame:
    """Rows in which columns go together, a tenth of some are missing, and persons have several."""
    random = np.random.default_rng(5)
    ward, ill = random.integers(2, size=ROWS), random.random(ROWS) < 0.2
    town = np.where(ward & (random.random(ROWS) < 0.7), 2, random.integers(3, size=ROWS))
    pay = np.round(random.exponential(60, ROWS), 2)
    seen = (FIRST + random.integers(0, 731, ROWS)).astype("datetime64[D]")
    columns = {
        "person": random.integers(0, ROWS // 3, ROWS),
        "age": np.clip(random.normal(40 + 25 * ill, 12, ROWS), 0, 99).astype(int),
        "pay": pd.Series(pay).where(random.random(ROWS) < 0.9),
        "seen": pd.Series(np.datetime_as_string(seen, "D")).where(random.random(ROWS) < 0.9),
        "town": pd.Series(np.array(TOWNS)[town]).where(random.random(ROWS) < 0.9),
        "ward": np.array(WARDS)[ward],
        "ill": np.where(ill, "yes", "no"),
    }
    return pd.DataFrame(columns)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rows in one file, the same in three others, and their schema."""
    folder = tmp_path_factory.mktemp("table")
    rows = draw_rows()
    save_schema(SCHEMA, folder / "schema.toml")
    rows.to_csv(folder / "rows.csv", index=False)
    for number, (first, last) in enumerate(itertools.pairwise((0, 1, 5_000, ROWS))):
        rows[first:last].to_csv(folder / f"part{number}.csv", index=False)
    return folder


def arguments(folder: Path, output: Path, kind: str, data: str = "rows.csv") -> list[str]:
    """A command that checkpoints after every chunk."""
    where = map(str, (folder / data, "--schema", folder / "schema.toml", "-o", output))
    options = ("--width", str(WIDTH), "--threads", "1", "--checkpoint-every", "0", *KINDS[kind])
    return ["embed", *where, *options]


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture(scope="module")
def one_pass(folder: Path, kind: str) -> bytes:
    """The file that one process makes if nobody disturbs it."""
    output = folder / f"{kind}.h5"
    assert embed_in_a_child(arguments(folder, output, kind)) == 0
    return output.read_bytes()


def of_pair(embedding: Embedding, pair: tuple[str, str], label: int) -> np.ndarray:
    """What an embedding counts of two columns in a class, in rows."""
    parts = parts_of(embedding.feature_map)
    assert parts.marginals is not None
    number = parts.marginals.names_of_groups(SCHEMA).index(pair)
    group = parts.groups[number]
    start = parts.group_place.start + sum(each.dimension for each in parts.groups[:number])
    sums = embedding.sums[start : start + group.dimension, label]
    entry, left = divmod(int(sums.sum()), int(embedding.counts[label]))
    assert left == 0
    assert entry > 0
    return (sums / entry).reshape([side.dimension for side in group.sides])


def test_one_pass_counts_every_pair_of_columns(folder: Path, kind: str, one_pass: bytes) -> None:
    """By pandas, and in memory: the whole map is there, and every row in each of its counts."""
    embedding = load_embedding(folder / f"{kind}.h5")
    rows = draw_rows()
    if kind == "unit":
        rows = rows[rows.groupby("person").cumcount() < 3]
    assert embedding.records == len(rows)
    chunk = ClassSums(embedding.feature_map, 2, embedding.grid).chunk_size
    assert len(rows) > 3 * chunk
    feature_map = embedding.feature_map
    assert isinstance(feature_map, JointFeatures)
    assert feature_map.marginals.undecided
    assert feature_map.moments is not None
    assert (feature_map.moments.target is not None) == (kind == "target")
    described = [column.name for column in SCHEMA.columns if column.name != "ill"]
    pairs = list(itertools.combinations(described, 2))
    for label, name in enumerate(("no", "yes")):
        of_class = rows[rows.ill == name]
        found = of_pair(embedding, ("town", "ward"), label)
        town = of_class.town.fillna("none")
        expected = pd.crosstab(town, of_class.ward).loc[[*TOWNS, "none"], [*WARDS]]
        np.testing.assert_array_equal(found, expected)
        missing = of_pair(embedding, ("pay", "seen"), label)[-1, -1]
        assert missing == (of_class.pay.isna() & of_class.seen.isna()).sum()
        assert all(of_pair(embedding, pair, label).sum() == len(of_class) for pair in pairs)
    options = TangentOptions(width=WIDTH, target="pay" if kind == "target" else None)
    schema = SCHEMA.with_privacy_unit(PrivacyUnit("person", 3)) if kind == "unit" else SCHEMA
    made = embed(rows, options, SourceOptions(schema))
    np.testing.assert_array_equal(made.sums, embedding.sums)


@pytest.mark.parametrize("kind", ["rows", "target"], scope="module")
def test_parts_in_any_order_add_up_to_one_pass(folder: Path, kind: str, one_pass: bytes) -> None:
    """Parts of one row, and of some that end within a chunk; with a unit none are merged."""
    paths = [folder / f"{kind}-part{number}.h5" for number in range(3)]
    for number, path in enumerate(paths):
        assert embed_in_a_child(arguments(folder, path, kind, f"part{number}.csv")) == 0
    whole = load_embedding(folder / f"{kind}.h5")
    for order in itertools.permutations(paths):
        merged = merge(order)
        np.testing.assert_array_equal(merged.sums, whole.sums)
        np.testing.assert_array_equal(merged.counts, whole.counts)
        assert merged.plan_digest == whole.plan_digest


@pytest.mark.parametrize("chunks", [1, 3])
def test_an_interrupted_pass_is_continued_to_the_bit(
    folder: Path, kind: str, one_pass: bytes, tmp_path: Path, chunks: int
) -> None:
    output = tmp_path / "embedding.h5"
    command = arguments(folder, output, kind)
    # Two calls for the plan, two for each checkpoint: the file, and its folder.
    killed = start(command, prepare=kill_at("os.fsync", 2 + 2 * chunks + 1))
    assert finish(killed) == -signal.SIGKILL
    assert (tmp_path / ".embedding.h5.work" / "share-1-of-1.checkpoint").exists()
    assert embed_in_a_child(command) == 0
    assert output.read_bytes() == one_pass
    assert names(tmp_path) == ["embedding.h5"]


def test_two_processes_write_the_file_of_one(
    folder: Path, kind: str, one_pass: bytes, tmp_path: Path
) -> None:
    """At the same time; of one kind torchrun starts them, anew."""
    output = tmp_path / "embedding.h5"
    command = arguments(folder, output, kind)
    if kind == "unit":
        run = torchrun(command)
        _, said = run.communicate()
        assert run.returncode == 0, said
    else:
        both = [start(command, rank=rank, ranks=2) for rank in range(2)]
        assert [finish(process) for process in both] == [0, 0]
    assert output.read_bytes() == one_pass
    assert names(tmp_path) == ["embedding.h5"]
