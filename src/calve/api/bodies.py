"""What requests hold; what they hold besides is ignored, as Maestro does."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from calve.engine.model import Initiator

RequestId = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[\x21-\x7e]+$")]


class _Body(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class StartRequest(_Body):
    """A start of a workflow."""

    request_id: RequestId | None = None
    """Names the request: repeated, it is the same instance."""
    run_params: dict[str, Any] = {}
    """Params for this run: definitions, as in Maestro, or plain values."""
    runtime_tags: list[str | dict[str, Any]] = []
    persist_failed_run: bool = False

    def as_start(self, user: str) -> dict[str, Any]:
        """Return what the engine is asked for."""
        plain, defined = split_params(self.run_params)
        return {
            "params": plain,
            "definitions": defined,
            "request_id": self.request_id,
            "tags": tuple(tag if isinstance(tag, str) else str(tag.get("name", "")) for tag in self.runtime_tags),
            "persist_failed_run": self.persist_failed_run,
            "initiator": Initiator(user=user),
        }


def split_params(given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Tell plain values from definitions: those are objects with a type and a value or an expression."""
    defined = {name: value for name, value in given.items() if _is_definition(value)}
    return {name: value for name, value in given.items() if name not in defined}, defined


def _is_definition(value: Any) -> bool:
    return isinstance(value, dict) and "type" in value and ("value" in value or "expression" in value)
