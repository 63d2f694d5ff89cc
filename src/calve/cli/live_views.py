"""Live views of an instance until it ends: a table on a terminal, lines elsewhere."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

import click

from calve.cli.output import print_json
from calve.cli.session import Document, Session
from calve.cli.state import State
from calve.cli.views import failed, headline, is_over, live_view, log_command, moved, name_of, waiting
from calve.errors import CalveError, WorkflowMissing

Show = Callable[[Document], None]
"""Shows the state of a run."""

LINES = 10
"""How many lines of a failed step's log are shown."""
_OFTEN = 0.25
_SELDOM = 1.0
"""Seconds between two checks of what happens inside of steps."""
_PASSED = frozenset({"CREATED", "INITIALIZED", "EVALUATING_PARAMS", "STARTING", "FINISHING"})
"""Statuses through which steps only pass, and which are not shown."""
_PATIENCE = 5_000
"""Milliseconds without a start after which to ask the user whether a worker is running."""


def follow(
    session: Session, run: Document, show: Show, *, changed: threading.Event | None = None, each: Callable[[], None]
) -> Document:
    """Show a run until it ends; ``each`` is called before each check, and setting ``changed`` causes one at once."""
    changed = changed or threading.Event()
    while True:
        each()
        changed.clear()
        found = latest(session, run)
        if found is None:  # the workflow was deleted
            return run
        show(found)
        if is_over(found):
            return found
        changed.wait(_OFTEN)


@contextmanager
def shown(session: Session, *, is_quiet: bool) -> "Iterator[Show]":
    """Yield a function that shows a run: in place on a terminal, otherwise a line for each change; or nothing."""
    if is_quiet:
        yield lambda _: None
    elif sys.stderr.isatty():
        with _live(session) as show:
            yield show
    else:
        yield _Lines(session)


def wondering(session: Session, show: Show) -> Show:
    """Return a function that shows a run and, if the run does not start, asks once whether a worker is running."""
    since = session.now()
    is_told = False

    def each(run: Document) -> None:
        nonlocal is_told
        show(run)
        is_idle = run["status"] == "CREATED" and not run.get("is_queued") and session.now() - since > _PATIENCE
        if is_idle and not is_told:
            is_told = True
            click.echo(f"{name_of(run)} has not started. Is a worker running? Start one with: calve up", err=True)

    return each


@contextmanager
def _live(session: Session) -> "Iterator[Show]":
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), refresh_per_second=8) as live:
        newest: Document = {}
        draw = every(_OFTEN, lambda: live.update(live_view(_whole(session, newest), session.now())))

        def show(run: Document) -> None:
            newest.clear()
            newest.update(run)
            if is_over(run):
                live.update(live_view(_whole(session, run), session.now()))
            else:
                draw()  # at intervals: a loop with thousands of iterations changes too often

        yield show


def _whole(session: Session, run: Document) -> Document:
    """Return a run with its steps."""
    which = run["workflow_id"], run["workflow_instance_id"], run["workflow_run_id"]
    return run if "steps" in run else session.operations.instance(*which)


def latest(session: Session, run: Document) -> Document | None:
    """Return the current document of a run, without its steps; None if the run was deleted."""
    try:
        runs = session.operations.runs(run["workflow_id"], run["workflow_instance_id"])
    except WorkflowMissing:
        return None
    return next((one for one in runs if one["workflow_run_id"] == run["workflow_run_id"]), None)


class _Lines:
    """Prints a line for each event of a run, each failed step and each wait, also inside of other steps."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._last = 0
        self._is_first = True
        self._told: set[tuple[str, int, str]] = set()
        self._run: Document = {}
        self._found: Document | None = None
        self._look = every(_SELDOM, self._look_inside)

    def __call__(self, run: Document) -> None:
        self._run = run
        if run.get("is_queued") and self._is_first:
            click.echo(f"{name_of(run)} is queued: calve status {run['workflow_id']}", err=True)
        self._is_first = False
        for event in self._events(run):
            if event.get("after") is not None and event["after"] not in _PASSED:
                self._print(run, event)
        if not is_over(run):  # the summary shows the failures
            self._found = None
            self._look()

    def _events(self, run: Document) -> list[Document]:
        """Return the new events of a run, without those of iterations and subworkflows inside it."""
        try:
            events = self._session.operations.past_events(
                run["workflow_id"], run["workflow_instance_id"], after=self._last
            )
        except WorkflowMissing:  # the workflow was deleted
            return []
        if events:
            self._last = events[-1]["seq"]
            self._found = None
        return [event for event in events if event["workflow_uuid"] == run["workflow_uuid"]]

    def _print(self, run: Document, event: Document) -> None:
        step_id, number = event.get("step_id"), event.get("step_attempt_id") or 1
        if step_id is None:
            _say(event["at"], f"{name_of(run)} {event['after']}")
            return
        wait = self._retry(step_id, number, event["after"])
        if wait is not None:
            self._once(_key(wait), event["at"], [*waiting(run, wait, self._session.now())])
            return
        attempt = f" (attempt {number})" if number > 1 else ""
        _say(event["at"], f"{step_id} {event['after']}{attempt}{self._reason(run, step_id, number, event['after'])}")

    def _retry(self, step_id: str, number: int, status: str) -> Document | None:
        """Return the wait of a failed step for its next attempt, if there will be one."""
        from calve.engine import StepStatus

        waits = self._whole()["waiting"] if StepStatus(status).is_retryable else ()
        return next((one for one in waits if _key(one) == (step_id, number, "RETRY")), None)

    def _reason(self, run: Document, step_id: str, number: int, status: str) -> str:
        """Return the message of an attempt that has ended, or else how many rows it has read and written."""
        from calve.engine import StepStatus

        if not StepStatus(status).is_terminal:
            return ""
        self._told.add((step_id, number, status))
        which = run["workflow_id"], run["workflow_instance_id"], step_id, number
        said = self._session.operations.attempt(*which, run_id=run["workflow_run_id"]).get("message", "")
        if not said and status == StepStatus.SUCCEEDED:
            said = next((moved(step) for step in self._whole()["steps"] if step["step_id"] == step_id), "")
        return f": {said}" if said else ""

    def _whole(self) -> Document:
        """Return the run with its steps; it is read once for all lines that are printed together."""
        if self._found is None:
            try:
                self._found = _whole(self._session, self._run)
            except WorkflowMissing:  # the workflow was deleted
                self._found = {"steps": [], "failures": [], "waiting": [], "progress": []}
        return self._found

    def _look_inside(self) -> None:
        run, now = self._whole(), self._session.now()
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
    """Print a text with the time in front, and its further lines indented."""
    clock = datetime.fromtimestamp(at / 1_000).astimezone()
    first, *others = text.splitlines()
    click.echo("\n".join([f"{clock:%H:%M:%S}  {first}", *(f"          {line}" for line in others)]), err=True)


def summarize(state: State, session: Session, run: Document) -> int:
    """Print how a run ended, and which steps failed; return the exit code."""
    is_done = run["status"] == "SUCCEEDED"
    if state.json:
        print_json(_whole(session, run))
        return 0 if is_done else 1
    click.echo(headline(run, session.now()))
    if not is_done:
        _print_failures(session, run)
    return 0 if is_done else 1


def _print_failures(session: Session, run: Document) -> None:
    run = _whole(session, run)
    for failure in run["failures"]:
        click.echo("\n" + "\n".join(failed(failure)))
        for line in _logged(session, run, failure):
            click.echo(f"  | {line}")
        for line in log_command(run, failure):
            click.echo(line)
    print_restart(session, run)


def _logged(session: Session, run: Document, failure: Document) -> list[str]:
    """Return the last lines of a step's log, if it has one and the user may read it."""
    if "log" not in failure.get("links", {}):
        return []
    from calve.engine import LogPage

    which = run["workflow_id"], run["workflow_instance_id"], failure["path"]
    try:
        page = session.operations.log_page(*which, attempt=failure["step_attempt_id"], tail=LINES)
        return LogPage(**page).shown().splitlines()
    except CalveError:  # the permission to see an instance does not include its logs
        return []


def print_restart(session: Session, run: Document) -> None:
    """Print the command that restarts an instance, or why it cannot be restarted."""
    refusal = _refusal(session, run)
    if refusal is not None:
        click.echo(f"\n→ {refusal or f'calve restart {name_of(run)}'}")


def _refusal(session: Session, run: Document) -> str | None:
    """Return why a restart would be refused; empty if it would not, None if that is unknown."""
    try:
        plan = session.operations.plan_restart(run["workflow_id"], run["workflow_instance_id"])
        return str(plan["refusal"])
    except CalveError:  # it was restarted or deleted meanwhile, or the user may not restart it
        return None


def every(seconds: float, what: Callable[[], None]) -> Callable[[], None]:
    """Return a function that calls ``what``, on its first call and then at most once in ``seconds`` seconds."""
    last = -seconds

    def maybe() -> None:
        nonlocal last
        if time.monotonic() - last >= seconds:
            last = time.monotonic()
            what()

    return maybe
