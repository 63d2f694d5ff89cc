"""A network between a worker and PostgreSQL that can be cut at the worst moment."""

import random
import select
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Self

_COMMIT = b"COMMIT"
_SIZE = 65536


class Mode(Enum):
    """What the network does with what is sent."""

    PASS = auto()
    LOSE_REPLY = auto()
    """A commit reaches the server, and the connection is cut before its answer comes back."""
    LOSE_COMMIT = auto()
    """The connection is cut before a commit reaches the server."""
    CRASH = auto()
    """The server is told to do something (``crash``) before a commit reaches it, and then the connection is cut."""
    REFUSE = auto()
    """Nobody gets a connection, and those that there are are cut."""
    SWALLOW = auto()
    """Whatever is sent disappears, and nobody is told."""


@dataclass
class Proxy:
    """Listens on a port of its own; ``chance`` is how likely a commit meets its fate."""

    target: int
    mode: Mode = Mode.PASS
    chance: float = 1.0
    cuts: int = 0
    seed: int = 0
    crash: Callable[[], None] = lambda: None
    _pairs: set[tuple[socket.socket, socket.socket]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _is_over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port: int = self._listening.getsockname()[1]
        self._accepting = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._accepting.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._listening.close()
        self.cut_all()
        self._accepting.join()

    def cut_all(self) -> None:
        """Cut every connection that there is."""
        with self._lock:
            pairs = list(self._pairs)
        for pair in pairs:
            _close(*pair)

    def _accept(self) -> None:
        while not self._is_over.is_set():
            try:
                ready, _, _ = select.select([self._listening], [], [], 0.1)
                if not ready:
                    continue
                client, _ = self._listening.accept()
                if self.mode is Mode.REFUSE:
                    _close(client)
                    continue
                server = socket.create_connection(("127.0.0.1", self.target), timeout=10)
            except (OSError, ValueError):
                continue
            threading.Thread(target=self._carry, args=(client, server), daemon=True).start()

    def _carry(self, client: socket.socket, server: socket.socket) -> None:
        """Carry what is sent to and fro, until one side is gone or the connection is cut."""
        pair = (client, server)
        with self._lock:
            self._pairs.add(pair)
        try:
            while self._carry_once(client, server):
                pass
        except (OSError, ValueError):
            return
        finally:
            with self._lock:
                self._pairs.discard(pair)
            _close(client, server)

    def _carry_once(self, client: socket.socket, server: socket.socket) -> bool:
        ready, _, _ = select.select([client, server], [], [], 0.2)
        if self.mode is Mode.REFUSE:
            self.cuts += 1
            return False
        for source in ready:
            data = source.recv(_SIZE)
            if not data:
                return False
            if self.mode is Mode.SWALLOW:
                continue
            is_fatal = source is client and _COMMIT in data and self._random.random() < self.chance
            if is_fatal and self.mode in {Mode.LOSE_COMMIT, Mode.CRASH}:
                self.cuts += 1
                if self.mode is Mode.CRASH:
                    self.mode = Mode.PASS
                    self.crash()
                return False
            (server if source is client else client).sendall(data)
            if is_fatal and self.mode is Mode.LOSE_REPLY:
                self.cuts += 1
                server.recv(_SIZE)  # the server has answered: it is done
                return False
        return True


def _close(*sockets: socket.socket) -> None:
    for each in sockets:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()
