"""Mistakes that would make an epsilon untrue, planted one by one: a named test catches each.

Every row of `MUTANTS` is a mistake somebody could make, with a way to plant it, and a test
elsewhere that must fail with the mistake in place. That it passes without is what the rest of the
run shows.
"""

from __future__ import annotations

import importlib
import inspect
import math
import pkgutil
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import _pytest.outcomes
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import dpntk
from dpntk.common.adjacency import Adjacency
from dpntk.common.errors import BudgetError, DpntkError
from dpntk.common.features import base as feature_maps
from dpntk.common.features import infinite_ntk as relu_kernel
from dpntk.common.features.base import FeatureMap
from dpntk.common.features.joint import JointFeatures, Parts, parts_of
from dpntk.common.features.marginals.cells import MarginalColumn, MarginalGroup
from dpntk.common.features.marginals.map import MarginalFeatures
from dpntk.common.features.perceptual import PerceptualFeatures
from dpntk.common.ledger import Entry, Ledger
from dpntk.common.schema import privacy_unit
from dpntk.common.schema.drafts import draft as schema_draft
from dpntk.common.schema.drafts import toml_entries
from dpntk.common.schema.origin import Origin
from dpntk.common.schema.privacy_unit import PrivacyUnit
from dpntk.common.schema.table import TableSchema
from dpntk.common.sources.images import image_folder
from dpntk.common.sources.images import labels as image_labels
from dpntk.common.sources.images.labels import Classes
from dpntk.common.sources.options import SourceOptions
from dpntk.common.sources.tables import privacy_units
from dpntk.common.storage.atomic import followed
from dpntk.embed.exact import joint as exact_joint
from dpntk.embed.exact import tangent as exact_tangent
from dpntk.embed.exact.grid import Grid
from dpntk.embed.exact.joint import ProductFeatures
from dpntk.embed.inference import column as column_inference
from dpntk.embed.inference import schema as schema_inference
from dpntk.embed.merging import _contents
from dpntk.embed.run import work_folder
from dpntk.embed.run import worker as counting
from dpntk.embed.run.checkpoint import Progress, Share, save_progress, split
from dpntk.embed.sums.accumulate import ClassSums
from dpntk.embed.sums.file import Embedding, write_embedding
from dpntk.embed.sums.totals import Totals
from dpntk.release import PrivacyParameters, Release
from dpntk.release.mechanism import accountant, composition, discrete_gaussian
from dpntk.release.mechanism import gaussian as mechanism
from dpntk.release.mechanism.gaussian import NoiseScale, NoisySums
from dpntk.release.publishing import fewer_cells, layout, measurement, parameters
from dpntk.release.publishing import pipeline as publishing
from dpntk.release.publishing.layout import ReleaseLayout
from dpntk.release.publishing.measurement import Measured
from dpntk.release.publishing.merging import merged_cells
from dpntk.release.publishing.selection import Dependence, dependences, select_pairs
from tests.common.features import test_infinite_ntk as test_relu_kernel
from tests.common.schema import test_table as test_table_schema
from tests.common.sources import test_sources
from tests.common.sources.images import test_label_file
from tests.conftest import CLASSES
from tests.embed import test_merging
from tests.embed.exact import test_joint as test_exact_joint
from tests.embed.exact import test_moments, test_perceptual
from tests.embed.inference import test_missing_header, test_rules
from tests.embed.run import test_work_folder
from tests.embed.sums import test_accumulate as exact_sums
from tests.embed.sums import test_saving
from tests.release.mechanism import test_accountant, test_discrete_gaussian
from tests.release.mechanism import test_gaussian as mechanism_tests
from tests.release.mechanism import test_sensitivity as sensitivity_tests
from tests.release.publishing import (
    test_fewer_cells,
    test_layout,
    test_ledger,
    test_measurement,
    test_merged_ledger,
    test_neighbours,
    test_privacy_units,
    test_weights,
)

for found in pkgutil.walk_packages(dpntk.__path__, "dpntk."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)  # loaded beside a mistake, a module would keep it

Plant = Callable[[pytest.MonkeyPatch], None]
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def everywhere(monkeypatch: pytest.MonkeyPatch, original: object, mutant: object) -> None:
    """Put the mutant wherever dpntk or the tests refer to the original."""
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] in {"dpntk", "tests"} and isinstance(module, types.ModuleType):
            for attribute, value in list(vars(module).items()):
                if value is original:
                    monkeypatch.setattr(module, attribute, mutant)


def noise_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    right = discrete_gaussian.discrete_gaussian

    def halved(size: int, sigma: int | Fraction) -> Integers:
        return right(size, Fraction(sigma) / 2)

    everywhere(monkeypatch, right, halved)


def seeded_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    def seeded(size: int, sigma: int) -> Integers:
        return np.rint(np.random.default_rng(0).normal(0, sigma, size)).astype(np.int64)

    everywhere(monkeypatch, discrete_gaussian.discrete_gaussian, seeded)


def noise_from_numpys_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeded by the system, but its state can be worked out from what it gave."""
    generator = np.random.default_rng()

    def words(size: int, kind: type[Any]) -> NDArray[Any]:
        return np.frombuffer(generator.bytes(size * np.dtype(kind).itemsize), kind).copy()

    everywhere(monkeypatch, discrete_gaussian._random_words, words)


def float_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    normal = np.random.default_rng().normal

    def add_noise(sums: Integers, counts: Integers | None, scale: NoiseScale) -> NoisySums:
        noisy = sums.astype(np.float64) + normal(0, scale.sigma, sums.shape)
        of_counts = None if counts is None else noisy_counts(counts, scale)
        return NoisySums(noisy.astype(np.int64), of_counts)

    def noisy_counts(counts: Integers, scale: NoiseScale) -> Integers:
        weighted = counts * float(scale.count_weight) + normal(0, scale.sigma, counts.shape)
        return weighted.astype(np.int64)

    everywhere(monkeypatch, mechanism.add_noise, add_noise)
    everywhere(monkeypatch, mechanism.noisy_counts, noisy_counts)


def sensitivity_of_one_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """1/m under replace-one: forgets that a record leaves when another comes."""

    def short(feature_map: FeatureMap, adjacency: Adjacency, *, count_weight: float) -> float:
        return math.hypot(feature_map.norm_bound, count_weight)

    everywhere(monkeypatch, feature_maps.sensitivity, short)


def one_row_of_each_person(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise for one row, where several of one person count."""

    def one(unit: PrivacyUnit | None) -> int:
        return 1

    everywhere(monkeypatch, privacy_unit.rows_per_unit, one)


def all_rows_of_each_person(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows beyond those that count are added up all the same."""

    def none_before(persons: Integers) -> Integers:
        return np.zeros_like(persons)

    everywhere(monkeypatch, privacy_units._places, none_before)


def rows_of_each_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of a person are counted anew in every stretch of the table."""
    right = privacy_units._places

    def anew(persons: Integers) -> Integers:
        return np.concatenate([right(persons[i : i + 50]) for i in range(0, len(persons), 50)])

    everywhere(monkeypatch, right, anew)


def unlike_units_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    right = parameters.entry_for

    def of_single_records(
        embedding: Embedding, promised: PrivacyParameters, scale: NoiseScale
    ) -> Entry:
        return replace(right(embedding, promised, scale), privacy_unit=None)

    everywhere(monkeypatch, right, of_single_records)


def every_map_nonnegative(monkeypatch: pytest.MonkeyPatch) -> None:
    def short(feature_map: FeatureMap, adjacency: Adjacency, *, count_weight: float) -> float:
        factor = math.sqrt(2) if adjacency is Adjacency.REPLACE_ONE else 1.0
        return factor * math.hypot(feature_map.norm_bound, count_weight)

    everywhere(monkeypatch, feature_maps.sensitivity, short)


def exact_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def noisy_counts(counts: Integers, scale: NoiseScale) -> Integers:
        return counts * scale.count_weight

    everywhere(monkeypatch, mechanism.noisy_counts, noisy_counts)


def textbook_sigma(monkeypatch: pytest.MonkeyPatch) -> None:
    """sqrt(2 ln(1.25 / delta)) / epsilon holds for epsilon below 1 only."""

    def textbook(epsilon: float, delta: float) -> float:
        return math.sqrt(2 * math.log(1.25 / delta)) / epsilon

    everywhere(monkeypatch, accountant.noise_multiplier, textbook)


def renyi_sigma(monkeypatch: pytest.MonkeyPatch) -> None:
    """Min over alpha of alpha / (2 z^2) + log(1/delta) / (alpha - 1) = epsilon: true, not tight."""

    def renyi(epsilon: float, delta: float) -> float:
        log = math.log(1 / delta)
        return (math.sqrt(log) + math.sqrt(log + epsilon)) / (math.sqrt(2) * epsilon)

    everywhere(monkeypatch, accountant.noise_multiplier, renyi)


def multiplier_rounded_down(monkeypatch: pytest.MonkeyPatch) -> None:
    right = accountant.noise_multiplier

    def down(epsilon: float, delta: float) -> float:
        return right(epsilon, delta) * (1 - 3e-9)

    everywhere(monkeypatch, right, down)


def sigma_rounded_down(monkeypatch: pytest.MonkeyPatch) -> None:
    careless = types.SimpleNamespace(ceil=math.floor, floor=math.floor, hypot=math.hypot)
    monkeypatch.setattr(mechanism, "math", careless)


def smoothing_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mechanism, "SMOOTHING", 0.0)


def counts_share_the_noise_of_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    right = discrete_gaussian.discrete_gaussian

    last = np.zeros(0, dtype=np.int64)

    def repeated(size: int, sigma: int) -> Integers:
        nonlocal last
        drawn = right(size, sigma)
        if CLASSES in (size, len(last)):
            drawn[: len(last)] = last[:size]
        last = drawn
        return drawn

    everywhere(monkeypatch, right, repeated)


def part_by_a_secret_number(monkeypatch: pytest.MonkeyPatch) -> None:
    right = measurement.known_records

    def known(embedding: Embedding, *_: object) -> int:
        return embedding.records

    everywhere(monkeypatch, right, known)


def records_in_two_cells_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the fullest cell count as of the last one, too."""
    right = fewer_cells.added_up

    def twice(sums: Integers, before: JointFeatures, after: JointFeatures) -> Integers:
        found = right(sums, before, after)
        last = parts_of(after).marginal_place.stop - 1
        found[last] += sums[parts_of(before).marginal_place].max(axis=0)
        return found

    everywhere(monkeypatch, right, twice)


def parts_longer_than_their_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a part is multiplied by is taken from the noise twice."""
    monkeypatch.setattr(
        NoiseScale,
        "sigmas",
        lambda scale, _: np.ceil(scale.sigma / scale.factors**2).astype(np.int64),
    )


def weights_shorter_than_they_are_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """What parts are multiplied by is what they should be divided by."""
    right = layout._with_weights

    def divided(before: JointFeatures, after: JointFeatures, scale: NoiseScale) -> ReleaseLayout:
        found = right(before, after, scale)
        assert found.scale.factors is not None
        return replace(found, scale=replace(found.scale, factors=1 / found.scale.factors))

    monkeypatch.setattr(layout, "_with_weights", divided)


def chosen_pairs_without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    right = measurement._noisy

    def noisy(embedding: Embedding, released: ReleaseLayout, *, private: bool) -> Integers:
        of_pairs = released.rows.min() >= parts_of(embedding.feature_map).group_place.start
        return right(embedding, released, private=private and not of_pairs)

    monkeypatch.setattr(measurement, "_noisy", noisy)


def looking(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    peeking: Callable[[Embedding], Callable[..., object]],
) -> None:
    """Something that measurement calls is replaced by what sees the exact sums."""
    right = measurement.measure

    def measure(
        embedding: Embedding, uniform: NoiseScale, adjacency: Adjacency, *, private: bool
    ) -> Measured:
        monkeypatch.setattr(measurement, name, peeking(embedding))
        return right(embedding, uniform, adjacency, private=private)

    everywhere(monkeypatch, right, measure)


def pairs_chosen_by_exact_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    def peeking(embedding: Embedding) -> Callable[..., object]:
        def select(
            parts: Parts,
            schema: TableSchema,
            products: Floats,
            noise: float,
            count: int,
            together: Mapping[int, Dependence],
        ) -> list[int]:
            exact = embedding.sums[parts.moment_place].astype(np.float64)
            return select_pairs(parts, schema, exact, 0.0, count, together)

        return select

    looking(monkeypatch, "select_pairs", peeking)


def cells_merged_by_exact_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    def peeking(embedding: Embedding) -> Callable[..., object]:
        def merge(
            marginals: MarginalFeatures, noisy: Integers, parts: int | None = None
        ) -> dict[MarginalColumn, MarginalColumn]:
            place = parts_of(embedding.feature_map).marginal_place
            return merged_cells(marginals, embedding.sums[place].sum(axis=1), parts)

        return merge

    looking(monkeypatch, "merged_cells", peeking)


def pairs_chosen_by_exact_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all pairs of numbers in few cells."""

    def peeking(embedding: Embedding) -> Callable[..., object]:
        def seen(
            tables: Sequence[MarginalGroup],
            cells: Integers,
            noise: float,
            first_part: Mapping[MarginalColumn, float],
        ) -> Iterator[Dependence]:
            parts = parts_of(embedding.feature_map)
            assert parts.marginals is not None
            place, exact, start = parts.marginal_place, np.zeros_like(cells), 0
            for number, few in zip(parts.marginals.pairs_of_numbers, tables, strict=True):
                group = parts.marginals.groups[number]
                border = len(parts.marginals.tables) - len(parts.marginals.groups)
                rows = parts.marginals.places[border + number]
                into = start + layout._merged(group, few)
                np.add.at(exact, into, embedding.sums[place][rows])
                start += few.dimension
            return dependences(tables, exact, 0.0, first_part)

        return seen

    looking(monkeypatch, "dependences", peeking)


def cells_that_none_can_reach_take_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """`reduceat` gives an empty stretch the row at which it begins, which is that of another."""

    def sums(self: ReleaseLayout, exact: Integers) -> Integers:
        starts = np.searchsorted(self.into, np.arange(self.dimension))
        found: Integers = np.add.reduceat(exact[self.rows], starts, axis=0)
        return found

    monkeypatch.setattr(ReleaseLayout, "sums", sums)


def noise_of_other_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first ones, where only some rows get their noise."""

    def of_rows(self: NoiseScale, rows: Integers) -> NoiseScale:
        return self if self.factors is None else replace(self, factors=self.factors[: len(rows)])

    monkeypatch.setattr(NoiseScale, "of_rows", of_rows)


def largest_numbers_beyond_merged_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a number may not be missing, what comes next is a cell of another number."""
    right = MarginalColumn.merge

    def merge(self: MarginalColumn, cells: torch.Tensor) -> torch.Tensor:
        largest = cells == self.cells - 1
        return right(self, torch.where(largest, self.cells, cells) if self.merged else cells)

    monkeypatch.setattr(MarginalColumn, "merge", merge)


def class_weights_by_exact_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    right = publishing._carry_out

    def carry_out(
        embedding: Embedding, parameters: PrivacyParameters, planned: publishing.Planned
    ) -> Release:
        exact = embedding.counts / embedding.records
        monkeypatch.setattr(publishing, "_shares", lambda counts, records: exact)
        return right(embedding, parameters, planned)

    monkeypatch.setattr(publishing, "_carry_out", carry_out)


def coarse_pairs_longer_than_their_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice what their length leaves them."""
    right = MarginalFeatures.entries.fget  # type: ignore[attr-defined]

    def entries(self: MarginalFeatures) -> Floats:
        found: Floats = right(self).copy()
        found[len(self.columns) : len(self.columns) + len(self.coarse)] *= 2
        return found

    monkeypatch.setattr(MarginalFeatures, "entries", property(entries))


def levels_longer_than_their_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice what their length leaves them."""
    right = MarginalFeatures.level_entry.fget  # type: ignore[attr-defined]

    def longer(self: MarginalFeatures) -> float:
        return (2 if self.by_level_length else 1) * float(right(self))

    monkeypatch.setattr(MarginalFeatures, "level_entry", property(longer))


def chosen_pairs_longer_than_their_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pair as long as all of them together may be."""
    entry = property(lambda self: self.group_length or self.entry)
    monkeypatch.setattr(MarginalFeatures, "group_entry", entry)


def a_target_outside_its_norm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Divided by what the norm would be if the target were no larger than other numbers."""

    def features(self: exact_joint.ExactMoments, records: torch.Tensor) -> ProductFeatures:
        steps = self._map.steps(records)
        plain = steps // self._map.times
        return ProductFeatures(steps.double(), self._units // plain.square().sum(dim=1))

    monkeypatch.setattr(exact_joint.ExactMoments, "features", features)


def links_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    everywhere(monkeypatch, followed, lambda path: path)


def ledger_after_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    write_release = publishing.write_release
    waiting: list[tuple[Any, ...]] = []

    def later(*arguments: Any) -> None:  # noqa: ANN401
        waiting.append(arguments)

    def file_first(*arguments: Any) -> str:  # noqa: ANN401
        digest = write_release(*arguments)
        write_embedding(*waiting.pop())
        return digest

    monkeypatch.setattr(publishing, "write_embedding", later)
    monkeypatch.setattr(publishing, "write_release", file_first)


def one_draw_for_two_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    right = mechanism.add_noise

    def shared(sums: Integers, counts: Integers, scale: NoiseScale) -> NoisySums:
        noisy = right(sums, counts, scale)
        noisy.sums[:, 1] = sums[:, 1] + noisy.sums[:, 0] - sums[:, 0]
        return noisy

    everywhere(monkeypatch, right, shared)


def rounding_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Integers nearest to the features, instead of cut towards zero: some vectors get longer."""
    monkeypatch.setattr(exact_tangent, "SAFETY", 1.0)
    monkeypatch.setattr(torch.Tensor, "trunc_", torch.Tensor.round_)
    monkeypatch.setattr(torch.Tensor, "trunc", torch.Tensor.round)


def pairs_for_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry of a marginal forgets that pairs have one as well."""
    entry = property(lambda self: 1 / math.sqrt(len(self.columns)))
    monkeypatch.setattr(MarginalFeatures, "entry", entry)


def marginals_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_joint, "SAFETY", 1.0)
    monkeypatch.setattr(exact_joint, "int", math.ceil, raising=False)


def squares_for_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a module says keeps its length beside its squares."""
    monkeypatch.setattr(PerceptualFeatures, "main_weight", 1.0)


def rectified_by_word_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The noise is that of features without negative entries, but there are some."""
    monkeypatch.setattr(torch.Tensor, "clamp", lambda values, min: values)


def chunk_counted_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    right = ClassSums.add

    def twice(self: ClassSums, records: NDArray[np.uint8], labels: Integers) -> None:
        right(self, records, labels)
        right(self, records, labels)

    monkeypatch.setattr(ClassSums, "add", twice)


def checkpoint_counted_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was counted before an interruption is taken over twice."""
    right = ClassSums.resume

    def twice(self: ClassSums, totals: Totals) -> None:
        right(self, Totals(2 * totals.sums, 2 * totals.counts))

    monkeypatch.setattr(ClassSums, "resume", twice)


def checkpoint_sums_counted_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for the sums only, which leaves the number of records right."""
    right = ClassSums.resume

    def twice(self: ClassSums, totals: Totals) -> None:
        right(self, totals)
        self._sums *= 2

    monkeypatch.setattr(ClassSums, "resume", twice)


def checkpoint_a_chunk_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """The finished records are written down before the last chunk's sums are in, or after."""
    before: dict[Share, int] = {}

    def late(progress: Progress, *rest: Any) -> None:  # noqa: ANN401
        done = before.get(progress.share, progress.share.start)
        before[progress.share] = progress.done
        object.__setattr__(progress, "done", done)
        save_progress(progress, *rest)

    monkeypatch.setattr(Progress, "__post_init__", lambda self: None)
    monkeypatch.setattr(counting, "save_progress", late)


def finished_share_counted_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last process to finish finds its own share among those of the others."""
    right = work_folder.WorkFolder._join

    def join(self: work_folder.WorkFolder, *arguments: Any) -> Totals:  # noqa: ANN401
        last = arguments[-1]
        totals = right(self, *arguments)
        return (
            totals
            if last is None
            else Totals(totals.sums + last.totals.sums, totals.counts + last.totals.counts)
        )

    monkeypatch.setattr(work_folder.WorkFolder, "_join", join)


def shares_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    def overlapping(records: int, shares: int) -> tuple[Share, ...]:
        return tuple(
            replace(share, stop=min(share.stop + 1, records)) for share in split(records, shares)
        )

    monkeypatch.setattr(work_folder, "split", overlapping)


def same_shard_merged_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only files of the same name are recognised."""

    def contents(embedding: Embedding) -> frozenset[str]:
        return frozenset({str(id(embedding))})

    everywhere(monkeypatch, _contents, contents)


def overflow_unnoticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def plus(self: Totals, other: Totals, grid: Grid) -> Totals:
        return Totals(self.sums + other.sums, self.counts + other.counts)

    monkeypatch.setattr(Totals, "plus", plus)


def parts_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A merged embedding begins with an empty ledger."""
    right = composition._gdp_mu_squared

    def forgetful(ledger: Ledger, adjacency: Adjacency) -> float:
        return right(replace(ledger, parts=()), adjacency)

    everywhere(monkeypatch, right, forgetful)


def private_bounds_confirm_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    right = toml_entries._confirmed

    def confirmed(entries: dict[str, Any], name: str, where: str) -> bool:
        return right(entries, name, where) or entries.get("bounds") == "private"

    everywhere(monkeypatch, right, confirmed)


def left_out_as_the_data_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    def draft(*arguments: Any, **_: Any) -> schema_draft.Draft:  # noqa: ANN401
        return schema_draft.Draft(*arguments)

    monkeypatch.setattr(schema_inference, "Draft", draft)


def rules_as_public_knowledge(monkeypatch: pytest.MonkeyPatch) -> None:
    def draft(*arguments: Any, **named: Any) -> schema_draft.Draft:  # noqa: ANN401
        return schema_draft.Draft(*arguments, **(named | {"constraints_confirmed": True}))

    monkeypatch.setattr(schema_inference, "Draft", draft)


def a_record_for_a_header(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are compared with texts only, and the record's are those of nobody else."""
    monkeypatch.setattr(column_inference, "may_be_number", lambda text: False)


def folders_as_public_knowledge(monkeypatch: pytest.MonkeyPatch) -> None:
    right = image_folder._classes

    def classes(*arguments: Any) -> Classes:  # noqa: ANN401
        return replace(right(*arguments), origin=Origin.FORMAT)

    everywhere(monkeypatch, right, classes)


def labels_of_a_file_as_public_knowledge(monkeypatch: pytest.MonkeyPatch) -> None:
    right = image_labels.classes_of_texts

    def classes(*arguments: Any) -> tuple[Classes, dict[str, int]]:  # noqa: ANN401
        found, known = right(*arguments)
        return replace(found, origin=Origin.DECLARED), known

    everywhere(monkeypatch, right, classes)


def labels_read_as_all_of_them_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers are places of names if all labels are numbers, whatever names there are."""
    right = image_labels.classes_of_texts

    def classes(
        options: SourceOptions, texts: set[str], where: str
    ) -> tuple[Classes, dict[str, int]]:
        found, known = right(options, texts, where)
        if all(text.isdigit() for text in texts):
            known = {text: int(text) for text in texts}
        return found, known

    everywhere(monkeypatch, right, classes)


def ledger_erased_by_a_new_embedding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ledger, "with_later", lambda before, later: later)


def ceilings_forgotten_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "require_below_ceiling", lambda ledger: None)


def roots_of_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relu_kernel, "square_root", torch.sqrt)


def a_ceiling_with_slack(monkeypatch: pytest.MonkeyPatch) -> None:
    right = composition._gdp_mu_squared_left

    def slack(ledger: Ledger) -> float:
        return right(ledger) + 1e-6 * composition._gdp_mu_squared(ledger, Adjacency.REPLACE_ONE)

    everywhere(monkeypatch, right, slack)


def a_protected_number_in_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    right = parameters.noise_on

    def telling(
        feature_map: FeatureMap,
        grid: Grid,
        records: int,
        wanted: PrivacyParameters,
        unit: PrivacyUnit | None,
    ) -> NoiseScale:
        try:
            return right(feature_map, grid, records, wanted, unit)
        except BudgetError as error:
            raise BudgetError(f"{error}, for 1/n is {1 / records:.3g}") from error

    everywhere(monkeypatch, right, telling)


def ceilings_of_parts_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    def own(ledger: Ledger) -> list[Ledger]:
        return [ledger] if ledger.ceiling else []

    everywhere(monkeypatch, composition._under_each_ceiling, own)


@dataclass(frozen=True)
class Mutant:
    """A mistake and the test that catches it.

    Attributes:
        plant: puts the mistake in place.
        caught_by: the test that must fail then.
        parameters: of that test, where it is parametrised; its fixtures are found by name.
    """

    plant: Plant
    caught_by: Callable[..., None]
    parameters: dict[str, Any] = field(default_factory=dict)


one_and_one = {"epsilon": 1, "expected": 3.7306316}
MUTANTS = [
    Mutant(noise_halved, mechanism_tests.test_the_noise_is_what_the_release_claims),
    Mutant(
        seeded_noise,
        mechanism_tests.test_two_releases_have_different_noise_whatever_is_seeded,
    ),
    Mutant(
        noise_from_numpys_generator,
        test_discrete_gaussian.test_the_operating_system_is_the_only_source,
    ),
    Mutant(float_noise, mechanism_tests.test_the_lowest_bits_of_large_sums_carry_noise),
    Mutant(
        sensitivity_of_one_record,
        sensitivity_tests.test_the_bound_is_reached_within_a_hundredth,
        {"adjacency": Adjacency.REPLACE_ONE, "weight": 0.25},
    ),
    Mutant(
        one_row_of_each_person,
        test_privacy_units.test_all_rows_of_a_person_change_the_sums_by_less_than_the_noise_hides,
        {"person": "p0", "at": "spread"},
    ),
    Mutant(
        all_rows_of_each_person,
        test_privacy_units.test_all_rows_of_a_person_change_the_sums_by_less_than_the_noise_hides,
        {"person": "p0", "at": "spread"},
    ),
    Mutant(
        rows_of_each_file,
        test_privacy_units.test_all_rows_of_a_person_change_the_sums_by_less_than_the_noise_hides,
        {"person": "p0", "at": "spread"},
    ),
    Mutant(
        unlike_units_added_up,
        test_privacy_units.test_releases_for_unlike_units_are_never_added_up,
        {"together_first": True},
    ),
    Mutant(
        every_map_nonnegative,
        sensitivity_tests.test_a_map_that_is_not_nonnegative_needs_the_full_distance,
        {"weight": 0.25},
    ),
    Mutant(
        exact_counts, mechanism_tests.test_add_remove_publishes_the_number_of_records_with_noise
    ),
    Mutant(textbook_sigma, test_accountant.test_known_values, one_and_one),
    Mutant(renyi_sigma, test_accountant.test_known_values, one_and_one),
    Mutant(
        multiplier_rounded_down,
        test_accountant.test_agrees_with_dp_accounting_and_is_never_below,
        {"epsilon": 1, "delta": 1e-5},
    ),
    Mutant(
        sigma_rounded_down,
        mechanism_tests.test_sigma_is_rounded_up_on_grids_so_coarse_that_it_matters,
    ),
    Mutant(
        smoothing_forgotten,
        mechanism_tests.test_sigma_is_rounded_up_on_grids_so_coarse_that_it_matters,
    ),
    Mutant(counts_share_the_noise_of_sums, mechanism_tests.test_counts_have_noise_of_their_own),
    Mutant(
        part_by_a_secret_number,
        test_layout.test_which_part_follows_from_the_noise_and_from_nothing_secret,
        {"adjacency": Adjacency.ADD_REMOVE},
    ),
    Mutant(
        part_by_a_secret_number,
        test_measurement.test_the_choice_is_a_function_of_what_has_its_noise,
        {"adjacency": Adjacency.ADD_REMOVE, "epsilon": 100.0},
    ),
    Mutant(
        part_by_a_secret_number,
        test_weights.test_the_weights_follow_from_the_noisy_counts_where_the_number_is_protected,
        {"adjacency": Adjacency.ADD_REMOVE},
    ),
    Mutant(
        part_by_a_secret_number,
        test_fewer_cells.test_how_many_there_are_follows_from_noisy_counts_where_the_number_is_protected,
        {"adjacency": Adjacency.ADD_REMOVE},
    ),
    Mutant(
        records_in_two_cells_at_once,
        test_fewer_cells.test_sums_are_to_the_bit_those_of_an_embedding_with_fewer_cells,
    ),
    Mutant(
        weights_shorter_than_they_are_said_to_be,
        test_weights.test_a_release_is_what_an_embedding_of_its_weights_gives,
        {"pairs": ("none",), "moments": None},
    ),
    Mutant(
        parts_longer_than_their_noise,
        test_layout.test_the_noise_on_each_part_hides_what_any_record_adds_to_it,
        {"epsilon": 1.0},
    ),
    Mutant(
        chosen_pairs_without_noise,
        test_measurement.test_chosen_pairs_have_the_noise_that_the_release_says,
    ),
    Mutant(
        pairs_chosen_by_exact_sums,
        test_measurement.test_the_choice_is_a_function_of_what_has_its_noise,
        {"adjacency": Adjacency.REPLACE_ONE, "epsilon": 100.0},
    ),
    Mutant(
        cells_merged_by_exact_sums,
        test_measurement.test_the_choice_is_a_function_of_what_has_its_noise,
        {"adjacency": Adjacency.REPLACE_ONE, "epsilon": 100.0},
    ),
    Mutant(
        pairs_chosen_by_exact_tables,
        test_measurement.test_the_choice_is_a_function_of_what_has_its_noise,
        {"adjacency": Adjacency.REPLACE_ONE, "epsilon": 100.0},
    ),
    Mutant(
        cells_that_none_can_reach_take_the_next,
        test_measurement.test_what_any_record_adds_is_hidden_whichever_pairs_are_chosen,
        {"adjacency": Adjacency.ADD_REMOVE},
    ),
    *(
        Mutant(
            plant,
            test_neighbours.test_neighbours_differ_by_what_the_noise_hides_and_in_nothing_else,
            {"drawn": test_neighbours.any_table, "seeds": [seed], "kinds": set()},
        )
        for plant, seed in (
            (cells_that_none_can_reach_take_the_next, 8),
            (noise_of_other_rows, 0),
            (largest_numbers_beyond_merged_cells, 0),
            (class_weights_by_exact_counts, 0),
        )
    ),
    Mutant(
        coarse_pairs_longer_than_their_noise,
        test_measurement.test_what_any_record_adds_is_hidden_whichever_pairs_are_chosen,
        {"adjacency": Adjacency.ADD_REMOVE},
    ),
    Mutant(
        levels_longer_than_their_noise,
        test_measurement.test_what_any_record_adds_is_hidden_whichever_pairs_are_chosen,
        {"adjacency": Adjacency.ADD_REMOVE},
    ),
    Mutant(
        chosen_pairs_longer_than_their_noise,
        test_measurement.test_what_any_record_adds_is_hidden_whichever_pairs_are_chosen,
        {"adjacency": Adjacency.REPLACE_ONE},
    ),
    Mutant(
        a_target_outside_its_norm,
        test_moments.test_no_record_is_longer_than_its_share_and_none_contradicts_another,
        {"features": test_moments.aimed()},
    ),
    Mutant(links_replaced, test_ledger.test_a_link_to_an_embedding_has_no_ledger_of_its_own),
    Mutant(
        ledger_after_the_file,
        test_ledger.test_the_entry_is_on_the_disk_before_any_noise_is_drawn,
    ),
    Mutant(
        one_draw_for_two_classes,
        mechanism_tests.test_noise_of_different_coordinates_is_independent,
    ),
    Mutant(rounding_left_out, exact_sums.test_no_integer_feature_is_longer_than_one, {"seed": 0}),
    Mutant(
        pairs_for_free,
        test_exact_joint.test_a_record_more_changes_marginals_by_no_more_than_their_weight,
        {"pairs": test_exact_joint.PAIRS},
    ),
    Mutant(
        marginals_rounded_up,
        test_exact_joint.test_a_record_more_changes_marginals_by_no_more_than_their_weight,
        {"pairs": test_exact_joint.PAIRS},
    ),
    Mutant(squares_for_free, test_perceptual.test_squares_take_their_length_from_the_rest),
    Mutant(
        rectified_by_word_alone,
        test_perceptual.test_rectified_features_have_the_smaller_sensitivity,
    ),
    Mutant(
        chunk_counted_twice,
        exact_sums.test_class_sums_equal_the_per_record_gradients,
        {"width": 13},
    ),
    Mutant(checkpoint_counted_twice, test_work_folder.test_a_killed_pass_is_continued_to_the_bit),
    Mutant(
        checkpoint_sums_counted_twice, test_work_folder.test_a_killed_pass_is_continued_to_the_bit
    ),
    Mutant(checkpoint_a_chunk_behind, test_work_folder.test_a_killed_pass_is_continued_to_the_bit),
    Mutant(
        finished_share_counted_twice,
        test_work_folder.test_ranks_write_the_file_that_one_process_writes,
        {"ranks": 2},
    ),
    Mutant(
        shares_overlap,
        test_work_folder.test_ranks_write_the_file_that_one_process_writes,
        {"ranks": 2},
    ),
    Mutant(same_shard_merged_twice, test_merging.test_the_same_records_twice_are_refused),
    Mutant(
        overflow_unnoticed,
        test_merging.test_more_records_than_there_is_room_for_are_refused,
    ),
    Mutant(
        parts_forgotten,
        test_merged_ledger.test_the_total_is_the_largest_part_with_what_came_later,
    ),
    Mutant(
        private_bounds_confirm_everything,
        test_table_schema.test_private_bounds_confirm_bounds_alone,
    ),
    Mutant(
        left_out_as_the_data_decide,
        test_table_schema.test_only_what_the_data_left_out_is_unconfirmed,
    ),
    Mutant(
        rules_as_public_knowledge,
        test_rules.test_rules_are_confirmed_or_the_schema_says_where_they_are_from,
    ),
    Mutant(
        a_record_for_a_header,
        test_missing_header.test_a_record_in_the_place_of_the_header_is_not_taken_for_one,
    ),
    Mutant(folders_as_public_knowledge, test_sources.test_class_folders),
    Mutant(
        labels_of_a_file_as_public_knowledge,
        test_label_file.test_the_embedding_is_that_of_class_folders,
    ),
    Mutant(
        labels_read_as_all_of_them_are,
        test_label_file.test_one_label_changes_how_no_other_is_read,
    ),
    Mutant(
        ledger_erased_by_a_new_embedding,
        test_saving.test_what_replaces_it_takes_ledger_and_ceiling_over,
    ),
    Mutant(
        ceilings_forgotten_in_memory,
        test_ledger.test_what_is_public_enters_every_release_into_the_ledger,
    ),
    Mutant(
        roots_of_a_library,
        test_relu_kernel.test_every_bit_is_that_of_operations_that_are_rounded_correctly,
    ),
    Mutant(a_ceiling_with_slack, test_ledger.test_a_ceiling_has_no_slack),
    Mutant(
        a_protected_number_in_a_refusal,
        test_ledger.test_a_refusal_does_not_tell_a_protected_number_of_records,
    ),
    Mutant(
        ceilings_of_parts_forgotten,
        test_merged_ledger.test_every_ceiling_holds_for_its_own_records,
    ),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.plant.__name__)
def test_the_mutant_is_caught(
    mutant: Mutant, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = inspect.signature(mutant.caught_by).parameters
    fixtures = {
        name: request.getfixturevalue(name) for name in names if name not in mutant.parameters
    }
    mutant.plant(monkeypatch)
    with pytest.raises((AssertionError, DpntkError, _pytest.outcomes.Failed)):
        mutant.caught_by(**fixtures, **mutant.parameters)
