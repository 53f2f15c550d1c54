"""Everything that was spent is on record, whatever happens."""

from __future__ import annotations

import hashlib
import json
import math
import re
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dp_accounting
import h5py
import numpy as np
import pytest

import dpntk.release
from dpntk.common.adjacency import Adjacency
from dpntk.common.errors import (
    BudgetError,
    DpntkError,
    EmbeddingError,
    FormatError,
    OutputError,
    SchemaError,
    SigningKeyError,
    TrustError,
)
from dpntk.common.ledger import Ledger, PrivacyBudget
from dpntk.embed import Embedding, embed, load_embedding, save_embedding
from dpntk.embed.sums.data_sets import members_of
from dpntk.release import (
    Acceptance,
    PrivacyParameters,
    make_key,
    open_release,
    own_key,
    release,
)
from dpntk.release.file import format as file_format
from dpntk.release.mechanism.composition import Total, remaining, require_below_ceiling, total_of
from dpntk.release.publishing import measurement
from dpntk.release.publishing import pipeline as publishing
from dpntk.release.publishing.parameters import entry_for, noise_for
from dpntk.release.publishing.pipeline import unrecorded_release
from tests.conftest import Command, Outcome, refused
from tests.helpers.processes import finish, kill_at, start

ONE = PrivacyParameters(epsilon=1.0)


def yes(_: Total) -> bool:
    return True


def ledger_of(embedding: Embedding, *parameters: PrivacyParameters) -> Ledger:
    ledger = Ledger()
    for one in parameters:
        ledger = ledger.with_entry(entry_for(embedding, one, noise_for(embedding, one)))
    return ledger


def test_a_release_is_entered_with_its_id(embedding_file: Path, tmp_path: Path) -> None:
    before = load_embedding(embedding_file)
    release(embedding_file, tmp_path / "release.h5", ONE)
    after = load_embedding(embedding_file)
    (entry,) = after.ledger.entries
    assert entry.release_id == open_release(tmp_path / "release.h5").release.release_id
    assert (entry.epsilon, entry.delta, entry.adjacency) == (1.0, 1e-5, Adjacency.REPLACE_ONE)
    assert (after.sums == before.sums).all()
    assert embedding_file.stat().st_mode & 0o777 == 0o600


def test_what_is_returned_is_what_is_read_from_the_file(
    embedding_file: Path, tmp_path: Path
) -> None:
    """So it can be handed on without opening the file; a path may be text."""
    known, stranger = own_key(), make_key(str(tmp_path / "stranger"))
    for name, key in (("a", None), ("b", known), ("c", stranger)):
        where = tmp_path / f"{name}.h5"
        made = release(str(embedding_file), str(where), ONE, key=key, compose=yes)
        read = open_release(where, Acceptance(ask=lambda key: True))
        assert (made.digest, made.signed_by, made.path) == (read.digest, read.signed_by, where)
        assert made.digest == hashlib.sha256(where.read_bytes()[512:]).hexdigest()
        assert made.release.guarantee == read.release.guarantee
        assert made.release.statement == read.release.statement
        assert np.array_equal(made.release.embedding, read.release.embedding)
        assert np.array_equal(made.release.class_weights, read.release.class_weights)
        assert made.signed_by.own == (key is not stranger)


def test_a_key_that_cannot_be_used_spends_nothing(
    embedding_file: Path, tmp_path: Path, configuration: Path
) -> None:
    before = embedding_file.read_bytes()
    make_key(configuration / "id_ed25519", "secret")
    with pytest.raises(SigningKeyError, match="has a passphrase"):
        release(embedding_file, tmp_path / "release.h5", ONE)
    (configuration / "allowed_signers").write_text("nonsense\n")
    with pytest.raises(TrustError, match="line 1"):
        release(embedding_file, tmp_path / "release.h5", ONE, key=make_key(tmp_path / "another"))
    assert embedding_file.read_bytes() == before
    assert not (tmp_path / "release.h5").exists()


def test_a_second_release_needs_consent_and_states_the_total(
    embedding_file: Path, tmp_path: Path
) -> None:
    release(embedding_file, tmp_path / "first.h5", ONE)
    with pytest.raises(BudgetError, match="add compose if"):
        release(embedding_file, tmp_path / "second.h5", ONE)
    assert len(load_embedding(embedding_file).ledger.entries) == 1
    release(embedding_file, tmp_path / "second.h5", ONE, compose=yes)
    guarantee = open_release(tmp_path / "second.h5").release.guarantee
    assert guarantee.total_releases == 2
    multiplier = guarantee.noise_multiplier / math.sqrt(2)
    expected = dp_accounting.get_epsilon_gaussian(multiplier, 1e-5)
    assert guarantee.total_epsilon == pytest.approx(expected, rel=1e-6)
    assert guarantee.total_epsilon >= expected


def test_a_total_is_taken_at_the_delta_of_the_release_that_states_it(
    embedding_file: Path, tmp_path: Path
) -> None:
    release(embedding_file, tmp_path / "first.h5", ONE)
    stricter = PrivacyParameters(1.0, delta=1e-8)
    second = release(embedding_file, tmp_path / "second.h5", stricter, compose=yes)
    together = [entry.noise_multiplier for entry in load_embedding(embedding_file).ledger.entries]
    multiplier = 1 / math.hypot(*(1 / each for each in together))
    expected = dp_accounting.get_epsilon_gaussian(multiplier, 1e-8)
    total = second.release.guarantee.total_epsilon
    assert total == pytest.approx(expected, rel=1e-6)


def test_a_ledger_is_spelt_in_files_as_it_always_was(embedding: Embedding) -> None:
    ledger = ledger_of(embedding, ONE, replace(ONE, adjacency=Adjacency.ADD_REMOVE))
    entry = ledger.entries[1]
    document = ledger.to_json()
    assert document["entries"][1] == {
        "release_id": entry.release_id,
        "created": entry.created,
        "epsilon": 1.0,
        "delta": 1e-5,
        "adjacency": "add-remove",
        "multiplier": entry.noise_multiplier,
        "multiplier_replace_one": entry.noise_multiplier_replace_one,
    }
    assert Ledger.from_json(document) == ledger
    document["entries"][1]["noise_multiplier"] = 99.0
    with pytest.raises(SchemaError, match="more of a release than there is"):
        Ledger.from_json(document)


@pytest.mark.parametrize(
    "said", [{"multiplier": 0.0}, {"multiplier_replace_one": 0.0}, {"epsilon": None}]
)
def test_noise_that_contradicts_its_epsilon_is_refused(
    embedding: Embedding, said: dict[str, object]
) -> None:
    """Without noise nothing is promised, and what has noise is not without a promise."""
    document = ledger_of(embedding, ONE).to_json()
    document["entries"][0] |= said
    with pytest.raises(SchemaError, match="noise that contradicts its epsilon"):
        Ledger.from_json(document)


def test_totals_agree_with_dp_accounting(embedding: Embedding) -> None:
    """Different releases compose as Gaussians do: compared with privacy loss distributions."""
    ledger = ledger_of(
        embedding,
        PrivacyParameters(0.5),
        PrivacyParameters(1.0),
        PrivacyParameters(2.0, delta=1e-7),
    )
    accountant = dp_accounting.pld.PLDAccountant(value_discretization_interval=1e-4)
    for entry in ledger.entries:
        accountant.compose(dp_accounting.GaussianDpEvent(entry.noise_multiplier))
    total = total_of(ledger, 1e-6)
    assert total.epsilon == pytest.approx(accountant.get_epsilon(1e-6), rel=1e-3)


def test_unlike_releases_add_up_under_replace_one(embedding: Embedding) -> None:
    adding = PrivacyParameters(1.0, adjacency=Adjacency.ADD_REMOVE)
    alike = total_of(ledger_of(embedding, adding, adding), 1e-5)
    mixed = total_of(ledger_of(embedding, adding, ONE), 1e-5)
    assert alike.adjacency is Adjacency.ADD_REMOVE
    assert mixed.adjacency is Adjacency.REPLACE_ONE
    exchanged = total_of(ledger_of(embedding, ONE, ONE), 1e-5)
    assert mixed.epsilon > exchanged.epsilon  # what hides one record hides an exchange less


def test_the_ceiling_holds(embedding: Embedding) -> None:
    ledger = replace(ledger_of(embedding, ONE), ceiling=PrivacyBudget(2.0, 1e-5))
    left = remaining(ledger)
    fits = ledger_of(embedding, PrivacyParameters(left)).entries[0]
    exceeds = ledger_of(embedding, PrivacyParameters(left * 1.001)).entries[0]
    require_below_ceiling(ledger.with_entry(fits))
    with pytest.raises(BudgetError, match=r"budget of epsilon 2 .* 1 is spent already"):
        require_below_ceiling(ledger.with_entry(exceeds))
    assert remaining(replace(ledger, ceiling=PrivacyBudget(0.9, 1e-5))) == 0.0


def test_a_ceiling_has_no_slack(embedding: Embedding) -> None:
    under = replace(embedding, ledger=Ledger(ceiling=PrivacyBudget(1.0, 1e-5)))
    unrecorded_release(under, ONE)
    for epsilon in (1.0000009, 1.00000001):
        with pytest.raises(BudgetError, match=r"budget of epsilon 1 .* does not allow"):
            unrecorded_release(under, PrivacyParameters(epsilon))


def test_what_is_public_enters_every_release_into_the_ledger(embedding: Embedding) -> None:
    """Neither a release in memory nor a signature can be had without an entry."""
    signs = {"release", "SigningKey", "load_key", "make_key", "own_key"}
    assert {name for name in dpntk.release.__all__ if name[0].islower()} - signs == {
        "open_any",
        "open_release",
    }
    with pytest.raises(BudgetError, match="does not allow this release"):
        unrecorded_release(
            replace(embedding, ledger=Ledger(ceiling=PrivacyBudget(1.0))), PrivacyParameters(5.0)
        )


@pytest.mark.parametrize("epsilon", ["1e6", "1e300"])
def test_what_no_reader_would_accept_is_refused_before_it_is_spent(
    dpntk: Command, embedding_file: Path, epsilon: str
) -> None:
    own_key()
    before = embedding_file.read_bytes()
    stopped = dpntk("release", embedding_file, "--eps", epsilon)
    refused(stopped, f"--eps {float(epsilon):g} is more than the least noise there is spends")
    assert embedding_file.read_bytes() == before
    assert not Path("release.h5").exists()


def test_a_release_that_contradicts_itself_is_not_spent(
    embedding_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def contradicted(*_: object) -> None:
        raise FormatError("sigma is odd")

    monkeypatch.setattr(publishing, "require_consistent", contradicted)
    with pytest.raises(BudgetError, match=r"no reader could confirm such a release, sigma is odd"):
        release(embedding_file, tmp_path / "release.h5", ONE)
    assert load_embedding(embedding_file).ledger.entries == ()


def test_a_refusal_does_not_tell_a_protected_number_of_records(embedding: Embedding) -> None:
    public = PrivacyParameters(1.0, delta=0.01)
    with pytest.raises(BudgetError, match=r"1/n = 0.005: .* choose at most 5e-04"):
        unrecorded_release(embedding, public)
    with pytest.raises(BudgetError, match=r"not below one over the number") as caught:
        unrecorded_release(embedding, replace(public, adjacency=Adjacency.ADD_REMOVE))
    assert set(re.findall(r"[\d.e-]*\d", str(caught.value))) == {"0.01"}


def test_no_delta_is_said_to_be_less_than_it_is(dpntk: Command, folder: Path) -> None:
    dpntk("embed", folder, "--width", "5")
    at = ("--delta", "1.0000001e-3")
    assert dpntk("release", "--eps", "1", *at).code == 0
    refused = dpntk("release", "--eps", "1", *at, "-o", "second.h5")
    assert refused.code == 1
    spent, planned = dpntk("budget", *at), dpntk("plan", "--eps", "1", *at)
    for said in (refused.stderr, spent.stdout, planned.stdout):
        assert re.search(r"delta 0\.00100001\b", said)
        assert not re.search(r"delta 0\.001\b", said)


def test_the_ceiling_stops_a_release(dpntk: Command, folder: Path, tmp_path: Path) -> None:
    dpntk("embed", folder, "--width", "5", "--budget-eps", "1.2", "--budget-delta", "1e-3")
    assert dpntk("release", "--eps", "1", "--delta", "1e-3").code == 0
    stopped = dpntk("release", "--eps", "1", "--delta", "1e-3", "--compose", "-o", "second.h5")
    assert stopped.code == 1
    assert "does not allow this release" in stopped.stderr
    assert not (tmp_path / "second.h5").exists()
    shown = dpntk("budget").stdout
    assert "spent: epsilon 1 at delta 0.001 (replace-one)" in shown
    assert (
        "ceiling: epsilon 1.2 at delta 0.001; one more release may have up to epsilon 0.5" in shown
    )
    left = re.search(r"one more release may have up to epsilon (0\.\d+)", shown)
    assert left is not None
    second = ("-o", "second.h5", "--compose", "--delta", "1e-3")
    assert dpntk("release", "--eps", f"{float(left[1]) + 1e-4:.4f}", *second).code == 1
    assert dpntk("release", "--eps", left[1], *second).code == 0


@pytest.mark.parametrize("epsilon", [1, 3, 0.7])
def test_a_release_that_spends_its_whole_ceiling_is_its_own_total(
    dpntk: Command, folder: Path, epsilon: float
) -> None:
    ceiling = ("--budget-eps", epsilon, "--budget-delta", 1e-3)
    assert dpntk("embed", folder, "--width", 5, *ceiling).code == 0
    assert dpntk("release", "--eps", epsilon, "--delta", 1e-3).code == 0
    shown = dpntk("budget").stdout
    assert f"spent: epsilon {epsilon:g} at delta 0.001 (replace-one)" in shown
    assert f"ceiling: epsilon {epsilon:g} at delta 0.001; nothing is left" in shown
    (told,) = json.loads(dpntk("budget", "--json").stdout)["spent"]
    assert told["epsilon"] == epsilon


def test_what_is_left_is_left_under_the_adjacency_that_is_said(
    dpntk: Command, folder: Path
) -> None:
    """All are added up under replace-one once one of them is, and then each of them hides less."""
    dpntk("embed", folder, "--width", "5", "--budget-eps", "2", "--budget-delta", "1e-3")
    assert dpntk("budget").stdout.strip().endswith("at the same delta")
    promise = ("--delta", "1e-3", "--adjacency", "add-remove")
    assert dpntk("release", "--eps", "1", *promise).code == 0
    left = re.search(r"epsilon (1\.\d+) at the same delta \(add-remove\)", dpntk("budget").stdout)
    assert left is not None
    assert left[0] in dpntk("plan", "--eps", 1, "--records", 30, *promise).stdout
    second = ("release", "--eps", left[1], "-o", "second.h5", "--compose", *promise)
    refused(dpntk(*second, "--adjacency", "replace-one"), "does not allow this release")
    assert dpntk(*second).code == 0


def test_a_ceiling_is_not_raised_once_there_are_releases(
    dpntk: Command, folder: Path, tmp_path: Path
) -> None:
    """Who looks at a release first, and sets the ceiling then, has not set one beforehand."""

    def embed_again(*options: str) -> Outcome:
        return dpntk("embed", folder, "--width", "5", "--overwrite", *options)

    embed_again("--budget-eps", "1")
    assert embed_again("--budget-eps", "2").code == 0  # nothing was released so far
    assert dpntk("release", "--eps", "1", "--delta", "1e-3").code == 0
    before = (tmp_path / "embedding.h5").read_bytes()
    message = "a ceiling of epsilon 2 at delta 1e-05: it can be lowered, not raised"
    refused(embed_again("--budget-eps", "2.1"), message)
    refused(embed_again("--budget-eps", "1", "--budget-delta", "1e-3"), message)
    assert (tmp_path / "embedding.h5").read_bytes() == before
    for options, ceiling in (((), 2), (("--budget-eps", "1.5"), 1.5)):
        assert embed_again(*options).code == 0
        assert load_embedding(tmp_path / "embedding.h5").ledger.ceiling == PrivacyBudget(
            ceiling, 1e-5
        )


def test_the_entry_is_on_the_disk_before_any_noise_is_drawn(
    embedding_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        assert len(load_embedding(embedding_file).ledger.entries) == 1
        raise DpntkError("crash")

    monkeypatch.setattr(measurement, "add_noise", crash)
    with pytest.raises(DpntkError, match="crash"):
        release(embedding_file, tmp_path / "release.h5", ONE)
    assert len(load_embedding(embedding_file).ledger.entries) == 1
    assert not (tmp_path / "release.h5").exists()


def test_no_noise_is_drawn_if_the_entry_cannot_be_written(
    embedding_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(*_: object) -> None:
        raise BudgetError("no space")

    drawn: list[object] = []
    monkeypatch.setattr(publishing, "write_embedding", no_space)
    monkeypatch.setattr(measurement, "add_noise", lambda *_: drawn.append(1))
    with pytest.raises(BudgetError, match="no space"):
        release(embedding_file, tmp_path / "release.h5", ONE)
    assert drawn == []


def test_nothing_is_spent_where_the_release_has_no_room(
    dpntk: Command, embedding_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedding = load_embedding(embedding_file)
    size = embedding.sums.size * 4
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=size))  # no weights
    stopped = dpntk("release", embedding_file, "--eps", "1", "--delta", "1e-3")
    assert stopped.code == 1
    assert "MB are needed" in stopped.stderr
    assert load_embedding(embedding_file).ledger.entries == ()


def test_nothing_is_registered_where_the_ledger_has_no_room(
    dpntk: Command, embedding_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The registry of data sets would count a release that the embedding knows nothing of."""
    save_embedding(load_embedding(embedding_file), embedding_file, overwrite=True, data_set="ward")
    elsewhere = embedding_file.parent / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr(
        shutil,
        "disk_usage",
        lambda folder: SimpleNamespace(
            free=1 << 40 if Path(folder) == elsewhere else embedding_file.stat().st_size
        ),
    )
    options = ("--eps", "1", "--delta", "1e-3", "-o", elsewhere / "release.h5")
    stopped = dpntk("release", embedding_file, *options)
    assert stopped.code == 1
    assert "MB are needed" in stopped.stderr
    assert "embedding.h5: " in stopped.stderr
    (member,) = members_of("ward")
    assert member.ledger.entries == ()


def test_a_name_without_room_for_a_temporary_one_is_refused_before_anything_is_spent(
    dpntk: Command, embedding_file: Path
) -> None:
    output = embedding_file.parent / f"{'r' * 240}.h5"
    refused(dpntk("release", embedding_file, "--eps", "1", "-o", output), "File name too long")
    assert load_embedding(embedding_file).ledger.entries == ()


def test_texts_that_readers_would_refuse_cost_nothing(
    dpntk: Command, embedding_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_format, "LONGEST_TEXT", 500)
    stopped = dpntk("release", embedding_file, "--eps", "1", "--delta", "1e-3")
    assert stopped.code == 1
    assert "characters, and readers take 500 at most" in stopped.stderr
    assert "nothing was spent" in stopped.stderr
    assert load_embedding(embedding_file).ledger.entries == ()


@pytest.mark.parametrize(
    ("error", "words"), [(KeyboardInterrupt(), "interrupted; "), (OutputError("full"), "full; ")]
)
def test_what_is_spent_without_a_release_is_said(
    embedding_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    words: str,
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(publishing, "write_release", fail)
    with pytest.raises(OutputError, match=f"^{words}.*embedding.h5 counts the release as spent"):
        release(embedding_file, tmp_path / "release.h5", ONE)
    assert len(load_embedding(embedding_file).ledger.entries) == 1


def test_a_release_made_while_embedding_again_stays_in_the_ledger(
    dpntk: Command, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger is taken over when the new embedding is written, not when reading begins."""
    dpntk("embed", folder, "--width", "5")

    def embed_slowly(*arguments: Any, **options: Any) -> Embedding:  # noqa: ANN401
        made = embed(*arguments, **options)
        release(tmp_path / "embedding.h5", tmp_path / "meanwhile.h5", PrivacyParameters(1.0, 1e-3))
        return made

    monkeypatch.setattr("dpntk.embed.commands.running.embed", embed_slowly)
    assert dpntk("embed", folder, "--width", "7", "--overwrite").code == 0
    (entry,) = load_embedding(tmp_path / "embedding.h5").ledger.entries
    released = open_release(tmp_path / "meanwhile.h5").release
    assert entry.release_id == released.release_id


def in_a_child(
    embedding_file: Path, output: Path, prepare: Callable[[], None] = lambda: None
) -> int:
    """Publish in another process, in which `prepare` is called first; returns its id."""
    own_key()  # which the child would make first
    promise = ("--eps", "1", "--delta", "1e-5", "--compose")
    return start(["release", str(embedding_file), "-o", str(output), *promise], prepare=prepare)


@pytest.mark.parametrize(
    ("fatal", "entries", "releases"), [(1, 0, 0), (2, 1, 0), (3, 1, 0), (4, 1, 1), (5, 1, 1)]
)
def test_killed_at_each_step(
    embedding_file: Path, tmp_path: Path, fatal: int, entries: int, releases: int
) -> None:
    """SIGKILL at one call of fsync: ledger, its folder, release, its folder, or none of them."""
    child = in_a_child(embedding_file, tmp_path / "release.h5", kill_at("os.fsync", fatal))
    assert finish(child) == (0 if fatal > 4 else -signal.SIGKILL)
    assert len(load_embedding(embedding_file).ledger.entries) == entries
    assert len(list(tmp_path.glob("release.h5"))) == releases


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    ("function", "call"),
    [
        ("dpntk.release.publishing.pipeline.load_embedding", 1),
        ("dpntk.release.publishing.pipeline.enter_release", 1),
        ("dpntk.release.publishing.pipeline.write_embedding", 1),
        ("dpntk.release.publishing.pipeline.measure", 1),
        ("dpntk.release.publishing.measurement.add_noise", 1),
        ("dpntk.release.publishing.pipeline.write_release", 1),
        ("pathlib.Path.replace", 1),
        ("pathlib.Path.replace", 2),
    ],
)
def test_killed_before_or_after_what_it_does_no_release_lacks_its_entry(
    embedding_file: Path, tmp_path: Path, function: str, call: int, after: bool
) -> None:
    output = tmp_path / "release.h5"
    child = in_a_child(embedding_file, output, kill_at(function, call, after=after))
    assert finish(child) == -signal.SIGKILL
    entries = load_embedding(embedding_file).ledger.entries
    assert len(entries) <= 1
    if output.exists():
        assert [open_release(output).release.release_id] == [entry.release_id for entry in entries]
    release(embedding_file, tmp_path / "next.h5", ONE, compose=yes)
    assert len(load_embedding(embedding_file).ledger.entries) == len(entries) + 1


def test_a_link_to_an_embedding_has_no_ledger_of_its_own(
    dpntk: Command, folder: Path, tmp_path: Path
) -> None:
    """Replacing the link would leave what it led to as a copy whose ledger says nothing."""
    embedding, link = tmp_path / "embedding.h5", tmp_path / "elsewhere" / "link.h5"
    link.parent.mkdir()
    link.symlink_to(embedding)
    assert dpntk("embed", folder, "--width", "5", "-o", link).code == 0
    assert dpntk("release", link, "--eps", "1").code == 0
    assert len(load_embedding(embedding).ledger.entries) == 1
    stopped = dpntk("release", embedding, "--eps", "1", "-o", "second.h5")
    assert "was released before" in stopped.stderr
    assert dpntk("embed", folder, "--width", "7", "-o", link, "--overwrite").code == 0
    assert link.is_symlink()
    assert len(load_embedding(embedding).ledger.entries) == 1


def test_simultaneous_releases_all_count(embedding_file: Path, tmp_path: Path) -> None:
    children = [in_a_child(embedding_file, tmp_path / f"{number}.h5") for number in range(6)]
    assert [finish(child) for child in children] == [0] * 6
    releases = {open_release(p).release.release_id for p in tmp_path.glob("[0-9].h5")}
    assert len(releases) == 6
    assert {entry.release_id for entry in load_embedding(embedding_file).ledger.entries} == releases


@pytest.mark.parametrize("change", [("1.0", "Infinity"), ('"multiplier"', '"multiplied"')])
def test_a_damaged_ledger_is_refused(
    embedding_file: Path, tmp_path: Path, change: tuple[str, str]
) -> None:
    release(embedding_file, tmp_path / "release.h5", ONE)
    with h5py.File(embedding_file, "r+") as file:
        ledger = str(file.attrs["ledger"])
        multiplier = load_embedding(embedding_file).ledger.entries[0].noise_multiplier
        file.attrs["ledger"] = ledger.replace(str(multiplier), change[1]).replace(*change)
    with pytest.raises(EmbeddingError, match="ledger"):
        load_embedding(embedding_file)
