"""What lies in object storage gives the records that a copy on this machine gives."""

from __future__ import annotations

import gzip
import io
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec
import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from numpy.typing import NDArray
from pyarrow import csv, parquet

from dpntk.common.errors import DataError, DpntkError
from dpntk.common.sources import Source, SourceOptions, open_source, remote
from dpntk.common.sources.paths import opened
from dpntk.common.sources.remote import RemotePath
from dpntk.embed import draft_schema, embed, load_embedding
from dpntk.evaluate import evaluate
from tests.helpers.data_sets import KINDS, LABELS, write_folder, write_npy
from tests.helpers.memory import growth
from tests.helpers.object_storage import replace, upload
from tests.helpers.tables import CSV, PEOPLE

CLASSES = SourceOptions(classes=3)
NAMED = SourceOptions(class_names=("cat", "dog", "eel"))
TABLE = SourceOptions(schema=PEOPLE)


def options_for(kind: str) -> SourceOptions:
    return NAMED if kind == "folder" else CLASSES


def read(source: Source, start: int = 0, stop: int | None = None) -> list[NDArray[np.generic]]:
    batches = list(source.batches(6, start, stop))
    return [
        np.concatenate([batch.records for batch in batches]),
        np.concatenate([batch.labels for batch in batches]),
    ]


@pytest.fixture
def memory() -> Iterator[str]:
    """An empty storage in memory."""
    MemoryFileSystem.store.clear()
    yield "memory://ward"
    MemoryFileSystem.store.clear()


@pytest.fixture(params=["memory", "file", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A folder in each kind of storage that there is here."""
    if request.param == "file":
        return f"file://{tmp_path}/elsewhere"
    found: str = request.getfixturevalue({"memory": "memory", "s3": "bucket"}[request.param])
    return f"{found}/records"


def spied(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes each request is for."""
    asked: list[int] = []
    range_of = RemotePath.range

    def noted(path: RemotePath, start: int, stop: int) -> bytes:
        asked.append(stop - start)
        return range_of(path, start, stop)

    monkeypatch.setattr(RemotePath, "range", noted)
    return asked


@pytest.mark.parametrize("kind", KINDS)
def test_the_records_are_those_of_a_copy(storage: str, kind: str, tmp_path: Path) -> None:
    path = KINDS[kind](tmp_path / "data")
    if storage.startswith("file"):
        (tmp_path / "elsewhere").mkdir()
        address = f"file://{path}"
    else:
        address = upload(path, storage)
    here, there = open_source(path, options_for(kind)), open_source(address, options_for(kind))
    assert there.schema == here.schema
    assert len(there) == len(here)
    for start, stop in [(0, None), (0, 7), (5, 18), (19, 20)]:
        for ours, theirs in zip(read(here, start, stop), read(there, start, stop), strict=True):
            assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("name", ["people.csv", "people.csv.gz", "people.parquet", "folder"])
def test_tables(bucket: str, name: str, tmp_path: Path) -> None:
    path = table(tmp_path / name)
    address = upload(path, bucket)
    here, there = open_source(path, TABLE), open_source(address, TABLE)
    for start, stop in [(0, None), (1, 3)]:
        for ours, theirs in zip(read(here, start, stop), read(there, start, stop), strict=True):
            assert np.array_equal(ours, theirs)
    assert draft_schema(address, "grade") == draft_schema(path, "grade")
    assert np.array_equal(embed(address, None, TABLE).sums, embed(path, None, TABLE).sums)


def table(path: Path) -> Path:
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(CSV.encode()))
    elif path.suffix == ".parquet":
        parquet.write_table(csv.read_csv(io.BytesIO(CSV.encode())), path, row_group_size=2)
    elif path.suffix:
        path.write_text(CSV)
    else:
        path.mkdir()
        header, *rows = CSV.splitlines()
        for number, part in enumerate((rows[:1], rows[1:])):
            (path / f"part-{number}.csv").write_text("\n".join([header, *part, ""]))
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_a_fingerprint_changes_with_the_objects_and_not_with_their_place(
    memory: str, kind: str, tmp_path: Path
) -> None:
    path = KINDS[kind](tmp_path / "data")
    addresses = [upload(path, memory)]
    if path.is_dir():
        addresses = [f"{memory}/{file.relative_to(tmp_path)}" for file in path.rglob("*.*")]
    before = open_source(f"{memory}/{path.name}").fingerprint()
    assert open_source(f"{memory}/{path.name}").fingerprint() == before
    for address in addresses:
        replace(address)
        after = open_source(f"{memory}/{path.name}").fingerprint()
        assert after != before
        before = after


def test_of_objects_of_s3_the_contents_count(bucket: str, tmp_path: Path) -> None:
    path = write_npy(tmp_path / "data")
    here, there = upload(path, f"{bucket}/a"), upload(path, f"{bucket}/b")
    before = open_source(here).fingerprint()
    replace(f"{here}/y.npy")
    assert open_source(here).fingerprint() == before == open_source(there).fingerprint()
    np.save(path / "y.npy", LABELS[::-1])
    upload(path, f"{bucket}/a")
    assert open_source(here).fingerprint() != before


@pytest.mark.parametrize("kind", [*KINDS, "csv"])
def test_what_is_replaced_while_it_is_read_is_refused(
    memory: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the last request but for checks, so that all that is read is of one version."""
    address = upload(
        table(tmp_path / "a.csv") if kind == "csv" else KINDS[kind](tmp_path / "a"), memory
    )
    source = open_source(address, TABLE if kind == "csv" else options_for(kind))
    stop = 2 if kind == "csv" else None  # reading ends before the file does
    asked = spied(monkeypatch)
    read(source, 0, stop)
    last, lock, range_of = len(asked), threading.Lock(), RemotePath.range
    asked.clear()

    def disturbed(path: RemotePath, start: int, stop: int) -> bytes:
        with lock:
            content = range_of(path, start, stop)
            if len(asked) == last:
                replace(str(path))
            return content

    monkeypatch.setattr(RemotePath, "range", disturbed)
    with pytest.raises(DataError, match=r"was replaced while it was read: embed data that nobody"):
        read(source, 0, stop)


def test_what_is_cut_short_or_removed_while_it_is_read_was_replaced(
    memory: str, tmp_path: Path
) -> None:
    address = upload(write_npy(tmp_path / "data"), memory)
    source = open_source(address)
    replace(f"{address}/x.npy", b"")
    with pytest.raises(DataError, match=r"x\.npy: was replaced while it was read"):
        read(source)
    fsspec.filesystem("memory").rm("/ward/data/x.npy")
    with pytest.raises(DataError, match=r"x\.npy: was replaced while it was read"):
        read(source)


@pytest.mark.parametrize("kind", KINDS)
def test_memory_does_not_grow_with_the_objects(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_AHEAD", 1 << 14)
    few, many = 500, 2_000

    def reading(count: int) -> Callable[[], None]:
        images = np.zeros((count, 32, 32), np.uint8)
        path = KINDS[kind](tmp_path / f"{count}", images, np.arange(count) % 3)

        def read_all() -> None:
            for _ in open_source(f"file://{path}").batches(16):
                pass

        return read_all

    reading(100)()
    listed = 700 if kind == "folder" else 0  # bytes for each object
    allowed = (many - few) * (32 * 32 / 4 + listed)
    assert growth(reading(few), reading(many), allowed) < allowed


def test_requests_are_few_and_small(
    memory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = KINDS["tar"](tmp_path / "data")
    source = open_source(upload(path, memory), CLASSES)
    asked = spied(monkeypatch)
    read(source)
    assert len(asked) == 1  # for a piece of up to 64 images
    assert asked[0] < path.stat().st_size

    np.save(tmp_path / "x.npy", np.zeros((9_000, 32, 32), np.uint8))
    source = open_source(upload(tmp_path / "x.npy", memory))
    asked.clear()
    list(source.batches(1 << 20))
    assert max(asked) <= 1 << 24
    asked.clear()
    list(source.batches(100, 8_000, 8_100))
    assert sum(asked) <= 100 * 32 * 32 + (1 << 22)


def test_files_behave_as_files_do(memory: str, tmp_path: Path) -> None:
    content = np.random.default_rng(0).bytes(5_000)
    (tmp_path / "data").write_bytes(content)
    path = RemotePath.at(upload(tmp_path / "data", memory))
    whole = io.BytesIO(content)
    for ahead in (0, 64, None):
        with opened(path, ahead) as file:
            assert file.seekable()
            assert file.readable()
            for place, whence, size in [
                (0, 0, 10), (100, 1, 700), (-300, 2, 200), (-200, 1, 4), (4_999, 0, 9), (9, 2, 9),
            ]:  # fmt: skip
                assert file.seek(place, whence) == whole.seek(place, whence)
                assert file.read(size) == whole.read(size)
            with pytest.raises((ValueError, OSError)):
                file.seek(-1)
    with pytest.raises(DataError, match=r"5,000 bytes, where 4,999 are the most"):
        path.read(4_999)
    assert path.read(5_000) == content
    assert repr(path) == "RemotePath('memory://ward/data')"
    missing = RemotePath.at("memory://ward/none")
    assert not missing.exists()
    with (
        pytest.raises(DataError, match=r"memory://ward/none: there is no such file"),
        opened(missing),
    ):
        pass


def test_a_mark_of_the_folder_is_none_of_its_files(bucket: str, tmp_path: Path) -> None:
    """As consoles make one, which lists itself among what is in it."""
    address = upload(write_folder(tmp_path / "data"), bucket)
    filesystem, path = fsspec.url_to_fs(address, skip_instance_cache=True)
    filesystem.call_s3("put_object", Bucket=path.split("/")[0], Key="data/", Body=b"")
    filesystem.call_s3("put_object", Bucket=path.split("/")[0], Key="data/cat/", Body=b"")
    assert len(open_source(address, NAMED)) == 20


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("s3://key:hunter2@ward/x", r"^s3://\.\.\.: leave everything before an @"),
        ("https://h/x?X-Amz-Signature=hunter2", r"^https://\.\.\.: leave everything before"),
        ("simplecache::s3://ward/x", r"several protocols in one address"),
        ("simplecache::s3://a:hunter2@ward/x", r"^simplecache://\.\.\.: leave"),
        ("memory://", r"say of which bucket"),
        ("memory://none", r"^memory://none: there is no such file or folder$"),
        ("nonsense://ward/x", r"^nonsense:// cannot be read \(ValueError\)"),
        (
            "gs://ward/x",
            r"^gs:// is not read by what is installed: pip install gcsfs, or dpntk with",
        ),
    ],
)
def test_addresses_that_are_refused(
    memory: str, address: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    with pytest.raises(DataError, match=words) as refusal:
        open_source(address)
    assert "hunter2" not in str(refusal.value)


def test_an_address_that_became_a_path_is_recognised(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^s3:/ward/x: .* has two slashes, and is a text"):
        open_source(Path("s3://ward/x"))
    with pytest.raises(DataError, match=r"^s3://ward/x: not a path of this machine"):
        evaluate(tmp_path, test="s3://ward/x")
    with pytest.raises(DpntkError, match=r"^s3://ward/e\.h5: not a path of this machine"):
        load_embedding("s3://ward/e.h5")


def test_a_storage_that_says_too_little_is_refused(
    memory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of whose objects nobody could tell whether they have been replaced."""
    address = upload(write_npy(tmp_path / "data"), memory)
    monkeypatch.setattr(remote, "_VERSIONS", ())
    with pytest.raises(DataError, match=r"does not say how large it is and when it was changed"):
        open_source(address)


def test_a_storage_that_gives_no_parts_is_refused(
    memory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would send the whole object for every piece of it."""
    address = upload(write_npy(tmp_path / "data"), memory)
    cat_file = MemoryFileSystem.cat_file
    monkeypatch.setattr(MemoryFileSystem, "cat_file", lambda self, path, **_: cat_file(self, path))
    with pytest.raises(DataError, match=r"\.npy: its storage gives all of it and no parts: copy"):
        read(open_source(address))


def test_what_libraries_say_is_not_quoted(
    memory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may hold a token or a signed query; nor is it beside the error in a traceback."""
    address = upload(write_npy(tmp_path / "data"), memory)
    source = open_source(address)

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("https://storage/x?X-Amz-Signature=hunter2")

    monkeypatch.setattr(MemoryFileSystem, "cat_file", fail)
    with pytest.raises(DataError, match=r"x\.npy: cannot be read \(RuntimeError\)") as refusal:
        read(source)
    error: BaseException | None = refusal.value
    while error is not None:
        assert "hunter2" not in str(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def test_refusals_of_a_real_server(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = upload(write_npy(tmp_path / "data"), bucket)
    source = open_source(address)
    for missing in (f"{bucket}/none", "s3://no-such-bucket/data"):
        with pytest.raises(DataError, match=f"^{missing}: there is no such file or folder$"):
            open_source(missing)
    with monkeypatch.context() as patch:
        patch.setattr("moto.settings.INITIAL_NO_AUTH_ACTION_COUNT", 0)  # now it asks who is there
        with pytest.raises(DataError, match=f"^{address}: no permission to read it: check"):
            open_source(address)
        with pytest.raises(DataError, match=r"/x\.npy: no permission to read it: check"):
            read(source)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(DataError, match=r"cannot be read \(EndpointConnectionError\): check the"):
        open_source(address)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(DataError, match=r"cannot be read \(NoCredentialsError\): check the"):
        open_source(address)


def test_nothing_is_kept_on_this_machine(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = upload(KINDS["parquet shards"](tmp_path / "data"), bucket)
    for name in ("home", "temporary", "here"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.chdir(tmp_path / "here")
    embed(address, None, CLASSES)
    assert not [*(tmp_path / "home").iterdir(), *(tmp_path / "temporary").iterdir()]
    assert not [*(tmp_path / "here").iterdir()]
