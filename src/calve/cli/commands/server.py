"""``calve server`` and ``calve ui``: a project over HTTP, and its pages in the browser."""

import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from calve.cli.interrupts import WITHIN, counted
from calve.cli.output import print_json
from calve.cli.state import State, json_option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from calve.api import Serving
    from calve.app import Project
    from calve.cli.processes import Supervisor

_OFTEN = 0.2
_FIRST = """There is no user yet. Create the first administrator within an hour, with the token {token}:
  in a browser at {url}/bootstrap
  or by POST {url}/api/v3/access/bootstrap  {{"token": …, "name": …, "password": …}}
or on this machine: calve user add NAME --grant admin"""

host_option = click.option("--host", metavar="ADDRESS", help="The address to listen on. Default: server.host.")
port_option = click.option(
    "--port", type=click.IntRange(0, 65_535), metavar="N", help="The port; 0 takes a free one. Default: server.port."
)


@click.command()
@host_option
@port_option
@click.option(
    "--processes",
    type=click.IntRange(1, 64),
    metavar="N",
    help="How many processes answer requests. Default: server.processes.",
)
@json_option
@click.pass_obj
def server(state: State, host: str | None, port: int | None, processes: int | None) -> None:
    r"""Serve this project over HTTP: REST, GraphQL, metrics and health, until SIGINT or SIGTERM.

    \b
      calve server
      calve server --host 0.0.0.0 --port 8765 --processes 4

    On a loopback address no sign-in is required. Any other address needs access.hosts and TLS, and every caller a token
    or a session. The server runs no workflows: calve scheduler and calve worker do, or calve up, which is all in one.
    """
    number = processes or state.settings.server.processes
    if number > 1:
        _serve_together(state, host, port, number)
        return
    with (
        state.open_project(waits=True) as project,
        counted(within=WITHIN) as signals,
        served(project, host, port) as serving,
    ):
        _say_up(state, serving.url)
        check_store = project.store.watch()
        while not signals() and not serving.is_over:
            check_store()
            time.sleep(_OFTEN)


@click.command()
@click.option("--print", "is_printed", is_flag=True, help="Print the address, and open nothing.")
@json_option
@click.pass_obj
def ui(state: State, *, is_printed: bool) -> None:
    r"""Open the web UI in the browser: of the server that CALVE_URL names, or else of this project's server.

    \b
      calve ui
      calve ui --print

    The server must be running: calve up, or calve server.
    """
    url = state.settings.client.url or state.settings.server.local_url
    _check_up(url)
    if state.json:
        print_json({"url": url})
        return
    click.echo(url)
    if not is_printed:
        click.launch(url)


def _check_up(url: str) -> None:
    """Raise an error if no server answers."""
    from calve.client import Client
    from calve.errors import ServerUnreachable

    with Client(url) as client:
        if not client.server.has_page("/"):
            raise ServerUnreachable(
                f"No server with a web UI answers at {url}.",
                remedy="Start it with: calve up. If it listens elsewhere, set CALVE_URL to the address it printed.",
                url=url,
            )


def _serve_together(state: State, host: str | None, port: int | None, number: int) -> None:
    """Serve with several processes; this process first does what must be done only once."""
    from calve.api import reserve, url_of
    from calve.app import access_control_on, bootstrap_on
    from calve.cli.processes import server_processes

    given = state.settings.server
    host = host or given.host
    with state.open_project(waits=True) as project:  # migrates the database
        check_store = project.store.watch()
        access_control_on(project.store, project.settings, host)  # refuses an address that is not protected
        reserved = reserve(host, given.port if port is None else port)
        url, token = url_of(reserved), bootstrap_on(project.store, project.settings, host)
    _show_first(url, token)
    supervisors: list[Supervisor] = []

    def kill() -> None:
        for each in supervisors:
            each.kill()

    with (
        counted(at_last=kill, within=WITHIN) as signals,
        server_processes(state.settings, host, reserved, number) as supervisor,
    ):
        supervisors.append(supervisor)
        _say_up(state, url)
        while not signals():
            time.sleep(_OFTEN)
            check_store()
            supervisor.look()


def _say_up(state: State, url: str) -> None:
    if state.json:
        print_json({"event": "up", "pid": os.getpid(), "url": url})
    else:
        click.echo(f"Serving {url}/api/v3. Press Ctrl-C to quit.")
    sys.stdout.flush()  # a program that reads our output waits for this line


def _show_first(url: str, token: str | None) -> None:
    if token is not None:
        click.echo(_FIRST.format(url=url, token=token), err=True)


@contextmanager
def served(project: "Project", host: str | None = None, port: int | None = None) -> "Iterator[Serving]":
    """Serve a project until the block ends.

    Args:
        project: the project.
        host: the address to listen on; by default, that of the settings.
        port: its port; by default, that of the settings.

    Raises:
        EnvironmentUnfit: the address is taken.
    """
    from calve.api import listen, serve
    from calve.app import bootstrap_on, patiently, web_on

    given = project.settings.server
    host = host or given.host
    app = web_on(project, host)
    listener = listen(host, given.port if port is None else port)
    with serve(app, listener, threads=given.threads) as serving:
        first = patiently(lambda: bootstrap_on(project.store, project.settings, host), project.wait)
        _show_first(serving.url, first)
        yield serving
