"""--help of a command with many options: by sections, each option once."""

from __future__ import annotations

import re

import click
import pytest
from click.testing import CliRunner

from dpntk.common.cli.app import COMMANDS, dpntk
from dpntk.common.cli.sections import SectionedCommand, image_option, table_option


@click.command("toy", cls=SectionedCommand)
@click.argument("data")
@image_option("--grey", is_flag=True, help="Without colours.")
@click.option("--eps", type=float, help="To spend.")
@table_option("--label", help="A column.")
@image_option("--secret", hidden=True, help="Of no use.")
@image_option("--size", help="A side.")
def toy(**_: object) -> None:
    """Do nothing."""


def test_options_without_a_section_come_first_and_tables_before_images() -> None:
    said = CliRunner().invoke(toy, ["--help"]).output
    assert re.findall(r"^(?:  )?(\S+(?: \w+)?:|--\w+)", said.partition("Options:")[2], re.M) == [
        "--eps", "--help", "For tables:", "--label", "For images:", "--grey", "--size",
    ]  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_help_lists_each_option_once_and_no_argument(name: str) -> None:
    found = dpntk.get_command(click.Context(dpntk), name)
    assert found is not None
    said = CliRunner().invoke(found, ["--help"]).output
    rows = re.findall(r"^  (\S.*?)(?:  |$)", said.partition("\nOptions:\n")[2], re.M)
    options = [
        option.get_help_record(click.Context(found))
        for option in found.get_params(click.Context(found))
        if isinstance(option, click.Option)
    ]
    expected = [record[0] for record in options if record is not None]
    if isinstance(found, click.Group):
        expected += found.list_commands(click.Context(found))
    assert sorted(rows) == sorted(expected)
