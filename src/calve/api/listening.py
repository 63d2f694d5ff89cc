"""Sockets that a server listens on."""

import socket
import sys
from contextlib import closing

from calve.errors import EnvironmentUnfit

BACKLOG = 1_024
_IS_DEALT = sys.platform == "linux"
"""Whether the kernel deals connections out to all sockets on an address. Where it does not, processes take them from
one socket, and whoever wakes first takes all that wait."""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address; port 0 is a free one.

    Raises:
        EnvironmentUnfit: the address cannot be listened on.
    """
    listener = _bound(host, port, is_dealt=False)
    listener.listen(BACKLOG)
    return listener


def reserve(host: str, port: int) -> socket.socket:
    """Return a socket that holds an address for processes that are to listen there together.

    Raises:
        EnvironmentUnfit: the address cannot be listened on, or somebody does.
    """
    listener = listen(host, port)  # one that listens there already with others would not mind another one
    if not _IS_DEALT:
        return listener
    with closing(listener):
        taken = int(listener.getsockname()[1])
    return _bound(host, taken, is_dealt=True)


def listen_beside(reserved: socket.socket) -> socket.socket:
    """Return a socket of this process's own that listens on the address that ``reserve`` holds.

    Raises:
        EnvironmentUnfit: it cannot be listened on.
    """
    if not _IS_DEALT:
        return reserved
    host, port = reserved.getsockname()[:2]
    listener = _bound(host, port, is_dealt=True)
    listener.listen(BACKLOG)
    return listener


def url_of(listener: socket.socket) -> str:
    """Return the address of a server that listens there."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _bound(host: str, port: int, *, is_dealt: bool) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_dealt:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise EnvironmentUnfit(
            f"{host}:{port} cannot be listened on: {error.strerror}.",
            remedy="Is another server there? Choose another port with --port, or in [server].",
        ) from error
    return bound
