"""Sockets that a server listens on."""

import errno
import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from calve.errors import EnvironmentUnfit

BACKLOG = 1_024
_LISTEN = "0A"
"""The state of a listening socket in the kernel's tables."""
_SHOWN = 200
_IS_DEALT = sys.platform == "linux"
"""Whether the kernel distributes connections to all sockets of an address. If it does not, processes share one socket,
and the first one to wake up takes all waiting connections."""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address; port 0 is a free one.

    Raises:
        EnvironmentUnfit: the address cannot be listened on.
    """
    listener = _bound(host, port, is_dealt=False)
    listener.listen(BACKLOG)
    return listener


def reserve(host: str, port: int) -> socket.socket:
    """Return a socket that reserves an address for processes that listen there together.

    Raises:
        EnvironmentUnfit: the address cannot be listened on, or another process listens there.
    """
    listener = listen(host, port)  # a process that shares its address would not prevent this one from listening, too
    if not _IS_DEALT:
        return listener
    with closing(listener):
        taken = int(listener.getsockname()[1])
    return _bound(host, taken, is_dealt=True)


def listen_beside(reserved: socket.socket) -> socket.socket:
    """Return a socket of this process that listens on the address that ``reserve`` reserved.

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
            f"Cannot listen on {host}:{port}: {error.strerror}.{_taken_by(port, error)}",
            remedy="Stop that process, or choose another port: --port N, server.port, or --port 0 for a free one.",
        ) from error
    return bound


def _taken_by(port: int, error: OSError) -> str:
    """Describe the process that listens on a port, if it can be found."""
    if error.errno != errno.EADDRINUSE:
        return ""
    return _process_at(port) or f" Another process listens there; to find it: ss -ltnp 'sport = :{port}'"


def _process_at(port: int) -> str:
    """Return the process that listens on a port; on Linux, users see their own, and root sees all."""
    inodes = {f"socket:[{inode}]" for table in ("tcp", "tcp6") for inode in _listening_inodes(table, port)}
    for link in Path("/proc").glob("[0-9]*/fd/*") if inodes else ():
        try:
            if str(link.readlink()) in inodes:
                process = link.parents[1]
                words = process.joinpath("cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
                return f" Process {process.name} listens there: {words[:_SHOWN]}"
        except OSError:
            continue  # it has ended, or belongs to another user
    return ""


def _listening_inodes(table: str, port: int) -> Iterator[str]:
    """Yield the numbers of the sockets that listen on a port, of a table of the kernel."""
    try:
        lines = Path(f"/proc/net/{table}").read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return
    for fields in map(str.split, lines):
        if fields[3] == _LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
            yield fields[9]
