"""Sections of --help: a command with many options lists them by purpose."""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import Any, Final

import click


class Section(Enum):
    """The headings, in their order after the options without one."""

    TABLES = "For tables"
    IMAGES = "For images"
    FEATURES = "Feature map"
    TRAINING = "Training"
    RUNNING = "Running"


class SectionedOption(click.Option):
    """An option that a `SectionedCommand` lists under a heading.

    Attributes:
        section: the heading, if any.
    """

    def __init__(
        self,
        *arguments: Any,  # noqa: ANN401 - as click has it
        section: Section | None = None,
        **attributes: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(*arguments, **attributes)
        self.section: Final = section


class SectionedCommand(click.Command):
    """A command with many options, which its --help lists by section."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options without a heading, and then each section."""
        records: dict[Section | None, list[tuple[str, str]]] = {
            section: [] for section in (None, *Section)
        }
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            # Arguments are in the usage line; from click 8.5 on they have help records as well.
            if record is not None and isinstance(parameter, click.Option):
                records[getattr(parameter, "section", None)].append(record)
        for section, listed in records.items():
            if listed:
                with formatter.section("Options" if section is None else section.value):
                    formatter.write_dl(listed)


sectioned_option: Final = partial(click.option, cls=SectionedOption)
"""`click.option` with a `section`."""
table_option: Final = partial(sectioned_option, section=Section.TABLES)
image_option: Final = partial(sectioned_option, section=Section.IMAGES)
map_option: Final = partial(sectioned_option, section=Section.FEATURES)
training_option: Final = partial(sectioned_option, section=Section.TRAINING)
running_option: Final = partial(sectioned_option, section=Section.RUNNING)
"""`click.option` in the section on running a command."""
