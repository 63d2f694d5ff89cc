"""Instances and their steps as people read them."""

from typing import TYPE_CHECKING, Any

from calve.cli.output import duration, moment, print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from calve.cli.desk import Document

STEP_COLUMNS = ("step", "status", "attempt", "took", "")
OVER = frozenset({"SUCCEEDED", "FAILED", "STOPPED", "TIMED_OUT"})
"""The statuses of instances that are over."""
_RUN_COLUMNS = ("workflow", "instance", "run", "status", "created", "took", "")


def print_runs(runs: "Sequence[Document]", now: int) -> None:
    """Print a table of runs."""
    print_table(_RUN_COLUMNS, [_run_row(run, now) for run in runs], numbers=False)


def took(start: int | None, end: int | None, now: int) -> str:
    """Return how long something took, or has taken so far."""
    return "" if start is None else duration(max(0, (now if end is None else end) - start) / 1_000)


def headline(run: "Document", now: int) -> str:
    """Return one line about a run."""
    number = run["workflow_run_id"]
    name = f"{run['workflow_id']} {run['workflow_instance_id']}" + (f" run {number}" if number > 1 else "")
    lasted = took(run.get("start_time"), run.get("end_time"), now)
    after = f" {'in' if run['status'] in OVER else 'for'} {lasted}" if lasted else ""
    queued = " (waits for its turn)" if run.get("is_queued") else ""
    return f"{name} {run['status']}{after}{queued}" + (f": {run['message']}" if run.get("message") else "")


def step_rows(run: "Document", now: int) -> list[tuple[Any, ...]]:
    """Return a row for each step."""
    return [_step_row(step, now) for step in run["steps"]]


def live_table(run: "Document", now: int) -> "Table":
    """Return the steps as a table for a terminal, in colours."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    title = Text(headline(run, now))
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, title=title, title_justify="left")
    for column in STEP_COLUMNS:
        table.add_column(column, no_wrap=column != "")
    for step, row in zip(run["steps"], step_rows(run, now), strict=True):
        style = colour(step["status"])
        table.add_row(*(Text(str(cell), style=style if at == 1 else "") for at, cell in enumerate(row)))
    return table


def colour(status: str) -> str:
    """Return the colour that the status of a step is shown in."""
    from calve.engine import StepStatus

    if status == StepStatus.NOT_CREATED:
        return "dim"
    if StepStatus(status).is_complete:
        return "green"
    return "red" if StepStatus(status).is_terminal else "cyan"


def progress(iterations: "Document") -> str:
    """Return how far a loop has come, as in 37/100."""
    done, failed, total = iterations["done"], iterations["failed"], iterations.get("total")
    of = f"{done}" if total is None else f"{done}/{total}"
    return f"{of}, {failed} failed" if failed else of


def last_message(step: "Document") -> str:
    """Return what was said about a step last."""
    said = [entry["message"] for entry in step.get("timeline", ()) if "message" in entry]
    return str(said[-1]) if said else ""


def _run_row(run: "Document", now: int) -> tuple[Any, ...]:
    note = run.get("message") or ("waits for its turn" if run.get("is_queued") else "")
    lasted = took(run.get("start_time"), run.get("end_time"), now)
    which = run["workflow_id"], run["workflow_instance_id"], run["workflow_run_id"]
    return *which, run["status"], moment(run["create_time"]), lasted, note


def _step_row(step: "Document", now: int) -> tuple[Any, ...]:
    if "step_attempt_id" not in step:
        return step["step_id"], step["status"], "", "", ""
    times = step["runtime_state"]
    lasted = took(times.get("start_time", times.get("create_time")), times.get("end_time"), now)
    return step["step_id"], step["status"], step["step_attempt_id"], lasted, _note(step)


def _note(step: "Document") -> str:
    from calve.engine import StepStatus

    parts = []
    if "iterations" in step:
        parts.append(progress(step["iterations"]))
    if "child" in step:
        child = step["child"]
        parts.append(f"{child['workflow_id']} {child['workflow_instance_id']} {child['status']}")
    if not parts or not StepStatus(step["status"]).is_complete:
        parts.append(last_message(step))
    return "  ".join(part for part in parts if part)
