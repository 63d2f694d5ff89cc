"""What Spark's errors mean for a step: whether another try is worth it, and what to tell, without Java's stack."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from calve.engine.ports import State, StepContext
from calve.steps.failures import failed, stopped
from calve.steps.retries import Evidence, Kind, evidence_in, state_of
from calve.steps.sql.positions import offset_of

_LOST = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED"})
_GONE = ("INVALID_HANDLE.SESSION", "INVALID_HANDLE.OPERATION", "RETRIES_EXCEEDED", "RESPONSE_ALREADY_RECEIVED")
LOST = (
    "Spark ended while this ran, or cannot be reached. calve tries again, with a new Spark where it starts Spark "
    "itself; what Spark printed last is in the log of the step."
)
_STACK = re.compile(r"\s*(?:JVM stacktrace:|Driver stacktrace:|\n\tat ).*|;\n['+!:A-Z ].*", re.DOTALL)
"""Frames of Java, or the plan that Spark adds after a semicolon."""
_CAUSE = re.compile(r"Lost task [^(]*\([^)]*\)(?: \([^)]*\))?: (?P<cause>[^\n]*)")
_EXCERPT = re.compile(r"\n+== (?:SQL|DataFrame)\b.*", re.DOTALL)
_FORMATTED = re.compile(
    r"\n+== SQL (?:of (?P<kind>\w+) (?P<name>\S+) )?\(line (?P<line>\d+), position (?P<position>\d+)\) =="
)
"""How Spark shows the place of an error that came while a query ran; it may be in a view that the query reads."""
_PLACE = re.compile(r"(?:;| \()? ?line (?P<line>\d+),? pos (?P<column>\d+)\)?;?")
_STATE = re.compile(r"\s*SQLSTATE: [0-9A-Z]{5}")
_CLASS = re.compile(r"^(?:[\w$]+\.)+[\w$]*(?:Exception|Error): ")
_SHOWN = 2_000

Told = Callable[[str, int | None], str]
"""Returns an error of a statement for people: what Spark says, and where in what it was sent, if that is known."""
Hint = Callable[[BaseException], str]
"""Returns what an error may come from, besides what Spark says; nothing if nobody knows."""
LastWords = Callable[[float], str | None]
"""Returns what a server of our own has printed last, if it ends within some seconds; else None."""
_END_SECONDS = 2.0
"""How long a server that was killed may take until that is known."""


@contextmanager
def translated(
    context: StepContext,
    what: str,
    last_words: LastWords = lambda _: None,
    *,
    told: Told | None = None,
    sent: str = "",
    hint: Hint = lambda _: "",
) -> Iterator[None]:
    """Turn an error of Spark into a failure of what was done.

    Args:
        context: the attempt's.
        what: was done.
        last_words: tells whether the server is gone.
        told: words an error of a statement; otherwise ``what`` stands before what Spark says.
        sent: the statement as Spark got it.
        hint: knows more of an error.
    """
    from grpc import RpcError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, RpcError, ConnectionError) as error:
        if context.is_interrupted():
            raise stopped(what) from None
        _log_all(error, context)
        told = told or (lambda message, _: f"{what}: {message}")
        words = last_words(_END_SECONDS if is_connection(error) else 0.0)
        if words is not None or is_connection(error):
            context.log(f"-- what Spark printed last:{words}\n" if words else "")
            raise failed(State.PLATFORM_ERROR, told(LOST, None)) from None
        message = " ".join(filter(None, [cause(error), hint(error), _coded(error)]))
        raise failed(state_of(_evidence(error)), told(message, position(error, sent))[:_SHOWN]) from None


def cause(error: BaseException) -> str:
    """Return the cause of an error in one line: of a task's failure that of the task, without place and excerpt."""
    text, condition = _text(error), condition_of(error)
    sentence = brief(text)
    viewed = _FORMATTED.search(text)
    within = f" It is in the {viewed['kind'].lower()} {viewed['name']}." if viewed and viewed["kind"] else ""
    named = sentence if not condition or sentence.startswith("[") else f"[{condition}] {sentence}"
    return f"{named}{within}"


def brief(text: str) -> str:
    """Return the first line of what Spark says, without a stack, a plan, an excerpt and a place."""
    task = _CAUSE.search(text)
    told = _CLASS.sub("", task["cause"]) if task else _EXCERPT.sub("", without_stack(text))
    return _STATE.sub("", _PLACE.sub("", told.strip().split("\n")[0])).strip().rstrip(";")


def _coded(error: BaseException) -> str:
    find = getattr(error, "getSqlState", None)
    state = find() if callable(find) else None
    return f"SQLSTATE: {state}" if state else ""


def position(error: BaseException, sent: str) -> int | None:
    """Return where in a statement that was sent Spark has found an error; None if it does not tell, or in a view."""
    text = _text(error)
    if formatted := _FORMATTED.search(text):
        here = formatted["kind"] is None
        return offset_of(sent, int(formatted["line"]), int(formatted["position"]) - 1) if here else None
    place = _PLACE.search(without_stack(text))
    return None if place is None else offset_of(sent, int(place["line"]), int(place["column"]))


def without_stack(text: str) -> str:
    """Return a message without Java's stack and Spark's plan, which stand in the log."""
    return _STACK.sub("", text).strip()


def _evidence(error: BaseException) -> Iterator[Evidence]:
    find = getattr(error, "getSqlState", None)
    if callable(find) and (state := find()):
        yield Kind.SQLSTATE, str(state)
    if condition := condition_of(error):
        yield Kind.CONDITION, condition
    for kind in type(error).__mro__:
        yield Kind.EXCEPTION, kind.__name__
    yield from evidence_in(f"{_text(error)}\n{_heads(_stack(error))}")


def _heads(stack: str) -> str:
    """Return the lines of a stack that name exceptions, without the frames between them."""
    return "\n".join(line for line in stack.splitlines() if not line.startswith(("\t", " ")))


def _text(error: BaseException) -> str:
    details = getattr(error, "details", None)
    return str(getattr(error, "_message", None) or (details() if callable(details) else None) or error)


def is_connection(error: BaseException) -> bool:
    """Tell whether an error is that Spark does not answer."""
    code = getattr(error, "_grpc_status_code", None)
    if code is None and callable(getattr(error, "code", None)):
        code = error.code()  # type: ignore[attr-defined]  # an RpcError of a call
    name = getattr(code, "name", "")
    return isinstance(error, ConnectionError) or name in _LOST or str(condition_of(error)).startswith(_GONE)


def condition_of(error: BaseException) -> str:
    """Return the name that Spark has for an error."""
    find = getattr(error, "getCondition", None)
    return str(find() or "") if callable(find) else ""


def _stack(error: BaseException) -> str:
    find = getattr(error, "getStackTrace", None)
    return str(find() or "") if callable(find) else ""


def _log_all(error: BaseException, context: StepContext) -> None:
    """Keep in the log what the message leaves out."""
    whole = "\n".join(part for part in (_text(error), _stack(error)) if part)
    context.log(f"-- Spark's own account of the error:\n{whole}\n")
