"""How many kills does the engine bear? Thousands, by a flag; every history is checked, and how soon others take over.

    .venv/bin/python bench/soak.py --kills 2000 --workers 3 --store postgres --minutes 30

``--store`` is ``sqlite`` (a file in a temporary folder, one worker after the other), ``postgres`` (a server of its own)
or the URL of an empty database. Prints kills, steps, violations (0) and recovery times: from the kill of the only
worker until its successor, a fresh process, carries out a step that was under way.
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.faults.checks import violations
from tests.faults.worker import Plan, is_over
from tests.faults.worker_pool import Errand, WorkerPool, worker_pool

from calve.store import open_store
from calve.testing.postgres import throwaway_postgres

BATCH = 5
"""Instances of each workflow that are started at a time."""
ROUNDS = 20
"""How often the only worker is killed to see how soon the next one takes over."""


@contextmanager
def store_url(wanted: str, folder: Path) -> Iterator[str]:
    if wanted == "postgres":
        with throwaway_postgres() as made:
            yield made.url
    else:
        yield f"sqlite:///{folder}/calve.db" if wanted == "sqlite" else wanted


def kill_one(pool: WorkerPool, workers: int, chance: random.Random) -> None:
    """Kill a worker after a while, and start_worker another."""
    time.sleep(chance.uniform(0.02, 0.3))
    pool.replace_dead(workers)
    pool.kill(chance.choice(pool.members))
    pool.replace_dead(workers)


def recovery(pool: WorkerPool, url: str, rounds: int) -> list[float]:
    """Kill the only worker in the middle of its work, again and again; return how long its work lay idle."""
    took = []
    journal = pool.plan.journal
    with open_store(url) as store:
        pool.dismiss()
        pool.start_anew()
        for _ in range(rounds):
            _wait_for_more(journal, _size(journal))
            pool.kill(pool.members[0])
            killed, size = time.monotonic(), _size(journal)
            pool.start_anew()
            _wait_for_more(journal, size)
            took.append(time.monotonic() - killed)
        while not is_over(store):
            time.sleep(0.05)
    return took


def _size(journal: Path) -> int:
    return journal.stat().st_size if journal.exists() else 0


def _wait_for_more(journal: Path, size: int) -> None:
    while _size(journal) == size:
        time.sleep(0.002)


def soak(arguments: argparse.Namespace) -> int:
    chance = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as name, store_url(arguments.store, Path(name)) as url:
        errand = Errand(url, Path(name))
        workers = 1 if url.startswith("sqlite") else arguments.workers
        until = time.monotonic() + 60 * arguments.minutes
        plan = Plan(url, errand.journal, pause=0.02, is_leaving=False)
        with worker_pool(errand, plan) as pool:
            while pool.kills < arguments.kills and time.monotonic() < until:
                errand.begin(BATCH)
                with open_store(url) as store:
                    while not is_over(store):
                        kill_one(pool, workers, chance)
                print(f"{pool.kills} kills, {len(errand.requests)} instances", flush=True)
            errand.begin(20 * BATCH, ("chain",))
            took = recovery(pool, url, ROUNDS)
            pool.dismiss()
        history = errand.history()
    found = violations(history)
    calls = sum(map(len, history.journal.values()))
    print(f"kills {pool.kills}, steps {len(history.attempts)}, calls {calls}, violations {len(found)}")
    cuts = statistics.quantiles(took, n=100)
    print(f"recovery p50 {cuts[49]:.2f} s, p99 {cuts[98]:.2f} s, over {ROUNDS} kills of the only worker")
    print("\n".join(found[:20]))
    return len(found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=2_000)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--store", default="sqlite")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    sys.exit(min(1, soak(parser.parse_args())))
