"""A torch module, trained on public data, in a file of the user's.

The file is a TorchScript archive, as `torch.jit.script(module).save(FILE)` writes it. torch reads
it in C++: numbers, texts, tensors and TorchScript code, without any Python; a pickle that names a
Python function is refused there. Archives of `torch.export` (.pt2) are not read, because
`torch.export.load` hands parts of them to Python's pickle and others to `eval`.

Even so, a module is a program: it sees the records, and TorchScript can read and write files. So a
module is opened only if the user names its file, never because a release does.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from ..arguments import argument
from ..errors import ModuleError, SchemaError
from ..schema.image import PIXEL_LEVELS
from ..storage import untrusted_files
from .base import FeatureMap
from .ntk.layers import Shape
from .perceptual import PerceptualFeatures, probe_record

_LARGEST_FILE: Final = 1 << 34
_NEARLY: Final = 1e-3
"""How much a feature may change with the other records in a batch, or with the machine."""


class PublicModule:
    """A module, and the feature map that it computes.

    Args:
        path: its file, for messages.
        content: the file's content.
        shape: the shape of the module's input for one record.
        levels: largest integer in a record.

    Attributes:
        feature_map: the map of its outputs, without squares and with their signs.

    Raises:
        ModuleError: it is not a TorchScript module from one tensor to another, draws random
            numbers, changes as it runs, mixes the records of a batch, or passes no gradients.
    """

    def __init__(self, path: Path, content: bytes, shape: Shape, levels: int) -> None:
        self._path, self._shape = path, shape
        self._module = _read(path, content)
        self._probe = torch.from_numpy(probe_record(shape, levels) / levels).float()[None]
        first, *_ = self.one_by_one(torch.cat([self._probe, 1 - self._probe]))
        if not bool(first.isfinite().all()):
            raise ModuleError(f"{path}: what it says of an ordinary image is not finite")
        size = max(float(first.double().norm()), np.finfo(np.float64).tiny)
        self.feature_map = PerceptualFeatures(
            module=hashlib.sha256(content).hexdigest(),
            shape=shape,
            levels=levels,
            probe=(first.double() / size).float().numpy(),
        )
        self._said = first
        self._require_use_to_a_generator()

    def one_by_one(self, records: Tensor) -> Tensor:
        """The module's output for each record, each in its own batch.

        A library chooses its order of addition by the size of the batch and the number of threads,
        so both are the same for every record: a batch of one, on one CPU thread, in code that is
        not re-optimised after its first runs.

        Guarantee:
            The bits of each row depend on that record, the module and the machine alone. Random
            numbers are refused, and so is a module whose output for the probe differs before and
            after. (docs/privacy/proofs.md, statement 3.)

        Args:
            records: float32 (b, record size), values 0..1, on the CPU.

        Returns:
            float32 (b, d); infinite or NaN where the module's output is.

        Raises:
            ModuleError: the module failed, or its output for the probe changed.
        """
        with _the_same_every_time():
            random = torch.get_rng_state()
            # Each record is copied to its own memory, so that its alignment does not depend on its
            # place in the batch: libraries use that, too. The module may also write into its input.
            first, *said, last = (
                self._run(record[None].clone())[0].clone()
                for record in (*self._probe, *records, *self._probe)
            )
            if not torch.equal(random, torch.get_rng_state()):
                raise ModuleError(f"{self._path}: it draws random numbers: take them out")
        if not torch.equal(first.view(torch.int32), last.view(torch.int32)):
            raise ModuleError(
                f"{self._path}: it does not say the same twice of the same image: it must not "
                "draw random numbers or keep anything from one call to the next"
            )
        if {row.shape for row in said} != {first.shape}:
            raise ModuleError(f"{self._path}: how many numbers it returns depends on the image")
        return torch.stack(said)

    def to(self, device: torch.device) -> PublicModule:
        """Move the module to a device, for batches.

        There it uses channels-last memory, which halves the time of convolutions, unless its output
        changes because it reads numbers regardless of their layout.
        """
        self._module.to(device)
        if not self._can_lie_side_by_side(device):
            self._module.to(memory_format=torch.contiguous_format)
        return self

    def _can_lie_side_by_side(self, device: torch.device) -> bool:
        """Switch to channels-last memory, and test whether the module's output stays the same."""
        try:
            self._module.to(memory_format=torch.channels_last)
            said = self(self._probe.to(device)).detach().cpu()
        except (ModuleError, RuntimeError):  # for weights with five dimensions
            return False
        return self._is_near(said[0])

    def __call__(self, records: Tensor) -> Tensor:
        """The module's output for a batch, differentiable, in floating point.

        Args:
            records: float32 (b, record size), values 0..1, on the module's device.

        Returns:
            float32 (b, d).

        Raises:
            ModuleError: the module failed.
        """
        with _as_written():  # optimising would take longer than it saves
            return self._run(records)

    def require_the_probe(self, feature_map: PerceptualFeatures) -> None:
        """Check that the module's output for the probe is that stored in a map.

        Raises:
            ModuleError: it is not.
        """
        if self.feature_map.probe.shape != feature_map.probe.shape or not (
            np.abs(self.feature_map.probe - feature_map.probe).max() <= _NEARLY
        ):
            raise ModuleError(
                f"{self._path}: it says something else of the probe than where the embedding was "
                "made: try the version of torch that was used there"
            )

    def _run(self, records: Tensor) -> Tensor:
        try:
            said = self._module(records.reshape(-1, *self._shape))
        except Exception as error:  # anything that a foreign program raises
            raise ModuleError(
                f"{self._path}: it fails on float32 values of shape {(len(records), *self._shape)}",
                _last_line(error),
            ) from None  # the cause may quote a record
        if not isinstance(said, Tensor) or not said.is_floating_point():
            raise ModuleError(f"{self._path}: it does not return one tensor of real numbers")
        if said.dim() < 1 or len(said) != len(records) or not said.numel():
            raise ModuleError(
                f"{self._path}: of a batch of {len(records)} it returns the shape "
                f"{tuple(said.shape)}: a row for each image is needed"
            )
        return said.reshape(len(records), -1).float()

    def _is_near(self, said: Tensor) -> bool:
        """Whether an output is near that for the probe alone."""
        alone = self._said
        same = said.shape == alone.shape
        return same and bool((said - alone).norm() <= _NEARLY * alone.norm())

    def _require_use_to_a_generator(self) -> None:
        """Refuse, before hours of work, a module whose gradients the generator could not use."""
        with torch.enable_grad():
            said = self(torch.cat([self._probe, 1 - self._probe]).requires_grad_())
        if not self._is_near(said[0].detach()):
            raise ModuleError(
                f"{self._path}: what it says of an image depends on the others in the batch"
            )
        if not said.requires_grad:
            raise ModuleError(f"{self._path}: no gradients go through it, so nothing can learn")


def load_module(path: Path, shape: Shape, levels: int = PIXEL_LEVELS) -> PublicModule:
    """Open a module whose file the user has named.

    Args:
        path: a TorchScript archive.
        shape: the shape of the module's input for one record: (channels, side, side) for images.
        levels: largest integer in a record.

    Raises:
        ModuleError: there is no such file, or it cannot be used.
    """
    return PublicModule(path, _content(path), shape, levels)


def module_for(feature_map: FeatureMap, path: Path | None) -> PublicModule | None:
    """The module that a feature map needs, if it needs one.

    Args:
        feature_map: the feature map of an embedding or a release.
        path: the file that the user named, if any.

    Raises:
        ModuleError: a file is needed but not named, named but not needed, or not the map's.
    """
    if not isinstance(feature_map, PerceptualFeatures):
        if path is not None:
            named = argument("module", path)
            raise ModuleError(f"{named}: the features are of another kind and need none")
        return None
    if path is None:
        raise ModuleError(
            "the features are those of a module, which is not in this file: name it with "
            f"{argument('module', option='--module FILE')} (SHA-256 {feature_map.module})"
        )
    content = _content(path)
    found = hashlib.sha256(content).hexdigest()
    if found != feature_map.module:
        raise ModuleError(
            f"{path}: not the module that the features were made with: its SHA-256 is {found}, not "
            f"{feature_map.module}"
        )
    module = PublicModule(path, content, feature_map.shape, feature_map.levels)
    module.require_the_probe(feature_map)
    return module


def require_module(feature_map: PerceptualFeatures, module: PublicModule | None) -> PublicModule:
    """The module, after checking that it is given and is the map's.

    Raises:
        SchemaError: it is not.
    """
    if module is None or module.feature_map.spec() != feature_map.plain.spec():
        raise SchemaError("the feature map is computed by a module: pass what module_for gives")
    return module


def _content(path: Path) -> bytes:
    return untrusted_files.read(path, _LARGEST_FILE, refusal=ModuleError)


def _read(path: Path, content: bytes) -> Any:  # noqa: ANN401 - torch.jit is untyped
    try:
        with warnings.catch_warnings():
            # torch recommends its other format, which is not safe to read.
            warnings.simplefilter("ignore", DeprecationWarning)
            module = torch.jit.load(io.BytesIO(content), map_location="cpu")
    except Exception as error:  # anything that torch raises for hostile bytes
        raise ModuleError(
            f"{path}: not a TorchScript archive that torch {torch.__version__} can read: write one "
            "with torch.jit.script(module).save(FILE)"
        ) from error
    module.eval()
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    return module


@contextlib.contextmanager
def _the_same_every_time() -> Iterator[None]:
    """Run with one thread, full precision, and code as written."""
    threads = torch.get_num_threads()
    deterministic = torch.are_deterministic_algorithms_enabled()
    lenient = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    try:
        with (
            torch.no_grad(),
            torch.autocast("cpu", enabled=False),
            _as_written(),
        ):
            yield
    finally:
        torch.use_deterministic_algorithms(deterministic, warn_only=lenient)
        torch.set_num_threads(threads)


def _as_written() -> contextlib.AbstractContextManager[None]:
    """Run code as written, without re-optimising it after its first runs."""
    unchanged: contextlib.AbstractContextManager[None] = torch.jit.optimized_execution(False)  # type: ignore[attr-defined]
    return unchanged


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
