"""The state of one invocation of the command line: its global options and settings, and what they open."""

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

    from calve.access import Principal
    from calve.app import Project
    from calve.cli.session import Session
    from calve.client import Client
    from calve.operations import Operations
    from calve.settings import Settings

OF_A_SERVER = frozenset({"up", "server", "scheduler", "worker"})
"""The commands that run a server or parts of one, and therefore ignore ``CALVE_URL``."""

_PAUSE = 0.5
"""How long to wait before connecting again to a database that restarts, in seconds."""
_TOLD_EVERY = 60
"""After how many attempts the message is repeated."""


@dataclass
class State:
    """The global options, and the settings once they are read."""

    folder: Path | None = None
    debug: bool = False
    json: bool = False

    @cached_property
    def settings(self) -> "Settings":
        """The project's settings; loading them also configures logging and arms failpoints."""
        from calve import failpoints, settings
        from calve.telemetry import set_up

        loaded = settings.load(self.folder)
        set_up(loaded.log)
        failpoints.arm(loaded.failpoints)
        return loaded

    def open_project(self, *, waits: bool = False) -> "AbstractContextManager[Project]":
        """Open the project's engine.

        Args:
            waits: wait for a state database that restarts, as a long-running process does.
        """
        from calve.app import open_project

        self.check_here()
        return open_project(self.settings, wait=Patience() if waits else None)

    @contextmanager
    def connect(self) -> "Iterator[Session]":
        """Open a session with the server that ``CALVE_URL`` names, or else with the project itself."""
        from calve.cli.session import Session
        from calve.operations import Caller, Operations

        url = self.settings.client.url
        if url is None:
            with self.open_project() as project:
                yield Session(Operations(Caller(project, self.principal)), project)
            return
        with self._client(url) as client:
            yield Session(client, view_url=client.view_url)

    @contextmanager
    def operations(self) -> "Iterator[Operations]":
        """Open the operations of the server that ``CALVE_URL`` names, or else of the project itself."""
        with self.connect() as session:
            yield session.operations

    @contextmanager
    def topic(self, name: str) -> "Iterator[Any]":
        """Open the operations of one topic; without a server, only the modules that it needs are imported."""
        from calve import operations

        url = self.settings.client.url
        if url is None:
            with self.open_project() as project:
                yield getattr(operations, name)(operations.Caller(project, self.principal))
            return
        with self._client(url) as client:
            yield client

    def _client(self, url: str) -> "AbstractContextManager[Client]":
        from calve.client import Client

        return Client(url, self.settings.client.token)

    @cached_property
    def principal(self) -> "Principal":
        """The user who runs the command; on the project itself, they may do everything."""
        from calve.access import local_principal

        return local_principal()

    def check_here(self) -> None:
        """Refuse a command that works on the files and databases of this project, if ``CALVE_URL`` names a server.

        Raises:
            RequestInvalid: a server is named, and the command is not part of one.
        """
        url = self.settings.client.url
        context = click.get_current_context()
        if url is not None and context.find_root().invoked_subcommand not in OF_A_SERVER:
            raise RequestInvalid(
                f"{context.command_path} works on the project's own files and databases, not through the server {url}.",
                remedy="Run it where the project is, and unset CALVE_URL and [client] url.",
            )

    @property
    def wants_traceback(self) -> bool:
        """Tell whether ``--debug`` or CALVE_DEBUG was given."""
        loaded = self.__dict__.get("settings")
        return self.debug or (loaded is not None and loaded.debug)


class Patience:
    """Waits for a state database that restarts, and reports that from time to time."""

    def __init__(self, sleep: Callable[[float], None] = time.sleep) -> None:
        self._sleep = sleep
        self._waited = 0

    def __call__(self, error: CalveError) -> None:
        """Report the error, and wait a moment."""
        if self._waited % _TOLD_EVERY == 0:
            click.echo(f"{error.message}\nWaiting until it answers. Press Ctrl-C to quit.", err=True)
        self._waited += 1
        self._sleep(_PAUSE)


def _remember(ctx: click.Context, _: click.Parameter, value: Any) -> None:
    ctx.ensure_object(State).json = value


json_option = click.option(
    "--json", is_flag=True, expose_value=False, callback=_remember, help="Print JSON for programs."
)
"""Adds ``--json`` to a command, and stores it in the ``State``."""
