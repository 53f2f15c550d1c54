"""Hostile embeddings, as another site might send one to be merged.

`python -m tests.attacks.files.hostile_embeddings EMBEDDING FOLDER` makes them all from an honest
one, to be tried by hand: `dpntk merge mine.h5 FOLDER/external_storage.h5`.
"""

from __future__ import annotations

import io
import json
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from dpntk.common.storage.canonical_json import canonical_json, digest
from dpntk.common.storage.container import EMBEDDING_MAGIC, USER_BLOCK
from tests.attacks.attacks import HUGE, SECRET, Attacks

EMBEDDING_ATTACKS = Attacks()
attack, edit = EMBEDDING_ATTACKS.attack, EMBEDDING_ATTACKS.edit

NOT_PLAIN = "not stored in one plain piece"


def stored_as(
    file: h5py.File, name: str, values: NDArray[Any] | None = None, **how: object
) -> None:
    """Store a dataset in another way than it was; other values too, if they are given."""
    values = file[name][...] if values is None else values
    del file[name]
    file.create_dataset(name, data=values, **how)


def replanned(file: h5py.File, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the plan, and its digest with it."""
    plan = json.loads(file.attrs["plan"])
    change(plan)
    file.attrs["plan"] = canonical_json(plan)
    file.attrs["plan_digest"] = digest(plan)


def on_the_grid(**numbers: object) -> Callable[[dict[str, Any]], None]:
    """A plan with other numbers in its grid."""
    return lambda plan: plan["grid"].update(numbers)


# Reaching out of the file


@attack(NOT_PLAIN)
def external_storage(honest: bytes, secret: Path) -> bytes:
    """A file of the one who merges becomes the sums, and comes back out of the release."""
    buffer = io.BytesIO(honest)
    with h5py.File(buffer, "r+") as file:
        shape = file["sums"].shape
        del file["sums"]
        file.create_dataset(
            "sums", shape, np.int64, external=[(str(secret), 0, h5py.h5f.UNLIMITED)]
        )
    return buffer.getvalue()


@attack(NOT_PLAIN)
def external_storage_of_the_weights(honest: bytes, secret: Path) -> bytes:
    buffer = io.BytesIO(honest)
    with h5py.File(buffer, "r+") as file:
        shape = file["feature_map/readout"].shape
        del file["feature_map/readout"]
        file.create_dataset(
            "feature_map/readout", shape, np.float32, external=[(str(secret), 0, 1 << 12)]
        )
    return buffer.getvalue()


@attack("sums is a link")
def external_link(honest: bytes, secret: Path) -> bytes:
    """To the sums of the one who merges, which would count twice."""
    secret.with_name("mine.h5").write_bytes(honest)
    buffer = io.BytesIO(honest)
    with h5py.File(buffer, "r+") as file:
        del file["sums"]
        file["sums"] = h5py.ExternalLink(str(secret.with_name("mine.h5")), "/sums")
        file["counts"][...] = file["counts"][...][::-1]
    return buffer.getvalue()


@attack("feature_map is a link")
def external_link_to_a_group(honest: bytes, secret: Path) -> bytes:
    secret.with_name("mine.h5").write_bytes(honest)
    buffer = io.BytesIO(honest)
    with h5py.File(buffer, "r+") as file:
        del file["feature_map"]
        file["feature_map"] = h5py.ExternalLink(str(secret.with_name("mine.h5")), "/feature_map")
    return buffer.getvalue()


@attack(NOT_PLAIN)
def virtual_data_set(honest: bytes, secret: Path) -> bytes:
    secret.with_name("mine.h5").write_bytes(honest)
    buffer = io.BytesIO(honest)
    with h5py.File(buffer, "r+", libver=("earliest", "v110")) as file:
        shape = file["sums"].shape
        del file["sums"]
        layout = h5py.VirtualLayout(shape, np.int64)
        layout[...] = h5py.VirtualSource(str(secret.with_name("mine.h5")), "sums", shape)
        file.create_virtual_dataset("sums", layout)
    return buffer.getvalue()


# Several names for the same bytes


@edit("counts is a link")
def soft_link(file: h5py.File) -> None:
    file.move("counts", "feature_map/elsewhere")
    file["counts"] = h5py.SoftLink("/feature_map/elsewhere")


@edit("has another name as well")
def hard_link(file: h5py.File) -> None:
    file["feature_map/more"] = file["feature_map/readout"]


@edit("feature_map has another name as well")
def hard_link_in_a_circle(file: h5py.File) -> None:
    file["feature_map/more"] = file["feature_map"]


@attack("share their bytes")
def data_sets_at_one_place(honest: bytes, secret: Path) -> bytes:
    """Under two names, each with a header of its own: the address in one is changed."""
    buffer = io.BytesIO(honest)
    with h5py.File(buffer, "r+", libver=("earliest", "v110")) as file:
        file.create_dataset("shards", data=np.zeros((1, 32), np.uint8))
        addresses = [file[name].id.get_offset() - USER_BLOCK for name in ("shards", "sums")]
    old, new = (struct.pack("<QQ", address, 32) for address in addresses)
    assert buffer.getvalue().count(old) == 1
    return buffer.getvalue().replace(old, new)


# More than is there


@edit(NOT_PLAIN)
def bomb(file: h5py.File) -> None:
    """A few bytes that unpack to 128 GiB."""
    del file["sums"]
    file.create_dataset("sums", (HUGE, 1), np.int64, chunks=(1 << 19, 1), compression="gzip")
    file["sums"][0, 0] = 1


@edit("sums is not as large as it says")
def declared_128_gib(file: h5py.File) -> None:
    del file["sums"]
    file.create_dataset("sums", (HUGE, 1), np.int64)


@attack("")
def header_says_384_gib(honest: bytes, secret: Path) -> bytes:
    with h5py.File(io.BytesIO(honest)) as file:
        shape = struct.pack("<QQ", *file["sums"].shape)
        changed = struct.pack("<QQ", HUGE, file["sums"].shape[1])
    assert shape in honest
    return honest.replace(shape, changed)


@edit("sums is not as large as it says")
def empty_sums(file: h5py.File) -> None:
    stored_as(file, "sums", np.zeros((0, 3), np.int64))


# Other storage


@edit(NOT_PLAIN)
def compressed(file: h5py.File) -> None:
    stored_as(file, "sums", compression="gzip")


@edit(NOT_PLAIN)
def in_chunks(file: h5py.File) -> None:
    stored_as(file, "sums", chunks=(8, 3))


@edit(NOT_PLAIN)
def with_a_checksum(file: h5py.File) -> None:
    stored_as(file, "counts", fletcher32=True, chunks=(3,))


@edit("counts has a shape that an embedding does not have there")
def that_may_grow(file: h5py.File) -> None:
    stored_as(file, "counts", maxshape=(None,), chunks=(3,))


@edit(NOT_PLAIN)
def within_its_header(file: h5py.File) -> None:
    counts = file["counts"][...]
    del file["counts"]
    how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    how.set_layout(h5py.h5d.COMPACT)
    space = h5py.h5s.create_simple(counts.shape)
    made = h5py.h5d.create(file.id, b"counts", h5py.h5t.STD_I64LE, space, how)
    made.write(h5py.h5s.ALL, h5py.h5s.ALL, counts)


# Other types


@edit("sums does not hold int64")
def other_bytes_first(file: h5py.File) -> None:
    stored_as(file, "sums", file["sums"][...].astype(">i8"))


@edit("sums does not hold int64")
def without_a_sign(file: h5py.File) -> None:
    stored_as(file, "sums", file["sums"][...].astype(np.uint64))


@edit("sums does not hold int64")
def floats(file: h5py.File) -> None:
    stored_as(file, "sums", file["sums"][...].astype(np.float64))


@edit("sums does not hold int64")
def names_of_integers(file: h5py.File) -> None:
    stored_as(file, "sums", dtype=h5py.enum_dtype({"A": 0, "B": 1}, np.int64))


@edit("counts does not hold int64")
def integers_of_63_bits(file: h5py.File) -> None:
    counts = file["counts"][...]
    del file["counts"]
    kind = h5py.h5t.STD_I64LE.copy()
    kind.set_precision(63)
    space = h5py.h5s.create_simple(counts.shape)
    made = h5py.h5d.create(file.id, b"counts", kind, space)
    made.write(h5py.h5s.ALL, h5py.h5s.ALL, counts)


@edit("counts does not hold int64")
def type_with_a_name(file: h5py.File) -> None:
    counts = file["counts"][...]
    del file["counts"]
    kind = h5py.h5t.STD_I64LE.copy()
    kind.commit(file["feature_map"].id, b"kind")
    space = h5py.h5s.create_simple(counts.shape)
    made = h5py.h5d.create(file.id, b"counts", kind, space)
    made.write(h5py.h5s.ALL, h5py.h5s.ALL, counts)
    del file["feature_map/kind"]


@edit("counts does not hold int64")
def references_as_data(file: h5py.File) -> None:
    reference = file["sums"].ref
    stored_as(file, "counts", np.array([reference] * 3, h5py.ref_dtype), dtype=h5py.ref_dtype)


@edit("counts does not hold int64")
def pieces_of_any_length(file: h5py.File) -> None:
    pieces = np.array([np.arange(3)] * 3 + [None], object)[:3]
    stored_as(file, "counts", pieces, dtype=h5py.vlen_dtype(np.int64))


# Attributes


@edit("its attributes are not those of an embedding")
def unknown_attribute(file: h5py.File) -> None:
    file.attrs["extra"] = 1


@edit("sums has attributes")
def attribute_of_a_data_set(file: h5py.File) -> None:
    file["sums"].attrs["extra"] = 1


@edit("feature_map has attributes")
def attribute_of_a_group(file: h5py.File) -> None:
    file["feature_map"].attrs["extra"] = 1


@edit("attribute plan is not what an embedding holds there")
def huge_plan(file: h5py.File) -> None:
    file.attrs["plan"] = "[" * (5 << 20)


@edit("attribute plan is not what an embedding holds there")
def several_plans(file: h5py.File) -> None:
    plan = file.attrs["plan"]
    file.attrs.create("plan", [plan, plan], dtype=h5py.string_dtype())


@edit("attribute ledger is not what an embedding holds there")
def text_of_one_length(file: h5py.File) -> None:
    ledger = file.attrs["ledger"].encode()
    file.attrs.create("ledger", np.array(ledger, f"S{len(ledger)}"))


@edit("attribute run is not what an embedding holds there")
def nothing_for_a_text(file: h5py.File) -> None:
    file.attrs["run"] = h5py.Empty(h5py.string_dtype())


@edit("damaged")
def text_that_is_no_text(file: h5py.File) -> None:
    file.attrs.create("run", b"\xff\xfe", dtype=h5py.string_dtype())


@edit("attribute records is not what an embedding holds there")
def records_in_parts(file: h5py.File) -> None:
    file.attrs["records"] = float(file.attrs["records"])


@edit("attribute records is not what an embedding holds there")
def object_reference(file: h5py.File) -> None:
    file.attrs["records"] = file["sums"].ref


@edit("attribute records is not what an embedding holds there")
def region_reference(file: h5py.File) -> None:
    file.attrs["records"] = file["sums"].regionref[:2]


# Other contents


@edit("groups and datasets are not those of an embedding")
def unknown_group(file: h5py.File) -> None:
    file.create_group("extra")


@edit("groups and datasets are not those of an embedding")
def without_counts(file: h5py.File) -> None:
    del file["counts"]


@edit("too many things")
def many_groups(file: h5py.File) -> None:
    for number in range(1000):
        file.create_group(f"g{number}")


@edit("is not a dataset")
def group_for_a_weight(file: h5py.File) -> None:
    file.create_group("feature_map/more")


@edit("is not a group")
def data_set_for_a_group(file: h5py.File) -> None:
    del file["feature_map"]
    file["feature_map"] = np.zeros(3, np.float32)


@edit("something with an odd name")
def name_that_is_none(file: h5py.File) -> None:
    file["feature_map/\x1b[2J"] = np.zeros(3, np.float32)


@edit("front: not one that this dpntk knows")
def weight_that_nobody_needs(file: h5py.File) -> None:
    file["feature_map/more"] = np.zeros(3, np.float32)


@edit("the sums do not have the shape")
def turned_sums(file: h5py.File) -> None:
    stored_as(file, "sums", np.ascontiguousarray(file["sums"][...].T))


@edit("the sums do not have the shape")
def more_classes_than_there_are(file: h5py.File) -> None:
    stored_as(file, "sums", np.zeros((file["sums"].shape[0], 4), np.int64))


@edit("the shards' digests are not those of embeddings")
def digests_of_no_length(file: h5py.File) -> None:
    file["shards"] = np.zeros((1, 7), np.uint8)


# First 512 bytes


@attack("there is no HDF5 file at byte 512")
def honest_contents_at_1024(honest: bytes, secret: Path) -> bytes:
    return honest[:USER_BLOCK] + bytes(USER_BLOCK) + honest[USER_BLOCK:]


@attack("more than the first line")
def more_before_the_contents(honest: bytes, secret: Path) -> bytes:
    return (
        EMBEDDING_MAGIC
        + b"#!/bin/sh\n".ljust(USER_BLOCK - len(EMBEDDING_MAGIC), b"\0")
        + (honest[USER_BLOCK:])
    )


@attack("format version 2, which another version of dpntk reads; this one reads version 1")
def format_of_the_future(honest: bytes, secret: Path) -> bytes:
    buffer = io.BytesIO(honest)
    with h5py.File(buffer, "r+", libver=("earliest", "v110")) as file:
        file.attrs["format_version"] = np.int64(2)
    return buffer.getvalue()


# Figures that nothing honest has


@edit("not a grid")
def shift_of_a_billion(file: h5py.File) -> None:
    """A number of 125 MB; of a trillion, and memory ends."""
    replanned(file, on_the_grid(shift=10**9))


@edit("not a grid")
def no_shift(file: h5py.File) -> None:
    replanned(file, on_the_grid(shift=-1))


@edit("plan digest does not match the plan")
def plan_that_somebody_has_changed(file: h5py.File) -> None:
    """A grid with room for fewer records, on which the sums are others."""
    digest_of_the_honest_one = file.attrs["plan_digest"]
    replanned(file, on_the_grid(capacity=1000))
    file.attrs["plan_digest"] = digest_of_the_honest_one


@edit("64 bits do not hold")
def capacity_beyond_64_bits(file: h5py.File) -> None:
    replanned(file, on_the_grid(capacity=2**70))


@edit("not a grid")
def capacity_that_is_a_text(file: h5py.File) -> None:
    replanned(file, on_the_grid(capacity="1"))


@edit("disagree about a record's size")
def records_of_another_size(file: h5py.File) -> None:
    replanned(file, lambda plan: plan["schema"].update(side=16))


@edit("disagree about the levels")
def levels_of_something_else(file: h5py.File) -> None:
    replanned(file, on_the_grid(levels=1))


@edit("impossible class counts")
def counts_that_overflow(file: h5py.File) -> None:
    """Their sum in 64 bits is the number of records."""
    records = int(file.attrs["records"])
    file["counts"][...] = [2**63 - 1, 2**63 - 1, records + 2]


@edit("no record was added up")
def sums_over_nothing(file: h5py.File) -> None:
    """Delta is compared with one over the number of records."""
    file["counts"][...] = 0
    file["sums"][...] = 0
    file.attrs["records"] = 0


@edit("sums that so many records cannot have")
def sums_beyond_all_records(file: h5py.File) -> None:
    file["sums"][0, 0] = 2**63 - 1


@edit("damaged")
def plan_in_a_plan(file: h5py.File) -> None:
    file.attrs["plan"] = "[" * 100_000


@edit("damaged")
def plan_that_is_a_list(file: h5py.File) -> None:
    file.attrs["plan"] = "[]"


@edit("damaged")
def feature_map_that_is_a_list(file: h5py.File) -> None:
    replanned(file, lambda plan: plan.update(feature_map=[]))


@edit("damaged")
def integer_of_5000_digits(file: h5py.File) -> None:
    plan = str(file.attrs["plan"])
    file.attrs["plan"] = plan.replace('"shift":', '"shift":' + "9" * 5000)


def entered(file: h5py.File, **changes: object) -> None:
    """Put a release into the ledger."""
    entry = {
        "release_id": "ab" * 16,
        "created": "2026-01-01T00:00:00+00:00",
        "epsilon": 1.0,
        "delta": 1e-5,
        "adjacency": "replace-one",
        "multiplier": 4.0,
        "multiplier_replace_one": 4.0,
        **changes,
    }
    file.attrs["ledger"] = json.dumps({"entries": [entry], "ceiling": None})


@edit("impossible noise")
def noise_whose_square_is_nothing(file: h5py.File) -> None:
    entered(file, multiplier=1e-300, multiplier_replace_one=1e-300)


@edit("64 bits do not hold")
def epsilon_of_400_digits(file: h5py.File) -> None:
    entered(file, epsilon=10**400)


@edit("a number that is not finite")
def epsilon_that_is_no_number(file: h5py.File) -> None:
    entered(file, epsilon=float("nan"))


@edit("64 bits do not hold")
def ceiling_of_400_digits(file: h5py.File) -> None:
    ceiling = {"epsilon": 10**400, "delta": 1e-5}
    file.attrs["ledger"] = json.dumps({"entries": [], "ceiling": ceiling})


@edit("too many ceilings")
def ceilings_that_take_hours(file: h5py.File) -> None:
    part = '{"ceiling":{"delta":1e-5,"epsilon":1.0},"entries":[]}'
    file.attrs["ledger"] = f'{{"ceiling":null,"entries":[],"parts":[{",".join([part] * 50_000)}]}}'


@edit("too many lists or tables in one another")
def ledger_in_a_ledger(file: h5py.File) -> None:
    ledger = '{"ceiling":null,"entries":[]}'
    for _ in range(300):
        ledger = f'{{"ceiling":null,"entries":[],"parts":[{ledger}]}}'
    file.attrs["ledger"] = ledger


def write_all(honest: bytes, folder: Path) -> None:
    """Write every hostile file, and the files that some of them point to."""
    folder.mkdir(parents=True, exist_ok=True)
    secret = folder / "secret.bin"
    secret.write_bytes(SECRET)
    for name, entry in EMBEDDING_ATTACKS.items():
        (folder / f"{name}.h5").write_bytes(entry.make(honest, secret))


if __name__ == "__main__":
    write_all(Path(sys.argv[1]).read_bytes(), Path(sys.argv[2]))
