"""Instances and their steps as people read them."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from calve.cli.output import duration, print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from calve.engine.model import Run
    from calve.engine.statuses import StepStatus
    from calve.engine.views import Iterations, Overview, StepOverview

STEP_COLUMNS = ("step", "status", "attempt", "took", "")
_RUN_COLUMNS = ("workflow", "instance", "run", "status", "created", "took", "")


def instant(milliseconds: int) -> str:
    """Return a time as people read it."""
    return f"{datetime.fromtimestamp(milliseconds / 1_000, UTC):%Y-%m-%d %H:%M:%SZ}"


def print_runs(runs: "Sequence[Run]", now: int) -> None:
    """Print a table of runs."""
    print_table(_RUN_COLUMNS, [_run_row(run, now) for run in runs], numbers=False)


def took(start: int | None, end: int | None, now: int) -> str:
    """Return how long something took, or has taken so far."""
    return "" if start is None else duration(max(0, (now if end is None else end) - start) / 1_000)


def headline(run: "Run", now: int) -> str:
    """Return one line about a run."""
    name = f"{run.workflow_id} {run.instance_id}" + (f" run {run.run_id}" if run.run_id > 1 else "")
    lasted = took(run.started_at, run.ended_at, now)
    after = f" {'in' if run.status.is_terminal else 'for'} {lasted}" if lasted else ""
    queued = " (waits for its turn)" if run.is_queued else ""
    return f"{name} {run.status}{after}{queued}" + (f": {run.message}" if run.message else "")


def step_rows(overview: "Overview", now: int) -> list[tuple[Any, ...]]:
    """Return a row for each step."""
    return [_step_row(step, now) for step in overview.steps]


def live_table(overview: "Overview", now: int) -> "Table":
    """Return the steps as a table for a terminal, in colours."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    title = Text(headline(overview.run, now))
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, title=title, title_justify="left")
    for column in STEP_COLUMNS:
        table.add_column(column, no_wrap=column != "")
    for step, row in zip(overview.steps, step_rows(overview, now), strict=True):
        table.add_row(*(Text(str(cell), style=colour(step.status) if at == 1 else "") for at, cell in enumerate(row)))
    return table


def colour(status: "StepStatus") -> str:
    """Return the colour that a status is shown in."""
    if status.value == "NOT_CREATED":
        return "dim"
    if status.is_complete:
        return "green"
    return "red" if status.is_terminal else "cyan"


def progress(iterations: "Iterations") -> str:
    """Return how far a loop has come, as in 37/100."""
    of = f"{iterations.done}" if iterations.total is None else f"{iterations.done}/{iterations.total}"
    return f"{of}, {iterations.failed} failed" if iterations.failed else of


def _run_row(run: "Run", now: int) -> tuple[Any, ...]:
    note = run.message or ("waits for its turn" if run.is_queued else "")
    lasted = took(run.started_at, run.ended_at, now)
    return run.workflow_id, run.instance_id, run.run_id, run.status.value, instant(run.created_at), lasted, note


def _step_row(step: "StepOverview", now: int) -> tuple[Any, ...]:
    attempt = step.attempt
    if attempt is None:
        return step.step_id, step.status.value, "", "", ""
    started = attempt.times.get("start", attempt.times.get("create"))
    return step.step_id, step.status.value, attempt.attempt_id, took(started, attempt.ended_at, now), _note(step)


def _note(step: "StepOverview") -> str:
    parts = []
    if step.iterations is not None:
        parts.append(progress(step.iterations))
    if step.child is not None:
        parts.append(f"{step.child.workflow_id} {step.child.instance_id} {step.child.status}")
    if not parts or not step.status.is_complete:
        parts.append(step.message)
    return "  ".join(part for part in parts if part)
