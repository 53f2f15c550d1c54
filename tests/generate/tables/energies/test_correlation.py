"""Numbers that go together come back together, and noise makes none that do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from dpntk.common.features.joint import parts_of
from dpntk.common.features.moments import MomentFeatures
from dpntk.common.schema.columns.column import Column
from dpntk.common.schema.columns.kinds import ColumnKind
from dpntk.common.schema.encoding import NumericEncoding, blocks_of
from dpntk.common.schema.table import TableSchema
from dpntk.embed import Embedding, SourceOptions, TangentOptions, embed
from dpntk.generate.kernels.mean_embedding import released_mean
from dpntk.generate.tables.copulas import attenuation
from dpntk.generate.tables.dependence.product_departures import Departure, ReleasedMoments
from dpntk.generate.tables.energies.correlation import CorrelationEnergy, ProductGains
from dpntk.generate.tables.refinement import refinement_of
from dpntk.release import PrivacyParameters, Release
from dpntk.release.mechanism.gaussian import NoiseScale, NoisySums
from dpntk.release.publishing import measurement
from dpntk.release.publishing.pipeline import unrecorded_release
from tests.helpers.neighbours import Integers
from tests.helpers.tables import PEOPLE

NUMBERS = 4
ROWS = 6000
SCHEMA = TableSchema(
    tuple(
        Column(f"x{number}", ColumnKind.CONTINUOUS, "float64", -4.0, 4.0)
        for number in range(NUMBERS)
    ),
    None,
)


def chain(correlation: float, seed: int = 0) -> NDArray[np.float64]:
    """Standard normal numbers, each of this correlation with the one before."""
    random = np.random.default_rng(seed)
    found = random.standard_normal((ROWS, NUMBERS))
    for column in range(1, NUMBERS):
        own = np.sqrt(1 - correlation**2) * found[:, column]
        found[:, column] = correlation * found[:, column - 1] + own
    return found.clip(-4, 4)


def embedded(
    values: NDArray[np.float64], path: Path, target: str | None = None, pairs: Sequence[str] = ()
) -> Embedding:
    names = ",".join(column.name for column in SCHEMA.columns)
    np.savetxt(path, values, delimiter=",", header=names, comments="")
    options = TangentOptions(width=10, target=target, pairs=pairs)
    return embed(path, options, SourceOptions(schema=SCHEMA))


def released(values: NDArray[np.float64], path: Path, epsilon: float) -> Release:
    return unrecorded_release(embedded(values, path), PrivacyParameters(epsilon, 1e-5))


def products_in(release: Release) -> ReleasedMoments:
    mean = released_mean(release)
    parts = parts_of(release.feature_map)
    found = ReleasedMoments.of(parts, mean.values[:, 0], float(mean.noise[0]))
    assert found is not None
    return found


def encoded(values: NDArray[np.float64]) -> NDArray[np.float32]:
    missing = np.zeros(len(values), dtype=bool)
    columns = []
    for number, block in enumerate(blocks_of(SCHEMA)):
        assert isinstance(block.encoding, NumericEncoding)
        columns.append(block.encoding.encode(values[:, number], missing))
    return (np.concatenate(columns, axis=1) / np.float32(255)).astype(np.float32)


def correlations_of(rows: NDArray[np.float32]) -> NDArray[np.float64]:
    places = [block.place.start for block in blocks_of(SCHEMA)]
    every = np.asarray(np.corrcoef(rows[:, places].T), dtype=np.float64)
    found: NDArray[np.float64] = every[np.triu_indices(NUMBERS, 1)]
    return found


@pytest.mark.parametrize(("correlation", "draws"), [(0.95, 1), (-0.6, 2), (0.0, 2)])
def test_numbers_that_go_together_come_back_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, correlation: float, draws: int
) -> None:
    """Rows begin with independent columns; the released products say what goes with what.

    Correlations of 4,000 independent rows are off by .016.
    """
    monkeypatch.setattr("dpntk.generate.tables.moves.swap._MOST_ROUNDS", 60)
    values = chain(correlation)
    refinement = refinement_of(released(values, tmp_path / "a.csv", 100.0))
    assert refinement is not None
    random = np.random.default_rng(1)
    apart = encoded(random.permuted(values, axis=0))
    assert np.abs(correlations_of(apart)).max() < 0.06
    found = [
        correlations_of(refinement.draw(0, 4000, lambda label, count: apart[:count].copy(), random))
        for _ in range(draws)
    ]
    expected = correlations_of(encoded(values))
    assert np.mean(found, axis=0) == pytest.approx(expected, abs=0.06)


@pytest.mark.usefixtures("hasty_rows")
def test_the_copula_of_all_numbers_learns_what_products_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which energy is closer to the truth shows in one table of many; that it is asked, in all."""
    asked = []

    def factor(*pairs: NDArray[np.float64]) -> float:
        asked.append([len(each) for each in pairs])
        return 1.0

    monkeypatch.setattr(attenuation, "weak_factor", factor)
    values = chain(0.6)
    refinement = refinement_of(released(values, tmp_path / "a.csv", 10.0))
    assert refinement is not None
    rows = encoded(values)
    refinement.draw(0, 100, lambda label, count: rows[:count].copy(), np.random.default_rng(1))
    assert asked == [[NUMBERS * (NUMBERS - 1) // 2] * 4]


def test_beside_a_copula_noisy_products_of_numbers_are_not_fitted(tmp_path: Path) -> None:
    """Their noise counts relative to what no copula explains, not to all dependence there is."""
    moments = products_in(released(chain(0.9), tmp_path / "a.csv", 2.0))
    rows = torch.from_numpy(encoded(np.random.default_rng(1).permuted(chain(0.9), axis=0)))
    learnt = []
    for misfit in (None, 1e-2, 1e-6):
        correlations = CorrelationEnergy(moments, rows)
        if misfit is not None:
            off_diagonal = ~torch.eye(moments.features.factors, dtype=torch.bool)
            correlations.leave_to_copula(misfit * off_diagonal.double())
        correlations.learn(rows)
        gains = correlations.swap_gains(rows)
        assert isinstance(gains, ProductGains)
        learnt.append(float(gains.coefficients.abs().max()))
    alone, beside, beside_a_perfect_one = learnt
    assert alone > 1
    assert beside < alone / 3
    assert beside_a_perfect_one < beside / 5


def test_noise_alone_makes_no_correlations(tmp_path: Path) -> None:
    """With independent columns, coefficients stay far below what the noise by itself asks for."""
    values = chain(0.0)
    made = released(values, tmp_path / "a.csv", 0.002)
    moments = products_in(made)
    rows = torch.from_numpy(encoded(values))
    correlations = CorrelationEnergy(moments, rows)
    assert moments.noise > 1  # and no product is larger
    gains = correlations.swap_gains(rows)
    # So much noise leaves nothing to correlations, which are 1 at the most.
    assert float(gains.coefficients.abs().max()) < 1e-6


def test_rows_have_the_numbers_that_a_record_would_have() -> None:
    """Also where they are missing, and between the levels that a record can have."""
    features = MomentFeatures.of(PEOPLE)
    assert features is not None
    random = torch.Generator().manual_seed(0)
    rows = torch.rand(500, PEOPLE.record_size, generator=random) * 1.2 - 0.1
    rows[::3, [missing for _, missing in features.numbers if missing >= 0]] = 0.0
    for first, count in features.categories:
        chosen = torch.randint(count, (500,), generator=random)
        rows[:, first : first + count] = torch.nn.functional.one_hot(chosen, count).float()
    read_back = (rows.clamp(0, 1) * 255).round()
    moments = ReleasedMoments(features, np.eye(features.factors), 0.1)
    assert moments.factors(rows).numpy() == pytest.approx(features.steps(read_back).numpy())


def test_gains_are_differences_of_the_energy() -> None:
    """Against the energy of all rows, computed anew, over several exchanges one after another."""
    random = torch.Generator().manual_seed(0)
    numbers = torch.randn(10, NUMBERS, generator=random, dtype=torch.float64)
    coefficients = torch.randn(NUMBERS, NUMBERS, generator=random, dtype=torch.float64)
    coefficients = (coefficients + coefficients.T).fill_diagonal_(0.0)
    blocks = blocks_of(SCHEMA)
    places = {block.place.start: slice(n, n + 1) for n, block in enumerate(blocks)}
    gains = ProductGains(numbers, coefficients, places)

    def energies(numbers: torch.Tensor) -> torch.Tensor:
        each = torch.linalg.vecdot(numbers @ coefficients, numbers) / 2
        both: torch.Tensor = each.view(2, 5).sum(dim=0)
        return both

    now = numbers.clone()
    for column in (0, 2, 1, 0):
        pairs = torch.tensor([3, 4, 0])
        gain = torch.as_tensor(gains.gain(blocks[column], pairs))
        then = now.clone()
        then[:5, column], then[5:, column] = now[5:, column], now[:5, column]
        assert torch.allclose(gain, (energies(then) - energies(now))[pairs])
        chosen = torch.tensor([0, 3])
        both = torch.cat([chosen, chosen + 5])
        now[both, column] = then[both, column]
        gains.accept(blocks[column], chosen)


def test_releases_without_products_are_arranged_as_before(tmp_path: Path) -> None:
    values = chain(0.5)
    path = tmp_path / "a.csv"
    released(values, path, 10.0)
    without = embed(path, TangentOptions(width=10, moments=0.0), SourceOptions(schema=SCHEMA))
    made = unrecorded_release(without, PrivacyParameters(10.0, 1e-5))
    refinement = refinement_of(made)
    assert refinement is not None
    assert refinement.goal(0).moments is None


def test_categories_that_go_together_come_back_together(tmp_path: Path) -> None:
    """With one another, and with a number."""
    random = np.random.default_rng(0)
    kind = random.integers(0, 3, ROWS)
    other = np.where(random.random(ROWS) < 0.8, kind, random.integers(0, 3, ROWS))
    number = np.clip(kind - 1 + random.standard_normal(ROWS) / 2, -4, 4)
    schema = TableSchema(
        (
            Column("kind", ColumnKind.CATEGORICAL, "string", categories=("a", "b", "c")),
            Column("other", ColumnKind.CATEGORICAL, "string", categories=("a", "b", "c")),
            Column("number", ColumnKind.CONTINUOUS, "float64", -4.0, 4.0),
        ),
        None,
    )
    texts = np.array(["a", "b", "c"])
    rows = [f"{texts[k]},{texts[o]},{x:.4f}" for k, o, x in zip(kind, other, number, strict=True)]
    (tmp_path / "a.csv").write_text("\n".join(["kind,other,number", *rows]))
    made = embed(tmp_path / "a.csv", TangentOptions(width=10), SourceOptions(schema=schema))
    refinement = refinement_of(unrecorded_release(made, PrivacyParameters(100.0, 1e-5)))
    assert refinement is not None
    blocks = blocks_of(schema)
    missing = np.zeros(ROWS, dtype=bool)
    apart = np.concatenate(
        [
            block.encoding.encode(random.permutation(column), missing)
            if isinstance(block.encoding, NumericEncoding)
            else block.encoding.encode(random.permutation(column))
            for block, column in zip(blocks, (kind, other, number), strict=True)
        ],
        axis=1,
    ).astype(np.float32) / np.float32(255)
    drawn = refinement.draw(0, 4000, lambda label, count: apart[:count].copy(), random)
    kinds, others = (drawn[:, block.shares].argmax(axis=1) for block in blocks[:2])
    assert np.mean(kinds == others) == pytest.approx(np.mean(kind == other), abs=0.04)
    for one in range(3):
        mean = drawn[kinds == one, blocks[2].place.start].mean() * 8 - 4
        assert mean == pytest.approx(number[kind == one].mean(), abs=0.1)


def test_what_a_target_goes_with_is_seen_better_through_the_same_noise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted correlation of .6 and one of -.4, and products in forty draws of noise."""
    random = np.random.default_rng(0)
    values = random.standard_normal((ROWS, NUMBERS))
    values[:, 3] = 0.6 * values[:, 0] - 0.4 * values[:, 1] + 0.69 * values[:, 3]
    values = values.clip(-4, 4)
    rows, apart = (
        torch.from_numpy(encoded(each)) for each in (values, random.permuted(values, axis=0))
    )
    errors: dict[str | None, float] = {}
    for target in (None, "x3"):
        made, found = embedded(values, tmp_path / "a.csv", target, ["none"]), []
        for seed in range(40):
            monkeypatch.setattr(measurement, "add_noise", _drawn_from(seed))
            seen = products_in(unrecorded_release(made, PrivacyParameters(0.2, 1e-5)))
            departure = Departure.of(seen, apart)
            true = departure.products(seen.factors(rows)) - departure.products(seen.factors(apart))
            found.append(float((departure.difference - true)[NUMBERS, 1:NUMBERS].abs().mean()))
        errors[target] = float(np.mean(found))
    # Of four numbers with one three times as large, products with it have 1 / 1.4 of the noise.
    assert errors["x3"] < 0.8 * errors[None]


def test_tables_beside_products_hide_nothing_that_these_say(tmp_path: Path) -> None:
    """Four releases of few records, whose tables alone would make .95 a .88."""
    values = chain(0.95)[:2000]
    made = embedded(values, tmp_path / "a.csv")
    apart = encoded(np.random.default_rng(1).permuted(values, axis=0))
    neighbours = [0, 3, 5]
    found = []
    for _ in range(4):
        refinement = refinement_of(unrecorded_release(made, PrivacyParameters(1.0, 1e-5)))
        assert refinement is not None
        drawn = refinement.draw(
            0, 1000, lambda label, count: apart[:count].copy(), np.random.default_rng(2)
        )
        found.append(correlations_of(drawn)[neighbours])
    assert np.mean(found) > 0.9


def _drawn_from(seed: int) -> Callable[[Integers, Integers | None, NoiseScale], NoisySums]:
    """Noise of the right size, the same for every release of so many sums."""

    def add_noise(sums: Integers, counts: Integers | None, scale: NoiseScale) -> NoisySums:
        drawn = np.random.default_rng(seed).standard_normal(sums.shape)
        noise = np.rint(drawn * scale.sigmas(len(sums))[:, None]).astype(np.int64)
        return NoisySums(sums + noise, counts)

    return add_noise


def test_a_class_with_few_records_has_what_the_others_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One record in ten is of a class with low signal; numbers go together alike."""
    schema = TableSchema(
        (*SCHEMA.columns, Column("kind", ColumnKind.BOOLEAN, "string", categories=("a", "b"))),
        "kind",
    )
    values = chain(0.8)
    few = np.arange(ROWS) % 10 == 0
    rows = ["x0,x1,x2,x3,kind"]
    rows += [
        f"{','.join(f'{x:.4f}' for x in row)},{'b' if is_few else 'a'}"
        for row, is_few in zip(values, few, strict=True)
    ]
    (tmp_path / "a.csv").write_text("\n".join(rows))
    made = embed(tmp_path / "a.csv", TangentOptions(width=10), SourceOptions(schema=schema))
    apart = encoded(np.random.default_rng(0).permuted(values, axis=0))
    expected = correlations_of(encoded(values))

    def independent(label: int, count: int) -> NDArray[np.float32]:
        return np.resize(apart, (count, apart.shape[1])).copy()

    errors: dict[bool, list[float]] = {False: [], True: []}
    for seed in range(3):
        monkeypatch.setattr(measurement, "add_noise", _drawn_from(seed))
        refinement = refinement_of(unrecorded_release(made, PrivacyParameters(0.5, 1e-5)))
        assert refinement is not None
        every = refinement.departures(independent)
        assert list(every) == [0, 1]
        for observed, departures in ((False, {}), (True, every)):
            random = np.random.default_rng(1)
            drawn = refinement.draw(1, 2000, independent, random, departures=departures)
            errors[observed].append(float(np.abs(correlations_of(drawn) - expected).mean()))
    assert np.mean(errors[True]) < 0.7 * np.mean(errors[False])
