"""An instance followed to its end: a live table on a terminal, lines elsewhere."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

import click

from calve.cli.output import print_json
from calve.cli.showing import headline, live_table
from calve.cli.state import State

if TYPE_CHECKING:
    from calve.engine import Engine
    from calve.engine.model import Event, Run

Show = Callable[["Run"], None]
"""Shows where a run stands now."""

LINES = 10
"""How much of a failed step's log is shown."""
_OFTEN = 0.25
_PASSED = frozenset({"CREATED", "INITIALIZED", "EVALUATING_PARAMS", "STARTING", "FINISHING"})
"""States that a step is in for a moment, and of which nobody is told."""


def follow(
    engine: "Engine", run: "Run", show: Show, *, changed: threading.Event | None = None, each: Callable[[], None]
) -> "Run":
    """Show a run until it is over; ``each`` is called every now and then, ``changed`` makes it look at once."""
    changed = changed or threading.Event()
    while True:
        each()
        changed.clear()
        found = engine.state.run(run.workflow_id, run.instance_id, run.run_id)
        if found is None:  # somebody has deleted the workflow
            return run
        show(found)
        if found.status.is_terminal:
            return found
        changed.wait(_OFTEN)


@contextmanager
def shown(engine: "Engine", *, is_quiet: bool) -> "Iterator[Show]":
    """Yield what shows a run: in place on a terminal, else by a line for each change; not at all if quiet."""
    if is_quiet:
        yield lambda _: None
    elif sys.stderr.isatty():
        with _live(engine) as show:
            yield show
    else:
        yield _Lines(engine)


@contextmanager
def _live(engine: "Engine") -> "Iterator[Show]":
    from rich.console import Console
    from rich.live import Live

    from calve.engine.views import overview_of

    with Live(console=Console(stderr=True), refresh_per_second=8) as live:
        yield lambda run: live.update(live_table(overview_of(engine.tools, run), engine.tools.clock()))


class _Lines:
    """Prints a line for each event of a run."""

    def __init__(self, engine: "Engine") -> None:
        self._state = engine.state
        self._last = 0
        self._seq = -1

    def __call__(self, run: "Run") -> None:
        if run.is_queued and self._seq < 0:
            click.echo(
                f"{run.workflow_id} {run.instance_id} waits for its turn: calve status {run.workflow_id}", err=True
            )
        if run.seq == self._seq:
            return
        self._seq = run.seq
        while events := self._state.events(after=self._last, run_uuid=run.uuid):
            self._last = events[-1].seq
            for event in events:
                if event.after is not None and event.after not in _PASSED:
                    self._print(event)

    def _print(self, event: "Event") -> None:
        attempt = f" (attempt {event.attempt_id})" if (event.attempt_id or 1) > 1 else ""
        what = event.step_id or f"{event.workflow_id} {event.instance_id}"
        at = datetime.fromtimestamp(event.at / 1_000).astimezone()
        click.echo(f"{at:%H:%M:%S}  {what} {event.after}{attempt}{self._reason(event)}", err=True)

    def _reason(self, event: "Event") -> str:
        """Return what was said about an attempt that has failed."""
        from calve.engine.statuses import StepStatus

        if event.step_id is None or event.after is None:
            return ""
        status = StepStatus(event.after)
        if status.is_complete or not status.is_terminal:
            return ""
        attempts = self._state.attempts(event.run_uuid, event.step_id)
        said = [
            entry["message"]
            for attempt in attempts
            if attempt.attempt_id == event.attempt_id
            for entry in attempt.timeline
        ]
        return f": {' '.join(said)}" if said else ""


def summarize(state: State, engine: "Engine", run: "Run") -> int:
    """Print how a run ended, and what went wrong; return the exit code."""
    from calve.engine.statuses import RunStatus
    from calve.engine.views import overview_json, overview_of

    is_done = run.status is RunStatus.SUCCEEDED
    if state.json:
        print_json(overview_json(overview_of(engine.tools, run)))
        return 0 if is_done else 1
    click.echo(headline(run, engine.tools.clock()))
    if not is_done:
        _print_failures(engine, run)
    return 0 if is_done else 1


def _print_failures(engine: "Engine", run: "Run") -> None:
    from calve.engine.views import failures

    for failure in failures(engine.state, run):
        attempt, path = failure.attempt, "/".join(failure.path)
        times = f" (attempt {attempt.attempt_id})" if attempt.attempt_id > 1 else ""
        click.echo(f"\n{path} {attempt.status}{times}: {failure.message}")
        text = "".join(chunk.text for chunk in engine.state.log(attempt.uuid))
        for line in text.splitlines()[-LINES:]:
            click.echo(f"  | {line}")
        if text:
            click.echo(f"  → calve logs {run.workflow_id} {run.instance_id} {path}")
    click.echo(f"\n→ calve restart {run.workflow_id} {run.instance_id}")


def every(seconds: float, what: Callable[[], None]) -> Callable[[], None]:
    """Return something to be called often that does it once in a while, and at once the first time."""
    last = -seconds

    def maybe() -> None:
        nonlocal last
        if time.monotonic() - last >= seconds:
            last = time.monotonic()
            what()

    return maybe
