"""What all models of a definition share."""

from typing import Any

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer


class Model(BaseModel):
    """A frozen value that refuses unknown fields; what is at its default is not written."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_serializer(mode="wrap")
    def _without_defaults(self, inner: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields = type(self).model_fields
        return {
            name: value
            for name, value in inner(self).items()
            # The type tells a reader which model it is, so it is written even where it is the default.
            if name == "type" or getattr(self, name) != fields[name].get_default(call_default_factory=True)
        }

    def as_json(self) -> dict[str, Any]:
        """Return the value in JSON's types."""
        return self.model_dump(mode="json")
