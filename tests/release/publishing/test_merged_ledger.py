"""What was spent on the parts of a merged embedding counts for their own records, once."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import dp_accounting
import pytest

from dpntk.common.adjacency import Adjacency
from dpntk.common.errors import BudgetError
from dpntk.common.ledger import Ledger, PrivacyBudget
from dpntk.common.sources.options import SourceOptions
from dpntk.embed import Embedding, TangentOptions, embed, load_embedding, merge, save_embedding
from dpntk.release import PrivacyParameters, open_release, release
from dpntk.release.mechanism.composition import (
    Total,
    remaining,
    require_below_ceiling,
    strictest,
    total_of,
)
from tests.conftest import Command
from tests.helpers.processes import write_records
from tests.release.publishing.test_ledger import ledger_of

DELTA = 1e-5
LOUD, QUIET, LATER = PrivacyParameters(2.0), PrivacyParameters(0.5), PrivacyParameters(1.0)
ADDING = PrivacyParameters(1.0, adjacency=Adjacency.ADD_REMOVE)


def epsilon_of(embedding: Embedding, *parameters: PrivacyParameters) -> float:
    """Of Gaussians that all touch one record, by dp-accounting."""
    precision = sum(1 / e.noise_multiplier**2 for e in ledger_of(embedding, *parameters).entries)
    epsilon: float = dp_accounting.get_epsilon_gaussian(1 / math.sqrt(precision), DELTA)
    return epsilon


def joined(
    embedding: Embedding, *parts: Ledger, later: tuple[PrivacyParameters, ...] = ()
) -> Ledger:
    return replace(ledger_of(embedding, *later), parts=parts)


def test_the_total_is_the_largest_part_with_what_came_later(embedding: Embedding) -> None:
    loud, quiet = ledger_of(embedding, LOUD), ledger_of(embedding, QUIET, QUIET)
    for parts in ((loud, quiet), (quiet, loud), (loud, quiet, Ledger())):
        total = total_of(joined(embedding, *parts, later=(LATER,)), DELTA)
        assert total.epsilon == pytest.approx(epsilon_of(embedding, LOUD, LATER), rel=1e-6)
        assert total.releases == 4
    alone = total_of(joined(embedding, Ledger(), Ledger(), later=(LATER,)), DELTA)
    assert alone.epsilon == pytest.approx(epsilon_of(embedding, LATER), rel=1e-6)


def test_merged_again_a_record_keeps_what_it_spent_on_its_way(embedding: Embedding) -> None:
    inner = joined(embedding, ledger_of(embedding, QUIET), Ledger(), later=(LATER,))
    outer = joined(embedding, inner, ledger_of(embedding, LATER), later=(LATER,))
    total = total_of(outer, DELTA)
    assert total.epsilon == pytest.approx(epsilon_of(embedding, QUIET, LATER, LATER), rel=1e-6)


def test_a_part_without_noise_hides_nothing_in_the_whole(embedding: Embedding) -> None:
    exact = ledger_of(embedding, PrivacyParameters(math.inf, not_private=True))
    whole = joined(embedding, Ledger(), exact, later=(LATER,))
    assert total_of(whole, DELTA).epsilon == math.inf


def test_unlike_parts_are_taken_under_replace_one(embedding: Embedding) -> None:
    adding, exchanging = ledger_of(embedding, ADDING), ledger_of(embedding, LATER)
    alike = total_of(joined(embedding, adding, adding, later=(ADDING,)), DELTA)
    assert alike.adjacency is Adjacency.ADD_REMOVE
    assert alike.epsilon == pytest.approx(epsilon_of(embedding, ADDING, ADDING), rel=1e-6)
    mixed = total_of(joined(embedding, adding, exchanging, later=(ADDING,)), DELTA)
    assert mixed.adjacency is Adjacency.REPLACE_ONE
    exchanged = sum(2 / e.noise_multiplier_replace_one**2 for e in adding.entries)
    expected = dp_accounting.get_epsilon_gaussian(1 / math.sqrt(exchanged), DELTA)
    assert mixed.epsilon == pytest.approx(expected, rel=1e-6)


def test_every_ceiling_holds_for_its_own_records(embedding: Embedding) -> None:
    """A generous whole does not loosen what was promised to a part, and the other way round."""
    strict = replace(ledger_of(embedding, QUIET), ceiling=PrivacyBudget(1.0, DELTA))
    wide = replace(ledger_of(embedding, LOUD), ceiling=PrivacyBudget(5.0, DELTA))
    nested = joined(embedding, joined(embedding, strict, Ledger()), wide)
    for whole in (nested, replace(nested, ceiling=PrivacyBudget(9.0, DELTA))):
        limited = strictest(whole)
        assert limited is not None
        assert limited.ceiling == strict.ceiling
        left = remaining(limited)
        both = epsilon_of(embedding, QUIET, PrivacyParameters(left))
        assert both == pytest.approx(1.0, rel=1e-4)
        (fits,) = ledger_of(embedding, PrivacyParameters(left)).entries
        (exceeds,) = ledger_of(embedding, PrivacyParameters(left * 1.001)).entries
        require_below_ceiling(whole.with_entry(fits))
        with pytest.raises(BudgetError, match=r"budget of epsilon 1 .* a part .* 0.5 is spent"):
            require_below_ceiling(whole.with_entry(exceeds))
    own = replace(joined(embedding, wide, Ledger()), ceiling=PrivacyBudget(2.1, DELTA))
    (entry,) = ledger_of(embedding, LATER).entries
    with pytest.raises(BudgetError, match=r"budget of epsilon 2\.1 at delta 1e-05 does not"):
        require_below_ceiling(own.with_entry(entry))
    assert strictest(joined(embedding, Ledger())) is None


def test_a_ledger_with_parts_survives_the_file(embedding: Embedding, tmp_path: Path) -> None:
    ledger = joined(
        embedding,
        replace(ledger_of(embedding, LOUD), ceiling=PrivacyBudget(3.0, DELTA)),
        joined(embedding, ledger_of(embedding, QUIET), Ledger()),
        later=(LATER,),
    )
    save_embedding(replace(embedding, ledger=ledger), tmp_path / "e.h5")
    assert load_embedding(tmp_path / "e.h5").ledger == ledger


def test_the_whole_way(tmp_path: Path, dpntk: Command) -> None:
    """Two sites release on their own, then merge and release together."""
    parameters = ("--delta", "1e-3")
    for seed, site in enumerate("ab"):
        data = write_records(tmp_path / f"{site}.npz", count=200, seed=seed)
        made = embed(data, TangentOptions(front="pixels", width=5), SourceOptions(classes=3))
        save_embedding(made, tmp_path / f"{site}.h5")
    dpntk("release", "a.h5", "--eps", "2", *parameters, "-o", "ra.h5")
    dpntk("release", "b.h5", "--eps", "0.5", *parameters, "-o", "rb.h5")
    merged = dpntk("merge", "a.h5", "b.h5", "-o", "all.h5")
    assert "there are earlier releases from the parts" in merged.stderr
    assert "--eps 1 --compose" in merged.stderr
    assert "from now on release from the sum only" in merged.stderr

    refused = dpntk("release", "all.h5", "--eps", "1", *parameters)
    assert refused.code == 1
    assert "all.h5 was released before: with this release the total would be" in refused.stderr
    assert "--compose" in refused.stderr
    assert dpntk("release", "all.h5", "--eps", "1", *parameters, "--compose").code == 0

    guarantee = open_release(tmp_path / "release.h5").release.guarantee
    ledger = load_embedding(tmp_path / "all.h5").ledger
    loud, quiet, later = (entry.noise_multiplier for entry in ledger.all_entries)
    assert loud < later < quiet
    expected = dp_accounting.get_epsilon_gaussian(1 / math.hypot(1 / loud, 1 / later), 1e-3)
    assert guarantee.total_epsilon == pytest.approx(expected, rel=1e-6)
    assert guarantee.total_releases == 3
    shown = dpntk("budget", "all.h5").stdout
    assert "merged from 2 embeddings" in shown
    assert [shown.count(f" {epsilon} ") for epsilon in ("│ 2", "│ 0.5", "│ 1")] == [1, 1, 1]
    assert dpntk("verify", "release.h5").code == 0


def test_a_ceiling_of_a_part_stops_a_release_of_the_whole(tmp_path: Path, dpntk: Command) -> None:
    for seed, site in enumerate("ab"):
        data = write_records(tmp_path / f"{site}.npz", count=200, seed=seed)
        budget = ("--budget-eps", "0.5") if site == "b" else ()
        options = ("--front", "pixels", "--width", "5", "--classes", "3", *budget)
        assert dpntk("embed", data, *options, "-o", f"{site}.h5").code == 0
    assert dpntk("merge", "a.h5", "b.h5", "-o", "all.h5").code == 0
    assert (
        "ceiling of a part: epsilon 0.5 at delta 1e-05; one more release"
        in dpntk("budget", "all.h5").stdout
    )
    refused = dpntk("release", "all.h5", "--eps", "1")
    assert refused.code == 1
    assert "the budget of epsilon 0.5" in refused.stderr
    assert not (tmp_path / "release.h5").exists()


def test_embedding_again_takes_over_the_parts_ledgers(tmp_path: Path, dpntk: Command) -> None:
    for seed, site in enumerate("ab"):
        data = write_records(tmp_path / f"{site}.npz", count=200, seed=seed)
        save_embedding(
            embed(data, TangentOptions(front="pixels", width=5), SourceOptions(classes=3)),
            tmp_path / f"{site}.h5",
        )
    release(tmp_path / "a.h5", tmp_path / "r.h5", PrivacyParameters(1.0, 1e-3))
    save_embedding(merge([tmp_path / "a.h5", tmp_path / "b.h5"]), tmp_path / "embedding.h5")
    assert dpntk("embed", "a.npz", "--width", "5", "--overwrite").code == 0
    (entry,) = load_embedding(tmp_path / "embedding.h5").ledger.all_entries
    assert entry.epsilon == 1.0

    def agreed(_: Total) -> bool:
        return True

    parameters = PrivacyParameters(1.0, 1e-3)
    release(tmp_path / "embedding.h5", tmp_path / "s.h5", parameters, compose=agreed)
    assert len(load_embedding(tmp_path / "embedding.h5").ledger.all_entries) == 2
