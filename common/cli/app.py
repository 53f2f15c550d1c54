"""The `dpntk` command, which loads a stage only when needed and turns errors into one line."""

from __future__ import annotations

import importlib
import os
import platform
import sys
from importlib.metadata import version
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from ..arguments import typed_as_options
from ..display.untrusted import shown
from ..errors import DpntkError
from .options import ErrorLine

COMMANDS = {
    "schema": (
        "embed.commands.schema",
        "Draft the schema of a table (before stage one).",
    ),
    "embed": (
        "embed.commands.embed",
        "Reduce sensitive records to one matrix of exact sums (stage one).",
    ),
    "bounds": (
        "release.commands.bounds",
        "Find bounds of a table's columns with differential privacy.",
    ),
    "merge": ("embed.commands.merge", "Add up the embeddings of shards or sites."),
    "plan": (
        "release.commands.plan",
        "Say how much noise a release would have, before it is made.",
    ),
    "release": (
        "release.commands.release",
        "Add noise once and write the file that may be shared (stage two).",
    ),
    "distill": (
        "release.commands.distill",
        "Release a few labelled points that are made for classification.",
    ),
    "budget": ("release.commands.budget", "Show what has been spent on the records."),
    "inspect": ("release.commands.inspect", "Show what a release says and promises."),
    "verify": ("release.commands.verify", "Check who signed a release."),
    "generate": (
        "generate.commands.generate",
        "Train a generator from a release and sample (stage three).",
    ),
    "evaluate": ("evaluate.commands.evaluate", "Measure how good the synthetic records are."),
    "report": (
        "evaluate.commands.report",
        "Show a release and its synthetic records in one HTML file.",
    ),
    "audit": ("evaluate.commands.audit", "Try to refute the guarantee by attacking the mechanism."),
    "trust": ("release.commands.trust", "Choose whose releases to accept."),
    "keygen": ("release.commands.keygen", "Make a key to sign releases with."),
    "demo": ("common.cli.demo", "Write example data to try dpntk on."),
    "doctor": ("release.commands.doctor", "Check that dpntk works on this machine."),
}
"""Maps a command to its module and to its line in --help."""

LIBRARIES: Final = ("torch", "numpy", "h5py")
"""The libraries whose versions tell most about a problem."""

USAGE = 2
"""The exit code for a command line that cannot be understood."""


def _be_quiet(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from ..display.console import quiet  # rich is needed only where something is printed

        ctx.find_root().with_resource(quiet())


_QUIET: Final = click.Option(
    ["-q", "--quiet"], is_flag=True, is_eager=True, expose_value=False, callback=_be_quiet,
    help="Show only results, warnings and errors.",
)  # fmt: skip
"""An option of every command, which may also come before the command."""


class _LazyGroup(click.Group):
    """Lists the commands without importing them, so that --help is instant and torch-free."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _ = COMMANDS[cmd_name]
        command = importlib.import_module(f"dpntk.{module}").command
        if not isinstance(command, click.Command):
            raise TypeError(f"dpntk.{module}.command is not a click command")
        if _QUIET not in command.params:
            command.params.append(_QUIET)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        commands = [
            CompletionItem(name, help=line)
            for name, (_, line) in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return commands + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


_STAGES: Final = """Share data you may not share.

\b
  dpntk embed data/            sensitive records -> embedding.h5 (keep it secret)
  dpntk release --eps 1        embedding.h5      -> release.h5   (give it away)
  dpntk generate release.h5    release.h5        -> synthetic/   (as often as you like)
"""


def _show_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from ..display.console import out  # rich is needed only where something is printed

        beside = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
        out.print(f"dpntk {version('dpntk')} (Python {platform.python_version()}, {beside})")
        context.exit()


@click.group(
    cls=_LazyGroup,
    help=_STAGES,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Run 'dpntk COMMAND --help' for the options of one command.",
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version,
    help="Show the versions of dpntk and of the libraries that matter most, and exit.",
)  # fmt: skip
def dpntk() -> None:
    """All commands."""


dpntk.params.append(_QUIET)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: 0 for success, 1 for an error, 2 for wrong usage."""
    # OpenMP reads this when torch is imported. By default, a thread that waits for the others of a
    # step keeps its core busy, which it takes from them on a machine that has other work.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code; never show a traceback."""
    line = ErrorLine()
    try:
        with typed_as_options():
            result: Any = dpntk.main(arguments, prog_name="dpntk", standalone_mode=False, obj=line)
    except DpntkError as error:
        return _fail(error.with_value if line.values else str(error))
    except click.MissingParameter as error:
        return _misused(error)
    except click.BadParameter as error:
        return _fail(error.format_message())  # an unusable value is bad input
    except click.UsageError as error:
        return _misused(error)
    except click.ClickException as error:
        return _fail(error.format_message())
    except (KeyboardInterrupt, click.Abort):
        return _fail("interrupted")
    except PermissionError as error:
        return _fail(
            f"{error.filename or error}: permission denied: choose a place that you may use"
        )
    except Exception as error:
        if _out_of_memory(error):
            return _fail("out of memory: try a smaller --width, --image-size or --batch")
        if os.environ.get("DPNTK_DEBUG"):
            raise
        said = " ".join(str(error).split())
        what = f"{type(error).__name__}: {said}" if line.values else type(error).__name__
        return _fail(
            f"{what}; this is a bug in dpntk: "
            "run again with DPNTK_DEBUG=1 to see where, and please report it"
        )
    return result if isinstance(result, int) else 0


def _misused(error: click.UsageError) -> int:
    """Let click show the usage; what was typed may be anything."""
    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):  # of click 8.2 on
        error.show()  # the help itself
        return USAGE
    click.UsageError(shown(error.format_message()), error.ctx).show()
    return USAGE


def _out_of_memory(error: Exception) -> bool:
    """Whether memory ran out: torch reports it in words, or by its own error."""
    of_torch = type(error).__name__ == "OutOfMemoryError"
    return isinstance(error, MemoryError) or of_torch or "allocate memory" in str(error)


def _fail(message: str) -> int:
    from ..display.console import failure  # rich is needed only where something is printed

    failure(message)
    return 1
