"""Making the options of one kind of feature maps."""

from __future__ import annotations

from typing import Any

from ...common.errors import SchemaError
from ...common.features.names import FEATURES
from .base import FEATURE_OPTIONS, FeatureOptions, defaults_of, is_asked, named, spelt


def options_for(kind: str, **given: Any) -> FeatureOptions:  # noqa: ANN401 - each checks its own
    """Make the options of one kind of feature maps.

    Args:
        kind: one of `FEATURES`.
        given: options of all kinds, as a command collects them; those of other kinds must be at
            their defaults.

    Raises:
        SchemaError: there is no such kind, or an option of another kind is set.
    """
    kinds = FEATURE_OPTIONS.entries()
    if kind not in kinds:
        raise SchemaError(f"features {kind!r}: known are {', '.join(FEATURES)}")
    own = kinds[kind]
    mine = defaults_of(own)
    for name, value in given.items():
        having = {each: options for each, options in kinds.items() if name in defaults_of(options)}
        if own not in having.values() and any(
            is_asked(value, defaults_of(options)[name]) for options in having.values()
        ):
            others = " or ".join(named(having[each], each) for each in sorted(having))
            raise SchemaError(f"{spelt(name, value)}: it goes with {others}, not {kind}")
    return own(**{name: value for name, value in given.items() if name in mine})
