"""docs/reference/release-format.md says what the program does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dpntk.common.adjacency import Adjacency
from dpntk.common.features.ntk.architectures import ARCHITECTURES, takes_vectors
from dpntk.common.storage.container import USER_BLOCK
from dpntk.release.file.format import ATTRIBUTES, attributes_of
from dpntk.release.file.user_block import read_user_block
from tests.helpers.networks import IMAGE, VECTOR, paper

DOCUMENT = (Path(__file__).parents[2] / "docs/reference/release-format.md").read_text()


def test_every_attribute_is_described() -> None:
    table = DOCUMENT.split("| attribute |")[1].split("##")[0]
    described = set(re.findall(r"`([a-z_]+)`", "\n".join(re.findall(r"^\| (.*?) \|", table, re.M))))
    assert described == set(ATTRIBUTES) | set(attributes_of(Adjacency.ADD_REMOVE))


def test_the_example_is_a_user_block() -> None:
    rows = re.findall(r"^([0-9a-f]{8})  ([0-9a-f ]+)  \|", DOCUMENT, re.M)
    content = bytearray(USER_BLOCK)  # rows of zeros are left out
    for offset, row in rows:
        values = bytes.fromhex(row)
        content[int(offset, 16) : int(offset, 16) + len(values)] = values
    block = read_user_block(bytes(content))
    assert block.private
    assert block.signature is not None
    assert block.signature.key.fingerprint in DOCUMENT
    assert block.signature.key.line in DOCUMENT
    assert content.index(b"-----BEGIN") == 0x10
    assert bytes(content).rstrip(b"\0") == content[:0x146]


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_networks_have_the_smaller_sensitivity_that_the_document_names(arch: str) -> None:
    """A reader who gave it to others would accept noise that is too small for them."""
    rule = DOCUMENT.split("`sensitivity` is the feature map's")[1].split("`sigma` is")[0]
    shape = VECTOR if takes_vectors(arch) else IMAGE
    network = paper(arch, shape, *[3] * len(ARCHITECTURES[arch]))
    assert network.nonnegative == (f"`{arch}`" in rule)
