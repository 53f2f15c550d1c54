"""The whole way from records to synthetic ones as an estimator in scikit-learn's manner."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import NoneType
from typing import Any, Final, Never

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from dpntk.common.arguments import Location, path_from, require_flag, require_kind
from dpntk.common.display.text import counted
from dpntk.common.errors import (
    BudgetError,
    DpntkError,
    GeneratorError,
    OutputError,
    SchemaError,
)
from dpntk.embed import (
    FeatureOptions,
    PerceptualOptions,
    PrivacyBudget,
    SourceOptions,
    TableSchema,
    embed,
    load_embedding,
    save_embedding,
)
from dpntk.evaluate import Evaluation, write_report
from dpntk.generate import Choices, TrainingSettings, require_replaceable, require_settings
from dpntk.release import Adjacency, PrivacyParameters, SigningKey, release

from .released import NO_PICKLE, ReleasedSynthesizer

_SYNTHETIC: Final = "synthetic"


class NotFitted(GeneratorError, NotFittedError):  # type: ignore[misc]  # sklearn has no types
    """A synthesizer that was not fitted is asked for what fitting gives."""


class Synthesizer(BaseEstimator):  # type: ignore[misc]  # sklearn has no types
    """Learns from sensitive records under differential privacy, and makes synthetic ones.

    `fit` embeds the records, makes one signed release, and trains a generator on that. Whatever
    follows from the release costs no privacy: `sample` as often as you like.

    Guarantee:
        That of `dpntk.release.release`: each fit makes one release of `epsilon` and `delta`, and
        enters it into the ledger in `folder` before its noise is drawn. Fitting again with the same
        folder is refused, or, with `compose`, adds to what was spent. Another folder has a ledger
        of its own, which knows nothing of this one unless both are of the same `data_set`. The
        embedding in `folder` is SENSITIVE.

    Args:
        epsilon: of each release.
        delta: of each release, below 1/n; if None, `PrivacyParameters` chooses.
        schema: for a table, what is publicly known about its columns: a `TableSchema`, or the path
            of a `schema.toml`. Images need none.
        folder: where embedding, ledger, releases and synthetic records are kept; made if need be.
        classes: for images, the declared number of classes, or the names of all of them.
        adjacency: which data sets are to be indistinguishable.
        budget: what all releases from the folder together may spend; no limit if None.
        features: which feature map, as `TangentOptions(target="cost")`; tangent features if None.
        settings: how to train: single choices, such as {"seed": 1}, or all of them:
            `TrainingSettings` for images, `TableSettings` for a table.
        key: signs the releases; this machine's own if None.
        compose: whether fitting again may add to what was spent.
        data_set: your name for the records, if they are fitted in several folders: what was spent
            in any of them is added up.
        device: "auto", "cpu" or "cuda".

    Attributes:
        released_: the generator that `fit` has trained, with nothing but the release.
        classes_: of images, the names of the classes, by the numbers that `sample` gives.
        n_features_in_: number of columns of the table, or of values of an image.
        feature_names_in_: names of the table's columns; not there for images.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        schema: TableSchema | Path | str | None = None,
        folder: Location = "work",
        *,
        classes: int | tuple[str, ...] | list[str] | None = None,
        adjacency: Adjacency = Adjacency.REPLACE_ONE,
        budget: PrivacyBudget | None = None,
        features: FeatureOptions | None = None,
        settings: TrainingSettings | Choices | None = None,
        key: SigningKey | None = None,
        compose: bool = False,
        data_set: str | None = None,
        device: str = "auto",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.folder = folder
        self.classes = classes
        self.adjacency = adjacency
        self.budget = budget
        self.features = features
        self.settings = settings
        self.key = key
        self.compose = compose
        self.data_set = data_set
        self.device = device

    @classmethod
    def from_release(
        cls,
        release: Location,
        *,
        settings: TrainingSettings | Choices | None = None,
        module: Location | None = None,
        device: str = "auto",
    ) -> ReleasedSynthesizer:
        """Train a generator on a release, anywhere and at no cost.

        Args:
            release: the path of its file, whose signer has to be trusted.
            settings: how to train: single choices, such as {"seed": 1}, or all of them.
            module: for features of a module: the file that they were made with.
            device: "auto", "cpu" or "cuda".

        Returns:
            What samples, and cannot be fitted: nothing in it reads records.

        Raises:
            ReleaseError: the file is no release, or its signer is not trusted.
            GeneratorError: it is of a distilled set, which needs no generator, or the training
                diverged.
            ModuleError: the module is missing, or is another one.
        """
        return ReleasedSynthesizer.train(release, settings=settings, module=module, device=device)

    def fit(self, X: Any, y: Any = None) -> Synthesizer:  # noqa: ANN401 - as in sklearn
        """Embed records, make a release of them, and train on that.

        Args:
            X: what `embed` takes: a DataFrame or another table in memory, images (n, height,
                width), or the path or address of a data set.
            y: labels of images (n,). The label of a table is one of its columns.

        Returns:
            Itself.

        Raises:
            DataError: the records cannot be read.
            SchemaError: they do not fit what is declared of them.
            BudgetError: epsilon or delta make no sense, or too much was spent before.
            GeneratorError: the settings do not fit the records; or the training failed, after the
                release was made: the message says where it is.
            OutputError: the folder cannot be written.
        """
        parameters = PrivacyParameters(self.epsilon, self.delta, self.adjacency)
        require_flag("compose", self.compose, refusal=BudgetError)
        limit = "a PrivacyBudget, such as PrivacyBudget(3.0)"
        require_kind("budget", self.budget, (PrivacyBudget, NoneType), limit, refusal=BudgetError)
        unit = self.schema.privacy_unit if isinstance(self.schema, TableSchema) else None
        if unit is not None:  # before a record is read
            unit.require(self.adjacency)
        data, source = self._data(X, y)
        folder = path_from("folder", self.folder, refusal=OutputError)
        embedding = folder / "embedding.h5"
        with _begun(folder):  # before anything is spent
            number = 1 + self._releases(embedding)
            require_replaceable(folder / _SYNTHETIC)
            made = embed(data, self.features, source, device=self.device)
            require_settings(self.settings, made.schema, made.feature_map)
        save_embedding(made, embedding, overwrite=True, ceiling=self.budget, data_set=self.data_set)
        path = folder / ("release.h5" if number == 1 else f"release-{number}.h5")
        release(embedding, path, parameters, key=self.key, compose=lambda _: self.compose)
        self.__dict__.pop("released_", None)  # of an earlier fit, should this one fail
        module = self.features.module if isinstance(self.features, PerceptualOptions) else None
        try:
            self.released_ = ReleasedSynthesizer.train(
                path, folder / _SYNTHETIC, settings=self.settings, module=module, device=self.device
            )
        except DpntkError as error:
            raise GeneratorError(
                f"{error}; {path} was released: Synthesizer.from_release goes on from there at no "
                "further cost"
            ) from error
        self._remember(made.schema)
        return self

    def sample(self, count: int, seed: int | None = None, where: str = "") -> Any:  # noqa: ANN401 - of two kinds
        """Draw synthetic records, in random order.

        Args:
            count: how many.
            seed: the same one gives the same records again; if None, each call gives new ones.
            where: for a table: a condition that all rows fulfil, such as "age >= 50".

        Returns:
            For a table, a DataFrame with the declared types. For images, a pair of arrays: uint8
            (n, side, side), or (n, side, side, 3) in colour, and their labels, int64 (n,).

        Raises:
            GeneratorError: it was not fitted, an argument is out of range, or too few rows fulfil
                the condition.
        """
        return self._fitted().sample(count, seed, where)

    @property
    def release_path(self) -> Path:
        """The signed release of the last fit, which may be given to anybody.

        Raises:
            GeneratorError: it was not fitted.
        """
        return self._fitted().release_path

    @property
    def synthetic_path(self) -> Path:
        """The folder with as many synthetic records as were fitted, and their provenance.

        Raises:
            GeneratorError: it was not fitted.
        """
        return self._fitted().release_path.parent / _SYNTHETIC

    def report(
        self,
        output: Location = "report.html",
        *,
        test: Any = None,  # noqa: ANN401 - whatever `write_report` takes
        evaluation: Evaluation | Location | None = None,
        public: bool = False,
    ) -> None:
        """Write one page that shows what the release promises and what synthetic records look like.

        Args:
            output: the HTML file; an earlier report there is replaced.
            test: real records that were not fitted, to compare with.
            evaluation: what `dpntk.evaluate.evaluate` found for the records at `synthetic_path`.
            public: whether anybody may see the page; `test` and `evaluation`, which depend on real
                records, are then refused. Otherwise the page is for the owner alone.

        Raises:
            GeneratorError: it was not fitted.
            DataError: what is to be compared cannot be read, or is real and the page public.
            OutputError: the page cannot be written.
        """
        write_report(
            self.release_path,
            self.synthetic_path,
            output,
            test=test,
            evaluation=evaluation,
            public=public,
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "released_")

    def __getstate__(self) -> Never:
        raise GeneratorError(NO_PICKLE)

    def _fitted(self) -> ReleasedSynthesizer:
        if not self.__sklearn_is_fitted__():
            raise NotFitted(
                "this Synthesizer is not fitted yet: call fit, or Synthesizer.from_release"
            )
        return self.released_

    def _remember(self, schema: Any) -> None:  # noqa: ANN401 - of two kinds
        """Set the attributes by which scikit-learn's tools know what an estimator has seen."""
        for of_one_kind in ("classes_", "feature_names_in_"):
            self.__dict__.pop(of_one_kind, None)  # what was fitted before may be of the other
        if isinstance(schema, TableSchema):
            names = [column.name for column in schema.stored]
            self.feature_names_in_ = np.array(names, dtype=object)
            self.n_features_in_ = len(names)
        else:
            self.n_features_in_ = schema.record_size
            self.classes_ = np.array(schema.classes)

    def _data(self, X: Any, y: Any) -> tuple[Any, SourceOptions]:  # noqa: ANN401
        """What is to be embedded, and what is known of it."""
        if self.schema is not None and y is not None:
            raise SchemaError("y: a table's label is one of its columns: the schema names it")
        if isinstance(self.classes, tuple | list):
            source = SourceOptions(self.schema, class_names=tuple(self.classes))
        else:
            source = SourceOptions(self.schema, classes=self.classes)
        return (X if y is None else (X, y)), source

    def _releases(self, embedding: Path) -> int:
        """How many releases were made in the folder; only if there may be another one."""
        if not embedding.exists():
            return 0
        earlier = load_embedding(embedding)
        made = len(set(earlier.ledger.all_entries) - set(earlier.schema.spent))
        if made and not self.compose:
            raise BudgetError(
                f"{embedding} was released from before, {counted(made, 'time')}: another fit adds "
                "to what is spent: say compose=True if that is acceptable; "
                "Synthesizer.from_release samples from what is there"
            )
        return made


@contextlib.contextmanager
def _begun(folder: Path) -> Iterator[None]:
    """Make a folder, its owner's alone, if it is not there; if all comes to nothing, remove it."""
    new = not folder.exists()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise OutputError(f"{folder}: no folder can be made: {reason}; choose another") from error
    try:
        yield
    except BaseException:
        if new:
            with contextlib.suppress(OSError):  # there is something in it
                folder.rmdir()
        raise
