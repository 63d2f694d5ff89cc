"""Whether an error of Spark is worth another try, and what is said of it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.steps.contexts import FakeContext

from calve.engine import State
from calve.errors import StepFailed
from calve.steps.failures import is_conflict
from calve.steps.retries import evidence_in, state_of
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
        assert (failed.context["state"], failed.message) == (State.INFRASTRUCTURE_ERROR, f"Statement 1: {LOST}")
        assert "what Spark printed last:\nOutOfMemoryError" in context.text
    assert LOST.startswith("Spark ended while this ran")


def test_whatever_a_dead_server_says_is_tried_again(tmp_path: Path) -> None:
    """Its last words may be anything."""
    assert _raised(FakeContext(tmp_path), _analysis("no"), "").context["state"] == State.INFRASTRUCTURE_ERROR


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (
            _analysis("no", "Caused by: org.apache.iceberg.exceptions.CommitFailedException: x"),
            State.INFRASTRUCTURE_ERROR,
        ),
        (_other(TASK.format("ExecutorLostFailure (executor 1 exited) Reason: x")), State.INFRASTRUCTURE_ERROR),
        (_other(TASK.format("FetchFailed(null, shuffleId=0, mapIndex=-1)")), State.INFRASTRUCTURE_ERROR),
        (_other("x", "a.B: x\nCaused by: java.net.SocketTimeoutException: Read timed out"), State.INFRASTRUCTURE_ERROR),
        (_other("x", "Caused by: software.amazon.S3Exception: (Service: S3, Status Code: 503)"), State.PLATFORM_ERROR),
        (_other("x", "Caused by: java.io.IOException: No space left on device"), State.PLATFORM_ERROR),
        (
            _other("x", "Caused by: org.sqlite.SQLiteException: [SQLITE_BUSY] The database is locked"),
            State.INFRASTRUCTURE_ERROR,
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


ICEBERG = "org.apache.iceberg.exceptions."
OLDER = "Cannot add snapshot with sequence number 7 older than last sequence number 7"
MOVED = "Requirement failed: branch main has changed: expected id 3 != 4"
NEW_FILES = "Found conflicting files that can contain records matching true: [s3://b/x.parquet]"
UNKNOWN = (
    "Cannot determine whether the commit was successful or not, the underlying data files may or may not be needed."
)
POST = "Error occurred while processing POST request"
AGAIN, GIVE_UP, PAUSE = State.INFRASTRUCTURE_ERROR, State.USER_ERROR, State.PLATFORM_ERROR
COMMITS = [
    # What Iceberg 1.11 raises in Spark, whether it is a conflict, and what follows.
    (f"{ICEBERG}BadRequestException: Malformed request: {OLDER}", True, AGAIN),
    (f"{ICEBERG}CommitFailedException: Commit failed: {OLDER}", True, AGAIN),
    (f"{ICEBERG}ValidationException: {OLDER}", True, AGAIN),
    (f"java.lang.IllegalArgumentException: {OLDER}", True, AGAIN),
    (f"{ICEBERG}CommitFailedException: Commit failed: {MOVED}", True, AGAIN),
    (f"{ICEBERG}BadRequestException: Malformed request: {MOVED}", True, AGAIN),
    (f"{ICEBERG}RESTException: Unable to process (code: 412, type: PreconditionFailed): etag", True, AGAIN),
    (f"{ICEBERG}CommitFailedException: Cannot commit db.t because Glue detected concurrent update", True, AGAIN),
    (f"{ICEBERG}CommitFailedException: Cannot commit: stale table metadata", True, AGAIN),
    (f"{ICEBERG}ValidationException: {NEW_FILES}", True, AGAIN),
    (f"{ICEBERG}ValidationException: Cannot commit, missing data files: [x.parquet]", True, AGAIN),
    (f"{ICEBERG}ValidationException: Cannot commit, found new delete for replaced data file: x", True, AGAIN),
    (f"{ICEBERG}CommitStateUnknownException: Service failed: 503: busy\n{UNKNOWN}", False, AGAIN),
    (f"{ICEBERG}CommitStateUnknownException: Service failed: 500: Requirement failed: branch\n{UNKNOWN}", False, AGAIN),
    (f"{ICEBERG}RESTException: {POST}", False, AGAIN),
    (f"{ICEBERG}RESTException: x\nCaused by: java.net.SocketTimeoutException: Read timed out", False, AGAIN),
    (f"{ICEBERG}RESTException: Unable to process (code: 504, type: T): late", False, AGAIN),
    (f"{ICEBERG}ServiceUnavailableException: Service unavailable: starting", False, AGAIN),
    ("org.apache.iceberg.jdbc.UncheckedSQLException: Database Connection timeout", False, AGAIN),
    ("java.lang.RuntimeException: Metastore operation failed for db.t", False, AGAIN),
    (f"{ICEBERG}RESTException: Unable to process (code: 429, type: T): slower", False, PAUSE),
    (f"{ICEBERG}BadRequestException: Malformed request: Invalid snapshot", False, GIVE_UP),
    (f"{ICEBERG}ForbiddenException: Forbidden: no", False, GIVE_UP),
    (f"{ICEBERG}NotAuthorizedException: Not authorized: no", False, GIVE_UP),
    (f"{ICEBERG}ServiceFailureException: Server error: NullPointerException: no", False, GIVE_UP),
    ("java.lang.IllegalArgumentException: requirement failed: x", False, State.FATAL_ERROR),
    (f"{ICEBERG}ValidationException: Cannot write incompatible data to table", False, GIVE_UP),
]


def _in_connect(java: str) -> Exception:
    """Return what Spark Connect makes of an exception whose class PySpark does not know, without a stack trace."""
    from pyspark.errors.exceptions.connect import UnknownException

    kind, _, message = java.partition(": ")
    return UnknownException(message, reason=kind)


@pytest.mark.parametrize("raised", [_in_connect, lambda java: _other("x", f"Caused by: {java}")])
@pytest.mark.parametrize(("java", "is_lost", "state"), COMMITS, ids=[java for java, _, _ in COMMITS])
def test_failed_commits_are_sorted(
    tmp_path: Path, java: str, raised: Callable[[str], Exception], *, is_lost: bool, state: State
) -> None:
    """Another writer was faster, nobody knows, or it is up to the user; however the exception comes from Spark."""
    failure = _raised(FakeContext(tmp_path), raised(java))
    assert (failure.context["state"], is_conflict(failure)) == (state, is_lost)


@pytest.mark.parametrize(("java", "state"), [(java, state) for java, _, state in COMMITS])
def test_failed_commits_of_applications_are_sorted(java: str, state: State) -> None:
    """By what PySpark prints of an exception in the JVM that it started."""
    printed = (
        f"py4j.protocol.Py4JJavaError: An error occurred while calling o55.append.\n: {java}\n\tat a.B.c(B.scala:1)"
    )
    assert state_of(evidence_in(printed)) is state


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
