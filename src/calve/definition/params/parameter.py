"""A param at run time: its definition, its source, and its result."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import ValidationError

from calve.definition.model import PARAM, Param, ParamMode, ParamType
from calve.definition.params.interpolation import KEPT, NOT_EVALUATED, escaped
from calve.definition.params.secrets import Secret, SecretText, holds_secret, restored, shown, stored
from calve.errors import ParamError


class ParamSource(StrEnum):
    """The source that defined a param last."""

    SYSTEM = "SYSTEM"
    TEMPLATE_SCHEMA = "TEMPLATE_SCHEMA"
    SYSTEM_INJECTED = "SYSTEM_INJECTED"
    SYSTEM_DEFAULT = "SYSTEM_DEFAULT"
    DEFINITION = "DEFINITION"
    SIGNAL = "SIGNAL"
    TIME_TRIGGER = "TIME_TRIGGER"
    OUTPUT_PARAMETER = "OUTPUT_PARAMETER"
    LAUNCH = "LAUNCH"
    RESTART = "RESTART"
    SUBWORKFLOW = "SUBWORKFLOW"
    TEMPLATE = "TEMPLATE"
    FOREACH = "FOREACH"
    WHILE = "WHILE"
    WORKFLOW_PARAMETER = "WORKFLOW_PARAMETER"

    @property
    def is_system(self) -> bool:
        """Tell whether it is the system and not a user."""
        return self in _SYSTEM


_SYSTEM = frozenset(
    {ParamSource.SYSTEM, ParamSource.TEMPLATE_SCHEMA, ParamSource.SYSTEM_INJECTED, ParamSource.SYSTEM_DEFAULT}
)


class InitiatorType(StrEnum):
    """Who starts an instance."""

    MANUAL = "MANUAL"
    SUBWORKFLOW = "SUBWORKFLOW"
    FOREACH = "FOREACH"
    WHILE = "WHILE"
    TEMPLATE = "TEMPLATE"
    TIME = "TIME"
    SIGNAL = "SIGNAL"
    INCREMENTAL = "INCREMENTAL"
    """A change of tables; Maestro does not have it."""

    @property
    def is_upstream(self) -> bool:
        """Tell whether it is a step of another instance, which controls its children."""
        return self in _UPSTREAM

    def run_source(self, *, is_fresh: bool) -> ParamSource:
        """Return the source of the params that come with a run."""
        if self.is_upstream:
            return ParamSource(self.value)
        return ParamSource.LAUNCH if is_fresh else ParamSource.RESTART


_UPSTREAM = frozenset({InitiatorType.SUBWORKFLOW, InitiatorType.FOREACH, InitiatorType.WHILE, InitiatorType.TEMPLATE})


SCALARS: dict[type, ParamType] = {
    str: ParamType.STRING,
    bool: ParamType.BOOLEAN,
    int: ParamType.LONG,
    float: ParamType.DOUBLE,
}
"""The types of plain values."""
_ARRAYS = {kind: ParamType(f"{scalar}_ARRAY") for kind, scalar in SCALARS.items()}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A param and its result, once it has one."""

    name: str
    definition: Param
    result: Any = NOT_EVALUATED
    evaluated_time: int | None = None
    note: tuple[str, str] | None = None

    @property
    def is_evaluated(self) -> bool:
        """Tell whether there is a result."""
        return self.result is not NOT_EVALUATED

    @property
    def type(self) -> ParamType:
        """The type of its value."""
        return self.definition.type

    @property
    def mode(self) -> ParamMode:
        """When it may still be changed."""
        return self.definition.mode or ParamMode.MUTABLE

    @property
    def source(self) -> ParamSource | None:
        """The source that defined it, if recorded."""
        return source_of(self.definition)

    def as_json(self) -> dict[str, Any]:
        """Return the param in JSON's types, with stars for its secrets."""
        written = self.definition.as_json()
        meta = {key: value for key, value in written.get("meta", {}).items() if key != KEPT}
        meta |= dict([self.note] if self.note else [])
        written = {key: value for key, value in written.items() if key != "meta"} | ({"meta": meta} if meta else {})
        if self.is_evaluated:
            written |= {"evaluated_result": shown(self.result), "evaluated_time": self.evaluated_time}
        return written

    def as_stored(self) -> dict[str, Any]:
        """Return the param in JSON's types for ``from_stored``, with the names of its secrets."""
        result = {"result": stored(self.result)} if self.is_evaluated else {}
        return {
            "name": self.name,
            "definition": self.definition.as_json(),
            **result,
            "evaluated_time": self.evaluated_time,
            "note": self.note and list(self.note),
        }

    @classmethod
    def from_stored(cls, kept: Mapping[str, Any]) -> "Parameter":
        """Return the param that ``as_stored`` gave.

        Raises:
            ParamError: it is malformed.
        """
        match kept:
            case {"name": str(name), "definition": definition, "evaluated_time": None | int() as time, "note": note}:
                result = restored(kept["result"]) if "result" in kept else NOT_EVALUATED
                return cls(name, _validated(name, definition), result, time, tuple(note) if note else None)
            case _:
                raise ParamError("The stored param cannot be read")

    def as_definition(self) -> Param:
        """Return the definition to pass to a child: its value, or its expression if it is IMMUTABLE.

        Raises:
            ParamError: it has no result yet.
        """
        if self.mode is ParamMode.IMMUTABLE and self.is_evaluated:
            return self.definition
        return self._with_result(keep_immutable=True)

    def as_literal(self) -> Param:
        """Return the definition with the result as a literal.

        Raises:
            ParamError: it has no result yet.
        """
        return self._with_result(keep_immutable=False)

    def _with_result(self, *, keep_immutable: bool) -> Param:
        if not self.is_evaluated:
            raise ParamError(
                f"Cannot convert an un-evaluated parameter {self.name} to a parameter definition", param=self.name
            )
        return _Literals(keep_immutable).of(self.definition, self.result)


def source_of(definition: Param) -> ParamSource | None:
    """Return the source of a param, as recorded in its ``meta``.

    Raises:
        ParamError: there is no such source.
    """
    written = (definition.meta or {}).get("source")
    try:
        return None if written is None else ParamSource(written)
    except ValueError:
        raise ParamError(f"There is no param source [{written}]") from None


def values_of(params: Mapping[str, Parameter]) -> dict[str, Any]:
    """Return the results of params by name."""
    return {name: param.result for name, param in params.items()}


@dataclass(frozen=True, slots=True)
class _Literals:
    """Replaces definitions by literals of their results."""

    keep_immutable: bool

    def of(self, definition: Param, result: Any) -> Param:
        """Return the literal that evaluates to ``result``."""
        meta = {key: value for key, value in (definition.meta or {}).items() if key != KEPT}
        if definition.type is not ParamType.MAP and not isinstance(result, Secret) and holds_secret(result):
            meta[KEPT] = stored(result)
        value = self._value(definition, result)
        return definition.model_copy(update={"expression": None, "value": value, "meta": meta or None})

    def _value(self, definition: Param, result: Any) -> Any:
        # A result is final: what looks like a reference in it must not be replaced again.
        match result:
            case Secret():
                return result.name
            case Mapping() if definition.type is ParamType.MAP:
                declared: Any = definition.value or {}
                return {key: self._member(key, definition, declared.get(key), value) for key, value in result.items()}
            case Mapping():
                return {escaped(key): escaped(str(text)) for key, text in result.items()}
            case list() if definition.type is ParamType.STRING_ARRAY:
                return [escaped(str(text)) for text in result]
            case str() | SecretText():
                return escaped(str(result))
            case _:
                return result

    def _member(self, name: str, of: Param, declared: Param | None, result: Any) -> Param:
        if declared is None:
            fields = {"type": _derived_type(name, result), "mode": of.mode, "tags": of.tags, "meta": of.meta}
            return self.of(PARAM.validate_python(fields), result)
        if self.keep_immutable and declared.mode is ParamMode.IMMUTABLE:
            return declared
        return self.of(declared, result)


def _derived_type(name: str, result: Any) -> ParamType:
    match result:
        case Mapping():
            return ParamType.MAP
        case list():
            return _ARRAYS.get(type(result[0]), ParamType.STRING_ARRAY) if result else ParamType.STRING_ARRAY
        case _ if type(result) in SCALARS:
            return SCALARS[type(result)]
        case _:
            raise ParamError(f"Param [{name}] type [{type(result).__name__}] is not supported.", param=name)


def _validated(name: str, definition: Any) -> Param:
    try:
        return PARAM.validate_python(definition)
    except ValidationError as error:
        raise ParamError(f"Param [{name}] cannot be read: {error.errors()[0]['msg']}", param=name) from error
