"""What is printed for people."""

from __future__ import annotations

import pytest

from dpntk.common.display.console import console, notice, quiet


def test_a_quiet_block_within_another_ends_no_silence(capfd: pytest.CaptureFixture[str]) -> None:
    with quiet():
        with quiet():
            notice("inner")
        notice("outer")
        console.print("next")
    notice("afterwards")
    assert capfd.readouterr().err == "note: afterwards\n"
