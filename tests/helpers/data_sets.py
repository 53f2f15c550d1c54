"""The same small data set in every form that dpntk reads."""

from __future__ import annotations

import gzip
import io
import json
import struct
import tarfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from PIL import Image
from pyarrow import parquet

from dpntk.common.sources import Batch
from tests.conftest import SIDE, draw_records

RECORDS, LABELS = draw_records(20, seed=4)
IMAGES = RECORDS.reshape(-1, SIDE, SIDE)
CLASS_NAMES = ("cat", "dog", "eel")

Images = NDArray[np.uint8]
Labels = NDArray[np.int64]


def joined(batches: Iterable[Batch]) -> tuple[Images, Labels]:
    """The records and labels of all batches."""
    held = list(batches)
    return np.concatenate([b.records for b in held]), np.concatenate([b.labels for b in held])


def encoded(image: Images, kind: str = "PNG") -> bytes:
    content = io.BytesIO()
    Image.fromarray(image).save(content, kind)
    return content.getvalue()


def idx_bytes(array: NDArray[np.uint8]) -> bytes:
    header = struct.pack(">BBBB", 0, 0, 8, array.ndim)
    return header + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def write_idx(
    folder: Path, images: Images = IMAGES, labels: Labels = LABELS, prefix: str = "train"
) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / f"{prefix}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx_bytes(images)))
    (folder / f"{prefix}-labels-idx1-ubyte").write_bytes(idx_bytes(labels.astype(np.uint8)))
    return folder


def write_idx_shards(
    folder: Path,
    images: Images = IMAGES,
    labels: Labels = LABELS,
    ends: tuple[int, ...] = (7, 7, 16, 20),
) -> Path:
    """Shards of 7, 0, 9 and 4 records, numbered from 8 to 11, so that order is not spelling."""
    folder.mkdir(exist_ok=True)
    begin = 0
    for number, end in enumerate(ends, 8):
        part, part_labels = images[begin:end], labels[begin:end].astype(np.uint8)
        (folder / f"train-images-idx3-ubyte.{number}").write_bytes(idx_bytes(part))
        (folder / f"train-{number}-labels.gz").write_bytes(gzip.compress(idx_bytes(part_labels)))
        begin = end
    return folder


def write_npz(folder: Path, images: Images = IMAGES, labels: Labels = LABELS) -> Path:
    path = folder.with_suffix(".npz")
    np.savez(path, x=images, y=labels)
    return path


def write_packed_npz(folder: Path, images: Images = IMAGES, labels: Labels = LABELS) -> Path:
    path = folder.with_suffix(".npz")
    np.savez_compressed(path, x=images, y=labels)
    return path


def write_npy(folder: Path, images: Images = IMAGES, labels: Labels = LABELS) -> Path:
    folder.mkdir(exist_ok=True)
    np.save(folder / "x.npy", images)
    np.save(folder / "y.npy", labels)
    return folder


def write_folder(folder: Path, images: Images = IMAGES, labels: Labels = LABELS) -> Path:
    """Class by class, so that records sorted by label are in the source's order."""
    for index, (image, label) in enumerate(zip(images, labels.tolist(), strict=True)):
        part = folder / CLASS_NAMES[label]
        part.mkdir(parents=True, exist_ok=True)
        (part / f"{index:02}.PNG").write_bytes(encoded(image))
    return folder


def write_parquet(
    path: Path,
    images: object,
    labels: Sequence[object] | Labels | pa.Array = LABELS,
    *,
    rows: int = 6,
    names: tuple[str, ...] | None = None,
) -> Path:
    """One file with the columns image, label and id, in row groups of `rows` records."""
    columns = {"id": [f"n{i}" for i in range(len(labels))], "image": images, "label": labels}
    table = pa.table(columns)
    if names is not None:
        features = {"label": {"names": list(names), "_type": "ClassLabel"}}
        document = {"info": {"features": features}}
        table = table.replace_schema_metadata({"huggingface": json.dumps(document)})
    parquet.write_table(table, path, row_group_size=rows, data_page_size=256)
    return path


def write_parquet_bytes(folder: Path, images: Images = IMAGES, labels: Labels = LABELS) -> Path:
    path = folder.with_suffix(".parquet")
    return write_parquet(path, [encoded(image) for image in images], labels)


def write_parquet_lists(folder: Path, images: Images = IMAGES, labels: Labels = LABELS) -> Path:
    return write_parquet(
        folder.with_suffix(".parquet"), fixed_lists(images.reshape(len(images), -1)), labels
    )


def write_parquet_rows(folder: Path, images: Images = IMAGES, labels: Labels = LABELS) -> Path:
    """Lists in lists, as `datasets` writes arrays."""
    kind = pa.uint8()
    for _ in images.shape[1:]:
        kind = pa.list_(kind)
    return write_parquet(folder.with_suffix(".parquet"), pa.array(images.tolist(), kind), labels)


def fixed_lists(values: NDArray[np.generic]) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])


def write_parquet_shards(folder: Path, images: Images = IMAGES, labels: Labels = LABELS) -> Path:
    """A folder of files as published data sets have it, images as structs."""
    folder.mkdir(exist_ok=True)
    structs = [{"bytes": encoded(image), "path": f"{i}.png"} for i, image in enumerate(images)]
    for number, (begin, end) in enumerate([(0, 9), (9, 20)]):
        write_parquet(
            folder / f"train-{number:05}-of-00002.parquet", structs[begin:end], labels[begin:end]
        )
    return folder


Member = tuple[str, bytes]


def write_tar(path: Path, members: Iterable[Member]) -> Path:
    with tarfile.open(path, "w") as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def tar_members(images: Images = IMAGES, labels: Labels = LABELS) -> list[Member]:
    """Labels in turn as digits and as JSON, and a member of no use."""
    members: list[Member] = [("README", b"to be passed over")]
    for index, (image, label) in enumerate(zip(images, labels.tolist(), strict=True)):
        key = f"some.dir/{index:04}"
        if index % 2:
            members.append((f"{key}.json", json.dumps({"label": label}).encode()))
        members += [(f"{key}.PNG", encoded(image)), (f"{key}.seg.png", b"also to be passed over")]
        if not index % 2:
            members.append((f"{key}.cls", f"{label}\n".encode()))
    return members


def write_tar_file(folder: Path, images: Images = IMAGES, labels: Labels = LABELS) -> Path:
    return write_tar(folder.with_suffix(".tar"), tar_members(images, labels))


def write_tar_shards(folder: Path, images: Images = IMAGES, labels: Labels = LABELS) -> Path:
    folder.mkdir(exist_ok=True)
    for number, (begin, end) in enumerate([(0, 11), (11, 11), (11, 20)]):
        members = tar_members(images[begin:end], labels[begin:end])
        write_tar(folder / f"shard-{number:06}.tar", members)
    return folder


Writer = Callable[..., Path]
KINDS: dict[str, Writer] = {
    "idx": write_idx,
    "idx shards": write_idx_shards,
    "npz": write_npz,
    "compressed npz": write_packed_npz,
    "npy": write_npy,
    "folder": write_folder,
    "parquet bytes": write_parquet_bytes,
    "parquet lists": write_parquet_lists,
    "parquet rows": write_parquet_rows,
    "parquet shards": write_parquet_shards,
    "tar": write_tar_file,
    "tar shards": write_tar_shards,
}
"""Each writes the records, or others that it is given, to a path like the one that it is given."""
