"""What the peers' scripts share: a temporary home, rounds after a warm-up, and one line of JSON.

A script runs from ``bench`` with the interpreter of its peer: ``.peers/prefect/bin/python -m peers.prefect``.
"""

import argparse
import atexit
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from importlib.metadata import version
from pathlib import Path

Round = Callable[[], float]
"""Runs the chain once and returns how many seconds it took."""

PATIENCE = 180.0


def report(
    peer: str,
    package: str,
    settings: Callable[[Path], Mapping[str, str]],
    chain: Callable[[Path, int], AbstractContextManager[Round]],
) -> None:
    """Time some rounds of a peer's chain after one that warms it up, and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=f"Time a chain of steps that do nothing in {peer}.")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    wanted = parser.parse_args()
    home = temporary_home()
    os.environ.update({"HOME": str(home), "DO_NOT_TRACK": "1", **settings(home)})  # noqa: TID251 - how peers are set up
    with chain(home, wanted.steps) as once:
        once()
        took = [once() for _ in range(wanted.rounds)]
    seconds, best = statistics.median(took), min(took)
    figures = {
        "peer": peer,
        "version": version(package),
        "steps": wanted.steps,
        "seconds": round(seconds, 3),
        "ms_per_step": round(seconds * 1000 / wanted.steps, 2),
        "best_ms_per_step": round(best * 1000 / wanted.steps, 2),
    }
    print(json.dumps(figures))


def temporary_home() -> Path:
    """Return an empty folder that is removed when the interpreter ends, after the servers that the peer started."""
    folder = tempfile.TemporaryDirectory(prefix="calve-bench-", ignore_cleanup_errors=True)
    atexit.register(folder.cleanup)  # before the peer is imported: what is registered last is called first
    return Path(folder.name)


def timed(action: Callable[[], object]) -> float:
    """Return how many seconds an action took."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def wait_until(condition: Callable[[], bool], what: str, *, every: float = 0.02) -> None:
    """Wait until a condition holds, or fail after a while with what was waited for."""
    until = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError(f"waited {PATIENCE:.0f} s in vain until {what}")
        time.sleep(every)


def require(condition: object, what: str) -> None:
    """Fail where the peer did not do the work: a figure for less than the chain would be no figure."""
    if not condition:
        raise RuntimeError(what)
