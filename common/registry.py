"""A registry that the modules of a package fill themselves, so that no list is kept elsewhere."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Entry = TypeVar("Entry")
Added = TypeVar("Added")


class Registry(Generic[Key, Entry]):
    """The entries that modules have added, by key.

    Args:
        package: the package whose modules, including those of subpackages, add entries; they are
            imported when the registry is first read.
    """

    def __init__(self, package: str) -> None:
        self._package = package
        self._entries: dict[Key, Entry] = {}
        self._complete = False

    def add(self, key: Key) -> Callable[[Added], Added]:
        """Make a decorator that adds an object and returns it unchanged."""

        def added(entry: Added) -> Added:
            if key in self._entries:
                raise ValueError(f"{self._package}: there are two entries of {key}")
            self._entries[key] = entry  # type: ignore[assignment]  # callables that stay themselves
            return entry

        return added

    def entries(self) -> dict[Key, Entry]:
        """All entries."""
        if not self._complete:
            folder = importlib.import_module(self._package)
            for module in pkgutil.walk_packages(folder.__path__, f"{self._package}."):
                importlib.import_module(module.name)
            self._complete = True
        return self._entries
