"""The benchmark by DPImageBench's protocol: its split, delta, averages, epochs and section."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from benchmarks import dpimagebench, images, sections
from benchmarks.dpimagebench import (
    FULL,
    HALF,
    MEAN,
    PROTOCOLS,
    SCORES,
    SMALL,
    delta_of,
    main,
    section,
    split,
    trained_on,
)
from benchmarks.images import Run
from benchmarks.material.best_epoch import (
    AveragedWeights,
    Examples,
    Protocol,
    accuracy_of,
    epochs,
    optimiser_of,
    picked,
    share_right,
)
from benchmarks.material.networks import small_network
from benchmarks.published import load
from dpntk.common.adjacency import Adjacency
from dpntk.common.errors import DeviceError
from dpntk.common.schema.classes import numbered
from dpntk.evaluate.images.records import LabelledImages
from dpntk.generate import TrainingSettings
from dpntk.release import PrivacyParameters, release
from tests.helpers.data_sets import write_idx
from tests.helpers.devices import every_device


def run(method: str, epsilon: float = 1.0, seed: int = 0) -> Run:
    return Run("FashionMNIST", epsilon, Adjacency.REPLACE_ONE, method, seed)


def test_the_split_is_that_of_torch_with_seed_0() -> None:
    class Numbers(torch.utils.data.Dataset[int]):
        def __len__(self) -> int:
            return 60_000

        def __getitem__(self, place: int) -> int:
            return place

    with torch.random.fork_rng():
        torch.manual_seed(0)
        wanted = torch.utils.data.random_split(Numbers(), [55_000, 5_000])
    sensitive, validation = split(60_000)
    assert sensitive.tolist() == list(wanted[0].indices)
    assert validation.tolist() == list(wanted[1].indices)
    assert sorted([*sensitive, *validation]) == list(range(60_000))


def test_delta_is_one_in_n_ln_n() -> None:
    assert delta_of(55_000) == pytest.approx(1.6657e-6, rel=1e-4)
    assert 1 / delta_of(1000) == pytest.approx(1000 * 6.907755)


def test_most_of_the_synthetic_images_train_in_the_order_of_seed_0() -> None:
    pixels = np.arange(60_000).view(np.uint8).reshape(60_000, 8)
    synthetic = LabelledImages(pixels, np.arange(60_000) % 10, numbered(10), {})
    order = np.random.default_rng(0).permutation(60_000)[:55_000]
    taken = trained_on(synthetic)
    assert np.array_equal(taken.pixels, pixels[order])
    assert np.array_equal(taken.labels, order % 10)


def test_averaged_weights_count_as_a_plain_loop_says() -> None:
    """Little of the beginning is left after few steps, and .9999 is what it comes to."""
    linear, norm = nn.Linear(3, 2), nn.BatchNorm1d(2)
    values = [torch.randn(2, 3) for _ in range(40)]
    average = AveragedWeights(nn.Sequential(linear, norm), 0.75)
    weight, seen = linear.weight, norm.running_mean
    assert seen is not None
    wanted = weight.detach().double().clone()
    for step, value in enumerate(values, 1):
        with torch.no_grad():
            weight.copy_(value)
            seen.fill_(step)
        average.update()
        decay = min(0.75, (1 + step) / (10 + step))  # .18, .25, ..., .75 from step 26 on
        wanted = decay * wanted + (1 - decay) * value
        found = average.network().get_parameter("0.weight")
        assert torch.allclose(found.double(), wanted, atol=1e-5)
    assert average.network().get_buffer("1.running_mean").tolist() == [40, 40]  # as they are now
    assert PROTOCOLS[FULL].decay == PROTOCOLS[SMALL].decay == 0.9999


@pytest.mark.parametrize(
    ("method", "wanted"),
    [
        (FULL, [0.01] * 20 + [0.002] * 20 + [0.0004] * 10),
        (SMALL, [0.01] * 2 + [0.002] * 2 + [0.0004]),
    ],
)
def test_the_learning_rate_falls_to_a_fifth(method: str, wanted: list[float]) -> None:
    optimiser, schedule = optimiser_of(nn.Linear(1, 1), PROTOCOLS[method])
    rates = []
    for _ in range(PROTOCOLS[method].epochs):
        rates.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        schedule.step()
    assert rates == pytest.approx(wanted)


@every_device
def test_an_epoch_is_steps_of_adam_over_all_images_in_batches(device: torch.device) -> None:
    """Two epochs, the second at a fifth of the rate, beside a loop that spells everything out.

    On a card the fourth of the whole batches is a recorded step; the last batches are smaller.
    """
    protocol = Protocol({}, epochs=2, every=1, batch=8)
    train = Examples(torch.randn(20, 1, 2, 2), torch.arange(20) % 3)
    on_device = Examples(train.images.to(device), train.labels.to(device))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = nn.Sequential(nn.Flatten(), nn.Linear(4, 3))
        parameters = [value.detach().clone() for value in network.parameters()]
        means = [value.clone() for value in parameters]
        state = torch.get_rng_state()
        *_, last = epochs(network.to(device), on_device, protocol)
        torch.set_rng_state(state)
        orders = [torch.randperm(20) for _ in range(2)]
    first, second = ([torch.zeros_like(value) for value in parameters] for _ in range(2))
    steps = [(rate, order[at : at + 8]) for rate, order in zip((0.01, 0.002), orders, strict=True)
             for at in (0, 8, 16)]  # fmt: skip
    for step, (rate, part) in enumerate(steps, 1):
        seen = [value.requires_grad_() for value in parameters]
        guesses = train.images[part].flatten(1) @ seen[0].T + seen[1]
        loss = nn.functional.cross_entropy(guesses, train.labels[part])
        slopes = torch.autograd.grad(loss, seen)
        decay = min(0.9999, (1 + step) / (10 + step))
        parameters = [value.detach() for value in parameters]
        for value, mean, slope, m, v in zip(parameters, means, slopes, first, second, strict=True):
            m.mul_(0.9).add_(slope, alpha=0.1)
            v.mul_(0.999).add_(slope**2, alpha=0.001)
            value -= rate * (m / (1 - 0.9**step)) / ((v / (1 - 0.999**step)).sqrt() + 1e-8)
            mean.mul_(decay).add_(value, alpha=1 - decay)
    for found, mean in zip(last.parameters(), means, strict=True):
        assert torch.allclose(found.cpu(), mean, atol=1e-5)


def test_layers_compute_in_the_precision_that_is_asked_for() -> None:
    """In training and after it; weights and their averages are float32 all the same."""
    shown = Examples(torch.randn(8, 1, 2, 2), torch.arange(8) % 3)
    for protocol, wanted in ((PROTOCOLS[FULL], torch.float32), (PROTOCOLS[HALF], torch.bfloat16)):
        seen: list[torch.dtype] = []
        linear = nn.Linear(4, 3)
        linear.register_forward_hook(lambda _, __, out, seen=seen: seen.append(out.dtype))
        average = next(epochs(nn.Sequential(nn.Flatten(), linear), shown, protocol))
        share_right(average, shown, protocol)
        assert seen == [wanted, wanted]
        kept = (*linear.parameters(), *average.parameters())
        assert {each.dtype for each in kept} == {torch.float32}


class Always(nn.Module):
    """A network that knows some of the images, and is wrong about the others."""

    def __init__(self, right: int) -> None:
        super().__init__()
        self.right = right

    def forward(self, shown: Tensor) -> Tensor:
        number = shown.flatten(1)[:, 0]
        knows = (number % 100 < self.right) if number[0] < 100 else (number % 100 >= self.right)
        return torch.stack([~knows, knows], dim=1).float()


def test_reported_is_the_epoch_that_is_best_on_the_images_to_choose_by() -> None:
    """The more these are known, the fewer test images are; of equally good ones the last counts."""
    numbers = torch.arange(100.0).view(100, 1, 1, 1)
    ones = torch.ones(100, dtype=torch.int64)
    validation, test = Examples(numbers, ones), Examples(numbers + 100, ones)
    protocol = PROTOCOLS[SMALL]
    assert share_right(Always(30), validation, protocol) == 0.3
    assert share_right(Always(30), test, protocol) == 0.7

    def after_each(*right: int) -> Iterator[nn.Module]:
        yield from (Always(share) for share in right)

    assert picked(after_each(20, 90, 40, 10), validation, test, protocol) == pytest.approx(0.1)
    assert picked(after_each(20, 30, 40), validation, test, protocol) == pytest.approx(0.6)

    class Other(Always):
        """As good to choose by, and better on test images."""

        def forward(self, shown: Tensor) -> Tensor:
            said = super().forward(shown)
            return said if shown.flatten()[0] < 100 else torch.tensor([[0.0, 1.0]] * len(shown))

    assert picked(iter([Always(50), Other(50), Always(10)]), validation, test, protocol) == 1.0


def test_values_are_between_minus_one_and_one() -> None:
    pixels = np.array([[0, 255, 51, 204]], dtype=np.uint8)
    shown = Examples.of(LabelledImages(pixels, np.array([1]), numbered(2), {}), torch.device("cpu"))
    assert shown.images.shape == (1, 1, 2, 2)
    assert shown.images.flatten().tolist() == pytest.approx([-1, 1, -0.6, 0.6])


@dataclass
class Case:
    """A data set of 1,040 records, and what was done with it."""

    data: str
    folder: Path
    promised: list[PrivacyParameters] = field(default_factory=list)

    def results(self) -> dict[str, dict[str, float]]:
        found: dict[str, dict[str, float]] = json.loads((self.folder / "results.json").read_text())
        return found


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    """Everything so small that the whole way takes seconds."""
    case = Case(f"MNIST={tmp_path / 'data'}", tmp_path)
    random = np.random.default_rng(0)
    for part, count in (("train", 1040), ("t10k", 40)):
        labels = np.arange(count) % 10
        shown = random.integers(0, 60, (count, 8, 8))
        shown[np.arange(count), labels % 8] += 150
        write_idx(tmp_path / "data", shown.astype(np.uint8), labels, part)

    def noted(embedding: Path, output: Path, parameters: PrivacyParameters) -> object:
        case.promised.append(parameters)
        return release(embedding, output, parameters)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(dpimagebench, "VALIDATION", 40)
    monkeypatch.setattr(dpimagebench, "TRAINED_ON", 50)
    monkeypatch.setattr(dpimagebench, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(
        sections, "put_section", partial(sections.put_section, path=tmp_path / "README.md")
    )
    monkeypatch.setattr(images, "RECORDS", 60)
    monkeypatch.setattr(images, "chosen_settings", lambda *_: TrainingSettings(steps=2, batch=8))
    monkeypatch.setattr(images, "release", noted)
    return case


def test_what_is_finished_is_kept_and_the_rest_gone_on_with(
    case: Case, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Stopped after the first of three networks, others learn from the images of its release."""
    learned: list[tuple[str, LabelledImages]] = []

    def reached(
        make: str, train: LabelledImages, validation: LabelledImages, test: LabelledImages,
        protocol: Protocol, *, seed: int, device: torch.device,
    ) -> float:  # fmt: skip
        if make == "b" and not learned[1:]:
            learned.append(("stopped", train))
            raise KeyboardInterrupt
        learned.append((make, train))
        assert (len(train), len(validation), len(test)) == (50, 40, 40)
        return {"a": 0.5, "b": 0.6, "c": 0.85}[make]

    networks: Any = {"A": "a", "B": "b", "C": "c"}
    monkeypatch.setitem(PROTOCOLS, FULL, Protocol(networks, epochs=1, every=1))
    monkeypatch.setattr(dpimagebench, "accuracy_of", reached)
    arguments = [case.data, "--device", "cpu", "--epsilons", "10"]
    with pytest.raises(KeyboardInterrupt):
        main(arguments)
    key = "MNIST | 10 | replace-one | full | 0"
    assert {name: case.results()[key].get(name) for name in ("A", "B", MEAN)} == {
        "A": 0.5, "B": None, MEAN: None,
    }  # fmt: skip
    main(arguments)
    assert case.results()[key][MEAN] == pytest.approx(0.65)
    assert [name for name, _ in learned] == ["a", "stopped", "b", "c"]
    first, *rest = (train for _, train in learned)
    assert all(np.array_equal(first.pixels, train.pixels) for train in rest)
    assert not list(case.folder.glob("build/dpimagebench/*"))
    main(arguments)
    assert len(learned) == 4
    (promised,) = case.promised
    assert promised.epsilon == 10
    assert promised.delta == pytest.approx(1 / (1000 * math.log(1000)))
    assert capsys.readouterr().out.count(key) == 2
    assert (
        "| MNIST | 10 |  | FETA-Pro (quoted: FETA-Pro) |" in (case.folder / "README.md").read_text()
    )


def test_small_is_the_same_with_a_network_for_processors(case: Case) -> None:
    main([case.data, "--small", "--epsilons", "10", "--device", "cpu"])
    (key,) = case.results()
    assert key == "MNIST | 10 | replace-one | small | 0"
    assert case.results()[key].keys() == {"small CNN", "seconds"}
    assert 0 <= case.results()[key]["small CNN"] <= 1


def test_the_small_network_learns_and_the_same_again_by_its_seed() -> None:
    """Of stripes of three kinds; torch's own random numbers stay as they were."""
    random = np.random.default_rng(0)
    labels = np.arange(600) % 3
    shown = random.integers(0, 120, (600, 8, 8))
    shown[np.arange(600), labels] += 60
    records = LabelledImages(shown.reshape(600, 64).astype(np.uint8), labels, numbered(3), {})
    train, validation, test = (
        dpimagebench.at_places(records, places) for places in np.arange(600).reshape(3, 200)
    )
    before = torch.get_rng_state()
    reached = [
        accuracy_of(
            small_network, train, validation, test, Protocol({}, epochs=4, every=2, batch=20),
            seed=seed, device=torch.device("cpu"),
        )
        for seed in (0, 0)
    ]  # fmt: skip
    assert reached[0] == reached[1] > 0.8
    assert torch.equal(before, torch.get_rng_state())


def test_networks_of_one_row_learn_from_one_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the images are gone that one of them has learned from, all learn from new ones."""
    records = LabelledImages(np.zeros((4, 4), np.uint8), np.arange(4), numbered(4), {})
    monkeypatch.setattr(dpimagebench, "made", lambda *_: records)
    monkeypatch.setattr(dpimagebench, "accuracy_of", lambda *_, seed, device: 0.75)
    networks: Any = {"A": "a", "B": "b"}
    monkeypatch.setitem(PROTOCOLS, FULL, Protocol(networks, epochs=1, every=1))
    known = {"A": 0.5, "seconds": 3.0}
    device = torch.device("cpu")
    *_, last = dpimagebench.run_all(run(FULL), records, records, records, tmp_path, device, known)
    assert (last["A"], last["B"], last[MEAN]) == (0.75, 0.75, 0.75)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--device", "auto"], "--small does it with a small CNN"),
        (["--device", "cuda"], "no such device here"),
    ],
)
def test_where_there_is_no_card_it_says_so_before_anything_runs(
    case: Case,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)

    def none(name: str) -> torch.device:
        if name == "cuda":
            raise DeviceError("--device cuda: no such device here; try cpu")
        return torch.device("cpu")

    monkeypatch.setattr(dpimagebench, "choose_device", none)
    with pytest.raises(SystemExit) as stopped:
        main([case.data, *arguments])
    assert words in f"{stopped.value} {capsys.readouterr().err}"
    assert not case.promised


def test_too_few_records_are_refused_in_one_line(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dpimagebench, "VALIDATION", 1040)
    with pytest.raises(SystemExit, match=r"^dpimagebench: there are 1,040 training images, and"):
        main([case.data, "--small", "--device", "cpu"])


def test_quoted_rows_stand_before_ours_of_the_same_data_and_epsilon() -> None:
    full = {"ResNet-110": 0.8, "WRN-40-4": 0.82, "ResNeXt-29": 0.84, MEAN: 0.82, "seconds": 99.0}
    results = {
        run(FULL).key: full,
        run(FULL, seed=1).key: {"ResNet-110": 0.9, "seconds": 101.0},
        run(SMALL).key: {"small CNN": 0.7, "seconds": 98.0},
    }
    published, _ = load()
    lines = section(results, published).splitlines()
    assert {line.count("|") for line in lines[-12:]} == {7 + len(SCORES)}
    first, second = (line.removeprefix("| FashionMNIST | 1 | ") for line in lines[-2:])
    assert first == (
        "replace-one | dpntk, full | 2 | 0.850 ± 0.071 | 0.820 (1) | 0.840 (1) |  "
        "| 0.820 (1) | 100 |"
    )
    assert second == "replace-one | dpntk, small | 1 |  |  |  | 0.700 |  | 98 |"
    quoted = [line for line in lines if "quoted: " in line]
    assert (
        "| FashionMNIST | 1 |  | DP-NTK (quoted: DPImageBench) |  |  |  |  |  | 0.644 |  |"
        in quoted
    )
    assert not any("MNIST | 10 |" in line for line in quoted)  # of which we have nothing yet
