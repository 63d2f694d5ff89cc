"""What does calve's engine cost a step, an iteration, an idle minute; and what do Prefect, Dagster and Airflow cost?

A chain of steps that do nothing is measured twice: of NoOp steps, which the engine ends without a worker, many in one
transaction; and of steps that a worker carries out one after the other, each result durable before the next begins
(``fsync`` on). The second is what the peers are compared with.
"""

import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from calve.app import Project, open_project
from calve.definition import installed, load
from calve.engine import Outcome, State, StepContext, StepRuntime, Transaction
from calve.settings import load as load_settings
from calve.testing.postgres import throwaway_postgres
from peers.environments import PEERS, environment, install
from peers.measuring import Result, measure

STEPS = 100
MOST = 1_000
"""How many instances of one workflow, and steps of it, may run at once."""


class Nothing:
    """Carries out a step that does nothing."""

    def execute(self, context: StepContext) -> Outcome:  # noqa: ARG002 - the port's signature
        """Do nothing."""
        return Outcome(State.DONE)

    def terminate(self, context: StepContext) -> None:
        """Have nothing to end."""


class Waits:
    """Carries out a step that waits for a long time, without holding a worker."""

    def execute(self, context: StepContext) -> Outcome:  # noqa: ARG002 - the port's signature
        """Ask to be called again much later."""
        return Outcome(State.CONTINUE, poll_after=3_600)

    def terminate(self, context: StepContext) -> None:
        """Have nothing to end."""


RUNTIMES: dict[str, Callable[[], StepRuntime]] = {"Shell": Nothing, "Sleep": Waits}


@dataclass
class Bench:
    """An engine with a worker, and a way to wait for the end of an instance."""

    place: Project
    ended: dict[str, threading.Event]

    def heard(self, turn: Transaction) -> None:
        """Note which runs have ended."""
        for run in (*turn.changes.runs, *turn.changes.new_runs):
            if run.status.is_terminal and run.uuid in self.ended:
                self.ended[run.uuid].set()

    def push(self, text: str) -> None:
        """Push a workflow."""
        self.place.engine.push(load(text, name="bench", vocabulary=installed()).required())

    def seconds(self, workflow_id: str) -> float:
        """Return how long an instance took, from the request to its recorded end."""
        began = time.perf_counter()
        started = self.place.engine.start(workflow_id)
        done = self.ended.setdefault(started.run.uuid, threading.Event())
        state = self.place.engine.state
        while not done.wait(1.0):
            run = state.run(workflow_id, started.run.instance_id)
            if run is not None and run.status.is_terminal:
                break
        return time.perf_counter() - began


@contextmanager
def bench(url: str | None = None) -> Iterator[Bench]:
    """Open an engine on a SQLite file of its own, or on another store, with one worker."""
    with tempfile.TemporaryDirectory() as folder:
        environ = {"CALVE_STORE__URL": url} if url else {}
        with open_project(load_settings(Path(folder), environ)) as place:
            found = Bench(place, {})
            worker = place.worker(runtimes=RUNTIMES, listener=found.heard)
            thread = threading.Thread(target=worker.run)
            thread.start()
            try:
                yield found
            finally:
                worker.end()
                thread.join()


def chain(name: str, job: str) -> str:
    jobs = "".join(f"    - job: {{id: s{number}, {job}}}\n" for number in range(STEPS))
    return f"Workflow:\n  id: {name}\n  jobs:\n{jobs}  dag: sequential\n"


def loop(count: int) -> str:
    return f"""
Workflow:
  id: loop-{count}
  jobs:
    - foreach:
        id: loop
        concurrency: 100
        ranges: {{i: {{from: 0, to: {count}}}}}
        jobs:
          - job: {{id: inside, type: NoOp}}
"""


def chains(found: Bench, rounds: int) -> tuple[float, float]:
    """Return the milliseconds a step of both chains, the median of some rounds after one to warm up."""
    found.push(chain("noop", "type: NoOp"))
    found.push(chain("carried-out", "type: Shell, shell: {command: nothing}"))
    medians = []
    for name in ("noop", "carried-out"):
        took = [found.seconds(name) for _ in range(rounds + 1)][1:]
        medians.append(statistics.median(took) * 1_000 / STEPS)
    return medians[0], medians[1]


def memory() -> int:
    """Return the memory of this process in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


def loops(found: Bench, counts: tuple[int, ...]) -> None:
    for count in counts:
        found.push(loop(count))
        before = memory()
        took = found.seconds(f"loop-{count}")
        click.echo(
            f"foreach of {count:>6,}: {took:6.1f} s, {took * 1_000 / count:.2f} ms an iteration; "
            f"memory {before} -> {memory()} MiB"
        )


def idle(found: Bench, count: int, seconds: float) -> None:
    """Say what waiting costs: instances that wait for a person, and timers that are due in an hour."""
    jobs = {
        "waiting": "{id: ask, type: Approval, approval: {message: Go on?}}",
        "timers": "{id: sleep, type: Sleep, sleep_seconds: 3600}",
    }
    engine, threads = found.place.engine, threading.active_count()
    for name, job in jobs.items():
        for first in range(0, count, MOST):
            found.push(
                f"Workflow:\n  id: {name}-{first}\n  run_strategy: {MOST}\n  step_concurrency: {MOST}\n"
                f"  jobs:\n    - job: {job}\n"
            )
            for _ in range(first, min(first + MOST, count)):
                engine.start(f"{name}-{first}")
    while engine.state.next_due(engine.tools.clock()) in {0, None}:
        time.sleep(0.5)
    time.sleep(5)
    before, began = time.process_time(), time.perf_counter()
    time.sleep(seconds)
    share = (time.process_time() - before) / (time.perf_counter() - began)
    click.echo(
        f"idle with {count:,} waiting instances and {count:,} timers: {share:.2%} of a core, "
        f"{threading.active_count() - threads} more threads, {memory()} MiB"
    )


def compare(noop: float, ours: float, results: list[Result]) -> None:
    click.echo(f"\n{'a chain of no-op steps':<26}{'ms a step':>10}{'× NoOp':>9}{'× worker':>9}   what is included")
    click.echo(f"{'calve, NoOp':<26}{noop:>10.2f}{1:>9.0f}{'':>9}   every result durable in SQLite")
    click.echo(
        f"{'calve, a worker':<26}{ours:>10.2f}{'':>9}{1:>9.0f}   each result durable before the next step begins"
    )
    for result in results:
        name, took = f"{result.peer} {result.version}", result.ms_per_step
        click.echo(f"{name:<26}{took:>10.1f}{took / noop:>9.0f}{took / ours:>9.0f}   {result.includes}")


@click.command()
@click.option("--rounds", default=5, show_default=True)
@click.option("--loops", "counts", default="1000,25000", show_default=True, help="Iterations of a foreach.")
@click.option("--waiting", default=10_000, show_default=True, help="Instances that wait, and timers.")
@click.option("--seconds", default=20.0, show_default=True, help="How long to watch it idle.")
@click.option("--postgres", help="A PostgreSQL to use; one is started, if not given.")
@click.option("--install-peers", is_flag=True, help="Install those peers that are missing, each for itself.")
@click.option("--peers", default=",".join(PEERS), show_default=True)
def main(
    rounds: int, counts: str, waiting: int, seconds: float, postgres: str | None, *, install_peers: bool, peers: str
) -> None:
    """Measure the engine, and the peers beside it."""
    with bench() as found:
        noop, ours = chains(found, rounds)
        click.echo(f"SQLite:     NoOp {noop:.2f} ms a step, carried out by a worker {ours:.2f} ms a step")
        loops(found, tuple(int(count) for count in counts.split(",") if count))
        if waiting:
            idle(found, waiting, seconds)
    with ExitStack() as stack:
        url = postgres or stack.enter_context(throwaway_postgres(is_durable=True)).url
        with bench(url) as found:
            on_noop, on_postgres = chains(found, rounds)
            click.echo(f"PostgreSQL: NoOp {on_noop:.2f} ms a step, carried out by a worker {on_postgres:.2f} ms a step")
    names = [name for name in peers.split(",") if name]
    if install_peers:
        install(names)
    missing = [name for name in names if environment(name) is None]
    compare(noop, ours, measure([name for name in names if name not in missing], STEPS))
    if missing:
        click.echo(f"not installed, so not measured: {', '.join(missing)} (--install-peers)")


if __name__ == "__main__":
    main()
