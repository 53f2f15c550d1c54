"""The estimator goes the whole way, keeps account of it, and is rebuilt from a release alone."""

from __future__ import annotations

import copy
import inspect
import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_checks
from sklearn.utils.validation import check_is_fitted

import dpntk
from dpntk import Synthesizer
from dpntk.common.errors import (
    BudgetError,
    DpntkError,
    GeneratorError,
    ModuleError,
    OutputError,
)
from dpntk.embed import (
    Column,
    FourierOptions,
    PerceptualOptions,
    PrivacyBudget,
    PrivacyUnit,
    TableSchema,
    TangentOptions,
    load_embedding,
)
from dpntk.evaluate import evaluate
from dpntk.generate import ComposedSettings, TableSettings, TrainingSettings
from dpntk.release import Adjacency, PrivacyParameters, open_release, own_key, release
from tests.helpers.data_sets import IMAGES, LABELS
from tests.helpers.modules import write_convolutions
from tests.helpers.processes import run_anew
from tests.helpers.tables import PEOPLE, people

BRIEF: dict[str, Any] = {
    "features": FourierOptions(frequencies=20),
    "settings": TableSettings(steps=2, batch=4),
}
ROWS = pd.read_csv(io.StringIO(people(200)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "records" / "work"


@pytest.fixture
def fitted(folder: Path, hasty_rows: None) -> Synthesizer:
    return Synthesizer(1.0, 1e-3, PEOPLE, folder, **BRIEF).fit(ROWS)


def entries(folder: Path) -> int:
    return len(load_embedding(folder / "embedding.h5").ledger.all_entries)


def test_from_a_data_frame_to_a_data_frame(fitted: Synthesizer, folder: Path) -> None:
    rows = fitted.sample(50)
    assert list(rows.columns) == [column.name for column in PEOPLE.columns]
    assert rows["age"].dtype == np.int64
    assert set(rows["ill"]) <= {"no", "yes"}
    assert len(fitted.sample(50).compare(rows)) > 0
    for where in (5, ["age > 1"]):
        with pytest.raises(GeneratorError, match="where must be a condition, such as 'age >= 50'"):
            fitted.sample(5, where=where)  # type: ignore[arg-type]
    pd.testing.assert_frame_equal(fitted.sample(50, seed=3), fitted.sample(50, seed=3))
    assert set(fitted.sample(50, where="ill = yes")["ill"]) == {"yes"}
    # One release, signed and in the ledger; the embedding is its owner's alone.
    assert fitted.release_path == folder / "release.h5"
    opened = open_release(fitted.release_path)
    assert opened.signed_by.own
    assert (opened.release.epsilon, opened.release.guarantee.delta) == (1.0, 1e-3)
    assert opened.release.guarantee.adjacency is Adjacency.REPLACE_ONE
    assert entries(folder) == 1
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "embedding.h5").stat().st_mode & 0o777 == 0o600
    assert len(pd.read_parquet(fitted.synthetic_path / "table.parquet")) == len(ROWS)


def test_images_are_fitted_with_their_labels(folder: Path) -> None:
    brief: dict[str, Any] = {
        "features": TangentOptions(width="5"),
        "settings": TrainingSettings(2, 6),
    }
    model = Synthesizer(20.0, 1e-2, folder=folder, classes=3, **brief).fit(IMAGES, LABELS)
    images, labels = model.sample(9)
    assert (images.shape, images.dtype) == ((9, *IMAGES.shape[1:]), np.uint8)
    assert set(labels) <= {0, 1, 2}
    assert model.classes_.tolist() == ["0", "1", "2"]
    schema = open_release(model.release_path).release.schema
    assert (schema.classes, schema.from_data) == (("0", "1", "2"), ())


def test_features_of_a_module_are_released_and_trained_on(folder: Path, tmp_path: Path) -> None:
    write_convolutions(tmp_path / "net.pt")
    features = PerceptualOptions(module=tmp_path / "net.pt", module_is_public=True)
    model = Synthesizer(
        20.0, 1e-2, folder=folder, classes=3, features=features, settings={"steps": 2, "batch": 6}
    ).fit(IMAGES, LABELS)
    assert model.sample(3)[0].shape == (3, *IMAGES.shape[1:])
    again = Synthesizer.from_release(
        model.release_path, settings={"steps": 2, "batch": 6}, module=tmp_path / "net.pt"
    )
    assert again.sample(3)[0].shape == (3, *IMAGES.shape[1:])
    with pytest.raises(ModuleError, match="name it with module "):
        Synthesizer.from_release(model.release_path, settings={"steps": 2, "batch": 6})


@pytest.mark.parametrize(
    ("classes", "labels", "names"),
    [
        (LABELS.max() + 1, LABELS, ("0", "1", "2")),
        (["zero", "one", "two"], np.array(["zero", "one", "two"])[LABELS], ("zero", "one", "two")),
        (("two", "one", "zero"), np.array(["zero", "one", "two"])[LABELS], ("two", "one", "zero")),
    ],
)
def test_classes_are_declared_as_programs_with_arrays_have_them(
    folder: Path,
    classes: int | tuple[str, ...] | list[str],
    labels: NDArray[Any],
    names: tuple[str, ...],
) -> None:
    brief: dict[str, Any] = {
        "features": TangentOptions(width="5"),
        "settings": TrainingSettings(2, 6),
    }
    model = Synthesizer(20.0, 1e-2, folder=folder, classes=classes, **brief).fit(IMAGES, labels)
    schema = open_release(model.release_path).release.schema
    assert (schema.classes, schema.from_data) == (names, ())
    assert tuple(model.classes_) == names
    assert set(model.classes_[model.sample(9)[1]]) <= set(names)


def test_a_second_fit_is_refused_by_the_ledger_before_a_record_is_read(
    fitted: Synthesizer, folder: Path
) -> None:
    before = {file.name: file.read_bytes() for file in folder.glob("*.h5")}
    for model in (fitted, clone(fitted)):
        with pytest.raises(BudgetError, match="was released from before, 1 time: ") as caught:
            model.fit(object())  # which nothing could be read from
        assert "compose=True" in str(caught.value)
        assert "\n" not in str(caught.value)
    assert {file.name: file.read_bytes() for file in folder.glob("*.h5")} == before
    assert len(fitted.sample(3)) == 3  # it stays fitted


def test_a_second_fit_that_composes_is_counted_beside_the_first(
    fitted: Synthesizer, folder: Path
) -> None:
    first = fitted.release_path.read_bytes()
    again = clone(fitted).set_params(compose=True, epsilon=0.5).fit(ROWS.head(150))
    assert again.release_path == folder / "release-2.h5"
    assert (folder / "release.h5").read_bytes() == first
    promise = open_release(again.release_path).release.guarantee
    assert promise.total_releases == entries(folder) == 2
    assert 1.0 < promise.total_epsilon < 1.5
    assert promise.records == 150


def test_another_folder_of_the_same_data_set_knows_what_was_spent(
    folder: Path, tmp_path: Path
) -> None:
    Synthesizer(1.0, 1e-3, PEOPLE, folder, data_set="ward", **BRIEF).fit(ROWS)
    other = Synthesizer(1.0, 1e-3, PEOPLE, tmp_path / "other", data_set="ward", **BRIEF)
    with pytest.raises(BudgetError, match="another embedding of the same data set was released"):
        other.fit(ROWS.tail(100))


def test_rows_that_are_protected_together_need_their_adjacency_before_one_is_read(
    folder: Path,
) -> None:
    schema = PEOPLE.with_privacy_unit(PrivacyUnit("id", 2))
    with pytest.raises(BudgetError, match="all rows of one id are protected together"):
        Synthesizer(1.0, 1e-3, schema, folder, **BRIEF).fit("no such file")
    assert not folder.exists()


@pytest.mark.parametrize(
    "settings",
    [
        {"bogus": 1},
        {"seed": -1},
        {"learning_rate": float("nan")},
        {"generator": "cnn"},
        {"objective": "whitened"},
        {"objective": "nothing"},
        {"objective": "mmd"},  # the features have marginals
        {"objective": "pearl"},  # and are no Fourier features
        {"schedule": "bogus"},
        {"generator": "mlp", "code": -3},
        {"recipe": "paper"},  # which has no such table
        3,
        ComposedSettings(),
        TrainingSettings(2, 6),
    ],
)
def test_settings_that_no_release_takes_are_refused_before_anything_is_spent(
    folder: Path, settings: object
) -> None:
    options: dict[str, Any] = {**BRIEF, "settings": settings}
    with pytest.raises(GeneratorError):
        Synthesizer(1.0, 1e-3, PEOPLE, folder, **options).fit(ROWS)
    assert not list(folder.glob("*.h5"))


def test_a_folder_that_is_not_replaced_is_found_before_anything_is_spent(folder: Path) -> None:
    (folder / "synthetic").mkdir(parents=True)
    (folder / "synthetic" / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match="such as notes"):
        Synthesizer(1.0, 1e-3, PEOPLE, folder, **BRIEF).fit(ROWS)
    assert not list(folder.glob("*.h5"))


def test_what_was_fitted_before_is_not_what_a_failed_fit_gives(
    fitted: Synthesizer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def diverges(*_: object, **options: object) -> None:
        raise GeneratorError("the training diverged")

    monkeypatch.setattr("dpntk.released.generate", diverges)
    advice = "the training diverged; .*release-2.h5 was released: Synthesizer.from_release goes on"
    with pytest.raises(GeneratorError, match=advice):
        fitted.set_params(compose=True).fit(ROWS)
    assert entries(folder) == 2
    with pytest.raises(NotFittedError):
        fitted.sample(3)
    again = Synthesizer.from_release(folder / "release-2.h5", settings=BRIEF["settings"])
    assert len(again.sample(3)) == 3


def test_a_word_is_no_consent_to_compose(fitted: Synthesizer, folder: Path) -> None:
    with pytest.raises(BudgetError, match="compose must be True or False"):
        clone(fitted).set_params(compose="no").fit(ROWS)
    asked: Any = lambda total: "no"  # noqa: E731 - as a user might answer
    with pytest.raises(BudgetError, match="what compose returns must be True or False"):
        release(
            folder / "embedding.h5", folder / "r.h5", PrivacyParameters(1.0, 1e-3), compose=asked
        )
    assert entries(folder) == 1


def test_a_budget_binds_all_fits(folder: Path) -> None:
    model = Synthesizer(
        1.0, 1e-3, PEOPLE, folder, budget=PrivacyBudget(1.2, 1e-3), compose=True, **BRIEF
    ).fit(ROWS)
    with pytest.raises(BudgetError, match="does not allow this release") as caught:
        model.fit(ROWS)
    assert "\n" not in str(caught.value)
    assert entries(folder) == 1
    assert not (folder / "release-2.h5").exists()


def test_from_a_release_alone_records_are_made_and_none_are_read(
    fitted: Synthesizer, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "release.h5"
    elsewhere.write_bytes(fitted.release_path.read_bytes())
    rebuilt = Synthesizer.from_release(elsewhere, settings=BRIEF["settings"])
    pd.testing.assert_frame_equal(rebuilt.sample(30, seed=1), fitted.sample(30, seed=1))
    made = rebuilt.generate(tmp_path / "more", 20)
    assert len(made.records()) == 20
    ill = rebuilt.generate(tmp_path / "ill", 20, where="ill = yes").records()
    assert set(ill["ill"]) == set(rebuilt.sample(20, where="ill = yes")["ill"]) == {"yes"}
    assert not hasattr(rebuilt, "fit")
    assert list(tmp_path.glob("**/embedding.h5")) == [fitted.release_path.parent / "embedding.h5"]
    # No module that reads records is even loaded.
    program = (
        "import sys; from dpntk import ReleasedSynthesizer\n"
        "from dpntk.generate import TableSettings\n"
        "brief = TableSettings(steps=2, batch=4)\n"
        f"made = ReleasedSynthesizer.train({str(elsewhere)!r}, settings=brief)\n"
        "assert len(made.sample(5)) == 5\n"
        "readers = ('dpntk.embed', 'dpntk.common.sources', 'dpntk.release.publishing')\n"
        "assert not [name for name in sys.modules if name.startswith(readers)]\n"
    )
    assert run_anew(program) == 0


def test_a_strangers_release_is_not_trusted(
    fitted: Synthesizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "somebody else"))
    with pytest.raises(DpntkError, match="whom nobody here trusts"):
        Synthesizer.from_release(fitted.release_path)


def test_parameters_are_those_of_scikit_learn(tmp_path: Path) -> None:
    """What its `check_estimator` asks of every estimator, as far as it speaks of parameters."""
    names = list(inspect.signature(Synthesizer).parameters)
    model = Synthesizer(epsilon=0.5, schema=PEOPLE, folder=tmp_path / "work", compose=True)
    assert sorted(model.get_params()) == sorted(names)
    assert vars(model).keys() == set(names)  # nothing but parameters, before it is fitted
    copied = clone(model)
    assert copied is not model
    assert copied.get_params() == model.get_params()
    assert model.set_params(epsilon=2.0, classes=10) is model
    assert (model.epsilon, model.classes, copied.epsilon) == (2.0, 10, 0.5)
    with pytest.raises(ValueError, match="Invalid parameter 'eps'"):
        model.set_params(eps=1.0)


@pytest.mark.parametrize(
    "check",
    [
        "check_estimator_cloneable", "check_estimator_repr", "check_get_params_invariance",
        "check_mixin_order", "check_no_attributes_set_in_init", "check_set_params",
        "check_do_not_raise_errors_in_init_or_set_params",
    ],
)  # fmt: skip
def test_scikit_learns_own_checks_that_need_no_fit(check: str, tmp_path: Path) -> None:
    model = Synthesizer(0.5, schema=PEOPLE, folder=tmp_path / "work", key=own_key(), **BRIEF)
    getattr(estimator_checks, check)("Synthesizer", model)
    assert list(tmp_path.iterdir()) == []


def test_it_shows_itself_as_it_was_called() -> None:
    """What nobody said is not shown, and of a key its public half alone."""
    schema = TableSchema((Column.integer("age", 0, 120), Column.boolean("ill", ["no", "yes"])))
    said = repr(Synthesizer(0.5, schema=schema, key=own_key(), settings=TableSettings(steps=2)))
    columns = (
        "(Column(name='age', kind=ColumnKind.INTEGER, dtype='int64', lower=0, upper=120), "
        "Column(name='ill', kind=ColumnKind.BOOLEAN, dtype='string', categories=('no', 'yes')))"
    )
    shown = " ".join(said.split())
    assert f"schema=TableSchema(columns={columns})" in shown
    assert "settings=TableSettings(steps=2)" in shown
    assert f"key=SigningKey({own_key().public.fingerprint})" in shown
    assert "delta" not in shown


def test_scikit_learn_is_told_what_was_read(fitted: Synthesizer, folder: Path) -> None:
    read = [column.name for column in PEOPLE.columns]
    assert (fitted.n_features_in_, list(fitted.feature_names_in_)) == (len(read), read)
    assert fitted.feature_names_in_.dtype == object
    fitted.set_params(
        schema=None, classes=3, compose=True, epsilon=20.0, delta=1e-2,
        features=TangentOptions(width="5"), settings=TrainingSettings(2, 6),
    ).fit(IMAGES, LABELS)  # fmt: skip
    assert fitted.n_features_in_ == IMAGES[0].size
    assert not hasattr(fitted, "feature_names_in_")


def test_a_report_of_what_was_fitted(
    folder: Path, tmp_path: Path, hasty_rows: None, two_kinds: None
) -> None:
    fitted = Synthesizer(20.0, 1e-3, PEOPLE, folder, **BRIEF).fit(ROWS)  # there are both classes
    public, own = tmp_path / "public.html", tmp_path / "own.html"
    fitted.report(public, public=True)
    held_out = pd.read_csv(io.StringIO(people(60, seed=1)))
    found = evaluate(fitted.synthetic_path, test=held_out)
    fitted.report(own, test=held_out, evaluation=found)
    assert [file.stat().st_mode & 0o777 for file in (public, own)] == [0o644, 0o600]
    assert "Public." in public.read_text()
    assert "60 real rows" in own.read_text()
    assert "TVD 2-way" in own.read_text()
    with pytest.raises(DpntkError, match="a public report holds nothing") as caught:
        fitted.report(public, test=held_out, public=True)
    assert "\n" not in str(caught.value)
    with pytest.raises(NotFittedError, match="call fit"):
        clone(fitted).report(tmp_path / "none.html")
    assert not (tmp_path / "none.html").exists()


def test_nothing_is_done_and_nothing_refused_before_fit(tmp_path: Path) -> None:
    nonsense: Any = object()
    names = inspect.signature(Synthesizer).parameters
    model = Synthesizer(**dict.fromkeys(names, nonsense))
    assert set(model.get_params().values()) == {nonsense}
    Synthesizer(folder=tmp_path / "work")
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_fitted_says_so(tmp_path: Path) -> None:
    model = Synthesizer(folder=tmp_path / "work")
    asked: list[Callable[[], object]] = [
        lambda: model.sample(3),
        lambda: model.release_path,
        lambda: model.synthetic_path,
    ]
    for ask in asked:
        with pytest.raises(NotFittedError, match="call fit") as caught:
            ask()
        assert isinstance(caught.value, DpntkError)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


def test_nothing_is_pickled(fitted: Synthesizer) -> None:
    check_is_fitted(fitted)
    rebuilt = Synthesizer.from_release(fitted.release_path, settings=BRIEF["settings"])
    for model in (fitted, clone(fitted), rebuilt):
        for copier in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(DpntkError, match="this is not pickled") as caught:
                copier(model)
            assert "\n" not in str(caught.value)


def test_mistakes_get_one_line_and_cost_nothing(tmp_path: Path) -> None:
    a_file = tmp_path / "file"
    a_file.write_text("mine")
    folder = tmp_path / "work"
    wrong: list[tuple[Callable[[], object], str]] = [
        (lambda: Synthesizer(schema=PEOPLE, folder=folder).fit(ROWS, ROWS["ill"]), "y: a table's"),
        (lambda: Synthesizer(folder=folder).fit(ROWS), r"schema=\.\.\. in .*Synthesizer"),
        (lambda: Synthesizer(folder=folder).fit(IMAGES), "a pair of arrays"),
        (lambda: Synthesizer(folder=folder, classes="ab").fit(IMAGES, LABELS), "such as 10, not"),  # type: ignore[arg-type]
        (lambda: Synthesizer(0, schema=PEOPLE, folder=folder).fit(ROWS), "a positive number"),
        (
            lambda: Synthesizer(schema=PEOPLE, folder=a_file).fit(ROWS),
            "file: no folder can be made",
        ),
        (lambda: Synthesizer(schema=PEOPLE, folder=folder, budget=3.0).fit(ROWS), "budget must be"),  # type: ignore[arg-type]
        (lambda: Synthesizer(schema=PEOPLE, folder=None).fit(ROWS), "folder must be the path"),  # type: ignore[arg-type]
        (lambda: Synthesizer(delta=0.1, schema=PEOPLE, folder=folder).fit(ROWS), "not below 1/n"),
        (lambda: Synthesizer.from_release(tmp_path / "none.h5"), "no such file"),
    ]
    for call, words in wrong:
        with pytest.raises(DpntkError, match=words) as caught:
            call()
        assert "\n" not in str(caught.value)
    assert a_file.read_text() == "mine"
    assert not (folder / "release.h5").exists()
    assert entries(folder) == 0


def test_the_package_has_an_estimator_with_records_and_one_without() -> None:
    stages = ["embed", "evaluate", "generate", "release"]
    assert dpntk.__all__ == ["DpntkError", "ReleasedSynthesizer", "Synthesizer", *stages]
    assert all(hasattr(dpntk, name) for name in dpntk.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = dpntk.nothing


def test_a_fit_that_comes_to_nothing_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    with pytest.raises(DpntkError, match=r"schema=\.\.\. in"):
        Synthesizer(1.0, 1e-3, folder=folder).fit(ROWS)
    assert not folder.exists()
    folder.mkdir()
    with pytest.raises(DpntkError, match=r"schema=\.\.\. in"):
        Synthesizer(1.0, 1e-3, folder=folder).fit(ROWS)
    assert folder.exists()  # it was there
