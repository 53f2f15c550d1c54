"""HTML pages: strangers' names appear as text only, and nothing is fetched or run."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined

from .untrusted import shown


def pages_of(package: str) -> Environment:
    """The templates of a package, which escape every text and reveal hidden characters.

    Args:
        package: the package's name; its templates are in its folder `templates`.
    """
    return Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: shown(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
