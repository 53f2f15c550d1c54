"""The configuration folder: where it is, and that nobody else can write to it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dpntk.common.errors import BudgetError, OutputError, TrustError
from dpntk.common.storage.config import config_folder, make_private, require_ours


@pytest.mark.parametrize("value", ["", ".", "here", "~/.config"])
def test_what_lies_in_the_current_directory_is_never_the_configuration(
    value: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", value)
    assert config_folder() == tmp_path / "home/.config/dpntk"


def test_without_a_home_there_is_no_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", "nowhere")
    with pytest.raises(OutputError, match="name a folder in XDG_CONFIG_HOME, by its whole path"):
        config_folder()


def test_folders_in_it_are_the_owners_alone_whatever_the_umask() -> None:
    before = os.umask(0o002)
    try:
        make_private(config_folder() / "data_sets")
    finally:
        os.umask(before)
    for folder in (config_folder(), config_folder() / "data_sets"):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_what_others_can_change_is_refused_with_the_callers_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for mode, refusal in ((0o620, BudgetError), (0o602, TrustError)):
        file.chmod(mode)
        with pytest.raises(refusal, match="by others, who decide then what is spent"):
            require_ours(file, file.stat(), "what is spent", refusal)
    file.chmod(0o600)
    require_ours(file, file.stat(), "what is spent", BudgetError)
