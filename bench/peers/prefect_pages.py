"""Prefect's server at as many flows and runs: what its pages of flows and of runs ask its API for."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx

from peers.prefect_server import prefect_server

REQUESTS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "50 flows": ("/api/flows/paginate", {"limit": 50, "sort": "NAME_ASC"}),
    "50 flows named 77": ("/api/flows/paginate", {"limit": 50, "flows": {"name": {"like_": "wf_77"}}}),
    "50 runs, newest": ("/api/flow_runs/paginate", {"limit": 50, "sort": "START_TIME_DESC"}),
    "50 failed runs": (
        "/api/flow_runs/paginate",
        {"limit": 50, "sort": "START_TIME_DESC", "flow_runs": {"state": {"type": {"any_": ["FAILED"]}}}},
    ),
}
"""What is measured: where it is asked, and what for."""
Copy = Callable[[sqlite3.Connection, str, int, str, Mapping[str, str]], None]
"""Copies a row of a table many times."""


@contextmanager
def filled(home: Path, copy: Copy, flows: int, runs: int) -> Iterator[str]:
    """Serve Prefect with so many flows and runs; give its address.

    Raises:
        PeerMissing: Prefect is not installed here.
    """
    with prefect_server(home) as port, httpx.Client(base_url=f"http://127.0.0.1:{port}/api", timeout=60) as client:
        flow = client.post("/flows/", json={"name": "seed"}).raise_for_status().json()["id"]
        run = {"flow_id": flow, "state": {"type": "COMPLETED", "name": "Completed"}}
        client.post("/flow_runs/", json=run).raise_for_status()
    with closing(sqlite3.connect(home / "prefect.db")) as database:
        database.execute("PRAGMA synchronous = OFF")
        copy(database, "flow", flows, "s.name = 'seed'", {"id": _uuid("f", "n.i"), "name": "'wf_' || n.i"})
        at = "strftime('%Y-%m-%d %H:%M:%f000', 'now', '-' || (n.i / 2) || ' seconds')"
        changed = {
            "id": _uuid("e", "n.i"),
            "flow_id": _uuid("f", f"(n.i % {flows} + 1)"),
            "name": "'run-' || n.i",
            "state_type": "CASE WHEN n.i % 500 = 0 THEN 'FAILED' ELSE 'COMPLETED' END",
            "created": at,
            "start_time": at,
            "expected_start_time": at,
            "end_time": at,
        }
        copy(database, "flow_run", runs, "s.name NOT LIKE 'run-%'", changed)
        database.commit()
    with prefect_server(home) as port:
        yield f"http://127.0.0.1:{port}"


def _uuid(first: str, number: str) -> str:
    return f"printf('{first}0000000-0000-4000-8000-%012x', {number})"
