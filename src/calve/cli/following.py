"""An instance followed to its end: a live table on a terminal, lines elsewhere."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

import click

from calve.cli.desk import Again, Desk, Document, Which
from calve.cli.given import address
from calve.cli.output import print_json
from calve.cli.showing import OVER, failed, headline, live_view, log_command, moved, name_of, waiting
from calve.cli.state import State
from calve.errors import CalveError, WorkflowMissing

if TYPE_CHECKING:
    from calve.engine import Address

Show = Callable[[Document], None]
"""Shows where a run stands now."""

LINES = 10
"""How much of a failed step's log is shown."""
_OFTEN = 0.25
_SELDOM = 1.0
"""How often at most to look, in seconds, at what happens inside of steps."""
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
            click.echo(
                f"{name_of(run)} has not begun. Does a worker run there? calve worker and calve up are some.", err=True
            )

    return each


@contextmanager
def _live(desk: Desk) -> "Iterator[Show]":
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), refresh_per_second=8) as live:
        newest: Document = {}
        draw = every(_OFTEN, lambda: live.update(live_view(_whole(desk, newest), desk.now())))

        def show(run: Document) -> None:
            newest.clear()
            newest.update(run)
            if run["status"] in OVER:
                live.update(live_view(_whole(desk, run), desk.now()))
            else:
                draw()  # a loop of thousands changes faster than anybody looks

        yield show


def _whole(desk: Desk, run: Document) -> Document:
    return run if "steps" in run else desk.overview(place_of(run))


def place_of(run: Document) -> "Address":
    """Return where a run is."""
    return address(run["workflow_id"], run["workflow_instance_id"], run_id=run["workflow_run_id"])


class _Lines:
    """Prints a line for each event of a run, and what there is to say of steps that wait, or of steps inside them."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._last = 0
        self._is_first = True
        self._told: set[tuple[str, int, str]] = set()
        self._run: Document = {}
        self._found: Document | None = None
        self._look = every(_SELDOM, self._look_inside)

    def __call__(self, run: Document) -> None:
        self._run = run
        if run.get("is_queued") and self._is_first:
            click.echo(f"{name_of(run)} waits for its turn: calve status {run['workflow_id']}", err=True)
        self._is_first = False
        while events := self._desk.events(run, self._last):
            self._last = events[-1]["seq"]
            self._found = None
            for event in events:
                if event.get("after") is not None and event["after"] not in _PASSED:
                    self._print(run, event)
        if run["status"] not in OVER:  # the summary says the rest
            self._found = None
            self._look()

    def _print(self, run: Document, event: Document) -> None:
        step_id, number = event.get("step_id"), event.get("step_attempt_id") or 1
        if step_id is None:
            _say(event["at"], f"{name_of(run)} {event['after']}")
            return
        wait = self._retry(step_id, number, event["after"])
        if wait is not None:
            self._once(_key(wait), event["at"], [*waiting(run, wait, self._desk.now())])
            return
        attempt = f" (attempt {number})" if number > 1 else ""
        _say(event["at"], f"{step_id} {event['after']}{attempt}{self._reason(run, step_id, number, event['after'])}")

    def _retry(self, step_id: str, number: int, status: str) -> Document | None:
        """Return when a step that has failed is tried again, if it is, and still waits for it."""
        from calve.engine import StepStatus

        waits = self._whole()["waiting"] if StepStatus(status).is_retryable else ()
        return next((one for one in waits if _key(one) == (step_id, number, "RETRY")), None)

    def _reason(self, run: Document, step_id: str, number: int, status: str) -> str:
        """Return what was said about an attempt that has ended, or else how many rows it has moved."""
        from calve.engine import StepStatus

        if not StepStatus(status).is_terminal:
            return ""
        self._told.add((step_id, number, status))
        said = self._desk.told(run, step_id, number)
        if not said and status == StepStatus.SUCCEEDED:
            said = next((moved(step) for step in self._whole()["steps"] if step["step_id"] == step_id), "")
        return f": {said}" if said else ""

    def _whole(self) -> Document:
        """Return all that is known of the run, asked for once for what is printed together."""
        if self._found is None:
            try:
                self._found = _whole(self._desk, self._run)
            except WorkflowMissing:  # somebody has deleted the workflow
                self._found = {"steps": [], "failures": [], "waiting": [], "progress": []}
        return self._found

    def _look_inside(self) -> None:
        run, now = self._whole(), self._desk.now()
        for failure in run["failures"]:
            self._once(_key(failure), now, [*failed(failure), *log_command(run, failure)])
        for wait in run["waiting"]:
            self._once(_key(wait), now, [*waiting(run, wait, now)])
        for each in run["progress"]:
            self._once(
                (each["path"], each["step_attempt_id"], each["message"]), now, [f"{each['path']}: {each['message']}"]
            )

    def _once(self, key: tuple[str, int, str], at: int, lines: list[str]) -> None:
        if key not in self._told:
            self._told.add(key)
            _say(at, "\n".join(lines))


def _key(step: Document) -> tuple[str, int, str]:
    return step["path"], step["step_attempt_id"], step["reason"] if "reason" in step else step["status"]


def _say(at: int, text: str) -> None:
    """Print something with the time, further lines indented."""
    clock = datetime.fromtimestamp(at / 1_000).astimezone()
    first, *others = text.splitlines()
    click.echo("\n".join([f"{clock:%H:%M:%S}  {first}", *(f"          {line}" for line in others)]), err=True)


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
    run = _whole(desk, run)
    for failure in run["failures"]:
        click.echo("\n" + "\n".join(failed(failure)))
        for line in _logged(desk, run, failure):
            click.echo(f"  | {line}")
        for line in log_command(run, failure):
            click.echo(line)
    print_restart(desk, run)


def _logged(desk: Desk, run: Document, failure: Document) -> list[str]:
    """Return the last lines of a step's log, if there is one that may be read."""
    if "log" not in failure.get("links", {}):
        return []
    place = address(run["workflow_id"], run["workflow_instance_id"], failure["path"])
    try:
        return "".join(desk.log(place, failure, Which(tail=LINES), is_followed=False)).splitlines()
    except CalveError:  # who may see an instance may not always read its logs
        return []


def print_restart(desk: Desk, run: Document) -> None:
    """Offer to run an instance again, or say why it cannot be."""
    refusal = _refusal(desk, run)
    if refusal is not None:
        click.echo(f"\n→ {refusal or f'calve restart {name_of(run)}'}")


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
