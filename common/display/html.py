"""Pages of HTML: names of strangers come out as text, and nothing is fetched or run."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined

from .untrusted import shown


def pages_of(package: str) -> Environment:
    """Templates of a package, which escape every text and show what is hidden in it.

    Args:
        package: its name; they are in its folder `templates`.
    """
    return Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: shown(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
