"""What the log says while Spark works, and after."""

from dataclasses import dataclass

from calve.steps.spark.events import Usage
from calve.steps.spark.progress import Progress, described, size
from calve.steps.spark.scripts import Done
from calve.steps.spark.telling import artifact, told_usage


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
    assert lines == ["-- stage 2 of 3: 120 of 201 tasks, 2 running, 1.2 GB read\n"]
    assert progress.operation == "op-2"


def test_sizes_are_told_in_units_of_a_thousand() -> None:
    """Bytes are whole."""
    assert [size(999), size(1_000), size(2_500_000)] == ["999 B", "1.0 kB", "2.5 MB"]


def test_what_nobody_tells_is_left_out() -> None:
    """It is not nothing."""
    done = Done("SELECT 1", 0.1234, None, None)
    assert artifact(None, [done]) == {"statements": [{"statement": "SELECT 1", "seconds": 0.123}]}
    assert told_usage(None, [done]) == ""


def test_what_was_read_written_and_shuffled_is_told_per_step_and_statement() -> None:
    """The rows of a statement that gives none are those that it wrote."""
    usage = Usage(10, 2_000, 3, 40, 7)
    told = artifact(usage, [Done("INSERT", 1.0, None, usage)])
    assert told["rows_written"] == 3
    assert told["statements"][0] == {"statement": "INSERT", "seconds": 1.0, "rows": 3, **usage.as_artifact()}
    assert told_usage(usage) == "-- 10 rows, 2.0 kB read; 3 rows, 40 B written; 7 B shuffled\n"
