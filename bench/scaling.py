"""Do more workers do more? 10,000 steps on PostgreSQL with 1, 2 and 4 workers; each result is recorded once.

.venv/bin/python bench/scaling.py [STEPS]
"""

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.faults.checks import violations
from tests.faults.worker import Plan, is_over
from tests.faults.worker_pool import Errand, worker_pool
from tests.faults.workflows import chain_of

from calve.app import tools_on
from calve.engine import Engine, WorkerOptions
from calve.store import open_store
from calve.testing.postgres import Postgres, throwaway_postgres

LENGTH = 50
"""Steps of one instance."""


def measure(made: Postgres, folder: Path, workers: int, steps: int) -> float:
    """Return how many steps a second so many workers carry out."""
    made.database(f"with_{workers}")
    errand = Errand(made.url_at(made.port, f"with_{workers}"), folder)
    plan = Plan(errand.url, errand.journal, WorkerOptions(slots=8), is_leaving=False)
    with open_store(errand.url) as store, worker_pool(errand, plan) as pool:
        engine = Engine(tools_on(store, errand.url))
        engine.push(chain_of(LENGTH))
        for number in range(steps // LENGTH):
            errand.start(engine, "long", f"long-{number}")
        began = time.perf_counter()
        pool.replace_dead(workers)
        while not is_over(store):
            time.sleep(0.05)
        took = time.perf_counter() - began
        pool.dismiss()
    history = errand.history()
    found = violations(history)
    done = sum(each.status.is_complete for each in history.attempts)
    calls = sum(map(len, history.journal.values()))
    print(f"{workers} workers: {done / took:,.0f} steps/s ({done} steps, {calls} calls, {len(found)} violations)")
    if found or done != steps:
        raise SystemExit("\n".join(found[:20]) or f"{done} steps, not {steps}")
    return done / took


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with throwaway_postgres() as made:
        for workers in (1, 2, 4):
            with tempfile.TemporaryDirectory() as name:
                measure(made, Path(name), workers, wanted)
