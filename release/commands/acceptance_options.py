"""Options about signers, which several commands share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from ..signing.policy import Acceptance
from ..signing.prompts import accepts_signer


def acceptance_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --signer and --allow-unsigned, and hand their meaning over as `acceptance`."""

    @click.option("--signer", metavar="NAME", help="Accept only what this trusted signer signed.")
    @click.option("--allow-unsigned", is_flag=True, help="Accept a release without a signature.")
    @functools.wraps(command)
    def with_acceptance(
        signer: str | None,
        allow_unsigned: bool,
        **options: Any,  # noqa: ANN401 - handed on
    ) -> None:
        command(acceptance=Acceptance(signer, allow_unsigned, accepts_signer), **options)

    return with_acceptance
