"""Hostile release files: each is a function that turns an honest file into an attack.

`python -m tests.attacks.releases.hostile RELEASE FOLDER` makes them all from an unsigned release of
67x1 numbers, to be tried by hand: `dpntk inspect FOLDER/bomb.h5 --allow-unsigned`.
"""

from __future__ import annotations

import io
import struct
import sys
from pathlib import Path

import h5py
import numpy as np

from dpntk.common.storage.container import RELEASE_MAGIC, USER_BLOCK, user_block
from tests.attacks.attacks import HUGE, SECRET, Attacks

ATTACKS = Attacks()
attack, edit = ATTACKS.attack, ATTACKS.edit


def foreign() -> bytes:
    """Some other HDF5 file."""
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        file["embedding"] = np.ones((4, 4))
    return buffer.getvalue()


# Superblocks where HDF5 looks for them


@attack("not a dpntk release")
def superblock_at_0(honest: bytes, secret: Path) -> bytes:
    return foreign()


@attack("groups and datasets are not those of a release")
def superblock_at_512(honest: bytes, secret: Path) -> bytes:
    return honest[:USER_BLOCK] + foreign()


@attack("no HDF5 file at byte 512")
def superblock_at_1024(honest: bytes, secret: Path) -> bytes:
    return honest[:USER_BLOCK] + bytes(512) + foreign()


@attack("no HDF5 file at byte 512")
def superblock_at_2048(honest: bytes, secret: Path) -> bytes:
    return honest[:USER_BLOCK] + bytes(1536) + foreign()


@attack("no HDF5 file at byte 512")
def honest_contents_at_1024(honest: bytes, secret: Path) -> bytes:
    return honest[:USER_BLOCK] + bytes(512) + honest[USER_BLOCK:]


# Reading and expanding


@attack("not stored in one plain piece")
def external_storage(honest: bytes, secret: Path) -> bytes:
    buffer = io.BytesIO(honest)
    with h5py.File(buffer, "r+") as file:
        shape = file["embedding"].shape
        del file["embedding"]
        file.create_dataset(
            "embedding", shape, np.float32, external=[(str(secret), 0, h5py.h5f.UNLIMITED)]
        )
    return buffer.getvalue()


@attack("not stored in one plain piece")
def virtual_data_set(honest: bytes, secret: Path) -> bytes:
    buffer = io.BytesIO(honest)
    with h5py.File(buffer, "r+", libver=("earliest", "v110")) as file:
        shape = file["embedding"].shape
        del file["embedding"]
        layout = h5py.VirtualLayout(shape, np.float32)
        layout[...] = h5py.VirtualSource(str(secret), "embedding", shape)
        file.create_virtual_dataset("embedding", layout)
    return buffer.getvalue()


@attack("is a link")
def external_link(honest: bytes, secret: Path) -> bytes:
    buffer = io.BytesIO(honest)
    with h5py.File(buffer, "r+") as file:
        del file["embedding"]
        file["embedding"] = h5py.ExternalLink(str(secret), "/embedding")
    return buffer.getvalue()


@edit("is a link")
def soft_link(file: h5py.File) -> None:
    file.move("embedding", "feature_map/elsewhere")
    file["embedding"] = h5py.SoftLink("/feature_map/elsewhere")


@edit("embedding has another name as well")
def hard_link_to_the_matrix(file: h5py.File) -> None:
    file["feature_map/more"] = file["embedding"]


@edit("feature_map has another name as well")
def hard_link_in_a_circle(file: h5py.File) -> None:
    file["feature_map/hidden2"] = file["feature_map"]


@edit("not stored in one plain piece")
def bomb(file: h5py.File) -> None:
    del file["embedding"]
    file.create_dataset(
        "embedding", (HUGE, 1), np.float32, chunks=(1 << 22, 1), compression="gzip", fillvalue=1.0
    )


@edit("not as large as it says")
def declared_64_gib(file: h5py.File) -> None:
    del file["embedding"]
    file.create_dataset("embedding", (HUGE, 1), np.float32)


@attack("")
def header_says_64_gib(honest: bytes, secret: Path) -> bytes:
    small = struct.pack("<QQ", 67, 1)
    assert small in honest
    return honest.replace(small, struct.pack("<QQ", HUGE, 1))


@edit("attribute sigma is not what a release holds there")
def huge_attribute(file: h5py.File) -> None:
    del file.attrs["sigma"]
    file.attrs.create("sigma", np.zeros(8000))


@edit("attribute statement is not what a release holds there")
def huge_text(file: h5py.File) -> None:
    file.attrs["statement"] = "x" * (5 << 20)


@edit("attribute sigma is not what a release holds there")
def object_reference(file: h5py.File) -> None:
    file.attrs["sigma"] = file["embedding"].ref


@edit("attribute sigma is not what a release holds there")
def region_reference(file: h5py.File) -> None:
    file.attrs["sigma"] = file["embedding"].regionref[:2]


@edit("class_weights does not hold float64")
def references_as_data(file: h5py.File) -> None:
    reference = file["embedding"].ref
    del file["class_weights"]
    file.create_dataset("class_weights", data=[reference], dtype=h5py.ref_dtype)


@edit("too many things")
def many_groups(file: h5py.File) -> None:
    for number in range(1000):
        file.create_group(f"g{number}")


# Contents off the list


@edit("groups and datasets are not those of a release")
def unknown_group(file: h5py.File) -> None:
    file.create_group("extra")


@edit("groups and datasets are not those of a release")
def missing_matrix(file: h5py.File) -> None:
    del file["embedding"]


@edit("attributes are not those of a release")
def unknown_attribute(file: h5py.File) -> None:
    file.attrs["extra"] = 1


@edit("class_weights has attributes")
def attribute_of_a_data_set(file: h5py.File) -> None:
    file["class_weights"].attrs["extra"] = 1


@edit("feature_map has attributes")
def attribute_of_a_group(file: h5py.File) -> None:
    file["feature_map"].attrs["extra"] = 1


@edit("attributes are not those of a release")
def attribute_of_the_other_adjacency(file: h5py.File) -> None:
    file.attrs["epsilon_replace_one"] = 1.0


@edit("attributes are not those of a release")
def missing_sigma(file: h5py.File) -> None:
    del file.attrs["sigma"]


@edit("attribute sigma is not what a release holds there")
def negative_sigma(file: h5py.File) -> None:
    file.attrs["sigma"] = -1.0


@edit("attribute epsilon is not what a release holds there")
def epsilon_as_text(file: h5py.File) -> None:
    file.attrs["epsilon"] = "1"


@edit("attribute epsilon is not what a release holds there")
def epsilon_of_the_other_byte_order(file: h5py.File) -> None:
    file.attrs.create("epsilon", 1.0, dtype=">f8")


@edit("attribute epsilon is not what a release holds there")
def epsilon_of_a_named_type(file: h5py.File) -> None:
    file["hidden"] = np.dtype("<f8")
    file.attrs.create("epsilon", 1.0, dtype=file["hidden"])
    del file["hidden"]


@edit("attribute epsilon is not what a release holds there")
def a_list_of_one_epsilon(file: h5py.File) -> None:
    file.attrs.create("epsilon", [1.0])


@edit("attribute m is not what a release holds there")
def a_number_of_records_in_32_bits(file: h5py.File) -> None:
    file.attrs.create("m", 20, dtype="<i4")


@edit("attribute statement is not what a release holds there")
def text_of_a_fixed_length(file: h5py.File) -> None:
    file.attrs.create("statement", "x", dtype=h5py.string_dtype("utf-8", 1))


@edit("attribute statement is not what a release holds there")
def text_of_another_encoding(file: h5py.File) -> None:
    file.attrs.create("statement", "x", dtype=h5py.string_dtype("ascii"))


@edit("attribute epsilon is not what a release holds there")
def epsilon_not_a_number(file: h5py.File) -> None:
    file.attrs["epsilon"] = np.nan


@edit("attribute sigma is not what a release holds there")
def infinite_sigma(file: h5py.File) -> None:
    file.attrs["sigma"] = np.inf


@edit("format version 2, which another version of dpntk reads; this one reads version 1")
def format_of_the_future(file: h5py.File) -> None:
    file.attrs["format_version"] = np.int64(2)


@attack("a release of format 2, which another version of dpntk reads")
def first_line_of_the_future(honest: bytes, secret: Path) -> bytes:
    return user_block(b"dpntk release 2\n") + honest[USER_BLOCK:]


@edit("adjacency is neither replace-one nor add-remove")
def unknown_adjacency(file: h5py.File) -> None:
    file.attrs["adjacency"] = "bounded"


@edit("holds values that are not finite")
def not_a_number(file: h5py.File) -> None:
    file["embedding"][1, 0] = np.nan


@edit("holds values that are not finite")
def infinity(file: h5py.File) -> None:
    file["feature_map/readout"][0] = np.inf


@edit("embedding does not hold float32")
def matrix_of_float64(file: h5py.File) -> None:
    values = file["embedding"][...].astype(np.float64)
    del file["embedding"]
    file["embedding"] = values


@edit("embedding does not hold float32")
def matrix_of_the_other_byte_order(file: h5py.File) -> None:
    values = file["embedding"][...].astype(">f4")
    del file["embedding"]
    file["embedding"] = values


@edit("embedding does not hold float32")
def matrix_of_a_named_type(file: h5py.File) -> None:
    values = file["embedding"][...]
    del file["embedding"]
    file["hidden"] = np.dtype("<f4")
    file.create_dataset("embedding", data=values, dtype=file["hidden"])
    del file["hidden"]


@edit("is not a dataset")
def group_among_the_weights(file: h5py.File) -> None:
    file.create_group("feature_map/more")


@edit("holds something with an odd name")
def weight_with_an_odd_name(file: h5py.File) -> None:
    file["feature_map/two words"] = np.ones(1, np.float32)


@edit("shape does not follow from the feature map")
def turned_matrix(file: h5py.File) -> None:
    values = file["embedding"][...].T
    del file["embedding"]
    file["embedding"] = values


@edit("has a shape that a release does not have there")
def matrix_of_five_dimensions(file: h5py.File) -> None:
    values = file["embedding"][...].reshape(1, 1, 1, -1, 1)
    del file["embedding"]
    file["embedding"] = values


@edit("not as large as it says")
def empty_matrix(file: h5py.File) -> None:
    del file["embedding"]
    file["embedding"] = np.zeros((0, 1), np.float32)


@edit("has a shape that a release does not have there")
def a_single_number(file: h5py.File) -> None:
    del file["embedding"]
    file["embedding"] = np.float32(1)


@edit("class weights are not positive shares of 1")
def weights_that_are_no_shares(file: h5py.File) -> None:
    file["class_weights"][...] = [0.5]


@edit("weight_1 is not on its grid")
def weights_off_their_grid(file: h5py.File) -> None:
    file["feature_map/weight_1"][...] *= np.float32(1.0001)


@edit("damaged")
def schema_that_is_no_json(file: h5py.File) -> None:
    file.attrs["schema"] = "[" * 100_000


@edit("damaged")
def schema_of_another_kind(file: h5py.File) -> None:
    file.attrs["schema"] = '{"kind":"table"}'


# Contradictions


@edit("epsilon does not follow from sigma, the sensitivity and delta")
def smaller_epsilon(file: h5py.File) -> None:
    file.attrs["epsilon"] = file.attrs["total_epsilon"] = 0.9


@edit("epsilon does not follow from sigma, the sensitivity and delta")
def smaller_delta(file: h5py.File) -> None:
    file.attrs["delta"] = 1e-6


@edit("epsilon does not follow from sigma, the sensitivity and delta")
def larger_multiplier(file: h5py.File) -> None:
    for name in ("noise_multiplier", "sigma"):
        file.attrs[name] *= 2


@edit("sigma is smaller than the noise multiplier and the sensitivity demand")
def half_the_sigma(file: h5py.File) -> None:
    file.attrs["sigma"] /= 2


@edit("the sensitivity is not that of its feature map and adjacency")
def half_the_sensitivity(file: h5py.File) -> None:
    for name in ("sensitivity", "sigma"):
        file.attrs[name] /= 2


@edit("the sensitivity is not that of its feature map and adjacency")
def no_weight_of_the_counts(file: h5py.File) -> None:
    file.attrs["count_weight"] = 0.1


@edit("the grid is out of range")
def another_grid(file: h5py.File) -> None:
    file.attrs["grid"] *= 1.7


@edit("is not a whole number of grid units")
def sigma_between_two_units(file: h5py.File) -> None:
    file.attrs["sigma"] += file.attrs["grid"] / 2


@edit("a first release has no other total than itself")
def another_total(file: h5py.File) -> None:
    file.attrs["total_epsilon"] = 0.5


@edit("the number of records is exact under replace-one")
def count_that_claims_noise(file: h5py.File) -> None:
    file.attrs["m_is_exact"] = np.int64(0)


@edit("the number of records is out of range")
def no_records(file: h5py.File) -> None:
    file.attrs["m"] = np.int64(0)


@edit("noise and epsilon contradict each other")
def no_noise(file: h5py.File) -> None:
    file.attrs["sigma"] = file.attrs["noise_multiplier"] = 0.0


@edit("disagree about its being private")
def infinite_epsilon(file: h5py.File) -> None:
    file.attrs["epsilon"] = file.attrs["total_epsilon"] = np.inf


@attack("disagree about its being private")
def not_private_by_its_first_line(honest: bytes, secret: Path) -> bytes:
    return user_block(b"dpntk release 1: NOT PRIVATE, made without noise\n") + honest[USER_BLOCK:]


def write_all(honest: bytes, folder: Path) -> None:
    """Write every hostile file, and the file that some of them point to."""
    folder.mkdir(parents=True, exist_ok=True)
    secret = folder / "secret.bin"
    secret.write_bytes(SECRET)
    assert honest.startswith(RELEASE_MAGIC)
    for name, entry in ATTACKS.items():
        (folder / f"{name}.h5").write_bytes(entry.make(honest, secret))


if __name__ == "__main__":
    write_all(Path(sys.argv[1]).read_bytes(), Path(sys.argv[2]))
