"""Signals that a workflow or a step waits for, and signals that a step sends."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from calve.definition.model import THROUGH, VALID_THROUGH
from calve.dsl.location import Described, here
from calve.dsl.values import Param, Reference, located_param

Operator: TypeAlias = Literal["=", ">", ">=", "<", "<="]
Match: TypeAlias = "str | int | tuple[Operator, str | int]"
"""A value that a param of a signal must equal, or a comparison: ``(">=", 5)``."""
StepMatch: TypeAlias = "Match | Reference | Param | tuple[Operator, Reference | Param]"
"""The same for a step, whose values may come from params."""


@dataclass(frozen=True, slots=True)
class Signal(Described):
    """A signal that starts a workflow, with conditions on its params."""

    name: str


@dataclass(frozen=True, slots=True)
class SignalDependency(Described):
    """A signal that a step waits for."""


@dataclass(frozen=True, slots=True)
class SignalOutput(Described):
    """A signal that a step sends."""


def on(name: str, *, match: Mapping[str, Match] | None = None, join_keys: Sequence[str] = ()) -> Signal:
    """Return a signal for a ``signal`` trigger, with conditions.

    Args:
        name: The signal.
        match: Conditions on its params: a value, or a comparison such as ``(">=", 5)``.
        join_keys: The params that must equal those of the other signals of the trigger, in the same order.
    """
    written: dict[str, Any] = {}
    if match:
        written["match_params"] = {
            key: dict(zip(("operator", "value"), _pair(item), strict=True)) for key, item in match.items()
        }
    if join_keys:
        written["join_keys"] = list(join_keys)
    return Signal(written, here(), name)


def signal_dependency(name: str, *, match: Mapping[str, StepMatch] | None = None) -> SignalDependency:
    """Return a signal that a step waits for.

    Args:
        name: The signal; ``${param}`` in it is replaced.
        match: Conditions on its params: a value, a param, or a comparison such as ``(">=", 5)``.
    """
    written: dict[str, Any] = {"name": name}
    if match:
        pairs = {key: _pair(item) for key, item in match.items()}
        written["match_params"] = {
            key: {"operator": operator, "param": located_param(item)} for key, (operator, item) in pairs.items()
        }
    return SignalDependency(written, here())


def valid_through(table: str, through: int | str) -> SignalDependency:
    """Return a dependency that holds a step until a table is complete through a time.

    Args:
        table: The table; its property ``calve.valid-through`` or signal ``vtts/<table>`` gives the time.
        through: Milliseconds, or an expression such as ``"RUN_TS"``.
    """
    match = {"operator": ">=", "param": {"type": "LONG", _value_key(through): through}}
    return SignalDependency({"name": f"{VALID_THROUGH}{table}", "match_params": {THROUGH: match}}, here())


def signal_output(
    name: str,
    *,
    params: Mapping[str, str | int | Reference | Param] | None = None,
    payload: Mapping[str, Any] | None = None,
) -> SignalOutput:
    """Return a signal that a step sends when it has succeeded.

    Args:
        name: The signal.
        params: What receivers may match: texts and whole numbers.
        payload: Further data, in the types of JSON.
    """
    written: dict[str, Any] = {"name": name}
    if params:
        written["params"] = {key: located_param(item) for key, item in params.items()}
    if payload is not None:
        written["payload"] = dict(payload)
    return SignalOutput(written, here())


def _value_key(value: int | str) -> str:
    return "expression" if isinstance(value, str) else "value"


def _pair(item: Any) -> tuple[str, Any]:
    return item if isinstance(item, tuple) else ("=", item)
