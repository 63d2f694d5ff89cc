"""Parameter definitions: a literal or an expression, with a type and a mode."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictFloat, StrictInt, TypeAdapter, model_validator
from pydantic_core import PydanticCustomError

from calve.definition.model.fields import Model, Tags


class ParamType(StrEnum):
    """The types of parameters: Maestro's ten, and SECRET."""

    STRING = "STRING"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    BOOLEAN = "BOOLEAN"
    STRING_MAP = "STRING_MAP"
    MAP = "MAP"
    STRING_ARRAY = "STRING_ARRAY"
    LONG_ARRAY = "LONG_ARRAY"
    DOUBLE_ARRAY = "DOUBLE_ARRAY"
    BOOLEAN_ARRAY = "BOOLEAN_ARRAY"
    SECRET = "SECRET"  # noqa: S105 - the name of a type


class ParamMode(StrEnum):
    """When a parameter may still be changed, from always to never."""

    MUTABLE = "MUTABLE"
    MUTABLE_ON_START_RESTART = "MUTABLE_ON_START_RESTART"
    MUTABLE_ON_START = "MUTABLE_ON_START"
    IMMUTABLE = "IMMUTABLE"
    CONSTANT = "CONSTANT"

    @property
    def strictness(self) -> int:
        """Return the rank of the mode: the higher, the stricter."""
        return list(ParamMode).index(self)


class InternalMode(StrEnum):
    """How the parameters of the system and of templates get their values."""

    REQUIRED = "REQUIRED"
    OPTIONAL = "OPTIONAL"
    PROVIDED = "PROVIDED"
    RESERVED = "RESERVED"


Long = Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)]


class _Param(Model):
    expression: str | None = None
    mode: ParamMode | None = None
    internal_mode: InternalMode | None = None
    tags: Tags = ()
    validator: Any = None
    meta: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _is_defined_once(self) -> "_Param":
        value = getattr(self, "value", None)
        if value is not None and self.expression is not None:
            raise PydanticCustomError("param_twice", "has both a value and an expression")
        return self

    @property
    def is_literal(self) -> bool:
        """Tell whether the parameter is a literal and not an expression."""
        return self.expression is None


class StringParam(_Param):
    """Text; ``$name`` and ``${name}`` in it are replaced."""

    type: Literal[ParamType.STRING] = ParamType.STRING
    value: str | None = None


class LongParam(_Param):
    """A whole number of 64 bits."""

    type: Literal[ParamType.LONG] = ParamType.LONG
    value: Long | None = None


class DoubleParam(_Param):
    """A floating-point number."""

    type: Literal[ParamType.DOUBLE] = ParamType.DOUBLE
    value: StrictFloat | None = None


class BooleanParam(_Param):
    """True or false."""

    type: Literal[ParamType.BOOLEAN] = ParamType.BOOLEAN
    value: StrictBool | None = None


class StringMapParam(_Param):
    """A map from names to texts; references in keys and texts are replaced."""

    type: Literal[ParamType.STRING_MAP] = ParamType.STRING_MAP
    value: dict[str, str] | None = None


class MapParam(_Param):
    """A map from names to parameters."""

    type: Literal[ParamType.MAP] = ParamType.MAP
    value: "dict[str, Param] | None" = None


class StringArrayParam(_Param):
    """A list of texts; references in them are replaced."""

    type: Literal[ParamType.STRING_ARRAY] = ParamType.STRING_ARRAY
    value: list[str] | None = None


class LongArrayParam(_Param):
    """A list of whole numbers."""

    type: Literal[ParamType.LONG_ARRAY] = ParamType.LONG_ARRAY
    value: list[Long] | None = None


class DoubleArrayParam(_Param):
    """A list of floating-point numbers."""

    type: Literal[ParamType.DOUBLE_ARRAY] = ParamType.DOUBLE_ARRAY
    value: list[StrictFloat] | None = None


class BooleanArrayParam(_Param):
    """A list of booleans."""

    type: Literal[ParamType.BOOLEAN_ARRAY] = ParamType.BOOLEAN_ARRAY
    value: list[StrictBool] | None = None


class SecretParam(_Param):
    """The name of a secret; its text is fetched when a step runs, and never shown or stored."""

    type: Literal[ParamType.SECRET] = ParamType.SECRET
    value: str | None = None


Param = Annotated[
    StringParam
    | LongParam
    | DoubleParam
    | BooleanParam
    | StringMapParam
    | MapParam
    | StringArrayParam
    | LongArrayParam
    | DoubleArrayParam
    | BooleanArrayParam
    | SecretParam,
    Field(discriminator="type"),
]
Params = dict[str, Param]
PARAM: TypeAdapter[Param] = TypeAdapter(Param)
"""Validates one param given in JSON's types."""
