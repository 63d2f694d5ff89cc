"""Errors of Spark: whether a retry may help, and a short message without the Java stack trace."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from calve.engine import State, StepContext
from calve.errors import CalveError
from calve.lake import Lake
from calve.steps.failures import conflict, failed, infrastructure_error, interrupted
from calve.steps.retries import Evidence, Kind, evidence_in, rule_of
from calve.steps.sql import offset_of

_LOST = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED"})
_GONE = ("INVALID_HANDLE.SESSION", "INVALID_HANDLE.OPERATION", "RETRIES_EXCEEDED", "RESPONSE_ALREADY_RECEIVED")
LOST = (
    "Spark ended while this ran, or cannot be reached. The step is retried, with a new Spark if this one was calve's; "
    "the last lines that Spark printed are in the log of the step."
)
_STACK = re.compile(r"\s*(?:JVM stacktrace:|Driver stacktrace:|\n\tat ).*|;\n['+!:A-Z ].*", re.DOTALL)
"""A Java stack trace, or the plan that Spark adds after a semicolon."""
_CAUSE = re.compile(r"Lost task [^(]*\([^)]*\)(?: \([^)]*\))?: (?P<cause>[^\n]*)")
_EXCERPT = re.compile(r"\n+== (?:SQL|DataFrame)\b.*", re.DOTALL)
_FORMATTED = re.compile(
    r"\n+== SQL (?:of (?P<kind>\w+) (?P<name>\S+) )?\(line (?P<line>\d+), position (?P<position>\d+)\) =="
)
"""How Spark prints the position of an error at run time; the position may be in a view that the query reads."""
_PLACE = re.compile(r"(?:;| \()? ?line (?P<line>\d+),? pos (?P<column>\d+)\)?;?")
_STATE = re.compile(r"\s*SQLSTATE: [0-9A-Z]{5}")
_CLASS = re.compile(r"^(?:[\w$]+\.)+[\w$]*(?:Exception|Error): ")
_SHOWN = 2_000

Told = Callable[[str, int | None], str]
"""Returns the message of a failed statement, given Spark's message and the position in the statement, if known."""
Hint = Callable[[BaseException], str]
"""Returns a hint about the cause of an error; empty if there is none."""
LastOutput = Callable[[float], str | None]
"""Returns the last lines of a worker's server if it ends within some seconds; otherwise None."""
_END_SECONDS = 2.0
"""How long it may take to notice that a server was killed."""


@contextmanager
def translated(
    context: StepContext,
    what: str,
    last_output: LastOutput = lambda _: None,
    *,
    told: Told | None = None,
    sent: str = "",
    hint: Hint = lambda _: "",
) -> Iterator[None]:
    """Turn an error from Spark into a failure of the step.

    Args:
        context: the attempt's.
        what: what failed, for the message.
        last_output: shows whether the server has ended.
        told: makes the message of a failed statement; by default it is ``what`` and Spark's message.
        sent: the statement as Spark received it.
        hint: adds a hint about the cause.
    """
    from grpc import RpcError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, RpcError, ConnectionError) as error:
        if context.is_interrupted():
            raise interrupted(what) from None
        _log_all(error, context)
        told = told or (lambda message, _: f"{what}: {message}")
        words = last_output(_END_SECONDS if is_connection(error) else 0.0)
        if words is not None or is_connection(error):
            context.log(f"-- what Spark printed last:{words}\n" if words else "")
            raise infrastructure_error(told(LOST, None)) from None
        message = " ".join(filter(None, [cause(error), hint(error), _coded(error)]))
        said = told(message, position(error, sent))[:_SHOWN]
        rule = rule_of(_evidence(error))
        if rule is not None and rule.is_conflict:
            raise conflict(said) from None
        raise failed(rule.state if rule else State.USER_ERROR, said) from None


def cause(error: BaseException) -> str:
    """Return the cause of an error in one line, without position and excerpt; for a failed task, the task's cause."""
    text, condition = _text(error), condition_of(error)
    sentence = brief(text)
    viewed = _FORMATTED.search(text)
    within = f" It is in the {viewed['kind'].lower()} {viewed['name']}." if viewed and viewed["kind"] else ""
    named = sentence if not condition or sentence.startswith("[") else f"[{condition}] {sentence}"
    return f"{named}{within}"


def brief(text: str) -> str:
    """Return the first line of Spark's message, without stack trace, plan, excerpt and position."""
    task = _CAUSE.search(text)
    told = _CLASS.sub("", task["cause"]) if task else _EXCERPT.sub("", without_stack(text))
    return _STATE.sub("", _PLACE.sub("", told.strip().split("\n")[0])).strip().rstrip(";")


def _coded(error: BaseException) -> str:
    find = getattr(error, "getSqlState", None)
    state = find() if callable(find) else None
    return f"SQLSTATE: {state}" if state else ""


def position(error: BaseException, sent: str) -> int | None:
    """Return the position of an error in the statement that was sent; None if it is unknown, or in a view."""
    text = _text(error)
    if formatted := _FORMATTED.search(text):
        here = formatted["kind"] is None
        return offset_of(sent, int(formatted["line"]), int(formatted["position"]) - 1) if here else None
    place = _PLACE.search(without_stack(text))
    return None if place is None else offset_of(sent, int(place["line"]), int(place["column"]))


def without_stack(text: str) -> str:
    """Return a message without the Java stack trace and Spark's plan, which are in the log."""
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
    """Return the lines of a stack trace that name exceptions, without the frames."""
    return "\n".join(line for line in stack.splitlines() if not line.startswith(("\t", " ")))


def _text(error: BaseException) -> str:
    details = getattr(error, "details", None)
    return str(getattr(error, "_message", None) or (details() if callable(details) else None) or error)


def is_connection(error: BaseException) -> bool:
    """Return whether an error means that Spark does not respond."""
    code = getattr(error, "_grpc_status_code", None)
    if code is None and callable(getattr(error, "code", None)):
        code = error.code()  # type: ignore[attr-defined]  # an RpcError of a call
    name = getattr(code, "name", "")
    return isinstance(error, ConnectionError) or name in _LOST or str(condition_of(error)).startswith(_GONE)


def condition_of(error: BaseException) -> str:
    """Return Spark's error condition."""
    find = getattr(error, "getCondition", None)
    return str(find() or "") if callable(find) else ""


def _stack(error: BaseException) -> str:
    find = getattr(error, "getStackTrace", None)
    return str(find() or "") if callable(find) else ""


def _log_all(error: BaseException, context: StepContext) -> None:
    """Log the whole error: the message is shortened."""
    whole = "\n".join(part for part in (_text(error), _stack(error)) if part)
    context.log(f"-- the whole error of Spark:\n{whole}\n")


_UNKNOWN = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "REQUIRES_SINGLE_PART_NAMESPACE", "CATALOG_NOT_FOUND")
_NAMES = ("relationName", "schemaName", "namespace", "catalogName")
_PART = re.compile(r"`((?:``|[^`])+)`|([^.`]+)")
_CATALOG_AND_MORE = 3
"""The minimum number of parts of a name with a catalog."""


def name_hint(error: BaseException, lake: Lake) -> str:
    """Suggest a catalog or table for an unknown name in an error of Spark; empty if there is no suggestion."""
    condition = condition_of(error)
    if not condition.startswith(_UNKNOWN):
        return ""
    parts = _parts(error)
    if parts and parts[0] not in lake.catalog_names:
        is_catalog = condition.startswith("CATALOG_NOT_FOUND") or len(parts) >= _CATALOG_AND_MORE
        if is_catalog:
            return f"{parts[0]} is not a catalog; the settings have: {', '.join(lake.catalog_names)}."
    if not parts or not condition.startswith("TABLE_OR_VIEW_NOT_FOUND"):
        return ""
    try:
        table = lake.parse(".".join(parts))
        near = lake.catalog(table.catalog).near(table)
    except CalveError:
        return ""
    return f"Did you mean {', '.join(near)}?" if near else ""


def _parts(error: BaseException) -> list[str]:
    """Return the parts of the unknown name."""
    find = getattr(error, "getMessageParameters", None)
    given: dict[str, str] = (find() if callable(find) else None) or {}
    name = next((given[key] for key in _NAMES if given.get(key)), "")
    return [(quoted or plain).replace("``", "`") for quoted, plain in _PART.findall(name)]
