"""The params of a step in canonical form, as nodes with their positions."""

from dataclasses import dataclass
from typing import Any

from calve.definition.document import Node, entries, entry, text
from calve.definition.model import ParamType
from calve.definition.step_types.step_type import DYNAMIC, StepType


def is_dynamic(value: object) -> bool:
    """Return whether a value is a text with a reference, known only when the step runs."""
    return isinstance(value, str) and "$" in value.replace("$$", "")


@dataclass(frozen=True, slots=True)
class Given:
    """A param as it was written."""

    node: Node
    type: ParamType | None
    """None if it is malformed, which other checks report."""
    value: Node | None
    """Its literal, if it has one."""

    @property
    def is_known(self) -> bool:
        """Return whether its value is known before the step runs."""
        return self.type is not None and self.value is not None and not is_dynamic(self.value.value)

    def inside(self) -> "dict[str, Given]":
        """Return the params inside a map."""
        match self.type:
            case ParamType.MAP:
                return {name: given(item) for name, item in entries(self.value).items()}
            case ParamType.STRING_MAP:
                return {name: Given(item, ParamType.STRING, item) for name, item in entries(self.value).items()}
            case _:
                return {}

    def plain(self) -> Any:
        """Return the plain value, with ``DYNAMIC`` for each part that is not known yet."""
        if self.value is None or is_dynamic(self.value.value):
            return DYNAMIC
        match self.type:
            case ParamType.MAP | ParamType.STRING_MAP:
                return {name: item.plain() for name, item in self.inside().items()}
            case _:
                plain = self.value.plain()
                return [DYNAMIC if is_dynamic(item) else item for item in plain] if isinstance(plain, list) else plain


_TYPES = {kind.value: kind for kind in ParamType}


def given(node: Node) -> Given:
    """Return a param as it was written."""
    parts = entries(node)
    name = text(parts.get("type"))
    known = _TYPES.get(name or "")
    value = parts.get("value")
    return Given(node, known, None if value is None or value.value is None else value)


def params(step: Node) -> dict[str, Given]:
    """Return the params of a step."""
    return {name: given(node) for name, node in entries(entry(step, "params")).items()}


def fields(step: Node, step_type: StepType) -> dict[str, Given]:
    """Return the entries of the config map of a step."""
    config = params(step).get(step_type.config or "")
    return config.inside() if config else {}
