"""The file of a trained generator: weights and a description in plain JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from ...common.errors import GeneratorError, SchemaError
from ...common.features.base import FeatureMap
from ...common.features.registry import feature_map_from_spec
from ...common.storage import untrusted_files
from ...common.storage.plain import parse_json

GENERATOR: Final = "generator.safetensors"
_DESCRIPTION: Final = "dpntk"
_LARGEST_FILE: Final = 1 << 34
_MAP: Final = "map."
"""Prefix of a feature map's arrays among those of a part."""
_WHICH: Final = "generator"
_SPEC: Final = "spec"
OF_A_NETWORK: Final = {_WHICH, _SPEC}
"""What a description says of a network; see `described`."""

Description = dict[str, Any]
Weights = dict[str, Tensor]
Arrays = dict[str, NDArray[Any]]
"""The arrays of a part of a generator, by names of its own."""
Network = TypeVar("Network", bound=nn.Module)
Saved = TypeVar("Saved")


@dataclass(frozen=True)
class Spec:
    """Everything needed to rebuild a network, except its weights and the schema: whole numbers.

    Each kind of spec checks the range of its own.
    """

    def to_json(self) -> dict[str, Any]:
        """A plain mapping."""
        return asdict(self)


Kinds = Mapping[str | None, tuple[type[Any], type[Any]]]
"""Networks and their specs, by the names that files have for them; None for the one that goes
without a name."""


def serialise(description: Description, weights: Mapping[str, Tensor]) -> bytes:
    """Make the bytes of a file that `read` understands."""
    content: bytes = save(dict(weights), metadata={_DESCRIPTION: json.dumps(description)})
    return content


def named(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Weights:
    """Prefix the names of a part's arrays, so that parts can share a file; `taken` undoes this."""
    return {f"{prefix}.{name}": torch.from_numpy(array.copy()) for name, array in arrays.items()}


def taken(prefix: str, weights: Weights) -> Arrays:
    """Remove and return the arrays of a part; empty if there are none."""
    whole = [name for name in weights if name.startswith(f"{prefix}.")]
    return {name.removeprefix(f"{prefix}."): weights.pop(name).numpy() for name in whole}


def arrays_of_map(feature_map: FeatureMap) -> Arrays:
    """The arrays that a feature map needs beside its `spec`; see `map_from`."""
    return {f"{_MAP}{name}": array for name, array in feature_map.weights().items()}


def map_from(spec: Mapping[str, Any], arrays: Arrays) -> FeatureMap:
    """Restore a feature map from the arrays of `arrays_of_map`; other arrays are left.

    Raises:
        SchemaError: there is no such feature map.
    """
    of_map = [name for name in arrays if name.startswith(_MAP)]
    weights = {name.removeprefix(_MAP): arrays.pop(name) for name in of_map}
    return feature_map_from_spec(dict(spec), weights)


def read(path: Path, understand: Callable[[Description, Weights], Saved]) -> Saved:
    """Read a generator file.

    Args:
        path: the file.
        understand: builds the result from description and weights. It may raise KeyError, TypeError
            or ValueError for an entry that is missing or of another type.

    Raises:
        GeneratorError: there is no such file, it is damaged, or `understand` refused it.
    """
    hint = f"'dpntk generate' writes {GENERATOR}"
    content = untrusted_files.read(path, _LARGEST_FILE, refusal=GeneratorError, hint=hint)
    try:
        weights = load(content)
        description = parse_json(_metadata(content)[_DESCRIPTION])
        return understand(description, weights)
    except (GeneratorError, SchemaError) as error:
        raise GeneratorError(f"{path}: {error}") from error
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise GeneratorError(f"{path}: not a generator that dpntk wrote") from error


def _metadata(content: bytes) -> dict[str, str]:
    """The metadata of a file that `load` has accepted."""
    length = int.from_bytes(content[:8], "little")
    header: dict[str, dict[str, str]] = parse_json(content[8 : 8 + length])
    return header["__metadata__"]


def described(network: Network, kinds: Kinds) -> Description:
    """The name and spec needed to rebuild a network, beside its weights."""
    which = next(name for name, (kind, _) in kinds.items() if isinstance(network, kind))
    spec = network.spec
    assert isinstance(spec, Spec)
    return {**({} if which is None else {_WHICH: which}), _SPEC: spec.to_json()}


def kind_and_spec(description: Mapping[str, Any], kinds: Kinds) -> tuple[Any, Any]:
    """The class and the spec of the described network.

    Raises:
        GeneratorError: there is no such network, its spec has other fields, or one is out of range.
        KeyError: there is no spec.
    """
    which = description.get(_WHICH)
    if not isinstance(which, str | None) or which not in kinds:
        raise GeneratorError("its generator is not one that this dpntk knows")
    kind, form = kinds[which]
    try:
        spec = form(**description[_SPEC])
    except TypeError as error:
        raise GeneratorError("the generator's description is not one of dpntk's") from error
    if not all(type(number) is int for number in vars(spec).values()):
        raise GeneratorError("the generator's description is not one of whole numbers")
    return kind, spec


def class_shares(stored: object, classes: int) -> NDArray[np.float64]:
    """Read the class shares in a description.

    Args:
        stored: a list of numbers, in a valid file.
        classes: number of classes.

    Returns:
        float64 (classes,), positive, of sum 1.

    Raises:
        GeneratorError: they are not such shares.
    """
    shares = np.array(stored, dtype=np.float64)
    fitting = shares.shape == (classes,) and bool((shares > 0).all())
    if not fitting or not math.isclose(shares.sum(), 1, rel_tol=1e-6):
        raise GeneratorError("its classes and weights contradict each other")
    return shares


def restored(make: Callable[[], Network], weights: Weights) -> Network:
    """Load weights from a file into a generator, in evaluation mode.

    Args:
        make: makes the generator with arbitrary weights, on the meta device without memory.
        weights: the parameters by name.

    Raises:
        GeneratorError: the parameters do not match, or are not finite float32 numbers.
    """
    for weight in weights.values():
        if weight.dtype != torch.float32 or not weight.isfinite().all():
            raise GeneratorError("its weights are not finite float32 numbers")
    with torch.device("meta"):
        generator = make()
    try:
        generator.load_state_dict(weights, strict=True, assign=True)
    except RuntimeError as error:
        raise GeneratorError("its weights do not fit its description") from error
    return generator.eval()
