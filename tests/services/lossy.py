"""A proxy between a client and a server of any protocol, which loses requests or answers when it is told to."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from threading import Event, Thread


class Loss(Enum):
    """What is lost, once; the client sees its connection cut."""

    REQUEST = auto()
    ANSWER = auto()


@dataclass(slots=True)
class LossyProxy:
    """Passes on what comes in, but for one loss."""

    port: int
    loss: tuple[bytes, Loss] | None = None
    """What the request to lose contains, and what is lost of it."""
    lost: list[bytes] = field(default_factory=list)
    """The requests that met a loss."""

    def serve(self, listener: socket.socket, server: int) -> None:
        """Take connections until the listener is closed."""
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                Thread(target=self._pass, args=(client, server), daemon=True).start()

    def _pass(self, client: socket.socket, server: int) -> None:
        answer_is_lost = Event()
        with client, suppress(OSError), socket.create_connection(("127.0.0.1", server)) as behind:
            Thread(target=_pass_back, args=(behind, client, answer_is_lost), daemon=True).start()
            while data := client.recv(1 << 20):
                if self.loss is not None and self.loss[0] in data:
                    (_, loss), self.loss = self.loss, None
                    self.lost.append(data)
                    if loss is Loss.REQUEST:
                        return
                    answer_is_lost.set()
                behind.sendall(data)


def _pass_back(behind: socket.socket, client: socket.socket, answer_is_lost: Event) -> None:
    with suppress(OSError):
        while data := behind.recv(1 << 20):
            if answer_is_lost.is_set():  # the server has done what it was asked
                break
            client.sendall(data)
        client.shutdown(socket.SHUT_RDWR)


@contextmanager
def lossy_proxy(server: int) -> Iterator[LossyProxy]:
    """Give a proxy before the port of a server."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = LossyProxy(listener.getsockname()[1])
        Thread(target=proxy.serve, args=(listener, server), daemon=True).start()
        yield proxy
        listener.shutdown(socket.SHUT_RDWR)
