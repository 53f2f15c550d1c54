"""Where tests compute that have a device: on the processor, and on CUDA where there is one.

`DPNTK_DEVICE` names another choice; `make test-cuda` sets it to cuda.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final, TypeVar

import pytest
import torch

Test = TypeVar("Test", bound=Callable[..., object])


def _devices() -> list[torch.device]:
    if name := os.environ.get("DPNTK_DEVICE"):
        return [torch.device(name)]
    return [torch.device("cpu")] + ([torch.device("cuda")] if torch.cuda.is_available() else [])


DEVICES: Final = _devices()


def every_device(test: Test) -> Test:
    """Give a test its `device`, and the mark that `make test-cuda` goes by."""
    return pytest.mark.device(pytest.mark.parametrize("device", DEVICES, ids=str)(test))
