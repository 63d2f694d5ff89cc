"""What one invocation of the command line knows."""

import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calve.errors import CalveError, RequestInvalid

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from calve.app import Workplace
    from calve.capture import Captures
    from calve.cli.desk import Desk
    from calve.cli.ledger import Ledger
    from calve.client import Client
    from calve.delivery import Deliveries
    from calve.settings import Settings

OF_A_SERVER = frozenset({"up", "server", "scheduler", "worker"})
"""The commands that are parts of a server, and so have nothing to do with one that is named."""

_PAUSE = 0.5
"""How long to wait before a database that restarts is tried again, in seconds."""
_TOLD_EVERY = 60
"""After how many tries it is said again what is waited for."""


@dataclass
class State:
    """The global options, and the settings once they are read."""

    project: Path | None = None
    debug: bool = False
    json: bool = False

    @cached_property
    def settings(self) -> "Settings":
        """The project's settings; reading them arms the failpoint that they name, and sets up the log."""
        from calve import failpoints, settings
        from calve.telemetry.logs import set_up

        loaded = settings.load(self.project)
        set_up(loaded.log)
        failpoints.arm(loaded.failpoints)
        return loaded

    def captures(self) -> "AbstractContextManager[Captures]":
        """Open the project's captures."""
        from calve.app import open_captures

        self.check_here()
        return open_captures(self.settings)

    def deliveries(self) -> "AbstractContextManager[Deliveries]":
        """Open the project's deliveries."""
        from calve.app import open_deliveries

        self.check_here()
        return open_deliveries(self.settings)

    def workplace(self, *, waits: bool = False) -> "AbstractContextManager[Workplace]":
        """Open the project's engine.

        Args:
            waits: wait for a state database that restarts, as a process does that is to run for long.
        """
        from calve.app import open_workplace

        self.check_here()
        return open_workplace(self.settings, wait=Patience() if waits else None)

    @contextmanager
    def desk(self) -> "Iterator[Desk]":
        """Open what takes requests about workflows: the server of the settings, or the project's engine."""
        from calve.cli.local_desk import LocalDesk
        from calve.cli.remote_desk import RemoteDesk

        url = self.settings.client.url
        if url is None:
            with self.workplace() as workplace:
                yield LocalDesk(workplace, self.user)
            return
        with self._client(url) as client:
            yield RemoteDesk(client)

    @contextmanager
    def ledger(self) -> "Iterator[Ledger]":
        """Open what tells of captures: the server of the settings, or the project's lake."""
        from calve.cli.ledger import LocalLedger, RemoteLedger

        url = self.settings.client.url
        if url is None:
            with self.captures() as captures:
                yield LocalLedger(captures)
            return
        with self._client(url) as client:
            yield RemoteLedger(client)

    def _client(self, url: str) -> "AbstractContextManager[Client]":
        from calve.client import Client

        return Client(url, self.settings.client.token)

    def check_here(self) -> None:
        """Refuse what works on the files and databases of this project, if a server was named.

        Raises:
            RequestInvalid: a server was named, and the command is not one that makes a server.
        """
        url = self.settings.client.url
        context = click.get_current_context()
        if url is not None and context.find_root().invoked_subcommand not in OF_A_SERVER:
            raise RequestInvalid(
                f"{context.command_path} works on this project itself, not through the server {url}.",
                remedy="Run it where the project is, without CALVE_URL and [client] url.",
            )

    @cached_property
    def user(self) -> str:
        """Whoever runs the command."""
        import getpass
        import os

        try:
            return getpass.getuser()
        except (KeyError, OSError):  # a container may know its user by number only
            return str(os.getuid())

    @property
    def wants_traceback(self) -> bool:
        """Tell whether ``--debug`` or CALVE_DEBUG was given."""
        loaded = self.__dict__.get("settings")
        return self.debug or (loaded is not None and loaded.debug)


class Patience:
    """Waits for a state database that restarts, and says so now and then."""

    def __init__(self, sleep: Callable[[float], None] = time.sleep) -> None:
        self._sleep = sleep
        self._waited = 0

    def __call__(self, error: CalveError) -> None:
        """Say what is waited for, and wait a while."""
        if self._waited % _TOLD_EVERY == 0:
            click.echo(f"{error.message}\nWaiting until it answers. To end: Ctrl-C.", err=True)
        self._waited += 1
        self._sleep(_PAUSE)


def _remember(ctx: click.Context, _: click.Parameter, value: Any) -> None:
    ctx.ensure_object(State).json = value


json_option = click.option(
    "--json", is_flag=True, expose_value=False, callback=_remember, help="Print JSON for programs."
)
"""Gives a command ``--json``, which then stands in its ``State``."""
