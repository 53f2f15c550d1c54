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

    A public name that is that of a module or package in it can only mean this: once imported, it
    would hide anything else.

    Args:
        package: its name.
        modules: where each public name is defined, relative to the package: ".file.model"; ".name"
            for a module or package itself.
    """

    def of_name(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(modules[name], package)
        return module if modules[name] == f".{name}" else getattr(module, name)

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return of_name, names
