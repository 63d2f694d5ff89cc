"""An instance followed to its end: a live table on a terminal, lines elsewhere."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

import click

from calve.cli.desk import Again, Desk, Document
from calve.cli.given import address
from calve.cli.output import print_json
from calve.cli.showing import OVER, headline, live_table
from calve.cli.state import State
from calve.errors import CalveError, WorkflowMissing

if TYPE_CHECKING:
    from calve.engine import Address

Show = Callable[[Document], None]
"""Shows where a run stands now."""

LINES = 10
"""How much of a failed step's log is shown."""
_OFTEN = 0.25
_PASSED = frozenset({"CREATED", "INITIALIZED", "EVALUATING_PARAMS", "STARTING", "FINISHING"})
"""States that a step is in for a moment, and of which nobody is told."""
_PATIENCE = 5_000
"""After how many milliseconds without a beginning we wonder whether anybody works."""


def follow(
    desk: Desk, run: Document, show: Show, *, changed: threading.Event | None = None, each: Callable[[], None]
) -> Document:
    """Show a run until it is over; ``each`` is called every now and then, ``changed`` makes it look at once."""
    changed = changed or threading.Event()
    place = place_of(run)
    while True:
        each()
        changed.clear()
        try:
            found = desk.instance(place)
        except WorkflowMissing:  # somebody has deleted the workflow
            return run
        show(found)
        if found["status"] in OVER:
            return found
        changed.wait(_OFTEN)


@contextmanager
def shown(desk: Desk, *, is_quiet: bool) -> "Iterator[Show]":
    """Yield what shows a run: in place on a terminal, else by a line for each change; not at all if quiet."""
    if is_quiet:
        yield lambda _: None
    elif sys.stderr.isatty():
        with _live(desk) as show:
            yield show
    else:
        yield _Lines(desk)


def wondering(desk: Desk, show: Show) -> Show:
    """Return what shows a run, and says once if nobody seems to carry it out."""
    since = desk.now()
    is_told = False

    def each(run: Document) -> None:
        nonlocal is_told
        show(run)
        is_idle = run["status"] == "CREATED" and not run.get("is_queued") and desk.now() - since > _PATIENCE
        if is_idle and not is_told:
            is_told = True
            name = f"{run['workflow_id']} {run['workflow_instance_id']}"
            click.echo(f"{name} has not begun. Does a worker run there? calve worker and calve up are some.", err=True)

    return each


@contextmanager
def _live(desk: Desk) -> "Iterator[Show]":
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), refresh_per_second=8) as live:
        yield lambda run: live.update(live_table(_whole(desk, run), desk.now()))


def _whole(desk: Desk, run: Document) -> Document:
    return run if "steps" in run else desk.overview(place_of(run))


def place_of(run: Document) -> "Address":
    """Return where a run is."""
    return address(run["workflow_id"], run["workflow_instance_id"], run_id=run["workflow_run_id"])


class _Lines:
    """Prints a line for each event of a run."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._last = 0
        self._is_first = True

    def __call__(self, run: Document) -> None:
        name = f"{run['workflow_id']} {run['workflow_instance_id']}"
        if run.get("is_queued") and self._is_first:
            click.echo(f"{name} waits for its turn: calve status {run['workflow_id']}", err=True)
        self._is_first = False
        while events := self._desk.events(run, self._last):
            self._last = events[-1]["seq"]
            for event in events:
                if event.get("after") is not None and event["after"] not in _PASSED:
                    self._print(run, name, event)

    def _print(self, run: Document, name: str, event: Document) -> None:
        number = event.get("step_attempt_id") or 1
        attempt = f" (attempt {number})" if number > 1 else ""
        at = datetime.fromtimestamp(event["at"] / 1_000).astimezone()
        what = f"{event.get('step_id') or name} {event['after']}{attempt}{self._reason(run, event)}"
        click.echo(f"{at:%H:%M:%S}  {what}", err=True)

    def _reason(self, run: Document, event: Document) -> str:
        """Return what was said about an attempt that has ended."""
        from calve.engine import StepStatus

        if event.get("step_id") is None:
            return ""
        if not StepStatus(event["after"]).is_terminal:
            return ""
        said = self._desk.told(run, event["step_id"], event.get("step_attempt_id") or 1)
        return f": {said}" if said else ""


def summarize(state: State, desk: Desk, run: Document) -> int:
    """Print how a run ended, and what went wrong; return the exit code."""
    is_done = run["status"] == "SUCCEEDED"
    if state.json:
        print_json(_whole(desk, run))
        return 0 if is_done else 1
    click.echo(headline(run, desk.now()))
    if not is_done:
        _print_failures(desk, run)
    return 0 if is_done else 1


def _print_failures(desk: Desk, run: Document) -> None:
    which = f"{run['workflow_id']} {run['workflow_instance_id']}"
    for failed in desk.failures(run):
        times = f" (attempt {failed.attempt_id})" if failed.attempt_id > 1 else ""
        click.echo(f"\n{failed.path} {failed.status}{times}: {failed.message}")
        for line in failed.log.splitlines()[-LINES:]:
            click.echo(f"  | {line}")
        if failed.log:
            click.echo(f"  → calve logs {which} {failed.path}")
    refusal = _refusal(desk, run)
    if refusal is not None:
        click.echo(f"\n→ {refusal or f'calve restart {which}'}")


def _refusal(desk: Desk, run: Document) -> str | None:
    """Return why a restart would be refused now; nothing if it would not, None if that cannot be told."""
    try:
        return str(desk.plan_restart(address(run["workflow_id"], run["workflow_instance_id"]), Again())["refusal"])
    except CalveError:  # somebody else restarted or deleted it, or the caller may not restart it
        return None


def every(seconds: float, what: Callable[[], None]) -> Callable[[], None]:
    """Return something to be called often that does it once in a while, and at once the first time."""
    last = -seconds

    def maybe() -> None:
        nonlocal last
        if time.monotonic() - last >= seconds:
            last = time.monotonic()
            what()

    return maybe
