"""Sockets that servers listen on."""

import os
import socket
from contextlib import ExitStack, closing

import pytest

from calve.api import listen, listen_beside, listeners, reserve, url_of
from calve.errors import EnvironmentUnfit


def test_connections_are_dealt_out_to_all_who_listen_beside() -> None:
    """None of them gets all, and none gets what another one has."""
    with ExitStack() as stack:
        reserved = stack.enter_context(closing(reserve("127.0.0.1", 0)))
        listeners = [stack.enter_context(closing(listen_beside(reserved))) for _ in range(2)]
        clients = [stack.enter_context(socket.create_connection(reserved.getsockname(), 30)) for _ in range(64)]
        assert len({url_of(each) for each in (reserved, *listeners)}) == 1
        taken = [accepted(listener) for listener in listeners]
    assert sum(taken) == len(clients)
    assert min(taken) > 0


def accepted(listener: socket.socket) -> int:
    """Count the connections that wait."""
    listener.setblocking(False)
    number = 0
    while True:
        try:
            listener.accept()[0].close()
        except BlockingIOError:
            return number
        number += 1


def test_where_nothing_is_dealt_out_all_take_from_one_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that it works on every system."""
    monkeypatch.setattr(listeners, "_IS_DEALT", False)
    with closing(reserve("127.0.0.1", 0)) as reserved, socket.create_connection(reserved.getsockname(), 30):
        assert listen_beside(reserved) is reserved
        assert accepted(reserved) == 1


def test_an_address_is_not_shared_with_another_server() -> None:
    """Neither by one that listens alone, nor by one that wants to share it with its own only."""
    with closing(reserve("127.0.0.1", 0)) as reserved, closing(listen_beside(reserved)):
        port = reserved.getsockname()[1]
        for take in (listen, reserve):
            with pytest.raises(EnvironmentUnfit, match=r"Cannot listen on .*: Address already in use"):
                take("127.0.0.1", port)


def test_nobody_is_left_waiting_before_anybody_listens() -> None:
    """Who comes too early is told so."""
    with closing(reserve("127.0.0.1", 0)) as reserved, pytest.raises(ConnectionRefusedError):
        socket.create_connection(reserved.getsockname(), 30)


def test_who_has_an_address_is_reported_with_what_to_do() -> None:
    """The process and its command, where the system shows them."""
    with closing(listen("127.0.0.1", 0)) as taken, pytest.raises(EnvironmentUnfit) as refused:
        listen("127.0.0.1", taken.getsockname()[1])
    assert f"Process {os.getpid()} listens there: " in refused.value.message
    assert "--port 0" in refused.value.remedy


def test_who_has_an_address_cannot_be_seen_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the message says how to find out."""
    monkeypatch.setattr(listeners, "_listening_inodes", lambda _table, _port: iter(()))
    with closing(listen("127.0.0.1", 0)) as taken, pytest.raises(EnvironmentUnfit, match="ss -ltnp"):
        listen("127.0.0.1", taken.getsockname()[1])
