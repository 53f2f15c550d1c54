"""Our keys and signatures are OpenSSH's: tried with the real `ssh-keygen`, in both directions."""

from __future__ import annotations

import base64
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest

from dpntk.common.errors import SignatureError, SigningKeyError, TrustError
from dpntk.common.storage.container import USER_BLOCK
from dpntk.release import Release, load_key, make_key
from dpntk.release.publishing.pipeline import write_release
from dpntk.release.signing.sshsig import NAMESPACE, parse, sign
from dpntk.release.signing.trust import (
    Signer,
    load_public_key,
    read_public_key,
    remember_own,
)
from tests.conftest import Command

MESSAGE = b"some bytes \0\xff" * 1000
needs_openssh = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs OpenSSH")


def ssh_keygen(*arguments: object, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["ssh-keygen", *map(str, arguments)], input=given, capture_output=True, check=False
    )


def their_signature(key: Path, message: Path, *options: str, namespace: str = NAMESPACE) -> bytes:
    signed = ssh_keygen("-Y", "sign", "-f", key, "-n", namespace, *options, message)
    assert signed.returncode == 0, signed.stderr
    armored = message.with_name(message.name + ".sig")
    content = armored.read_bytes()
    armored.unlink()
    return content


@pytest.fixture
def their_key(tmp_path: Path) -> Path:
    path = tmp_path / "their_key"
    assert ssh_keygen("-q", "-t", "ed25519", "-N", "", "-f", path).returncode == 0
    return path


@pytest.fixture
def message(tmp_path: Path) -> Path:
    path = tmp_path / "message"
    path.write_bytes(MESSAGE)
    return path


@needs_openssh
@pytest.mark.parametrize("maker", ["dpntk", "ssh-keygen"])
def test_they_verify_our_files(
    tmp_path: Path, small_release: Release, their_key: Path, maker: str
) -> None:
    key = load_key(their_key) if maker == "ssh-keygen" else make_key(tmp_path / "ours")
    write_release(small_release, tmp_path / "release.h5", key)
    content = (tmp_path / "release.h5").read_bytes()
    block = content[:USER_BLOCK].rstrip(b"\0")
    (tmp_path / "release.sig").write_bytes(block[block.index(b"-----BEGIN") :])
    (tmp_path / "signers").write_text(f"{Signer('alice', key.public).line}\n")

    def verified(body: bytes, namespace: str = NAMESPACE) -> bool:
        command = ("-Y", "verify", "-f", tmp_path / "signers", "-I", "alice", "-n", namespace)
        done = ssh_keygen(*command, "-s", tmp_path / "release.sig", given=body)
        return done.returncode == 0

    assert verified(content[USER_BLOCK:])
    assert not verified(content[USER_BLOCK:-1])
    assert not verified(content[USER_BLOCK:], namespace="file")


@needs_openssh
@pytest.mark.parametrize("maker", ["dpntk", "ssh-keygen"])
def test_we_verify_their_signatures(
    tmp_path: Path, message: Path, their_key: Path, maker: str
) -> None:
    path = their_key
    if maker == "dpntk":
        path = tmp_path / "ours"
        make_key(path)
    signature = parse(their_signature(path, message))
    assert signature.key == load_public_key(path.with_suffix(".pub"))
    signature.require_valid(MESSAGE)
    with pytest.raises(SignatureError, match="does not match"):
        signature.require_valid(MESSAGE + b"!")


@needs_openssh
def test_fingerprints_are_theirs(their_key: Path) -> None:
    shown = ssh_keygen("-l", "-f", their_key.with_suffix(".pub")).stdout.decode()
    assert load_key(their_key).public.fingerprint in shown


def test_a_public_key_has_one_spelling(tmp_path: Path) -> None:
    """So that two lines are of one key if and only if they look alike."""
    line = make_key(tmp_path / "key").public.line
    assert read_public_key(line).line == line
    blob = base64.b64decode(line.split()[1])
    shorter = blob[:15] + (31).to_bytes(4, "big") + blob[19:-1]
    respelt = [base64.b64encode(other).decode() for other in (blob + b"x", blob[:-1], shorter)]
    for text in (*respelt, line.split()[1] + "!", line.split()[1][:-4] + "===="):
        with pytest.raises(TrustError, match="the key is damaged"):
            read_public_key(f"ssh-ed25519 {text}")


@needs_openssh
@pytest.mark.parametrize("maker", ["dpntk", "ssh-keygen"])
def test_a_passphrase_works_in_both(tmp_path: Path, maker: str) -> None:
    path = tmp_path / "locked"
    if maker == "dpntk":
        make_key(path, "open sesame")
    else:
        made = ssh_keygen("-q", "-t", "ed25519", "-N", "open sesame", "-f", path, "-a", "4")
        assert made.returncode == 0
    public = load_public_key(path.with_suffix(".pub"))
    assert load_key(path, lambda: "open sesame").public == public
    theirs = ssh_keygen("-y", "-P", "open sesame", "-f", path)
    assert theirs.stdout.decode().startswith(public.line)
    for guess in ("sesame", ""):
        with pytest.raises(SigningKeyError, match="wrong passphrase"):
            load_key(path, partial(str, guess))
    with pytest.raises(SigningKeyError, match="has a passphrase"):
        load_key(path)


@needs_openssh
def test_signatures_made_for_something_else_are_refused(message: Path, their_key: Path) -> None:
    with pytest.raises(SignatureError, match="made for 'file', not for dpntk-release-v1"):
        parse(their_signature(their_key, message, namespace="file"))
    with pytest.raises(SignatureError, match="uses 'sha256'; dpntk accepts sha512"):
        parse(their_signature(their_key, message, "-O", "hashalg=sha256"))


@needs_openssh
@pytest.mark.parametrize("kind", ["rsa", "ecdsa"])
def test_other_kinds_of_keys_are_refused(
    tmp_path: Path, message: Path, kind: str, dpntk: Command
) -> None:
    path = tmp_path / kind
    assert ssh_keygen("-q", "-t", kind, "-N", "", "-f", path).returncode == 0
    with pytest.raises(
        SignatureError, match=rf"of type '(ssh-rsa|{kind}.*)'; dpntk accepts ssh-ed25519 only"
    ):
        parse(their_signature(path, message))
    with pytest.raises(SigningKeyError, match="not an ed25519 key"):
        load_key(path)
    refused = dpntk("trust", "add", "bob", f"{path}.pub")
    assert refused.code == 1
    assert "starts with 'ssh-ed25519'" in refused.stderr


@needs_openssh
@pytest.mark.parametrize("name", ["a release.h5", "-r.h5"])
@pytest.mark.parametrize(
    ("own", "options", "signer"),
    [
        (False, ("--signer", "alice"), "alice"),
        (False, (), "alice"),
        (True, ("--signer", "alice"), "alice"),
        (True, (), "this-machine"),
    ],
)
def test_the_recipe_works_as_printed(
    dpntk: Command, tmp_path: Path, small_release: Release, name: str, own: bool,
    options: tuple[str, ...], signer: str,
) -> None:  # fmt: skip
    key = make_key(tmp_path / "key")
    write_release(small_release, tmp_path / name, key)
    dpntk("trust", "add", "alice", "key.pub")
    if own:  # a key may be on both lists
        remember_own(key.public)
    verified = dpntk("verify", "--how", *options, "--", name)
    assert verified.code == 0, verified.stderr
    recipe = verified.stdout.split("\n\n")[0]
    done = subprocess.run(
        ["sh", "-e", "-c", recipe], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f'Good "dpntk-release-v1" signature for {signer}' in done.stdout


def test_ed25519_signatures_are_a_function_of_key_and_message(tmp_path: Path) -> None:
    key = make_key(tmp_path / "key")
    assert sign(key.private, MESSAGE).armored() == sign(key.private, MESSAGE).armored()
    again = parse(sign(key.private, MESSAGE).armored())
    again.require_valid(MESSAGE)
