"""The Http runtime: sends a request, evaluates the response, and polls again if the step's ``state_expr`` says so."""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from calve.definition.step_types import HTTP
from calve.engine import Clock, Outcome, State, StepContext
from calve.errors import ExpressionError
from calve.expressions import evaluate_text
from calve.steps.config import fields
from calve.steps.failures import fatal, settled
from calve.steps.http.allow_list import AllowList, Resolver, resolve
from calve.steps.http.client import HttpAnswer, send_request
from calve.steps.retries import Kind, state_of

_POLLS = "http_polls"
_FIRST_POLL_SECONDS = 3.0
_LONGEST_POLL_SECONDS = 60.0
_LONGEST_PAUSE_SECONDS = 3600.0
_STATES = ", ".join(State)
_SUCCESS = 2
"""The first digit of a successful status code."""


class Http:
    """Sends a request, and repeats it while ``state_expr`` returns CONTINUE.

    After a crash the request may be sent again, with the same Idempotency-Key.
    """

    def __init__(self, allowed: AllowList, clock: Clock, resolver: Resolver = resolve) -> None:
        self._allowed = allowed
        self._clock = clock
        self._resolver = resolver

    def execute(self, context: StepContext) -> Outcome:
        """Send the request and decide by the response how the step continues."""
        return settled(self._ask, context)

    def terminate(self, context: StepContext) -> None:
        """Do nothing: a request ends with the call that sent it."""

    def _ask(self, context: StepContext) -> Outcome:
        config = fields(context, HTTP)
        polls = int(context.artifacts.get(_POLLS, 0))
        key = f"{context.key}-{polls}" if polls else context.key
        answer = send_request(config, context, key, allowed=self._allowed, resolver=self._resolver)
        told = f"The answer is {answer.status} {answer.reason}".rstrip() + "."
        context.log(f"{told} {len(answer.body):,} characters.\n")
        state = _judged(config.get("state_expr"), answer)
        outputs = {"status_code": answer.status, "response_body": answer.body}
        message = "" if state is State.DONE else told
        asked = _asked_pause(answer.headers, self._clock())
        if state is not State.CONTINUE:
            return Outcome(state, outputs, message=message, retry_after=asked)
        return Outcome(state, outputs, {_POLLS: polls + 1}, message, poll_after=asked or _backoff(polls))


def _judged(expression: str | None, answer: HttpAnswer) -> State:
    if expression is None:
        return _by_status(answer.status)
    known = {"status_code": answer.status, "response_body": answer.body}
    try:
        given: Any = evaluate_text(expression, known).value
    except ExpressionError as error:
        raise fatal(f"state_expr: {error.message}") from None
    if not isinstance(given, str) or given not in set(State):
        raise fatal(f"state_expr returned {given!r}, which is not a state: {_STATES}.")
    return State(given)


def _by_status(status: int) -> State:
    return State.DONE if status // 100 == _SUCCESS else state_of([(Kind.HTTP, str(status))])


def _asked_pause(headers: Mapping[str, str], now: int) -> float:
    """Return the seconds to wait according to ``Retry-After``, which is a number or a date; 0 without that header."""
    asked = headers.get("retry-after", "").strip()
    if asked.isascii() and asked.isdigit():
        return min(float(asked), _LONGEST_PAUSE_SECONDS)
    try:
        moment = parsedate_to_datetime(asked)
    except ValueError:
        return 0.0
    return min(max(moment.timestamp() - now / 1000, 0.0), _LONGEST_PAUSE_SECONDS)


def _backoff(polls: int) -> float:
    return min(_FIRST_POLL_SECONDS * 2.0 ** min(polls, 10), _LONGEST_POLL_SECONDS)
