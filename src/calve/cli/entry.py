"""The ``calve`` command: its subcommands, and what becomes of errors."""

import io
import json
import sys
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from calve import __version__
from calve.cli.state import State
from calve.environment import withdraw
from calve.errors import CalveError, FolderNotWritable, RequestInvalid
from calve.folders import is_refusal
from calve.texts import text_fault

COMMANDS = {
    "demo": "calve.cli.demo:demo",
    "validate": "calve.cli.definition:validate",
    "render": "calve.cli.definition:render",
    "eval": "calve.cli.expression:evaluate",
    "schema": "calve.cli.definition:schema",
    "push": "calve.cli.pushing:push",
    "run": "calve.cli.running:run",
    "status": "calve.cli.watching:status",
    "logs": "calve.cli.watching:logs",
    "instances": "calve.cli.watching:instances",
    "stop": "calve.cli.acting:stop",
    "kill": "calve.cli.acting:kill",
    "restart": "calve.cli.running:restart",
    "skip": "calve.cli.acting:skip",
    "pause": "calve.cli.acting:pause",
    "resume": "calve.cli.acting:resume",
    "unblock": "calve.cli.acting:unblock",
    "bypass": "calve.cli.acting:bypass",
    "approvals": "calve.cli.watching:approvals",
    "approve": "calve.cli.acting:approve",
    "reject": "calve.cli.acting:reject",
    "delete": "calve.cli.acting:delete",
    "permits": "calve.cli.permits:permits",
    "alerts": "calve.cli.alerts:alerts",
    "triggers": "calve.cli.triggers:triggers",
    "signal": "calve.cli.signal:signal",
    "activate": "calve.cli.triggers:activate",
    "deactivate": "calve.cli.triggers:deactivate",
    "worker": "calve.cli.working:worker",
    "scheduler": "calve.cli.working:scheduler",
    "server": "calve.cli.serving:server",
    "up": "calve.cli.working:up",
    "plan": "calve.cli.capture:plan",
    "capture": "calve.cli.capture:capture",
    "commit": "calve.cli.capture:commit",
    "abandon": "calve.cli.capture:abandon",
    "captures": "calve.cli.capture:list_captures",
    "show": "calve.cli.capture:show",
    "lag": "calve.cli.capture:lag",
    "checkpoint": "calve.cli.checkpoint:checkpoint",
    "gc": "calve.cli.capture:gc",
    "prune": "calve.cli.pruning:prune",
    "sql": "calve.cli.sql:sql",
    "secret": "calve.cli.secrets:secret",
    "user": "calve.cli.access:user",
    "token": "calve.cli.access:token",
    "audit": "calve.cli.access:audit",
    "doctor": "calve.cli.doctor:doctor",
}
"""Where each subcommand lives. Help imports them all, so they import heavy libraries only when they run."""


class LazyGroup(click.Group):
    """Knows its subcommands by name only."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return all names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - the same
        """Import the subcommand."""
        module, _, attribute = COMMANDS.get(cmd_name, "").partition(":")
        return _with_examples(getattr(import_module(module), attribute)) if module else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the subcommand, or say which one may have been meant."""
        if args[0] not in COMMANDS and (near := _near(args[0])):
            ctx.fail(f"No such command '{args[0]}'. Did you mean '{near}'?")
        return super().resolve_command(ctx, args)


def _near(word: str) -> str:
    """Return the subcommand whose name is most like a word, if one is."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, COMMANDS, n=1, cutoff=0.5)), "")


def _with_examples(command: click.Command) -> click.Command:
    r"""Return a command whose examples keep their lines: click wants a backspace before them, and ours say ``\b``."""
    command.help = command.help and command.help.replace("\\b\n", "\b\n")
    for each in command.commands.values() if isinstance(command, click.Group) else ():
        _with_examples(each)
    return command


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-C", "--project", type=click.Path(path_type=Path), metavar="DIR", help="Use the project in DIR.")
@click.option("--debug", is_flag=True, help="Show a traceback when something unexpected happens.")
@click.version_option(__version__, prog_name="calve", message="%(prog)s %(version)s")
@click.pass_obj
def calve(state: State, project: Path | None, *, debug: bool) -> None:
    """Process only what changed in Apache Iceberg tables."""
    state.project = project
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
        sys.stderr.close()  # whoever read our output has left; so do we
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
        remedy = "This is a bug. Run again with calve --debug, or CALVE_DEBUG=1, to see where."
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
    """Let standard output and standard error escape what is no character rather than fail."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _complain(state: State, error: dict[str, Any]) -> None:
    """Say what happened and what to do: JSON on standard output, or two lines on standard error."""
    if state.json:
        click.echo(json.dumps({"error": error}, default=str))
        return
    click.echo(click.style("error: ", fg="red", bold=True) + click.style(error["message"], fg="red"), err=True)
    if error["remedy"]:
        click.echo(f"  → {error['remedy']}", err=True)
