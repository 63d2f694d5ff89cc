"""A param at run time: its definition, and what came of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from calve.definition.model.params import Param, ParamMode, ParamType
from calve.definition.params.interpolation import NOT_EVALUATED, escaped
from calve.definition.params.literals import KEPT
from calve.definition.params.secrets import Secret, SecretText, holds_secret, restored, shown, stored
from calve.definition.params.sources import ParamSource
from calve.errors import ParamError

_PARAM: TypeAdapter[Param] = TypeAdapter(Param)
SCALARS: dict[type, ParamType] = {
    str: ParamType.STRING,
    bool: ParamType.BOOLEAN,
    int: ParamType.LONG,
    float: ParamType.DOUBLE,
}
"""What a plain value is the result of."""
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
        """What it holds."""
        return self.definition.type

    @property
    def mode(self) -> ParamMode:
        """Who may still change it."""
        return self.definition.mode or ParamMode.MUTABLE

    @property
    def source(self) -> ParamSource | None:
        """Who defined it, once that has been recorded."""
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
        """Return the param in JSON's types for ``from_stored``; of a secret it holds the name."""
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
            ParamError: it gave no such thing.
        """
        match kept:
            case {"name": str(name), "definition": definition, "evaluated_time": None | int() as time, "note": note}:
                result = restored(kept["result"]) if "result" in kept else NOT_EVALUATED
                return cls(name, _validated(name, definition), result, time, tuple(note) if note else None)
            case _:
                raise ParamError("What was stored of a param cannot be read")

    def as_definition(self) -> Param:
        """Return the definition that gives a child the same: its value, or its expression if it is IMMUTABLE.

        Raises:
            ParamError: it has no result yet.
        """
        if self.mode is ParamMode.IMMUTABLE and self.is_evaluated:
            return self.definition
        return self._with_result(keep_immutable=True)

    def as_literal(self) -> Param:
        """Return the definition with the result in place of what gave it.

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
    """Return who defined a param, as recorded in its ``meta``.

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
    """Puts results in place of what gave them."""

    keep_immutable: bool

    def of(self, definition: Param, result: Any) -> Param:
        """Return the literal that gives ``result`` when it is evaluated."""
        meta = {key: value for key, value in (definition.meta or {}).items() if key != KEPT}
        if definition.type is not ParamType.MAP and not isinstance(result, Secret) and holds_secret(result):
            meta[KEPT] = stored(result)
        value = self._value(definition, result)
        return definition.model_copy(update={"expression": None, "value": value, "meta": meta or None})

    def _value(self, definition: Param, result: Any) -> Any:
        # A value is final: what looks like a reference in it is none to whoever is given the literal.
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
            return self.of(_PARAM.validate_python(fields), result)
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
        return _PARAM.validate_python(definition)
    except ValidationError as error:
        raise ParamError(f"Param [{name}] cannot be read: {error.errors()[0]['msg']}", param=name) from error
