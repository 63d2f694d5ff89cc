"""What Spark's errors mean for a step: whose fault it was, in Spark's own words, without Java's stack."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from calve.engine.ports import StepContext
from calve.errors import StepFailed
from calve.steps.failures import of_platform, of_user, stopped

_LOST = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED"})
_GONE = ("INVALID_HANDLE.SESSION", "INVALID_HANDLE.OPERATION", "RETRIES_EXCEEDED", "RESPONSE_ALREADY_RECEIVED")
_PASSING = ("ExecutorLostFailure", "FetchFailedException", "CommitFailedException", "SQLITE_BUSY", "No space left")
"""What a second try may cure, wherever in the error it stands."""
_STACK = re.compile(r"\s*(?:JVM stacktrace:|Driver stacktrace:|\n\tat ).*|(?<= pos )(?P<at>\d+);\n.*", re.DOTALL)
_CAUSE = re.compile(r"Lost task [^(]*\([^)]*\)(?: \([^)]*\))?: (?P<cause>[^\n]*)")
_SHOWN = 2_000


@contextmanager
def translated(context: StepContext, what: str, is_lost: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Turn an error of Spark into a failure of what was done; ``is_lost`` tells whether the server is gone."""
    from grpc import RpcError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, RpcError, ConnectionError) as error:
        if context.is_interrupted():
            raise stopped(what) from None
        _log_stack(error, context)
        raise _failure(error, what, is_lost=is_lost()) from None


def said(error: BaseException) -> str:
    """Return what an error says: Spark's condition and message, and the cause of a task's failure."""
    details = getattr(error, "details", None)
    text = str(getattr(error, "_message", None) or (details() if callable(details) else None) or error)
    condition = _condition(error)
    cause = _CAUSE.search(text)
    shown = without_stack(text)
    if cause and cause["cause"] not in shown:
        shown = f"{shown}\n{cause['cause']}"
    named = shown if not condition or f"[{condition}]" in shown else f"[{condition}] {shown}"
    return named[:_SHOWN]


def without_stack(text: str) -> str:
    """Return a message without Java's stack and Spark's plan, which stand in the log."""
    return _STACK.sub(lambda match: match["at"] or "", text).strip()


def _failure(error: BaseException, what: str, *, is_lost: bool) -> StepFailed:
    if is_lost or _is_connection(error):
        return of_platform(f"{what}: Spark is gone: {said(error).splitlines()[0] if said(error) else 'no answer'}")
    everything = f"{error}{_stack(error)}"
    kind = of_platform if any(word in everything for word in _PASSING) else of_user
    return kind(f"{what}: {said(error)}")


def _is_connection(error: BaseException) -> bool:
    code = getattr(error, "_grpc_status_code", None)
    if code is None and callable(getattr(error, "code", None)):
        code = error.code()  # type: ignore[attr-defined]  # an RpcError of a call
    name = getattr(code, "name", "")
    return isinstance(error, ConnectionError) or name in _LOST or str(_condition(error)).startswith(_GONE)


def _condition(error: BaseException) -> str:
    find = getattr(error, "getCondition", None)
    return str(find() or "") if callable(find) else ""


def _stack(error: BaseException) -> str:
    find = getattr(error, "getStackTrace", None)
    return str(find() or "") if callable(find) else ""


def _log_stack(error: BaseException, context: StepContext) -> None:
    if stack := _stack(error):
        context.log(f"-- Spark's own account of the error:\n{stack}\n")
