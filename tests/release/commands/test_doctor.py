"""`dpntk doctor` shows what there is, and says what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from dpntk.release.signing.keys import own_key
from tests.conftest import Command


def test_it_shows_key_and_signers_and_checks_the_arithmetic(
    dpntk: Command, configuration: Path
) -> None:
    done = dpntk("doctor")
    assert done.code == 0, done.stderr
    assert "none yet" in done.stdout
    assert "nobody yet" in done.stdout
    assert not configuration.exists()  # nothing is made by looking
    key = own_key()
    done = dpntk("doctor", "--json")
    assert (done.code, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert document["wrong"] == []
    found = document["found"]
    assert found["signing key"].startswith(key.public.fingerprint)
    assert found["trusted signers"].startswith("this-machine; ")
    assert f"torch {torch.__version__}" in found["libraries"]
    assert found["arithmetic"].startswith("exact: ")


def test_what_is_wrong_is_said_and_the_rest_is_shown_all_the_same(
    dpntk: Command, configuration: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_key()
    (configuration / "id_ed25519").chmod(0o644)
    monkeypatch.setattr("dpntk.release.commands.checks.differing", lambda _: ["two layers"])
    done = dpntk("doctor")
    assert done.code == 1
    assert done.stderr == "error: not all is well on this machine: signing key, arithmetic\n"
    words = " ".join(done.stdout.replace("│", " ").split())
    assert "can be read by others" in words
    assert "the sums of two layers are not those of other machines" in words
    assert "this-machine" in words
    document = json.loads(dpntk("doctor", "--json").stdout)
    assert document["wrong"] == ["signing key", "arithmetic"]
