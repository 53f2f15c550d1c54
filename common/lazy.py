"""Packages whose public names are imported when they are first used.

What only opens a release must not import what makes one, and who asks a command for help need not
wait for torch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def attach(
    package: str, modules: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The functions `__getattr__` and `__dir__` of a package (PEP 562).

    No public name may be that of a module or package in it: once imported, that would hide it.

    Args:
        package: its name.
        modules: where each public name is defined, relative to the package: ".file.model".
    """

    def of_name(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name], package), name)

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return of_name, names
