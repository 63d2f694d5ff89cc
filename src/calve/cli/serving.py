"""``calve server``: the interfaces of a project over HTTP."""

import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from calve.cli.output import print_json
from calve.cli.signals import WITHIN, counted
from calve.cli.state import State, json_option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from calve.api import Serving
    from calve.app import Workplace
    from calve.cli.crew import Crew

_OFTEN = 0.2
_FIRST = """Nobody can sign in yet. Make the first administrator within an hour:
  POST {url}/api/v3/access/bootstrap  {{"token": "{token}", "name": …, "password": …}}
or here: calve user add NAME --grant admin"""

host_option = click.option("--host", metavar="ADDRESS", help="The address to listen on; default: server.host.")
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
    r"""Serve this project over HTTP until SIGINT or SIGTERM: REST, metrics, health.

    \b
      calve server
      calve server --host 0.0.0.0 --port 8765 --processes 4

    On loopback nobody has to sign in; another address needs access.hosts and TLS, and everybody a token or a session.
    It starts and carries out nothing: calve scheduler and calve worker do, or calve up, which is all in one.
    """
    number = processes or state.settings.server.processes
    if number > 1:
        _serve_together(state, host, port, number)
        return
    with (
        state.workplace(waits=True) as workplace,
        counted(within=WITHIN) as signals,
        served(workplace, host, port) as serving,
    ):
        _say_up(state, serving.url)
        check_store = workplace.store.watch()
        while not signals() and not serving.is_over:
            check_store()
            time.sleep(_OFTEN)


def _serve_together(state: State, host: str | None, port: int | None, number: int) -> None:
    """Serve by several processes; what has to be done once is done here, before they begin."""
    from calve.api import reserve, url_of
    from calve.app import bootstrap_on, entrance_on
    from calve.cli.sharing import shared

    given = state.settings.server
    host = host or given.host
    with state.workplace(waits=True) as workplace:  # brings the database up to date
        check_store = workplace.store.watch()
        entrance_on(workplace.store, workplace.settings, host)  # refuses what is not protected
        reserved = reserve(host, given.port if port is None else port)
        url, token = url_of(reserved), bootstrap_on(workplace.store, workplace.settings, host)
    _show_first(url, token)
    crews: list[Crew] = []

    def kill() -> None:
        for each in crews:
            each.kill()

    with (
        counted(at_last=kill, within=WITHIN) as signals,
        shared(state.settings, host, reserved, number) as crew,
    ):
        crews.append(crew)
        _say_up(state, url)
        while not signals():
            time.sleep(_OFTEN)
            check_store()
            crew.look()


def _say_up(state: State, url: str) -> None:
    if state.json:
        print_json({"event": "up", "pid": os.getpid(), "url": url})
    else:
        click.echo(f"calve answers at {url}/api/v3. To end: Ctrl-C.")
    sys.stdout.flush()  # whoever reads along is not to wait for more


def _show_first(url: str, token: str | None) -> None:
    if token is not None:
        click.echo(_FIRST.format(url=url, token=token), err=True)


@contextmanager
def served(workplace: "Workplace", host: str | None = None, port: int | None = None) -> "Iterator[Serving]":
    """Serve a project, where its settings say if nothing else is said.

    Args:
        workplace: of which project.
        host: the address to listen on.
        port: its port.

    Raises:
        EnvironmentUnfit: the address is taken.
    """
    from calve.api import listen, serve
    from calve.app import bootstrap_on, patiently, web_on

    given = workplace.settings.server
    host = host or given.host
    app = web_on(workplace, host)
    listener = listen(host, given.port if port is None else port)
    with serve(app, listener, threads=given.threads) as serving:
        first = patiently(lambda: bootstrap_on(workplace.store, workplace.settings, host), workplace.wait)
        _show_first(serving.url, first)
        yield serving
