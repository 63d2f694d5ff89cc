"""A server of several processes on one address, to which the connections are dealt out."""

import logging
import multiprocessing
import signal
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from calve.cli.crew import Crew, Member
from calve.environment import withdraw
from calve.errors import CalveError, EnvironmentUnfit

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from types import FrameType

    from calve.settings import Settings

_LOG = logging.getLogger(__name__)
_OFTEN = 0.2
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def shared(settings: "Settings", host: str, reserved: "socket.socket", number: int) -> Iterator[Crew]:
    """Serve a project by some processes until the block ends; the socket is closed then.

    Args:
        settings: of which project.
        host: the address that is listened on.
        reserved: what holds the address for them.
        number: how many processes.

    Raises:
        EnvironmentUnfit: none of them has come up.
    """
    context = multiprocessing.get_context("spawn")
    signs: WeakKeyDictionary[Member, Connection] = WeakKeyDictionary()  # a sign goes with its process

    def start() -> Member:
        sign, theirs = context.Pipe(duplex=False)
        with closing(theirs), _held_back():
            process = context.Process(target=be_member, args=(settings, host, reserved, theirs), name="server")
            process.start()
        signs[process] = sign
        return process

    with closing(reserved):
        crew = Crew(number, start)
        try:
            if not sum(_is_up(sign) for sign in signs.values()):
                raise EnvironmentUnfit(
                    "No process of the server has come up.", remedy="Look at what they have logged; calve doctor."
                )
            yield crew
        finally:
            crew.end()


def be_member(settings: "Settings", host: str, reserved: "socket.socket", sign: "Connection") -> None:
    """Be one of the processes: serve until told to end, or until whoever has started them is gone."""
    withdraw()
    is_told = False

    def tell(_: int, __: "FrameType | None") -> None:
        nonlocal is_told
        is_told = True

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the parent passes it on as SIGTERM
    signal.signal(signal.SIGTERM, tell)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    parent = multiprocessing.parent_process()
    try:
        with _serving(settings, host, reserved) as is_over:
            sign.send_bytes(b"up")
            while not is_told and not is_over() and parent is not None and parent.is_alive():
                parent.join(_OFTEN)
    except CalveError as error:
        _LOG.error("%s", error)
        sys.exit(1)


@contextmanager
def _serving(settings: "Settings", host: str, reserved: "socket.socket") -> "Iterator[Callable[[], bool]]":
    """Serve; give what tells whether the server has ended by itself."""
    from calve import failpoints
    from calve.api import listen_beside, serve
    from calve.app import open_workplace, web_on
    from calve.telemetry.logs import set_up

    set_up(settings.log)
    failpoints.arm(settings.failpoints)
    threads = settings.server.threads
    with open_workplace(settings) as workplace:
        app = web_on(workplace, host)
        with serve(app, listen_beside(reserved), threads=threads) as serving:
            yield lambda: serving.is_over


@contextmanager
def _held_back() -> Iterator[None]:
    """Hold signals back from a process that starts until it can handle them: it inherits what is blocked."""
    resource_tracker.ensure_running()  # the first start would do it, and let the signals through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _is_up(sign: "Connection") -> bool:
    try:
        return bool(sign.recv_bytes())
    except EOFError:  # it has died
        return False
