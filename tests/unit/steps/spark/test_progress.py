"""What the log says while Spark works, and after."""

from dataclasses import dataclass

from calve.steps.spark.event_log import Usage
from calve.steps.spark.progress import Progress, described, size, usage_artifact, usage_line
from calve.steps.spark.sql_script import Done


@dataclass
class _Stage:
    num_tasks: int
    num_completed_tasks: int
    num_bytes_read: int
    done: bool


STAGES = [_Stage(100, 100, 1_200_000_000, True), _Stage(100, 20, 0, False), _Stage(1, 0, 0, False)]


def test_progress_counts_stages_and_tasks() -> None:
    """And what was read so far."""
    assert described(STAGES, 2) == "stage 2 of 3: 120 of 201 tasks, 2 running, 1.2 GB read"


def test_progress_is_logged_at_most_every_so_often_and_when_it_changes() -> None:
    """The operation is remembered whatever is logged."""
    lines: list[str] = []
    progress = Progress(lines.append, every=0.0)
    for _ in range(3):
        progress(STAGES, 2, "op-1", done=False)
    progress(STAGES, 0, "op-2", done=True)
    Progress(lines.append, every=3600.0)(STAGES, 2, "op-3", done=False)
    assert lines == ["-- progress: stage 2 of 3: 120 of 201 tasks, 2 running, 1.2 GB read\n"]
    assert progress.operation == "op-2"


def test_progress_is_reported_when_a_stage_ends_and_otherwise_seldom() -> None:
    """Never in the first second; every line is kept, so there are few."""
    now = 0.0
    lines: list[str] = []
    progress = Progress(lines.append, clock=lambda: now)

    def report(at: float, done: int, ended: int) -> int:
        nonlocal now
        now = at
        stages = [_Stage(10, ended if number == done else 10, 0, number < done) for number in range(3)]
        progress(stages, 1, "op", done=False)
        return len(lines)

    assert report(0.9, 0, 1) == 0
    assert report(1.0, 0, 2) == 1
    assert report(2.5, 0, 3) == 1, "nothing but tasks has ended"
    assert report(2.6, 1, 1) == 2
    assert report(2.7, 2, 1) == 2, "a second has not gone by"
    assert report(3.7, 2, 1) == 3
    assert report(8.6, 2, 2) == 3
    assert report(8.7, 2, 3) == 4
    assert report(20.0, 2, 3) == 4, "there is nothing new"
    progress(None, 0, "op", done=False)
    assert len(lines) == 4


def test_progress_tells_rows_and_which_statement_it_is() -> None:
    """As far as they are known."""
    lines: list[str] = []
    usage: Usage | None = Usage(rows_read=1_234_567)
    progress = Progress(lines.append, lambda: usage, every=0.0)
    progress.statement = "statement 2 of 3"
    progress(STAGES[1:], 0, "op", done=False)
    usage = Usage(rows_read=8, rows_written=1)
    progress(STAGES, 0, "op", done=False)
    usage = None
    progress.statement = ""
    progress(STAGES[:1], 0, "op", done=False)
    assert lines == [
        "-- progress: statement 2 of 3, stage 1 of 2: 20 of 101 tasks, 1,234,567 rows read\n",
        "-- progress: statement 2 of 3, stage 2 of 3: 120 of 201 tasks, 1.2 GB read, 8 rows read, 1 rows written\n",
        "-- progress: stage 1 of 1: 100 of 100 tasks, 1.2 GB read\n",
    ]


def test_sizes_are_reported_in_units_of_a_thousand() -> None:
    """Bytes are whole."""
    assert [size(999), size(1_000), size(2_500_000)] == ["999 B", "1.0 kB", "2.5 MB"]


def test_what_nobody_tells_is_omitted() -> None:
    """It is not nothing."""
    done = Done("SELECT 1", 0.1234, None, None)
    assert usage_artifact(None, [done]) == {"statements": [{"statement": "SELECT 1", "seconds": 0.123}]}
    assert usage_line(None, [done]) == ""


def test_what_was_read_written_and_shuffled_is_told_per_step_and_statement() -> None:
    """The rows of a statement that gives none are those that it wrote."""
    usage = Usage(10, 2_000, 3, 40, 7)
    told = usage_artifact(usage, [Done("INSERT", 1.0, None, usage)])
    assert told["rows_written"] == 3
    assert told["statements"][0] == {"statement": "INSERT", "seconds": 1.0, "rows": 3, **usage.as_artifact()}
    assert usage_line(usage) == "-- 10 rows, 2.0 kB read; 3 rows, 40 B written; 7 B shuffled\n"
