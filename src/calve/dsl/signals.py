"""Signals: which ones a workflow or a step waits for, and which ones a step sends."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from calve.definition.model.triggers import THROUGH, VALID_THROUGH
from calve.dsl.places import Described, here
from calve.dsl.values import Param, Reference, placed_param

Operator: TypeAlias = Literal["=", ">", ">=", "<", "<="]
Match: TypeAlias = "str | int | tuple[Operator, str | int]"
"""A value that a signal's param must equal, or a comparison: ``(">=", 5)``."""
StepMatch: TypeAlias = "Match | Reference | Param | tuple[Operator, Reference | Param]"
"""The same for a step, whose values may come from params."""


@dataclass(frozen=True, slots=True)
class Signal(Described):
    """Which signals of one name start a workflow, and what joins them with others."""

    name: str


@dataclass(frozen=True, slots=True)
class SignalDependency(Described):
    """A signal that a step waits for."""


@dataclass(frozen=True, slots=True)
class SignalOutput(Described):
    """A signal that a step sends."""


def on(name: str, *, match: Mapping[str, Match] | None = None, join_keys: Sequence[str] = ()) -> Signal:
    """Return which signals of one name count for a ``signal`` trigger.

    Args:
        name: The signal.
        match: What its params must be: a value, or a comparison such as ``(">=", 5)``.
        join_keys: The params that must be equal, one by one, to those of the trigger's other signals.
    """
    said: dict[str, Any] = {}
    if match:
        said["match_params"] = {
            key: dict(zip(("operator", "value"), _pair(item), strict=True)) for key, item in match.items()
        }
    if join_keys:
        said["join_keys"] = list(join_keys)
    return Signal(said, here(), name)


def signal_dependency(name: str, *, match: Mapping[str, StepMatch] | None = None) -> SignalDependency:
    """Return a signal that a step waits for.

    Args:
        name: The signal; ``${param}`` in it is replaced.
        match: What its params must be: a value, a param, or a comparison such as ``(">=", 5)``.
    """
    said: dict[str, Any] = {"name": name}
    if match:
        pairs = {key: _pair(item) for key, item in match.items()}
        said["match_params"] = {
            key: {"operator": operator, "param": placed_param(item)} for key, (operator, item) in pairs.items()
        }
    return SignalDependency(said, here())


def valid_through(table: str, through: int | str) -> SignalDependency:
    """Return that a step waits until a table is complete through a time.

    Args:
        table: The table, whose property ``calve.valid-through`` or signal ``vtts/<table>`` tells it.
        through: Milliseconds, or an expression such as ``"RUN_TS"``.
    """
    match = {"operator": ">=", "param": {"type": "LONG", _said_by(through): through}}
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
        params: What others may match: texts and whole numbers.
        payload: What goes with it besides, in JSON's types.
    """
    said: dict[str, Any] = {"name": name}
    if params:
        said["params"] = {key: placed_param(item) for key, item in params.items()}
    if payload is not None:
        said["payload"] = dict(payload)
    return SignalOutput(said, here())


def _said_by(value: int | str) -> str:
    return "expression" if isinstance(value, str) else "value"


def _pair(item: Any) -> tuple[str, Any]:
    return item if isinstance(item, tuple) else ("=", item)
