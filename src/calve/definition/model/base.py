"""What all models of a definition share."""

from typing import Any

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer, model_validator

_FIRST = ("id", "name", "type", "value", "expression")
"""What a reader looks for first."""
_LAST = ("transition", "params", "steps")


def _rank(name: str) -> int:
    if name in _FIRST:
        return _FIRST.index(name)
    return len(_FIRST) + (_LAST.index(name) + 1 if name in _LAST else 0)


class Model(BaseModel):
    """A frozen value that refuses unknown fields; what is at its default is not written."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        """Take a null for nothing, as Maestro does."""
        if isinstance(value, dict):
            return {key: item for key, item in value.items() if item is not None or key not in cls.model_fields}
        return value

    @model_serializer(mode="wrap")
    def _without_defaults(self, inner: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields = type(self).model_fields
        written = inner(self)
        return {
            name: written[name]
            for name in sorted(written, key=_rank)
            # The type tells a reader which model it is, so it is written even where it is the default.
            if name == "type" or getattr(self, name) != fields[name].get_default(call_default_factory=True)
        }

    def as_json(self) -> dict[str, Any]:
        """Return the value in JSON's types."""
        return self.model_dump(mode="json")
