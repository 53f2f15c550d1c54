"""What somebody can make of a release who has nothing but the release."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Never

from dpntk.common.arguments import Location, path_from
from dpntk.common.errors import GeneratorError, ReleaseError
from dpntk.generate import (
    Choices,
    SavedGenerator,
    Synthetic,
    TrainingSettings,
    generate,
    open_for_training,
    sample_to,
    train,
)

NO_PICKLE: Final = (
    "this is not pickled, because whoever opens a pickle runs it: keep the release, from which "
    "Synthesizer.from_release makes a generator anew"
)


class ReleasedSynthesizer:
    """A generator that was trained on a release; it has no way to any record.

    Attributes:
        release_path: of the release.
        generator: trained on it.
    """

    def __init__(self, release_path: Path, generator: SavedGenerator) -> None:
        self.release_path: Final = release_path
        self.generator: Final = generator

    @classmethod
    def train(
        cls,
        release: Location,
        folder: Location | None = None,
        *,
        settings: TrainingSettings | Choices | None = None,
        module: Location | None = None,
        device: str = "auto",
    ) -> ReleasedSynthesizer:
        """Train on a release.

        Guarantee:
            Post-processing: reads the release alone, so the result is as private as the release.
            (docs/privacy/proofs.md, statement 10.)

        Args:
            release: the path of its file, whose signer has to be trusted.
            folder: where to write synthetic records, as many as the release was made from; none
                are written if None.
            settings: how to train: single choices, such as {"seed": 1}, or all of them:
                `TrainingSettings` for images, `TableSettings` for a table.
            module: for features of a module: the file that they were made with.
            device: "auto", "cpu" or "cuda".

        Returns:
            What samples.

        Raises:
            ReleaseError: the file is no release, or its signer is not trusted.
            GeneratorError: it is of a distilled set, which needs no generator, or the training
                diverged.
            ModuleError: the module is missing, or is another one.
            OutputError: the folder cannot be written.
        """
        path = path_from("release", release, refusal=ReleaseError)
        if folder is None:
            return cls(path, train(path, settings=settings, module=module, device=device))
        opened = open_for_training(path)
        made = generate(opened, folder, settings=settings, module=module, device=device)
        assert made.generator is not None
        return cls(path, made.generator)

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
            GeneratorError: an argument is out of range, too few rows fulfil the condition, or
                pandas is not installed.
        """
        return self.generator.sample(count, seed, where)

    def generate(
        self, folder: Location, count: int, seed: int | None = None, where: str = ""
    ) -> Synthetic:
        """Draw synthetic records and write them as `dpntk generate` does.

        Args:
            folder: where to write; an earlier such folder is replaced.
            count: how many.
            seed: the same one gives the same records again; if None, each call gives new ones.
            where: for a table: a condition that all rows fulfil, such as "age >= 50".

        Returns:
            The folder, with its `records`.

        Raises:
            GeneratorError: an argument is out of range, or too few rows fulfil the condition.
            OutputError: the folder cannot be written.
        """
        return sample_to(folder, self.generator, count=count, seed=seed, where=where)

    def __getstate__(self) -> Never:
        raise GeneratorError(NO_PICKLE)
