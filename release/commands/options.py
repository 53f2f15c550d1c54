"""Options of what is to be promised, which several commands share."""

from __future__ import annotations

from collections.abc import Callable

import click

from ...common.adjacency import Adjacency
from ...common.ledger import DEFAULT_DELTA

_Decorator = Callable[[Callable[..., None]], Callable[..., None]]


def promise_options(
    *,
    epsilon: str = "Privacy loss to spend: 1 is strong, 10 is weak.",
    delta: str = "Chance, roughly, that the guarantee fails; must be below 1/n.",
    adjacency: str,
    default: Adjacency = Adjacency.REPLACE_ONE,
) -> _Decorator:
    """Add --eps, --delta and --adjacency; the command gets `epsilon`, `delta`, `adjacency`.

    Args:
        epsilon: help for --eps.
        delta: help for --delta.
        adjacency: help for --adjacency.
        default: adjacency if none is given.
    """
    options = (
        click.option(
            "--eps", "epsilon", type=float, required=True, metavar="EPSILON", help=epsilon
        ),
        click.option(
            "--delta", type=float, default=DEFAULT_DELTA, show_default=True, help=delta
        ),
        click.option(
            "--adjacency", type=click.Choice([a.value for a in Adjacency]), default=default.value,
            show_default=True, callback=_parsed, help=adjacency,
        ),
    )  # fmt: skip

    def with_promise(command: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(options):
            command = option(command)
        return command

    return with_promise


def _parsed(context: click.Context, parameter: click.Parameter, value: str) -> Adjacency:
    return Adjacency(value)
