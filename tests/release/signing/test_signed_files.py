"""Not a bit of a signed file can be changed, and only files of trusted signers are opened."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import pytest

from dpntk.common.errors import (
    FormatError,
    ReleaseError,
    SignatureError,
    SigningKeyError,
    TrustError,
    UntrustedSigner,
)
from dpntk.common.features.base import weights_digest
from dpntk.common.storage.container import RELEASE_MAGIC, USER_BLOCK, user_block
from dpntk.release import (
    Acceptance,
    Release,
    SigningKey,
    load_key,
    make_key,
    open_any,
    open_release,
    own_key,
)
from dpntk.release.file import reader as reading
from dpntk.release.file.distilled_codec import save_distilled
from dpntk.release.publishing.pipeline import write_release
from dpntk.release.signing.sshsig import Signature, parse
from dpntk.release.signing.trust import add
from tests.conftest import Command, refused
from tests.helpers.processes import overwrite
from tests.release.file.test_distilled_codec import make_distilled

unless_root = pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")


@pytest.fixture
def path(small_release: Release, tmp_path: Path) -> Path:
    where = tmp_path / "release.h5"
    write_release(small_release, where, own_key())
    return where


@pytest.fixture
def stranger(tmp_path: Path) -> SigningKey:
    return make_key(tmp_path / "stranger")


def refusal(path: Path, content: bytes) -> ReleaseError:
    overwrite(path, content)
    with pytest.raises(ReleaseError) as caught:
        open_release(path)
    assert re.fullmatch(rf"{re.escape(str(path))}: .+", str(caught.value))
    return caught.value


def test_every_flipped_byte_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing is parsed: the signature comes first."""
    monkeypatch.setattr(reading, "read_body", lambda content: pytest.fail("was parsed"))
    monkeypatch.setattr(reading, "read_in_child", lambda content: pytest.fail("was parsed"))
    content = path.read_bytes()
    for position in range(len(content)):
        for flip in (0x01, 0x80):
            changed = bytearray(content)
            changed[position] ^= flip
            error = refusal(path, bytes(changed))
            if position < len(RELEASE_MAGIC):
                assert isinstance(error, FormatError)
                assert re.search("not a dpntk release|release of format", str(error))
            elif position < USER_BLOCK:
                assert isinstance(error, (SignatureError, UntrustedSigner))
            else:
                assert isinstance(error, SignatureError)
                assert "was changed or cut short" in str(error)


def test_every_truncation_is_refused(path: Path) -> None:
    content = path.read_bytes()
    for size in range(len(content)):
        error = refusal(path, content[:size])
        if size < len(RELEASE_MAGIC):
            assert "not a dpntk release" in str(error)
        elif size < USER_BLOCK:
            assert "cut short" in str(error)
        else:
            assert "was changed or cut short" in str(error)


def test_appended_and_moved_bytes_are_refused(path: Path) -> None:
    content = path.read_bytes()
    for changed in (content + b"\0", content + content, content[:USER_BLOCK] + content):
        assert "was changed or cut short" in str(refusal(path, changed))
    assert "not a dpntk release" in str(refusal(path, b"\0" * USER_BLOCK + content))
    armored = content[len(RELEASE_MAGIC) : USER_BLOCK].rstrip(b"\0")
    moved = RELEASE_MAGIC + b"\0" + armored
    assert "marker lines" in str(refusal(path, user_block(moved) + content[USER_BLOCK:]))
    twice = RELEASE_MAGIC + armored + b"x"
    assert "marker lines" in str(refusal(path, user_block(twice) + content[USER_BLOCK:]))


def test_a_signature_that_was_taken_off_is_missed(path: Path) -> None:
    content = path.read_bytes()
    unsigned = user_block(RELEASE_MAGIC) + content[USER_BLOCK:]
    error = refusal(path, unsigned)
    assert isinstance(error, SignatureError)
    assert "unsigned" in str(error)
    assert "allow_unsigned=True" in str(error)
    opened = open_release(path, Acceptance(allow_unsigned=True))
    assert str(opened.signed_by).startswith("unsigned: nobody vouches")
    with pytest.raises(SignatureError, match="unsigned"):
        open_release(path, Acceptance(signer="alice", allow_unsigned=True))


def test_a_broken_signature_is_refused_even_where_none_is_needed(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(SignatureError, match="does not match"):
        open_release(path, Acceptance(allow_unsigned=True, ask=lambda key: True))


def test_the_signature_of_another_release_is_refused(
    path: Path, small_release: Release, tmp_path: Path
) -> None:
    write_release(small_release, tmp_path / "same.h5", own_key())
    assert (tmp_path / "same.h5").read_bytes() == path.read_bytes()
    block = path.read_bytes()[:USER_BLOCK]
    small_release.embedding[0, 0] += 1
    write_release(small_release, tmp_path / "other.h5", own_key())
    other = (tmp_path / "other.h5").read_bytes()
    assert "belongs to another file" in str(refusal(path, block + other[USER_BLOCK:]))


def respelt(signature: Signature) -> list[bytes]:
    """Other spellings of the same signature, as base64 and OpenSSH's own reader allow them."""
    armored = signature.armored()
    lines = armored.split(b"\n")
    joined = b"".join(lines[1:-2])
    return [
        b"\n".join([lines[0], joined, *lines[-2:]]),
        armored.replace(b"\n", b"\r\n"),
        armored.replace(lines[1], lines[1] + b"="),
    ]


def test_a_signature_has_one_spelling(path: Path) -> None:
    content = path.read_bytes()
    armored = content[len(RELEASE_MAGIC) : USER_BLOCK].rstrip(b"\0")
    for other in respelt(parse(armored)):
        changed = user_block(RELEASE_MAGIC + other) + content[USER_BLOCK:]
        assert isinstance(refusal(path, changed), SignatureError)


def test_a_stranger_is_refused_until_trusted(
    path: Path, small_release: Release, stranger: SigningKey
) -> None:
    write_release(small_release, path, stranger)
    fingerprint = stranger.public.fingerprint
    with pytest.raises(UntrustedSigner, match=f"{re.escape(fingerprint)}, whom nobody here"):
        open_release(path)
    asked = []

    def agree(key: object) -> bool:
        asked.append(key)
        return True

    opened = open_release(path, Acceptance(ask=agree))
    assert asked == [stranger.public]
    assert (opened.signed_by.name, opened.signed_by.fingerprint) == (None, fingerprint)
    add("bob", stranger.public)
    opened = open_release(path)
    assert str(opened.signed_by) == f"signed by bob ({fingerprint})"
    assert not opened.signed_by.own
    with pytest.raises(UntrustedSigner, match=r"signed by bob, .*, not by alice"):
        open_release(path, Acceptance(signer="alice"))


def test_who_is_named_has_to_have_signed_and_nobody_is_asked(
    path: Path, small_release: Release, stranger: SigningKey
) -> None:
    alone = Acceptance(signer="alice", ask=lambda key: True)
    with pytest.raises(UntrustedSigner, match=r"signed by this-machine, .*, not by alice"):
        open_release(path, alone)
    write_release(small_release, path, stranger)
    with pytest.raises(UntrustedSigner, match="not by alice"):
        open_release(path, alone)


def test_the_digest_is_that_of_what_is_signed(path: Path, dpntk: Command) -> None:
    digest = hashlib.sha256(path.read_bytes()[512:]).hexdigest()
    assert open_release(path).digest == digest
    assert f"sha-256      {digest} (from byte 512 on)" in dpntk("verify").stdout


def test_the_statement_is_in_our_own_words(path: Path, small_release: Release) -> None:
    """Whoever signed another one."""
    write_release(replace(small_release, statement="It is anonymous."), path, own_key())
    assert open_release(path).release.statement == small_release.statement
    made = make_distilled()
    save_distilled(replace(made, statement="It is anonymous."), path, own_key())
    assert open_any(path).release.statement == made.statement


def test_only_what_this_machine_signed_is_parsed_in_this_process(
    path: Path, small_release: Release, stranger: SigningKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[str] = []

    def noting(name: str) -> Callable[[bytes], object]:
        real = getattr(reading, name)

        def read(content: bytes) -> object:
            used.append(name)
            return real(content)

        return read

    for name in ("read_body", "read_in_child"):
        monkeypatch.setattr(reading, name, noting(name))
    open_release(path)
    assert used == ["read_body"]
    add("bob", stranger.public)
    write_release(small_release, path, stranger)
    open_release(path)
    assert used == ["read_body", "read_in_child"]


def test_what_the_child_reads_is_what_is_there(
    path: Path, small_release: Release, stranger: SigningKey
) -> None:
    ours = open_release(path).release
    add("bob", stranger.public)
    write_release(small_release, path, stranger)
    theirs = open_release(path).release
    assert (theirs.embedding == ours.embedding).all()
    assert theirs.guarantee == ours.guarantee == small_release.guarantee
    assert weights_digest(theirs.feature_map) == weights_digest(ours.feature_map)
    assert theirs.statement == small_release.statement


# Commands


def test_verify_says_who_and_exits_with_0_for_trusted_signers_only(
    dpntk: Command, tmp_path: Path, small_release: Release
) -> None:
    stranger = make_key(tmp_path / "stranger")
    path = tmp_path / "release.h5"
    write_release(small_release, path, stranger)
    unknown = dpntk("verify")
    assert unknown.code == 1
    assert stranger.public.fingerprint in unknown.stdout
    assert "nobody here trusts" in unknown.stderr
    assert dpntk("verify", "--key", "stranger.pub").code == 0
    make_key(tmp_path / "other")
    assert dpntk("verify", "--key", "other.pub").code == 1
    dpntk("trust", "add", "bob", "stranger.pub")
    known = dpntk("verify")
    assert known.code == 0
    assert re.search(r"signer +bob\n", known.stdout)
    assert re.search(r"sha-256 +[0-9a-f]{64}", known.stdout)
    assert dpntk("verify", "--signer", "bob").code == 0
    assert dpntk("verify", "--signer", "alice").code == 1
    path.write_bytes(path.read_bytes()[:-1])
    broken = dpntk("verify")
    assert broken.code == 1
    assert "does not match" in broken.stderr


def test_trust_is_added_listed_and_removed(
    dpntk: Command, tmp_path: Path, configuration: Path
) -> None:
    key = make_key(tmp_path / "key").public
    assert "nobody is trusted yet" in dpntk("trust", "list").stdout
    assert dpntk("trust", "add", "alice", key.line).code == 0
    assert dpntk("trust", "add", "alice", "key.pub").code == 1
    assert "under the name alice" in dpntk("trust", "add", "bob", "key.pub").stderr
    assert "a private key: give its public half" in dpntk("trust", "add", "eve", "key").stderr
    (tmp_path / "release.h5").write_bytes(RELEASE_MAGIC.ljust(1 << 21, b"\0"))
    refused(dpntk("trust", "add", "eve", "release.h5"), "a release: give the public key of")
    other = make_key(tmp_path / "other").public.line
    refused(dpntk("trust", "add", "alice", other), f"trusted already, with key {key.fingerprint}")
    listed = dpntk("trust", "list").stdout
    assert "alice" in listed
    assert key.fingerprint in listed
    written = (configuration / "allowed_signers").read_text()
    assert written == f'alice namespaces="dpntk-release-v1" {key.line}\n'
    assert dpntk("trust", "remove", "alice").code == 0
    assert "nobody called alice" in dpntk("trust", "remove", "alice").stderr
    assert (configuration / "allowed_signers").read_text() == ""


def test_whoever_is_removed_is_trusted_with_none_of_the_keys(
    dpntk: Command, configuration: Path, small_release: Release, tmp_path: Path
) -> None:
    """A list that OpenSSH uses too may hold an old key and a new one."""
    keys = [make_key(tmp_path / name) for name in ("old", "new", "bob")]
    lines = [f"{name} {key.public.line}\n" for name, key in zip("aab", keys, strict=True)]
    configuration.mkdir(mode=0o700)
    (configuration / "allowed_signers").write_text("".join(lines))
    removed = dpntk("trust", "remove", "a").stderr
    assert all(key.public.fingerprint in removed for key in keys[:2])
    for key, code in zip(keys, (1, 1, 0), strict=True):
        write_release(small_release, tmp_path / "release.h5", key)
        assert dpntk("verify").code == code


@pytest.mark.parametrize("name", ["", "two words", "a,b", "*", "-I", "#x", 'a"b', "this-machine"])
def test_names_that_openssh_would_take_for_something_else_are_refused(
    dpntk: Command, tmp_path: Path, name: str
) -> None:
    make_key(tmp_path / "key")
    refused(dpntk("trust", "add", "--", name, "key.pub"), "cannot be a signer's name")


@pytest.mark.parametrize(
    "line",
    [
        "alice ssh-rsa {key}",
        "* ssh-ed25519 {key}",
        "!bob,alice ssh-ed25519 {key}",
        "alice cert-authority ssh-ed25519 {key}",
        'alice namespaces="file" ssh-ed25519 {key}',
        'alice valid-before="20200101" ssh-ed25519 {key}',
        "alice ssh-ed25519 AAAA",
        "\x00",
    ],
)
def test_a_list_that_is_not_understood_is_refused_with_its_line(
    path: Path, configuration: Path, stranger: SigningKey, line: str
) -> None:
    with_key = line.format(key=stranger.public.line.split()[1])
    (configuration / "allowed_signers").write_text(f"# comment\n\n{with_key}\n")
    with pytest.raises(TrustError, match=r"allowed_signers, line 3: "):
        open_release(path)


def test_the_first_release_makes_a_key_and_says_so(
    dpntk: Command, embedding_file: Path, configuration: Path
) -> None:
    first = dpntk("release", embedding_file.name, "--eps", "1", "--delta", "1e-3")
    key = load_key(configuration / "id_ed25519")
    assert (configuration / "id_ed25519").stat().st_mode & 0o777 == 0o600
    for words in (str(configuration / "id_ed25519"), key.public.fingerprint, key.public.line):
        assert words in first.stderr
    again = dpntk(
        "release", embedding_file.name, "--eps", "1", "--delta", "1e-3", "--compose", "-o", "b.h5"
    )
    assert "made a signing key" not in again.stderr
    assert dpntk("verify", "b.h5").code == 0


def test_a_named_key_signs_and_is_known_as_ones_own(
    dpntk: Command, embedding_file: Path, tmp_path: Path, configuration: Path
) -> None:
    key = make_key(tmp_path / "mine")
    made = dpntk("release", embedding_file.name, "--eps", "1", "--delta", "1e-3", "--key", "mine")
    assert made.code == 0
    assert not (configuration / "id_ed25519").exists()
    signed_by = open_release(tmp_path / "release.h5").signed_by
    assert signed_by.own
    assert signed_by.fingerprint == key.public.fingerprint


def unsafe(path: Path) -> str:
    path.chmod(0o604)
    return "can be read by others"


def open_to_the_group(path: Path) -> str:
    path.chmod(0o640)
    return "can be read by others"


def missing(path: Path) -> str:
    path.unlink()
    return "there is no such file; 'dpntk keygen' makes a key"


def garbage(path: Path) -> str:
    path.write_bytes(b"\0")
    return "not an OpenSSH private key"


def public_half(path: Path) -> str:
    path.write_bytes(path.with_suffix(".pub").read_bytes())
    path.chmod(0o644)  # as ssh-keygen leaves it
    return "is a public key"


def locked(path: Path) -> str:
    path.unlink()
    path.with_suffix(".pub").unlink()
    make_key(path, "secret")
    return "has a passphrase: run on a terminal"


def folder(path: Path) -> str:
    path.unlink()
    path.mkdir()
    return "this is a folder; give a file"


@pytest.mark.parametrize(
    "spoil", [unsafe, open_to_the_group, missing, garbage, public_half, locked, folder]
)
def test_a_key_that_cannot_be_used_is_one_line_and_spends_nothing(
    dpntk: Command, embedding_file: Path, tmp_path: Path, spoil: Callable[[Path], str]
) -> None:
    make_key(tmp_path / "mine")
    words = spoil(tmp_path / "mine")
    before = embedding_file.read_bytes()
    arguments = ("release", embedding_file.name, "--eps", "1", "--delta", "1e-3", "--key", "mine")
    refused(dpntk(*arguments), words)
    assert embedding_file.read_bytes() == before
    assert not (tmp_path / "release.h5").exists()


def test_a_configuration_folder_that_cannot_be_made_is_one_line_and_spends_nothing(
    dpntk: Command, embedding_file: Path, configuration: Path, tmp_path: Path
) -> None:
    configuration.write_text("a file is in the way")
    before = embedding_file.read_bytes()
    outcome = dpntk("release", embedding_file.name, "--eps", "1", "--delta", "1e-3")
    refused(outcome, f"cannot write {configuration}")
    assert embedding_file.read_bytes() == before


@unless_root
def test_a_read_only_configuration_folder_is_one_line(
    dpntk: Command, embedding_file: Path, configuration: Path, tmp_path: Path
) -> None:
    configuration.mkdir()
    configuration.chmod(0o500)
    for arguments in (
        ("release", embedding_file.name, "--eps", "1", "--delta", "1e-3"),
        ("keygen",),
        ("trust", "add", "bob", make_key(tmp_path / "key").public.line),
    ):
        refused(dpntk(*arguments), "Permission denied")


def test_a_passphrase_is_asked_for_on_a_terminal_alone(dpntk: Command, configuration: Path) -> None:
    refused = dpntk("keygen", "--passphrase")
    assert refused.code == 2
    assert "--passphrase asks on a terminal" in refused.stderr
    assert not (configuration / "id_ed25519").exists()


def test_keygen_replaces_no_key(dpntk: Command, configuration: Path) -> None:
    assert dpntk("keygen").code == 0
    before = (configuration / "id_ed25519").read_bytes()
    refused(dpntk("keygen"), "already exists")
    assert (configuration / "id_ed25519").read_bytes() == before
    (configuration / "id_ed25519").unlink()
    refused(dpntk("keygen"), "id_ed25519.pub already exists")
    assert not (configuration / "id_ed25519").exists()


def test_a_link_leads_to_the_key_whose_mode_counts(tmp_path: Path) -> None:
    public = make_key(tmp_path / "key").public
    (tmp_path / "link").symlink_to("key")
    assert load_key(tmp_path / "link").public == public
    (tmp_path / "key").chmod(0o640)
    with pytest.raises(SigningKeyError, match="can be read by others"):
        load_key(tmp_path / "link")


def test_a_key_is_not_shown(stranger: SigningKey) -> None:
    assert repr(stranger) == f"SigningKey({stranger.public.fingerprint})"


def test_commands_refuse_a_stranger_and_say_what_to_do(
    dpntk: Command, small_release: Release, tmp_path: Path, stranger: SigningKey
) -> None:
    path = tmp_path / "release.h5"
    write_release(small_release, path, stranger)
    for arguments in (
        ("inspect",),
        ("generate", "--steps", "1", "-n", "5"),
        ("inspect", "--signer", "alice"),
        ("inspect", "--allow-unsigned"),
    ):
        refused(dpntk(*arguments), stranger.public.fingerprint)
    write_release(small_release, path, None)
    refused(dpntk("inspect"), "--allow-unsigned")
    assert dpntk("inspect", "--allow-unsigned").code == 0


def test_keys_that_are_first_used_at_once_are_one_key(configuration: Path) -> None:
    together = Barrier(8)

    def first_use(_: int) -> str:
        together.wait()
        return own_key().public.line

    with ThreadPoolExecutor(8) as pool:
        lines = set(pool.map(first_use, range(8)))
    (line,) = lines
    assert (configuration / "id_ed25519.pub").read_text().startswith(line)
