"""The first line of a release, which no signature covers, says something else than the rest."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from dpntk.common.storage.container import NOT_PRIVATE_MAGIC, RELEASE_MAGIC, USER_BLOCK, user_block
from dpntk.embed import Embedding
from dpntk.release import PrivacyParameters, make_key, own_key
from dpntk.release.file import reader as reading
from dpntk.release.file.distilled_codec import save_distilled
from dpntk.release.publishing.pipeline import unrecorded_release, write_release
from dpntk.release.signing.trust import add
from tests.conftest import Command, refused
from tests.release.file.test_distilled_codec import make_distilled

NOISY = PrivacyParameters(1.0, 1e-3)
EXACT = PrivacyParameters(math.inf, not_private=True)
LINES = {NOISY: RELEASE_MAGIC, EXACT: NOT_PRIVATE_MAGIC}
OTHER = {RELEASE_MAGIC: NOT_PRIVATE_MAGIC, NOT_PRIVATE_MAGIC: RELEASE_MAGIC}


def exchange_first_line(path: Path) -> None:
    """Exchange it for the other one that there is, and keep the signature."""
    content = path.read_bytes()
    line = content[: content.index(b"\n") + 1]
    armored = content[len(line) : USER_BLOCK].rstrip(b"\0")
    path.write_bytes(user_block(OTHER[line] + armored) + content[USER_BLOCK:])


@pytest.mark.parametrize("parameters", [NOISY, EXACT], ids=["noisy", "exact"])
@pytest.mark.parametrize("signer", ["this machine", "alice", "a stranger whose key is named"])
def test_an_exchanged_first_line_does_not_pass(
    dpntk: Command, embedding: Embedding, tmp_path: Path, parameters: PrivacyParameters, signer: str
) -> None:
    key = own_key() if signer == "this machine" else make_key(tmp_path / "key")
    if signer == "alice":
        add("alice", key.public)
    demanded = ("--key", "key.pub") if signer.startswith("a stranger") else ()
    path = tmp_path / "release.h5"
    write_release(unrecorded_release(embedding, parameters), path, key)
    assert path.read_bytes().startswith(LINES[parameters])
    assert dpntk("verify", *demanded).code == 0
    exchange_first_line(path)
    outcome = dpntk("verify", *demanded)
    refused(outcome, "its first line and its epsilon disagree about its being private")
    assert outcome.stdout == ""  # nothing that could be taken for consent


def test_nor_does_that_of_a_distilled_set(dpntk: Command, tmp_path: Path) -> None:
    save_distilled(make_distilled(), tmp_path / "release.h5", own_key())
    assert dpntk("verify").code == 0
    exchange_first_line(tmp_path / "release.h5")
    refused(dpntk("verify"), "its first line and its epsilon disagree")


def test_verify_says_that_there_is_no_noise(
    dpntk: Command, embedding: Embedding, tmp_path: Path
) -> None:
    path = tmp_path / "release.h5"
    write_release(unrecorded_release(embedding, EXACT), path, own_key())
    outcome = dpntk("verify")
    assert outcome.code == 0
    assert "release.h5 is NOT PRIVATE" in outcome.stderr
    write_release(unrecorded_release(embedding, NOISY), path, own_key())
    assert "NOT PRIVATE" not in dpntk("verify").stderr


def test_figures_that_contradict_each_other_do_not_pass_either(
    dpntk: Command, embedding: Embedding, tmp_path: Path
) -> None:
    """Whoever signed them: what `inspect` refuses, `verify` does not let through."""
    made = unrecorded_release(embedding, NOISY)
    forged = replace(made, guarantee=replace(made.guarantee, epsilon=0.1, total_epsilon=0.1))
    write_release(forged, tmp_path / "release.h5", own_key())
    refused(dpntk("inspect"), "epsilon does not follow from sigma")
    refused(dpntk("verify"), "epsilon does not follow from sigma")


def test_what_nobody_trusted_signed_is_not_parsed(
    dpntk: Command, embedding: Embedding, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("read_body", "read_in_child"):
        monkeypatch.setattr(reading, name, lambda content: pytest.fail("was parsed"))
    stranger = make_key(tmp_path / "stranger")
    write_release(unrecorded_release(embedding, NOISY), tmp_path / "release.h5", stranger)
    outcome = dpntk("verify")
    assert outcome.code == 1
    assert stranger.public.fingerprint in outcome.stdout
    assert "whom nobody here trusts" in outcome.stderr
