"""What callers can make long keeps nobody else waiting."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.engines import Playground
from tests.servers import site_on

from calve.definition import load
from calve.operations import workflows
from calve.settings import THREADS


def test_definitions_that_take_long_block_no_other_request(
    playground: Playground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many of them as requests are answered at a time: others are answered meanwhile."""
    is_done, begun = threading.Event(), threading.Semaphore(0)

    def slow(*args: Any, **kwargs: Any) -> Any:
        begun.release()
        is_done.wait(30)
        return load(*args, **kwargs)

    monkeypatch.setattr(workflows, "load", slow)
    with site_on(playground) as site, ThreadPoolExecutor(THREADS) as callers:
        try:
            definition = {"workflow": {"id": "w", "steps": [{"step": {"id": "a", "type": "NoOp"}}]}}
            pushing = [callers.submit(site.client.post, "/api/v3/workflows", json=definition) for _ in range(THREADS)]
            assert all(begun.acquire(timeout=30) for _ in range(THREADS))
            assert site.client.get("/api/v3/workflows").status_code == 200
            assert not is_done.is_set()
        finally:
            is_done.set()
        assert {one.result().status_code for one in pushing} == {200}
