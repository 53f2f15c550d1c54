"""Lists of signers in which somebody hides, or which somebody else may write."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from dpntk.common.errors import TrustError
from dpntk.release import Release, SigningKey, make_key, open_release
from dpntk.release.publishing.pipeline import write_release
from dpntk.release.signing.sshsig import NAMESPACE
from tests.conftest import Command, refused

SEPARATORS = {
    "line separator": "\u2028",
    "paragraph separator": "\u2029",
    "vertical tab": "\x0b",
    "form feed": "\x0c",
    "next line": "\x85",
    "file separator": "\x1c",
    "group separator": "\x1d",
    "record separator": "\x1e",
    "carriage return": "\r",
}
"""Where Python's `splitlines` begins a new line and OpenSSH does not."""


@pytest.fixture
def alice(tmp_path: Path) -> SigningKey:
    return make_key(tmp_path / "alice")


@pytest.fixture
def mallory(tmp_path: Path) -> SigningKey:
    return make_key(tmp_path / "mallory")


@pytest.fixture
def signers(configuration: Path) -> Path:
    configuration.mkdir(mode=0o700)
    return configuration / "allowed_signers"


@pytest.fixture
def forged(small_release: Release, mallory: SigningKey, tmp_path: Path) -> Path:
    """A release that mallory has signed."""
    write_release(small_release, tmp_path / "release.h5", mallory)
    return tmp_path / "release.h5"


@pytest.mark.parametrize("separator", SEPARATORS.values(), ids=SEPARATORS)
@pytest.mark.parametrize("before", ["{alice} comment", "# comment"], ids=["signer", "comment"])
def test_nobody_hides_behind_a_comment(
    forged: Path, signers: Path, alice: SigningKey, mallory: SigningKey, separator: str, before: str
) -> None:
    line = before.format(alice=f"alice {alice.public.line}")
    signers.write_bytes(f"{line}{separator}mallory {mallory.public.line}\n".encode())
    with pytest.raises(TrustError, match=r"allowed_signers, line 1: there is more in it than"):
        open_release(forged)


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="there is no OpenSSH here")
def test_whom_openssh_does_not_find_dpntk_does_not_trust(
    forged: Path, signers: Path, alice: SigningKey, mallory: SigningKey, tmp_path: Path
) -> None:
    signature = tmp_path / "release.sig"
    block = forged.read_bytes()[:512]
    signature.write_bytes(block[block.index(b"-----BEGIN") :].rstrip(b"\0"))
    found = []
    for separator in ("\n", "\u2028"):
        hidden = f"alice {alice.public.line} x{separator}mallory {mallory.public.line}\n"
        signers.write_bytes(hidden.encode())
        told = subprocess.run(
            ["ssh-keygen", "-Y", "find-principals", "-f", signers, "-s", signature,
             "-n", NAMESPACE], capture_output=True, text=True, check=False,
        )  # fmt: skip
        found.append(told.stdout.strip())
    assert found == ["mallory", ""]
    with pytest.raises(TrustError):
        open_release(forged)


@pytest.mark.parametrize("hidden", ["\x00", "\x1b[1A\x1b[2K", "\u202e", "\u200b", "\ufeff", "\t"])
def test_nothing_in_a_list_is_hidden(
    forged: Path, signers: Path, mallory: SigningKey, hidden: str
) -> None:
    signers.write_text(f"mallory {mallory.public.line} comment{hidden}\n")
    with pytest.raises(TrustError, match="line 1"):
        open_release(forged)


def test_a_list_is_read_to_its_end(forged: Path, signers: Path, mallory: SigningKey) -> None:
    """What lies beyond the limit is not left out: it may be what one looks for in the file."""
    signers.write_text("# padding\n" * 120_000 + f"mallory {mallory.public.line}\n")
    with pytest.raises(TrustError, match="are the most that is read"):
        open_release(forged)


@pytest.mark.parametrize("separator", [*SEPARATORS.values(), "\x1b[2K", "\u202e"])
def test_a_public_key_with_something_hidden_is_not_added(
    dpntk: Command, alice: SigningKey, mallory: SigningKey, configuration: Path, separator: str
) -> None:
    line = f"{alice.public.line} comment{separator}{mallory.public.line}"
    Path("key.pub").write_bytes(f"{line}\n".encode())
    refused(dpntk("trust", "add", "alice", "key.pub"), "there is more in the line than one can see")
    refused(dpntk("trust", "add", "alice", line), "there is more in the line than one can see")
    assert not (configuration / "allowed_signers").exists()


def test_honest_lists_and_keys_are_read(
    forged: Path, signers: Path, mallory: SigningKey, dpntk: Command
) -> None:
    signers.write_text(f"# Größe, 年\n\nmallory {mallory.public.line} m@example.org, né 1970")
    assert open_release(forged).signed_by.name == "mallory"
    Path("windows.pub").write_bytes(f"{make_key(Path('bob')).public.line} bob@home\r\n".encode())
    assert dpntk("trust", "add", "bob", "windows.pub").code == 0


def writable_list(signers: Path) -> None:
    signers.chmod(0o666)


def list_of_the_group(signers: Path) -> None:
    signers.chmod(0o664)


def writable_folder(signers: Path) -> None:
    signers.parent.chmod(0o777)


def folder_like_tmp(signers: Path) -> None:
    signers.parent.chmod(0o1777)


def folder_behind_a_link(signers: Path) -> None:
    elsewhere = signers.parent.parent / "elsewhere"
    elsewhere.mkdir()
    signers.rename(elsewhere / signers.name)
    signers.symlink_to(elsewhere / signers.name)
    elsewhere.chmod(0o777)


@pytest.mark.parametrize(
    "expose",
    [writable_list, list_of_the_group, writable_folder, folder_like_tmp, folder_behind_a_link],
)
def test_a_list_that_others_can_write_is_refused(
    dpntk: Command,
    forged: Path,
    signers: Path,
    mallory: SigningKey,
    expose: Callable[[Path], None],
) -> None:
    signers.write_text(f"mallory {mallory.public.line}\n")
    assert dpntk("verify").code == 0
    expose(signers)
    written = signers.read_bytes()
    for arguments in (
        ("verify",),
        ("inspect",),
        ("generate", "--steps", "1", "-n", "5"),
        ("trust", "list"),
        ("trust", "add", "eve", make_key(forged.parent / "eve").public.line),
    ):
        refused(dpntk(*arguments), "can be written by others", "chmod go-w")
        (forged.parent / "eve").unlink(missing_ok=True)
        (forged.parent / "eve.pub").unlink(missing_ok=True)
    assert signers.read_bytes() == written


def test_a_key_is_not_put_into_a_folder_that_others_can_write(
    dpntk: Command, embedding_file: Path, configuration: Path
) -> None:
    configuration.mkdir()
    configuration.chmod(0o777)
    before = embedding_file.read_bytes()
    release = ("release", embedding_file.name, "--eps", "1", "--delta", "1e-3")
    refused(dpntk(*release), "can be written by others")
    assert embedding_file.read_bytes() == before


def test_a_link_leads_to_the_list_that_counts(
    dpntk: Command, forged: Path, signers: Path, mallory: SigningKey
) -> None:
    elsewhere = forged.parent / "list"
    elsewhere.write_text(f"mallory {mallory.public.line}\n")
    signers.symlink_to(elsewhere)
    assert dpntk("verify").code == 0
    elsewhere.chmod(0o666)
    refused(dpntk("verify"), "can be written by others")


@pytest.mark.parametrize("part", ["list", "folder"])
def test_a_list_of_somebody_else_is_refused(
    forged: Path,
    signers: Path,
    mallory: SigningKey,
    monkeypatch: pytest.MonkeyPatch,
    part: str,
) -> None:
    signers.write_text(f"mallory {mallory.public.line}\n")
    theirs = signers if part == "list" else signers.parent
    if os.geteuid() == 0:
        os.chown(theirs, 54321, -1)
    else:
        mine = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    with pytest.raises(TrustError, match="belongs to somebody else"):
        open_release(forged)
