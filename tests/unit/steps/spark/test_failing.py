"""Whose fault an error of Spark is, and what is said of it."""

from pathlib import Path

import pytest
from tests.unit.steps.contexts import FakeContext

from calve.engine.ports import State
from calve.errors import StepFailed
from calve.steps.spark.failing import translated, without_stack

PLAN = "[TABLE_OR_VIEW_NOT_FOUND] No `t`. SQLSTATE: 42P01; line 1 pos 14;\n'Project [*]\n+- 'UnresolvedRelation [t]\n"


def _raised(context: FakeContext, error: Exception, *, is_lost: bool = False) -> StepFailed:
    with pytest.raises(StepFailed) as failed, translated(context, "Statement 1", lambda: is_lost):
        raise error
    return failed.value


def _analysis(message: str, stack: str | None = None) -> Exception:
    from pyspark.errors.exceptions.connect import AnalysisException

    return AnalysisException(message, errorClass="TABLE_OR_VIEW_NOT_FOUND", server_stacktrace=stack)


def test_an_error_of_the_user_is_told_in_sparks_words(tmp_path: Path) -> None:
    """Without the plan; Java's stack stands in the log."""
    context = FakeContext(tmp_path)
    failed = _raised(context, _analysis(PLAN, "x\n\tat y"))
    assert failed.message == "Statement 1: [TABLE_OR_VIEW_NOT_FOUND] No `t`. SQLSTATE: 42P01; line 1 pos 14"
    assert failed.context["state"] == State.USER_ERROR
    assert "\tat y" in context.text


def test_a_lost_connection_is_not_the_users_fault(tmp_path: Path) -> None:
    """The engine runs the step again."""
    from pyspark.errors.exceptions.connect import SparkConnectGrpcException

    closed = SparkConnectGrpcException("gone", errorClass="INVALID_HANDLE.SESSION_CLOSED")
    for error in (closed, ConnectionRefusedError("nobody")):
        assert _raised(FakeContext(tmp_path), error).context["state"] == State.PLATFORM_ERROR


def test_whatever_a_dead_server_says_is_not_the_users_fault(tmp_path: Path) -> None:
    """Its last words may be anything."""
    assert _raised(FakeContext(tmp_path), _analysis("no"), is_lost=True).context["state"] == State.PLATFORM_ERROR


def test_a_commit_that_came_second_may_be_tried_again(tmp_path: Path) -> None:
    """Wherever in Java's stack it stands."""
    stack = "Caused by: org.apache.iceberg.exceptions.CommitFailedException: x"
    assert _raised(FakeContext(tmp_path), _analysis("no", stack)).context["state"] == State.PLATFORM_ERROR


def test_an_error_of_an_interrupted_step_is_its_interruption(tmp_path: Path) -> None:
    """Cancelled operations raise whatever they were at."""
    context = FakeContext(tmp_path)
    context.interruption.set()
    assert _raised(context, _analysis("cancelled")).context["state"] == State.STOPPED


def test_a_message_has_no_stack() -> None:
    """Neither of the driver nor of the server."""
    assert without_stack("no\n\nJVM stacktrace:\nx\n\tat y") == "no"
    assert without_stack("no\n\tat y\n\tat z") == "no"
