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

from tests.faults.checking import violations
from tests.faults.crew import Crew, Errand, crew_on
from tests.faults.servers import server
from tests.faults.worker import Plan, is_over

from calve.store import open_store

BATCH = 5
"""Instances of each workflow that are started at a time."""


@contextmanager
def store_url(wanted: str, folder: Path) -> Iterator[str]:
    if wanted == "postgres":
        with server() as made:
            yield made.url
    else:
        yield f"sqlite:///{folder}/calve.db" if wanted == "sqlite" else wanted


def kill_one(crew: Crew, workers: int, chance: random.Random) -> float | None:
    """Kill a worker, and hire another; return how long the work of the only worker lay idle, if it was one."""
    time.sleep(chance.uniform(0.05, 0.5))
    crew.replace_dead(workers)
    journal = crew.plan.journal
    victim = chance.choice(crew.members)
    crew.kill(victim)
    killed, size = time.monotonic(), journal.stat().st_size if journal.exists() else 0
    crew.replace_dead(workers)
    if workers > 1:
        return None
    while time.monotonic() - killed < 10:
        if journal.exists() and journal.stat().st_size > size:
            return time.monotonic() - killed
        time.sleep(0.002)
    return None  # nothing was left to do


def soak(arguments: argparse.Namespace) -> int:
    chance = random.Random(arguments.seed)
    recovered: list[float] = []
    with tempfile.TemporaryDirectory() as name, store_url(arguments.store, Path(name)) as url:
        errand = Errand(url, Path(name))
        workers = 1 if url.startswith("sqlite") else arguments.workers
        until = time.monotonic() + 60 * arguments.minutes
        plan = Plan(url, errand.journal, pause=0.02, is_leaving=False)
        with crew_on(errand, plan) as crew:
            while crew.kills < arguments.kills and time.monotonic() < until:
                errand.begin(BATCH)
                with open_store(url) as store:
                    while not is_over(store):
                        took = kill_one(crew, workers, chance)
                        recovered += [] if took is None else [took]
                print(f"{crew.kills} kills, {len(errand.requests)} instances", flush=True)
            crew.dismiss()
        history = errand.history()
    found = violations(history)
    calls = sum(map(len, history.journal.values()))
    print(f"kills {crew.kills}, steps {len(history.attempts)}, calls {calls}, violations {len(found)}")
    if len(recovered) > 1:
        cuts = statistics.quantiles(recovered, n=100)
        print(f"recovery p50 {cuts[49]:.2f} s, p99 {cuts[98]:.2f} s, over {len(recovered)} kills of the only worker")
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
