"""The ``calve`` command: its subcommands, and how errors are reported."""

import io
import json
import sys
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from calve import __version__
from calve.cli.command import OperationCommand, with_examples
from calve.cli.state import State
from calve.environment import withdraw
from calve.errors import CalveError, FolderNotWritable, RequestInvalid
from calve.folders import is_refusal
from calve.texts import text_fault

COMMANDS = {
    "demo": "calve.cli.commands.demo:demo",
    "validate": "calve.cli.commands.definitions:validate",
    "render": "calve.cli.commands.definitions:render",
    "eval": "calve.cli.commands.expressions:evaluate",
    "schema": "calve.cli.commands.definitions:schema",
    "push": "calve.cli.commands.definitions:push",
    "run": "calve.cli.commands.runs:run",
    "status": "calve.cli.commands.instances:status",
    "logs": "calve.cli.commands.logs:logs",
    "instances": "calve.cli.commands.instances:instances",
    "stop": "calve.cli.commands.actions:stop",
    "kill": "calve.cli.commands.actions:kill",
    "restart": "calve.cli.commands.runs:restart",
    "skip": "calve.cli.commands.actions:skip",
    "pause": "calve.cli.commands.actions:pause",
    "resume": "calve.cli.commands.actions:resume",
    "unblock": "calve.cli.commands.actions:unblock",
    "bypass": "calve.cli.commands.actions:bypass",
    "approvals": "calve.cli.commands.instances:approvals",
    "approve": "calve.cli.commands.actions:approve",
    "reject": "calve.cli.commands.actions:reject",
    "delete": "calve.cli.commands.actions:delete",
    "permits": "calve.cli.commands.permits:permits",
    "alerts": "calve.cli.commands.alerts:alerts",
    "triggers": "calve.cli.commands.triggers:triggers",
    "signal": "calve.cli.commands.signals:signal",
    "activate": "calve.cli.commands.triggers:activate",
    "deactivate": "calve.cli.commands.triggers:deactivate",
    "worker": "calve.cli.commands.workers:worker",
    "scheduler": "calve.cli.commands.workers:scheduler",
    "server": "calve.cli.commands.server:server",
    "up": "calve.cli.commands.workers:up",
    "ui": "calve.cli.commands.server:ui",
    "plan": "calve.cli.commands.captures:plan",
    "capture": "calve.cli.commands.captures:capture",
    "commit": "calve.cli.commands.captures:commit",
    "abandon": "calve.cli.commands.captures:abandon",
    "captures": "calve.cli.commands.captures:list_captures",
    "show": "calve.cli.commands.captures:show",
    "lag": "calve.cli.commands.checkpoints:lag",
    "checkpoint": "calve.cli.commands.checkpoints:checkpoint",
    "gc": "calve.cli.commands.retention:gc",
    "prune": "calve.cli.commands.retention:prune",
    "sql": "calve.cli.commands.sql:sql",
    "secret": "calve.cli.commands.secrets:secret",
    "user": "calve.cli.commands.access:user",
    "token": "calve.cli.commands.access:token",
    "audit": "calve.cli.commands.access:audit",
    "doctor": "calve.cli.commands.doctor:doctor",
}
"""The module and the function of each subcommand. Help imports them all, so they import heavy libraries when called."""


class LazyGroup(click.Group):
    """A group that imports a subcommand when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return all names, in the order of ``COMMANDS``."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - the same
        """Import the subcommand."""
        module, _, attribute = COMMANDS.get(cmd_name, "").partition(":")
        return _with_examples(getattr(import_module(module), attribute)) if module else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the subcommand, or suggest one with a similar name."""
        if args[0] not in COMMANDS and (near := _near(args[0])):
            ctx.fail(f"No such command '{args[0]}'. Did you mean '{near}'?")
        return super().resolve_command(ctx, args)


def _near(word: str) -> str:
    """Return the subcommand whose name is most similar to a word, if any is."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, COMMANDS, n=1, cutoff=0.5)), "")


def _with_examples(command: click.Command) -> click.Command:
    """Make click keep the lines of examples in the help of a command and of its subcommands."""
    if not isinstance(command, OperationCommand):
        command.help = command.help and with_examples(command.help)
    for each in command.commands.values() if isinstance(command, click.Group) else ():
        _with_examples(each)
    return command


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-C", "--project", type=click.Path(path_type=Path), metavar="DIR", help="Use the project in DIR.")
@click.option("--debug", is_flag=True, help="Show a traceback if an unexpected error occurs.")
@click.version_option(__version__, prog_name="calve", message="%(prog)s %(version)s")
@click.pass_obj
def calve(state: State, project: Path | None, *, debug: bool) -> None:
    """Process only what changed in Apache Iceberg tables."""
    state.folder = project
    state.debug = debug


def main(arguments: list[str] | None = None) -> None:
    """Run one command and exit: 0 success, 1 refused, 2 wrong usage, 70 a bug, 130 stopped."""
    withdraw()
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    state = State()
    _show_anything()
    try:
        _check_arguments(sys.argv[1:] if arguments is None else arguments)
        code = calve.main(arguments, prog_name="calve", obj=state, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        _complain(state, {"code": "stopped", "message": "stopped", "remedy": "", "context": {}})
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # otherwise the interpreter reports at exit that it cannot flush its output
        return 1
    except CalveError as error:
        _complain(state, error.as_json())
        if state.wants_traceback:
            traceback.print_exc()
        return 1
    except Exception as error:  # noqa: BLE001 - the last boundary
        if isinstance(error, OSError) and is_refusal(error):
            refused = FolderNotWritable(f"{error.filename} cannot be read or written: {error.strerror}.")
            _complain(state, refused.as_json())
            return 1
        remedy = "This is a bug. Run it again with calve --debug, or CALVE_DEBUG=1, to see the traceback."
        message = f"{type(error).__name__}: {error}".strip().partition("\n")[0]
        _complain(state, {"code": "unexpected", "message": message, "remedy": remedy, "context": {}})
        if state.wants_traceback:
            traceback.print_exc()
        return 70
    return code if isinstance(code, int) else 0


def _check_arguments(arguments: list[str]) -> None:
    for number, word in enumerate(arguments, start=1):
        if text_fault(word):
            raise RequestInvalid(f"Argument {number} is not UTF-8: {word!r}.")


def _show_anything() -> None:
    """Let standard output and standard error escape invalid characters instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _complain(state: State, error: dict[str, Any]) -> None:
    """Report an error and its remedy: JSON on standard output, or two lines on standard error."""
    if state.json:
        click.echo(json.dumps({"error": error}, default=str))
        return
    click.echo(click.style("error: ", fg="red", bold=True) + click.style(error["message"], fg="red"), err=True)
    if error["remedy"]:
        click.echo(f"  → {error['remedy']}", err=True)
