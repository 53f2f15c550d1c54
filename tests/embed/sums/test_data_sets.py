"""What was spent on one data set over several embeddings: entered, added up, asked about."""

from __future__ import annotations

import contextlib
import fcntl
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dpntk.common.adjacency import Adjacency
from dpntk.common.errors import BudgetError, OutputError
from dpntk.common.ledger import Entry, Ledger, PrivacyBudget
from dpntk.embed import Embedding, load_embedding, save_embedding
from dpntk.embed.sums import saving
from dpntk.embed.sums.data_sets import (
    data_sets_of,
    joint_ledger,
    members_of,
    nobody_else_spends,
    registry_path,
    spent_on_records_of,
)
from dpntk.embed.sums.file import write_embedding
from dpntk.release import PrivacyParameters, own_key, release
from dpntk.release.mechanism.accountant import noise_multiplier
from dpntk.release.mechanism.composition import (
    Total,
    require_below_ceiling,
    strictest,
    total_of,
)
from dpntk.release.publishing import pipeline
from tests.conftest import Command, refused

PROMISE = ("--eps", 1, "--delta", 1e-3)


def embed(dpntk: Command, folder: Path, width: int, *options: object) -> Path:
    """An embedding of the images, another one for every width."""
    path = Path(f"{width}.h5")
    made = dpntk("embed", folder, "--width", width, "-o", path, *options)
    assert made.code == 0, made.stderr
    return path


def halves_of(folder: Path) -> list[Path]:
    """Two folders, `first` and `second`, with half of the images each."""
    halves = [folder.with_name(name) for name in ("first", "second")]
    for half, left_out in zip(halves, (0, 1), strict=True):
        shutil.copytree(folder, half)
        for number, image in enumerate(sorted(half.rglob("*.png"))):
            if number % 2 == left_out:
                image.unlink()
    return halves


def spent(dpntk: Command, *options: object) -> tuple[int, float]:
    """How many releases `budget` counts, and the epsilon of all together."""
    shown = dpntk("budget", *options, "--json")
    assert shown.code == 0, shown.stderr
    document = json.loads(shown.stdout)
    return len(document["releases"]), document["spent"][0]["epsilon"]


def test_releases_from_several_embeddings_are_added_up(dpntk: Command, folder: Path) -> None:
    for width in (5, 6):
        embed(dpntk, folder, width, "--data-set", "digits")
    assert dpntk("release", "5.h5", *PROMISE).code == 0
    assert spent(dpntk, "6.h5")[0] == 0
    again = ("release", "6.h5", *PROMISE, "-o", "second.h5")
    asked = dpntk(*again)
    refused(asked, "another embedding of the same data set was released before", "add --compose")
    assert not load_embedding(Path("6.h5")).ledger.entries
    assert dpntk(*again, "--compose").code == 0

    both = joint_ledger(load_embedding(Path(f"{width}.h5")).ledger for width in (5, 6))
    together = total_of(both, 1e-3).epsilon
    assert 1.3 < together < 1.6
    assert spent(dpntk, "--data-set", "digits") == (2, together)
    told = json.loads(dpntk("inspect", "second.h5", "--json").stdout)["guarantee"]
    assert (told["total_releases"], told["total_epsilon"]) == (2, together)
    assert json.loads(dpntk("plan", "5.h5", *PROMISE, "--json").stdout)["budget"]["releases"] == 2
    shown = dpntk("budget", "--data-set", "digits").stdout
    assert "from 2 embeddings: " in shown
    assert "--data-set digits" in dpntk("budget", "5.h5").stdout


def test_the_total_of_a_data_set_is_for_the_least_delta_unless_told_otherwise(
    dpntk: Command, embedding: Embedding, tmp_path: Path
) -> None:
    """At that one every release's own promise is counted."""
    entries = tuple(replace(entry(name), delta=10.0**-place) for place, name in enumerate("abc", 3))
    for number, each in enumerate(entries):
        other = replace(embedding, ledger=Ledger((each,)), sums=embedding.sums + number)
        save_embedding(other, tmp_path / f"{each.release_id}.h5", data_set="digits")
    for options, delta in (((), 1e-5), (("--delta", 1e-8), 1e-8)):
        (told,) = json.loads(dpntk("budget", "--data-set", "digits", *options, "--json").stdout)[
            "spent"
        ]
        assert told["delta"] == delta
        assert told["epsilon"] == total_of(Ledger(entries), delta).epsilon


def test_an_embedding_that_is_declared_while_its_total_is_asked_about_is_not_released(
    dpntk: Command, folder: Path
) -> None:
    """What was released from others of the data set would be in no total."""
    path, copy = embed(dpntk, folder, 5), Path("elsewhere", "copy.h5")
    assert dpntk("release", path, *PROMISE).code == 0
    copy.parent.mkdir()
    shutil.copy(path, copy)

    def declared(total: Total) -> bool:
        assert total.releases == 2
        save_embedding(load_embedding(copy), copy, overwrite=True, data_set="digits")
        parameters = PrivacyParameters(1.0, 1e-3)
        release(copy, "of_the_copy.h5", parameters, compose=lambda of_both: of_both.releases == 2)
        return True

    again = PrivacyParameters(1.0, 1e-3)
    with pytest.raises(BudgetError, match="declared to be of a data set in the meantime"):
        release(path, "second.h5", again, compose=declared)
    assert not Path("second.h5").exists()
    assert len(load_embedding(path).ledger.entries) == 1
    release(path, "second.h5", again, compose=lambda total: total.releases == 3)
    assert spent(dpntk, "--data-set", "digits")[0] == 3


def test_nothing_of_the_data_set_is_in_a_release_and_nobody_else_reads_the_registry(
    dpntk: Command, folder: Path
) -> None:
    embed(dpntk, folder, 5, "--data-set", "ward-seven")
    assert dpntk("release", "5.h5", *PROMISE).code == 0
    digest = load_embedding(Path("5.h5")).totals.digest()
    assert digest in registry_path().read_text()
    for hidden in (digest, "ward-seven"):
        assert hidden.encode() not in Path("release.h5").read_bytes()
    assert registry_path().stat().st_mode & 0o777 == 0o600


def test_copies_merged_embeddings_and_what_was_lost_count(dpntk: Command, folder: Path) -> None:
    embed(dpntk, folder, 5, "--data-set", "digits")
    Path("copy.h5").write_bytes(Path("5.h5").read_bytes())
    Path("5.h5").unlink()
    assert dpntk("release", "copy.h5", *PROMISE).code == 0
    Path("copy.h5").unlink()
    assert spent(dpntk, "--data-set", "digits")[0] == 1
    # Embedded again, it is known by its sums; and what another holds of it counts in the sum.
    embed(dpntk, folder, 5)
    refused(dpntk("release", "5.h5", *PROMISE, "-o", "o.h5"), "was released before")
    from_other_images = folder.with_name("more")
    folder.rename(from_other_images)
    next(from_other_images.rglob("*.png")).unlink()
    embed(dpntk, from_other_images, 5, "-o", "rest.h5")
    assert dpntk("merge", "5.h5", "rest.h5", "-o", "all.h5").code == 0
    refused(dpntk("release", "all.h5", *PROMISE, "-o", "o.h5"), "was released before")
    assert dpntk("release", "all.h5", *PROMISE, "-o", "o.h5", "--compose").code == 0
    assert spent(dpntk, "--data-set", "digits")[0] == 2


def test_ceilings_of_parts_bind_whatever_else_there_is() -> None:
    """What a site was promised is not lost beside a sum of more parts."""
    site = Ledger((entry("a"),), PrivacyBudget(1.2, 1e-3))
    ours = Ledger((entry("b"),), parts=(site, Ledger()))
    other = Ledger(
        (entry("c"),), PrivacyBudget(9.0, 1e-3), (Ledger((entry("a"),)), Ledger(), Ledger())
    )
    together = joint_ledger([ours, other])
    # What another one has counts as of the whole, whichever part knows it.
    assert [one.release_id for one in together.entries] == ["b", "a", "c"]
    site = replace(site, entries=())
    assert (together.ceiling, together.parts) == (PrivacyBudget(9.0, 1e-3), (site, Ledger()))
    with pytest.raises(BudgetError, match="a part of these records does not allow"):
        require_below_ceiling(together)
    alone = joint_ledger([Ledger(ceiling=PrivacyBudget(3.0, 1e-3)), other])
    assert (alone.ceiling, alone.parts) == (PrivacyBudget(3.0, 1e-3), other.parts)


def test_a_ceiling_on_one_embedding_binds_all_of_the_data_set(dpntk: Command, folder: Path) -> None:
    embed(dpntk, folder, 5, "--data-set", "digits", "--budget-eps", 1.2, "--budget-delta", 1e-3)
    embed(dpntk, folder, 6, "--data-set", "digits")
    assert dpntk("release", "6.h5", *PROMISE).code == 0
    again = ("release", "6.h5", *PROMISE, "-o", "o.h5", "--compose")
    refused(dpntk(*again), "the budget of epsilon 1.2 at delta 0.001")
    # It is shown of the data set, and to whoever plans a release from the other.
    for question in (("budget", "--data-set", "digits"), ("plan", "6.h5", *PROMISE)):
        assert "ceiling: epsilon 1.2 at delta 0.001" in dpntk(*question).stdout
    # Whoever has seen a release does not raise what was set before.
    higher = ("--budget-eps", 5, "--budget-delta", 1e-3, "--data-set", "digits", "--overwrite")
    refused(dpntk("embed", folder, "--width", 5, "-o", "5.h5", *higher), "lowered, not raised")
    # The other may have one of its own; the lower one binds.
    other = ("-o", "6.h5", "--width", 6, "--data-set", "digits", "--overwrite")
    assert dpntk("embed", folder, *other, "--budget-eps", 5, "--budget-delta", 1e-3).code == 0
    refused(dpntk(*again), "the budget of epsilon 1.2 at delta 0.001")
    # A copy without a ceiling takes it from nobody, and one that is lost neither.
    Path("5.h5").unlink()
    embed(dpntk, folder, 5, "--data-set", "digits")
    refused(dpntk(*again), "the budget of epsilon 1.2 at delta 0.001")


def test_a_ceiling_is_raised_in_a_data_set_that_nothing_was_released_from(
    dpntk: Command, folder: Path
) -> None:
    budget = ("--budget-delta", 1e-3, "--data-set", "digits", "--overwrite", "--budget-eps")
    for epsilon in (0.5, 2):
        embed(dpntk, folder, 5, *budget, epsilon)
    assert dpntk("release", "5.h5", *PROMISE).code == 0


def test_a_ceiling_counts_what_the_data_set_was_released_from_before(
    dpntk: Command, folder: Path
) -> None:
    """A copy of an embedding that nobody declared: its own ledger knows of no release."""
    embed(dpntk, folder, 5, "--data-set", "digits")
    assert dpntk("release", "5.h5", *PROMISE).code == 0
    copy = ("embed", folder, "--width", 5, "-o", "copy.h5", "--budget-delta", 1e-3, "--budget-eps")
    assert dpntk(*copy, 1.2).code == 0
    left = float(dpntk("budget", "copy.h5").stdout.split("may have up to epsilon ")[1].split()[0])
    assert 0 < left < 0.7
    refused(dpntk(*copy, 9, "--overwrite"), "epsilon 1.2 at delta 0.001: it can be lowered")
    assert dpntk(*copy, 1.1, "--overwrite").code == 0


def test_what_is_written_over_an_embedding_stays_in_its_data_sets(
    dpntk: Command, folder: Path
) -> None:
    """Whatever is said of a data set then: the ceiling of another one in the old set binds."""
    for width, ceiling in ((5, ("--budget-eps", 1.2, "--budget-delta", 1e-3)), (6, ())):
        embed(dpntk, folder, width, "--data-set", "digits", *ceiling)
    assert dpntk("release", "5.h5", *PROMISE).code == 0
    raised = ("--data-set", "others", "--budget-eps", 9, "--budget-delta", 1e-3)
    for width, options in ((7, ()), (8, raised)):
        over = ("embed", folder, "--width", width, "-o", "6.h5", "--overwrite", *options)
        assert dpntk(*over).code == 0
        again = dpntk("release", "6.h5", *PROMISE, "--compose", "-o", "second.h5")
        refused(again, "the budget of epsilon 1.2 at delta 0.001 does not allow this release")
    assert "--data-set digits" in dpntk("budget", "6.h5").stdout
    assert "--data-set others" in dpntk("budget", "6.h5").stdout


def test_a_merged_embedding_stays_in_the_data_sets_of_what_it_is_written_over(
    dpntk: Command, folder: Path
) -> None:
    for width, ceiling in ((5, ("--budget-eps", 1.2, "--budget-delta", 1e-3)), (6, ())):
        embed(dpntk, folder, width, "--data-set", "digits", *ceiling)
    assert dpntk("release", "5.h5", *PROMISE).code == 0
    for half in halves_of(folder):
        embed(dpntk, half, 6, "-o", f"{half.name}.h5")
    assert dpntk("merge", "first.h5", "second.h5", "-o", "6.h5", "--overwrite").code == 0
    again = dpntk("release", "6.h5", *PROMISE, "--compose", "-o", "second_release.h5")
    refused(again, "the budget of epsilon 1.2 at delta 0.001 does not allow this release")
    assert "--data-set digits" in dpntk("budget", "6.h5").stdout


def entry(name: str) -> Entry:
    multiplier = noise_multiplier(1.0, 1e-3)
    return Entry(name, "2026", 1.0, 1e-3, Adjacency.REPLACE_ONE, multiplier, multiplier)


def test_a_release_that_is_not_written_counts_too(
    dpntk: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The registry is written before the embedding, and both before the noise is drawn."""
    embed(dpntk, folder, 5, "--data-set", "digits")
    with monkeypatch.context() as patch:
        patch.setattr("dpntk.release.publishing.pipeline._carry_out", interrupted)
        assert dpntk("release", "5.h5", *PROMISE).code == 1
    assert spent(dpntk, "--data-set", "digits")[0] == 1


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_an_embedding_that_is_there_can_be_declared(dpntk: Command, folder: Path) -> None:
    embed(dpntk, folder, 5)
    assert dpntk("release", "5.h5", *PROMISE).code == 0
    embed(dpntk, folder, 5, "--data-set", "digits", "--overwrite")
    assert spent(dpntk, "--data-set", "digits")[0] == 1


def test_a_damaged_registry_is_one_line_and_nothing_is_spent(dpntk: Command, folder: Path) -> None:
    embed(dpntk, folder, 5, "--data-set", "digits")
    own_key()  # made now, so that no command says that it has made one
    release_it = ("release", "5.h5", *PROMISE)
    lines = release_it, ("budget", "--data-set", "digits"), ("budget", "5.h5")
    for content in ("", "[]", '{"format": "dpntk data sets 1", "data_sets": 7}'):
        registry_path().write_text(content)
        for line in lines:
            refused(dpntk(*line), "put a copy back")
    assert not load_embedding(Path("5.h5")).ledger.entries


def test_a_registry_that_cannot_be_reached_is_not_a_missing_one(
    dpntk: Command, folder: Path
) -> None:
    embed(dpntk, folder, 5, "--data-set", "digits")
    own_key()
    kept = registry_path().parent.rename(registry_path().parent.with_name("kept"))
    registry_path().parent.symlink_to("data_sets")  # to itself
    refused(dpntk("release", "5.h5", *PROMISE), "the registry of data sets cannot be read")
    registry_path().parent.unlink()
    kept.rename(registry_path().parent)
    registry_path().parent.chmod(0o777)
    refused(dpntk("release", "5.h5", *PROMISE), "who decide then what was spent on data sets")
    assert not load_embedding(Path("5.h5")).ledger.entries
    registry_path().parent.chmod(0o700)
    assert dpntk("release", "5.h5", *PROMISE).code == 0


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 201])
def test_names_that_are_none_are_refused_before_anything_is_read(dpntk: Command, name: str) -> None:
    refused(dpntk("embed", "nowhere", "--data-set", name), "a name of up to 200 characters")


def test_what_nobody_declared(dpntk: Command, folder: Path) -> None:
    refused(dpntk("budget", "--data-set", "digits"), "no data set 'digits' was declared")
    assert dpntk("budget", "x.h5", "--data-set", "digits").code == 2
    embed(dpntk, folder, 5)
    assert dpntk("release", "5.h5", *PROMISE).code == 0
    assert not registry_path().exists()


def test_releases_from_two_embeddings_at_once_see_one_another(dpntk: Command, folder: Path) -> None:
    """While one asks what was spent and is entered, no other gets as far as asking."""
    for width in (5, 6):
        embed(dpntk, folder, width, "--data-set", "digits")
    assert dpntk("release", "5.h5", *PROMISE).code == 0

    def asked(_: Total) -> bool:
        with (
            (registry_path().parent / ".dpntk.lock").open() as lock,
            pytest.raises(BlockingIOError),
        ):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True

    release("6.h5", "second.h5", PrivacyParameters(1.0, 1e-3), compose=asked)
    paths = {member.path for member in members_of("digits")}
    assert paths == {str(Path(f"{width}.h5").resolve()) for width in (5, 6)}


def test_what_others_release_before_it_is_ones_turn_counts(
    dpntk: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A total that is taken before the wait for the registry would miss it."""
    path, other = embed(dpntk, folder, 5, "--data-set", "digits"), Path("elsewhere", "6.h5")
    other.parent.mkdir()
    made = dpntk("embed", folder, "--width", 6, "-o", other, "--data-set", "digits")
    assert made.code == 0, made.stderr
    promise, waiting = PrivacyParameters(1.0, 1e-3), nobody_else_spends

    @contextlib.contextmanager
    def after_another(embedding: Embedding) -> Iterator[tuple[str, ...]]:
        monkeypatch.setattr(pipeline, "nobody_else_spends", waiting)
        release(other, "first.h5", promise)
        with waiting(embedding) as names:
            yield names

    monkeypatch.setattr(pipeline, "nobody_else_spends", after_another)
    with pytest.raises(BudgetError, match="another embedding of the same data set was released"):
        release(path, "second.h5", promise)
    assert not load_embedding(path).ledger.entries


def test_an_embedding_is_in_its_data_set_before_it_is_there(
    embedding: Embedding, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is there alone could be released from, and no other would count it."""

    def no_space(*_: object) -> None:
        raise OutputError("no space")

    monkeypatch.setattr(saving, "write_embedding", no_space)
    with pytest.raises(OutputError, match="no space"):
        save_embedding(embedding, tmp_path / "5.h5", data_set="digits")
    assert [member.path for member in members_of("digits")] == [str((tmp_path / "5.h5").resolve())]


def test_a_ceiling_counts_the_releases_that_it_was_set_for() -> None:
    """As low a one on other records says nothing of them."""
    low = PrivacyBudget(1.2, 1e-3)
    whole = Ledger(parts=(Ledger((entry("a"),)), Ledger(ceiling=low)))
    limited = strictest(whole.with_later(Ledger((entry("a"),), low)))
    assert limited is not None
    assert (limited.ceiling, limited.all_entries) == (low, (entry("a"),))
    # That of a part that is known as one binds what it knows of already.
    assert whole.with_later(Ledger(ceiling=low), of_part=True) == whole
    assert whole.with_later(Ledger(ceiling=low)) == replace(whole, ceiling=low)


def test_a_ceiling_of_all_records_binds_a_part_beside_one_that_has_the_same(
    dpntk: Command, folder: Path
) -> None:
    """What the first half has spent alone counts, although only the second half has a ceiling."""
    first, second = (Path(f"{half.name}.h5") for half in halves_of(folder))
    limit = ("--data-set", "digits", "--budget-eps", 1.2, "--budget-delta", 1e-3)
    for path, options in ((first, ()), (second, limit)):
        made = dpntk("embed", path.stem, "--width", 4, "-o", path, *options)
        assert made.code == 0, made.stderr
    embed(dpntk, folder, 5, *limit)
    for path in (first, Path("5.h5")):
        assert dpntk("release", path, *PROMISE, "-o", f"of {path}").code == 0
    assert dpntk("merge", first, second, "-o", "both.h5").code == 0
    again = dpntk("release", "both.h5", "--eps", 0.5, "--delta", 1e-3, "--compose", "-o", "o.h5")
    refused(again, "the budget of epsilon 1.2 at delta 0.001 does not allow this release")


def test_what_a_part_says_of_a_release_is_not_taken_for_the_release() -> None:
    """Names of releases are public: whoever gives a part may have put less under one, or the same.

    A release of all records counts for all of them, and not for the part's alone.
    """
    true = entry("a")
    less = replace(true, epsilon=0.01, noise_multiplier=1e6, noise_multiplier_replace_one=1e6)
    spent = total_of(Ledger((true, entry("b"))), 1e-3).epsilon
    for said in (true, less):
        merged = Ledger((entry("b"),), parts=(Ledger(), Ledger((said,))))
        for joint in (
            joint_ledger([merged, Ledger((true,))]),
            Ledger((said,)).with_later(Ledger((entry("b"),), parts=(Ledger((true,)), Ledger()))),
        ):
            assert true in joint.entries
            assert total_of(joint, 1e-3).epsilon >= spent
        assert not merged.covers(Ledger((true,)))
        assert merged.with_earlier((true,)).entries == (true, entry("b"))
    # Nor does it take the place of the release, and neither may be written over as if it were that.
    for here in (Ledger((true,)), Ledger(parts=(Ledger((true,)), Ledger()))):
        joint = here.with_later(Ledger((less,)))
        assert joint.all_entries in ((true, less), (less, true))
        assert here.with_later(Ledger((true,))).all_entries == (true,)
    assert not Ledger((less,)).covers(Ledger((true,)))


def test_halves_that_are_merged_know_what_was_released_of_all(dpntk: Command, folder: Path) -> None:
    """The first half was embedded over the embedding of all, and took over its ledger."""
    halves = halves_of(folder)
    embed(dpntk, folder, 5, "--data-set", "digits", "-o", "all.h5")
    assert dpntk("release", "all.h5", *PROMISE).code == 0
    embed(dpntk, halves[0], 5, "--data-set", "digits", "-o", "all.h5", "--overwrite")
    embed(dpntk, halves[1], 5, "--data-set", "digits", "-o", "half.h5")
    again = ("--compose", "-o", "second.h5")
    assert dpntk("release", "half.h5", *PROMISE, *again).code == 0
    assert dpntk("merge", "all.h5", "half.h5", "-o", "merged.h5").code == 0
    assert dpntk("release", "merged.h5", *PROMISE, "--compose", "-o", "third.h5").code == 0
    told = json.loads(dpntk("inspect", "third.h5", "--json").stdout)["guarantee"]
    three = Ledger(tuple(map(entry, "abc")))
    assert told["total_releases"] == 3
    assert told["total_epsilon"] == pytest.approx(total_of(three, 1e-3).epsilon)


def test_a_copy_of_a_merged_embedding_counts_its_parts_once(dpntk: Command, folder: Path) -> None:
    """Copies of one embedding have the same parts: what these spent is not added up."""
    site = Ledger((entry("a"),))
    merged = Ledger((entry("c"),), parts=(site, Ledger((entry("b"),))))
    renewed = merged.with_copy(replace(merged, entries=(entry("d"),)))
    assert (renewed.entries, renewed.parts) == ((entry("c"), entry("d")), merged.parts)
    assert len(merged.with_copy(Ledger((entry("d"),), parts=(site,))).entries) == 3


def test_a_merged_embedding_that_is_declared_counts_what_each_part_spent_for_its_own_records(
    embedding: Embedding, tmp_path: Path
) -> None:
    """What is registered of an embedding is about itself, and not about another one."""
    merged = Ledger((entry("c"),), parts=(Ledger((entry("a"),)), Ledger((entry("b"),))))
    declared = replace(embedding, ledger=merged)
    save_embedding(declared, tmp_path / "merged.h5", data_set="digits")
    assert spent_on_records_of(declared) == merged
    earlier = replace(declared, ledger=replace(merged, entries=()))  # a copy, from before
    assert spent_on_records_of(earlier) == merged
    save_embedding(replace(earlier, shards=()), tmp_path / "again.h5", data_set="digits")
    assert spent_on_records_of(earlier) == merged


def test_without_its_registry_an_embedding_of_a_data_set_is_not_released(
    dpntk: Command, folder: Path
) -> None:
    """Another user, a container or a restored home would be told that nothing was spent."""
    first = embed(dpntk, folder, 4, "--data-set", "ward", "--budget-eps", 2)
    second = embed(dpntk, folder, 5, "--data-set", "ward")
    assert dpntk("release", first, *PROMISE, "-o", "a.h5").code == 0
    registry = registry_path()
    kept = registry.rename(registry.with_name("elsewhere.json"))
    unknown = ("belongs to data set 'ward', but ", " does not know of it")
    for line in (
        ("release", second, "--eps", 5, "--delta", 1e-3, "-o", "b.h5"),
        ("plan", second, "--eps", 1),
        ("budget", second),
        ("embed", folder, "--width", 5, "-o", second, "--overwrite"),
    ):
        outcome = dpntk(*line)
        refused(outcome, *unknown)
        assert not outcome.stdout
    # Of a registry from before it was embedded, likewise.
    registry.write_text(json.dumps({"format": "dpntk data sets 1", "data_sets": {"ward": {}}}))
    registry.chmod(0o600)
    refused(dpntk("release", second, "--eps", 5, "--delta", 1e-3, "-o", "b.h5"), *unknown)
    kept.replace(registry)
    refused(
        dpntk("release", second, *PROMISE, "-o", "b.h5"), "budget of epsilon 2", "is spent already"
    )


def test_a_data_set_whose_registry_is_lost_may_be_declared_anew(
    dpntk: Command, folder: Path
) -> None:
    path = embed(dpntk, folder, 4, "--data-set", "ward")
    registry_path().unlink()
    again = dpntk("embed", folder, "--width", 4, "-o", path, "--overwrite", "--data-set", "ward")
    assert again.code == 0, again.stderr
    assert "'ward' is the name of a new data set" in again.stderr
    assert dpntk("release", path, *PROMISE, "-o", "a.h5").code == 0


def test_an_embedding_knows_its_names_however_it_got_them(dpntk: Command, folder: Path) -> None:
    path = embed(dpntk, folder, 4)
    assert load_embedding(path).data_sets == ()
    embed(dpntk, folder, 4, "--data-set", "ward", "--overwrite")
    assert load_embedding(path).data_sets == ("ward",)
    embed(dpntk, folder, 4, "--overwrite")
    assert load_embedding(path).data_sets == ("ward",)
    # Embeddings of earlier versions were only in the registry.
    write_embedding(replace(load_embedding(path), data_sets=()), path)
    assert dpntk("release", path, *PROMISE, "-o", "a.h5").code == 0
    assert load_embedding(path).data_sets == ("ward",)


def test_another_name_for_a_data_set_forgets_nothing(dpntk: Command, folder: Path) -> None:
    """A new embedding under the new name knows what was released under the old one."""
    embed(dpntk, folder, 4, "--data-set", "trial")
    embed(dpntk, folder, 5, "--data-set", "trial", "--budget-eps", 1, "--budget-delta", 1e-3)
    assert dpntk("release", "5.h5", *PROMISE, "-o", "a.h5").code == 0
    embed(dpntk, folder, 4, "--overwrite", "--data-set", "trial, anew")
    embed(dpntk, folder, 6, "--data-set", "trial, anew")
    assert data_sets_of(load_embedding("6.h5")) == ("trial", "trial, anew")
    asked = dpntk("release", "6.h5", *PROMISE, "-o", "b.h5", "--compose")
    refused(asked, "the budget of epsilon 1 at delta 0.001 does not allow", "1 is spent already")
    for name in ("trial", "trial, anew"):
        assert spent(dpntk, "--data-set", name)[0] == 1


def test_a_merged_embedding_does_not_make_one_data_set_of_those_of_its_parts(
    dpntk: Command, folder: Path
) -> None:
    first, second = (Path(f"{half.name}.h5") for half in halves_of(folder))
    for path in (first, second):
        made = dpntk("embed", path.stem, "--width", 4, "-o", path, "--data-set", path.stem)
        assert made.code == 0, made.stderr
    assert dpntk("merge", first, second, "-o", "both.h5").code == 0
    assert dpntk("release", "both.h5", *PROMISE, "-o", "a.h5").code == 0  # registered under both
    assert data_sets_of(load_embedding(first)) == ("first",)
    assert data_sets_of(load_embedding("both.h5")) == ("first", "second")


def test_parts_of_others_do_not_bring_their_data_sets_along(dpntk: Command, folder: Path) -> None:
    """But those who merge them are told."""
    first, second = (Path(f"{half.name}.h5") for half in halves_of(folder))
    for path in (first, second):
        made = dpntk("embed", path.stem, "--width", 4, "-o", path, "--data-set", path.stem)
        assert made.code == 0, made.stderr
    registry = json.loads(registry_path().read_text())
    del registry["data_sets"]["second"]
    registry_path().write_text(json.dumps(registry))
    merged = dpntk("merge", first, second, "-o", "both.h5")
    assert merged.code == 0, merged.stderr
    assert "second.h5 is of data set 'second' of another user or machine" in merged.stderr
    assert load_embedding("both.h5").data_sets == ("first",)
    assert dpntk("release", "both.h5", *PROMISE, "-o", "a.h5").code == 0


@pytest.mark.parametrize("name", ["Ward", "WARD", "wa rd", "\uff57ard", "ward ", " ward"])
def test_a_name_that_looks_like_another_is_refused(dpntk: Command, folder: Path, name: str) -> None:
    """Whoever writes it in another way would be told that nothing was spent."""
    embed(dpntk, folder, 4, "--data-set", "ward")
    said = (
        "blanks around the name" if name != name.strip() else "there is a data set 'ward' already"
    )
    refused(dpntk("embed", folder, "--width", 5, "-o", "b.h5", "--data-set", name), said)
