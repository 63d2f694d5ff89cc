"""Instances and their steps as text for people."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from calve.cli.output import duration, moment, print_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Group

    from calve.cli.session import Document

STEP_COLUMNS = ("step", "status", "attempt", "took", "")
_BRIEF, _BRIEF_LINES = 160, 2
_RUN_COLUMNS = ("workflow", "instance", "run", "status", "created", "took", "")


def print_runs(runs: "Sequence[Document]", now: int) -> None:
    """Print a table of runs."""
    print_table(_RUN_COLUMNS, [_run_row(run, now) for run in runs], numbers=False)


def print_approvals(approvals: "Sequence[Document]", now: int) -> None:
    """Print what Approval steps ask, and how to decide."""
    for number, approval in enumerate(approvals):
        place = f"{name_of(approval)} {approval['path']}"
        click.echo(("\n" if number else "") + f"{place} asks, since {_clock(approval['since'], now)}:")
        for line in [*approval["question"].splitlines(), deciding(approval, approval["workflow_id"], now)]:
            click.echo(f"  {line}")
        click.echo(f"  → calve approve {place}\n  → calve reject {place}")


def took(start: int | None, end: int | None, now: int) -> str:
    """Format how long something took, or has taken so far."""
    return "" if start is None else duration(max(0, (now if end is None else end) - start) / 1_000)


def is_over(run: "Document") -> bool:
    """Tell whether an instance has ended."""
    from calve.engine import RunStatus

    return RunStatus(run["status"]).is_terminal


def headline(run: "Document", now: int) -> str:
    """Return one line about a run."""
    number = run["workflow_run_id"]
    name = name_of(run) + (f" run {number}" if number > 1 else "")
    lasted = took(run.get("start_time"), run.get("end_time"), now)
    after = f" {'in' if is_over(run) else 'for'} {lasted}" if lasted else ""
    queued = " (queued)" if run.get("is_queued") else ""
    return f"{name} {run['status']}{after}{queued}" + (f": {run['message']}" if run.get("message") else "")


def step_rows(run: "Document", now: int) -> list[tuple[Any, ...]]:
    """Return a row for each step."""
    return [_step_row(run, step, now) for step in run["steps"]]


def live_view(run: "Document", now: int) -> "Group":
    """Return the steps as a coloured table for a terminal, followed by failed and waiting steps."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    title = Text(headline(run, now))
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, title=title, title_justify="left")
    for column in STEP_COLUMNS:
        table.add_column(column, no_wrap=column != "")
    for step, row in zip(run["steps"], step_rows(run, now), strict=True):
        style = colour(step["status"])
        table.add_row(*(Text(str(cell), style=style if at == 1 else "") for at, cell in enumerate(row)))
    over = is_over(run)  # the summary that follows has the details
    return Group(table, *(Text(line) for line in ([] if over else details(run, now))))


def details(run: "Document", now: int) -> "Iterator[str]":
    """Yield lines about failed and waiting steps, with the commands that help."""
    for failure in run["failures"]:
        yield ""
        yield from failed(failure)
        yield from log_command(run, failure)
    failures = _failure_count(run)
    if failures > len(run["failures"]):
        yield f"\n… and {failures - len(run['failures']):,} more steps failed."
    for wait in run["waiting"]:
        yield ""
        yield from waiting(run, wait, now)
    if run["waiting_count"] > len(run["waiting"]):
        yield f"\n… and {run['waiting_count'] - len(run['waiting']):,} more steps are waiting."


def failed(failure: "Document") -> "Iterator[str]":
    """Yield lines about a failed step: which one, and why."""
    number = failure["step_attempt_id"]
    times = f" (attempt {number})" if number > 1 else ""
    yield from _indented(f"{failure['path']} {failure['status']}{times}: {failure['message']}")


def log_command(run: "Document", step: "Document") -> "Iterator[str]":
    """Yield the command that prints a step's log, if it may have one."""
    if "log" in step.get("links", {}):
        yield f"  → calve logs {name_of(run)} {step['path']}"


def waiting(run: "Document", wait: "Document", now: int) -> "Iterator[str]":
    """Yield lines about a waiting step: what it waits for, and the commands that end the wait."""
    path, place = wait["path"], f"{name_of(run)} {wait['path']}"
    match wait["reason"]:
        case "APPROVAL":
            yield from _indented(f"{path} asks: {wait['question']}")
            yield f"  {deciding(wait, run['workflow_id'], now)}"
            yield f"  → calve approve {place}"
            yield f"  → calve reject {place}"
        case "RETRY":
            yield from failed({"message": "", **wait})
            yield f"  That was {_attempt(wait)}. {next_try(wait, now)}"
            yield from log_command(run, wait)
        case "SIGNALS":
            yield f"{path} {short_wait(wait, now)}"
            yield f"  → calve bypass {place}"
        case "BREAKPOINT":
            yield f"{path} {short_wait(wait, now)}"
            yield f"  → calve resume {run['workflow_id']} {path} --instance {run['workflow_instance_id']}"
        case _:
            yield f"{path} {short_wait(wait, now)}"


def short_wait(wait: "Document", now: int) -> str:
    """Return what a step waits for, in one line."""
    match wait["reason"]:
        case "APPROVAL":
            return f"asks: {_brief(wait['question'])}"
        case "RETRY":
            return f"{_attempt(wait)} failed: {_brief(wait.get('message', ''))} {next_try(wait, now)}"
        case "SIGNALS":
            return f"waits for the signal {', '.join(_signal(each) for each in wait['signals'])}"
        case "PERMITS":
            used = ", ".join(_permit(each) for each in wait.get("permits", ()))
            return f"waits for a permit: {used}" if used else "waits for a permit"
        case "BREAKPOINT":
            return "is paused at a breakpoint"
        case reason:
            return f"waits: {reason}"


def next_try(wait: "Document", now: int) -> str:
    """Return when a step is retried."""
    due = wait["next_attempt_time"]
    seconds = round((due - now) / 1_000)
    left = "now" if seconds < 1 else f"in {seconds} s" if seconds < 60 else f"in {duration(seconds)}"
    return f"The next attempt is at {_clock(due, now)} ({left})."


def deciding(wait: "Document", workflow: str, now: int) -> str:
    """Return who may decide about an Approval, who has approved, and the deadline."""
    who = ", ".join(wait["approvers"]) or f"anyone who may run {workflow}"
    agreed = [decision["by"] for decision in wait["decisions"] if decision["is_approved"]]
    named = f" ({', '.join(agreed)})" if agreed else ""
    parts = [f"May decide: {who}.", f"Approved: {len(agreed)} of {wait['min_approvals']}{named}."]
    if "until" in wait:
        then = "approved" if wait["on_timeout"] == "approve" else "rejected"
        parts.append(f"Without a decision it is {then} at {_clock(wait['until'], now)}.")
    return " ".join(parts)


def moved(step: "Document") -> str:
    """Return how many rows a Spark step has read and written, if known."""
    told = step.get("artifacts", {}).get("spark", {})
    counts = [(told.get("rows_read"), "rows read"), (told.get("rows_written"), "rows written")]
    return ", ".join(f"{number:,} {what}" for number, what in counts if number)


def name_of(run: "Document") -> str:
    """Return the arguments that name the instance of a run in commands."""
    return f"{run['workflow_id']} {run['workflow_instance_id']}"


def _attempt(wait: "Document") -> str:
    most = wait.get("max_attempts")
    return f"attempt {wait['step_attempt_id']}" + (f" of {most}" if most else "")


def _clock(at: int, now: int) -> str:
    """Format a time, with its date unless it is today."""
    then, today = datetime.fromtimestamp(at / 1_000).astimezone(), datetime.fromtimestamp(now / 1_000).astimezone()
    return f"{then:%H:%M:%S}" if then.date() == today.date() else f"{then:%Y-%m-%d %H:%M:%S}"


def _signal(signal: "Document") -> str:
    params = [f"{name} {match['operator']} {match['value']}" for name, match in signal["match_params"].items()]
    return f"{signal['name']} ({', '.join(params)})" if params else str(signal["name"])


def _permit(permit: "Document") -> str:
    kind, _, name = permit["name"].partition(":")
    whose = f"of tag {name}" if kind == "tag" else f"of workflow {name}" if kind == "workflow" else "of this instance"
    return f"{permit['held']} of {permit['limit']} steps {whose} run"


def _indented(text: str) -> "Iterator[str]":
    """Yield the lines of a text, all but the first one indented."""
    for number, line in enumerate(text.splitlines()):
        yield f"  {line}" if number else line


def _brief(text: str) -> str:
    """Return the first lines of a message as one line, truncated if it is long."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    brief = " ".join(lines[:_BRIEF_LINES])
    return brief if len(brief) <= _BRIEF else f"{brief[: _BRIEF - 1]}…"


def _failure_count(run: "Document") -> int:
    """Return how many steps of the run failed, including those inside of steps, as far as known."""
    from calve.engine import StepStatus

    counts = run["runtime_overview"].get("rollup_overview", {}).get("overview", {})
    return sum(count["cnt"] for status, count in counts.items() if StepStatus(status).is_restartable)


def colour(status: str) -> str:
    """Return the colour of a step's status."""
    from calve.engine import StepStatus

    if status == StepStatus.NOT_CREATED:
        return "dim"
    if StepStatus(status).is_complete:
        return "green"
    return "red" if StepStatus(status).is_terminal else "cyan"


def progress(iterations: "Document") -> str:
    """Return the progress of a loop, such as 37/100."""
    done, failed, total = iterations["done"], iterations["failed"], iterations.get("total")
    of = f"{done}" if total is None else f"{done}/{total}"
    return f"{of}, {failed} failed" if failed else of


def _run_row(run: "Document", now: int) -> tuple[Any, ...]:
    note = run.get("message") or ("queued" if run.get("is_queued") else "")
    lasted = took(run.get("start_time"), run.get("end_time"), now)
    which = run["workflow_id"], run["workflow_instance_id"], run["workflow_run_id"]
    return *which, run["status"], moment(run["create_time"]), lasted, note


def _step_row(run: "Document", step: "Document", now: int) -> tuple[Any, ...]:
    if "step_attempt_id" not in step:
        return step["step_id"], step["status"], "", "", ""
    times = step["runtime_state"]
    lasted = took(times.get("start_time", times.get("create_time")), times.get("end_time"), now)
    return step["step_id"], step["status"], step["step_attempt_id"], lasted, _note(run, step, now)


def _note(run: "Document", step: "Document", now: int) -> str:
    from calve.engine import StepStatus

    parts = []
    if "iterations" in step:
        parts.append(progress(step["iterations"]))
    if "child" in step:
        child = step["child"]
        queued = " (queued)" if child.get("is_queued") else ""
        parts.append(f"{child['workflow_id']} {child['workflow_instance_id']} {child['status']}{queued}")
    inside = next(_inside(run, step["step_id"], now), None)
    if inside is not None:
        parts.append(inside)
    elif not parts or not StepStatus(step["status"]).is_complete:
        parts.append(step.get("message") or moved(step))
    return "  ".join(part for part in parts if part)


def _inside(run: "Document", step_id: str, now: int) -> "Iterator[str]":
    """Yield notes about what failed, waits or runs inside of a step, the most urgent first."""
    for failure in run["failures"]:
        if failure["path"].startswith(f"{step_id}/"):
            yield f"{failure['path']}: {_brief(failure['message'])}"
    for wait in run["waiting"]:
        if wait["path"] == step_id:
            yield short_wait(wait, now)
        elif wait["path"].startswith(f"{step_id}/"):
            yield f"{wait['path']} {short_wait(wait, now)}"
    for each in run["progress"]:
        if each["path"] == step_id:
            yield each["message"]
        elif each["path"].startswith(f"{step_id}/"):
            yield f"{each['path']}: {each['message']}"
