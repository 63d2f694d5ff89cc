"""Whether an error of Spark is worth another try, and what is said of it."""

from pathlib import Path

import pytest
from tests.unit.steps.contexts import FakeContext

from calve.engine import State
from calve.errors import StepFailed
from calve.steps.spark.errors import LOST, brief, cause, position, translated

PLAN = (
    "[TABLE_OR_VIEW_NOT_FOUND] No `t`. Look again.\nIf not, think. SQLSTATE: 42P01; line 1 pos 14;\n"
    "'Project [*]\n+- 'UnresolvedRelation [t]\n"
)
TASK = (
    "Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent failure: Lost task 0.3 in "
    "stage 1.0 (TID 3) (10.0.0.7 executor 1): {}\nDriver stacktrace:\n\tat x"
)


def _raised(context: FakeContext, error: Exception, last_output: str | None = None) -> StepFailed:
    with pytest.raises(StepFailed) as failed, translated(context, "Statement 1", lambda _: last_output):
        raise error
    return failed.value


def _analysis(message: str, stack: str | None = None) -> Exception:
    from pyspark.errors.exceptions.connect import AnalysisException

    return AnalysisException(message, errorClass="TABLE_OR_VIEW_NOT_FOUND", sql_state="42P01", server_stacktrace=stack)


def _other(message: str, stack: str | None = None) -> Exception:
    from pyspark.errors.exceptions.connect import SparkException

    return SparkException(message, server_stacktrace=stack)


def test_an_error_of_the_user_is_reported_in_one_line(tmp_path: Path) -> None:
    """Without the plan; that and Java's stack stand in the log. It is not tried again."""
    context = FakeContext(tmp_path)
    failed = _raised(context, _analysis(PLAN, "x\n\tat y"))
    assert failed.message == "Statement 1: [TABLE_OR_VIEW_NOT_FOUND] No `t`. Look again. SQLSTATE: 42P01"
    assert failed.context["state"] == State.FATAL_ERROR
    assert "\tat y" in context.text
    assert "UnresolvedRelation" in context.text


def test_a_lost_connection_is_tried_again(tmp_path: Path) -> None:
    """And said to be one, with what happens next; the last lines of the server are in the log."""
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException

    closed = SparkConnectGrpcException("gone", errorClass="INVALID_HANDLE.SESSION_CLOSED")
    for error in (closed, ConnectionRefusedError("nobody")):
        context = FakeContext(tmp_path)
        failed = _raised(context, error, "\nOutOfMemoryError")
        assert (failed.context["state"], failed.message) == (State.PLATFORM_ERROR, f"Statement 1: {LOST}")
        assert "what Spark printed last:\nOutOfMemoryError" in context.text
    assert LOST.startswith("Spark ended while this ran")


def test_whatever_a_dead_server_says_is_tried_again(tmp_path: Path) -> None:
    """Its last words may be anything."""
    assert _raised(FakeContext(tmp_path), _analysis("no"), "").context["state"] == State.PLATFORM_ERROR


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (_analysis("no", "Caused by: org.apache.iceberg.exceptions.CommitFailedException: x"), State.PLATFORM_ERROR),
        (_other(TASK.format("ExecutorLostFailure (executor 1 exited) Reason: x")), State.PLATFORM_ERROR),
        (_other(TASK.format("FetchFailed(null, shuffleId=0, mapIndex=-1)")), State.PLATFORM_ERROR),
        (_other("x", "a.B: x\nCaused by: java.net.SocketTimeoutException: Read timed out"), State.PLATFORM_ERROR),
        (_other("x", "Caused by: software.amazon.S3Exception: (Service: S3, Status Code: 503)"), State.PLATFORM_ERROR),
        (_other("x", "Caused by: java.io.IOException: No space left on device"), State.PLATFORM_ERROR),
        (
            _other("x", "Caused by: org.sqlite.SQLiteException: [SQLITE_BUSY] The database is locked"),
            State.PLATFORM_ERROR,
        ),
        (_other(TASK.format("java.lang.OutOfMemoryError: Java heap space")), State.PLATFORM_ERROR),
        (_other(TASK.format("a.SparkRuntimeException: [X] 'x' is bad. SQLSTATE: 22018")), State.FATAL_ERROR),
        (_analysis("The table `no space left on device` cannot be found. SQLSTATE: 42P01"), State.FATAL_ERROR),
        (_other("[USER_RAISED_EXCEPTION] no"), State.USER_ERROR),
    ],
)
def test_what_may_pass_is_tried_again(tmp_path: Path, error: Exception, state: State) -> None:
    """Wherever in Java's stack it stands; not so because a name in the statement looks like it."""
    assert _raised(FakeContext(tmp_path), error).context["state"] == state


def test_an_error_of_an_interrupted_step_is_its_interruption(tmp_path: Path) -> None:
    """Cancelled operations raise whatever they were at."""
    context = FakeContext(tmp_path)
    context.interruption.set()
    assert _raised(context, _analysis("cancelled")).context["state"] == State.STOPPED


def test_a_message_is_brief() -> None:
    """It has no stack, neither of the driver nor of the server, no plan and no excerpt."""
    assert brief("no\n\nJVM stacktrace:\nx\n\tat y") == "no"
    assert brief("no\n\tat y\n\tat z") == "no"
    assert brief("[X] no. SQLSTATE: 42703;\n'Project ['nope]\n+- Range (0, 3)") == "[X] no."
    assert (
        brief("\n[PARSE_SYNTAX_ERROR] no. SQLSTATE: 42601 (line 2, pos 7)\n\n== SQL ==\na\n^")
        == "[PARSE_SYNTAX_ERROR] no."
    )
    assert brief(TASK.format("java.lang.Exception: why")) == "why"


def test_a_place_is_found_in_what_was_sent() -> None:
    """Spark counts columns from 0, or from 1 in an excerpt; what is in a view is not in the statement."""
    assert position(_other("x (line 2, pos 1)"), "ab\ncd") == 4
    assert position(_other("x; line 1 pos 1;\n'Project"), "ab\ncd") == 1
    assert position(_other("x\n== SQL (line 2, position 1) ==\ncd\n^"), "ab\ncd") == 3
    assert position(_other("x; line 9 pos 1"), "ab\ncd") is None
    assert position(_other("x"), "ab\ncd") is None
    viewed = _other("x\n== SQL of VIEW v1 (line 1, position 1) ==\ncd\n^")
    assert (position(viewed, "ab\ncd"), cause(viewed)) == (None, "x It is in the view v1.")
