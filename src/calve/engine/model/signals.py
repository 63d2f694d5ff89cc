"""Signals: named events with params, announced to all steps and triggers that wait for them. Pure."""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, assert_never

from calve.definition.model import NAME_BYTES, Operator, is_signal_name
from calve.errors import RequestInvalid
from calve.texts import check_text

Value = str | int
"""The types of a signal's params."""
Values = Mapping[str, Value]
TEXT = 1_000
"""The most bytes of a text in a param: it is indexed together with both names."""
PARAMS = 32
"""How many params a signal may have."""
SOURCE = "signal_source"
"""The key of the payload that says which step sent a signal."""
_LONG = range(-(2**63), 2**63)
_IDS = uuid.UUID("b6f3e7f4-2a39-5c0e-9a58-6a9a0d1f1c77")


@dataclass(frozen=True, slots=True)
class Signal:
    """A signal that was announced."""

    name: str
    seq: int
    """Its number among the signals of its name, from 1."""
    instance_id: str
    """The id of the announcement: a second one with the same name and id is not a new signal."""
    params: Values = field(default_factory=dict)
    payload: Mapping[str, Any] = field(default_factory=dict)
    """Additional data, which no match looks at."""
    announced_at: int = 0

    @property
    def source(self) -> Mapping[str, Any] | None:
        """The step that sent it; None if a client announced it."""
        found: Mapping[str, Any] | None = self.payload.get(SOURCE)
        return found


@dataclass(frozen=True, slots=True)
class Announcement:
    """A signal to announce, unless it has been announced already."""

    name: str
    params: Values = field(default_factory=dict)
    payload: Mapping[str, Any] = field(default_factory=dict)
    request_id: str | None = None
    at: int = 0
    sender: "Party | None" = None

    def __post_init__(self) -> None:
        """Refuse an invalid signal."""
        check_name(self.name)
        if len(self.params) > PARAMS:
            raise RequestInvalid(f"The signal {self.name} has more than {PARAMS} params.")
        for name, value in self.params.items():
            check_value(name, value)
        check_text({"payload": self.payload, "request_id": self.request_id})

    @property
    def instance_id(self) -> str:
        """The id that identifies it among the signals of its name: the request's id, else one made from its params."""
        if self.request_id is not None:
            return self.request_id
        return str(uuid.uuid5(_IDS, json.dumps([self.name, dict(self.params)], sort_keys=True)))


class AnnouncementStatus(StrEnum):
    """The result of an announcement."""

    CREATED = "CREATED"
    DUPLICATED = "DUPLICATED"


@dataclass(frozen=True, slots=True)
class Announced:
    """The result of an announcement, and its signal."""

    status: AnnouncementStatus
    signal: Signal


@dataclass(frozen=True, slots=True)
class ParamMatch:
    """A condition on the value of a signal's param."""

    param: str
    value: Value
    operator: Operator = Operator.EQUALS

    def fits(self, params: Values) -> bool:
        """Tell whether a signal's params meet the condition; a text never compares with a number."""
        found = params.get(self.param)
        if found is None or isinstance(found, str) is not isinstance(self.value, str):
            return False
        return _compare(found, self.operator, self.value)


class UseKind(StrEnum):
    """The relation of a step or instance to a signal."""

    SENT = "SENT"
    STARTED = "STARTED"
    RELEASED = "RELEASED"


@dataclass(frozen=True, slots=True)
class Party:
    """An instance that sent a signal or was affected by one, and the step concerned, if any."""

    workflow_id: str
    instance_id: int
    run_id: int
    run_uuid: str
    step_id: str | None = None
    attempt_id: int | None = None
    attempt_uuid: str = ""

    def as_source(self) -> dict[str, Any]:
        """Return the sender of a signal, as its payload names it."""
        return {
            "workflow_id": self.workflow_id,
            "workflow_instance_id": self.instance_id,
            "workflow_run_id": self.run_id,
            "step_id": self.step_id,
            "step_attempt_id": self.attempt_id,
        }


@dataclass(frozen=True, slots=True)
class SignalUse:
    """Who sent a signal, or what it did: it started an instance, or released a step."""

    name: str
    seq: int
    kind: UseKind
    party: Party


def _compare(found: Any, operator: Operator, wanted: Any) -> bool:
    match operator:
        case Operator.EQUALS:
            result = found == wanted
        case Operator.GREATER:
            result = found > wanted
        case Operator.GREATER_OR_EQUAL:
            result = found >= wanted
        case Operator.LESS:
            result = found < wanted
        case Operator.LESS_OR_EQUAL:
            result = found <= wanted
        case _:
            assert_never(operator)
    return bool(result)


def check_name(name: str, what: str = "signal") -> None:
    """Refuse an invalid name.

    Raises:
        RequestInvalid: it is empty, too long, or contains characters that cannot be printed.
    """
    if not is_signal_name(name):
        raise RequestInvalid(
            f"{name!r} is not a valid name of a {what}.",
            remedy=f"Use printable characters, at most {NAME_BYTES} bytes, without spaces around them.",
        )


def check_value(name: str, value: Any) -> None:
    """Refuse an invalid value of a signal's param.

    Raises:
        RequestInvalid: it is neither a text nor an integer, or too long.
    """
    check_name(name, "signal's param")
    match value:
        case bool() | float() | None:
            is_fit = False
        case int():
            is_fit = value in _LONG
        case str():
            is_fit = _size(value) <= TEXT and not any(sign == "\0" or "\ud800" <= sign <= "\udfff" for sign in value)
        case _:
            is_fit = False
    if not is_fit:
        raise RequestInvalid(
            f"The param {name} of a signal cannot be {value!r:.100}.",
            remedy=f"Use a string of at most {TEXT} bytes, or a 64-bit integer.",
        )


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
