"""Documents in Maestro's format: the fields of each, in its order and with its names.

What calve adds to a document, what it leaves out of it and why, and what only the document of one thing has and not
that in a list, is declared beside the fields. docs/reference/maestro-documents.md is checked against them, and OpenAPI
describes the same classes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

Json = Mapping[str, Any]
User = str | Json
"""A name, or an object if there is more than a name."""
API = "/api/v3"
"""The prefix of a server's paths, as in Maestro."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document in Maestro's format; its JSON omits fields without a value."""

    ADDED: ClassVar[Mapping[str, str]] = {}
    """Fields that only calve has, and what they mean."""
    LEFT_OUT: ClassVar[Mapping[str, str]] = {}
    """Fields that only Maestro has, and why calve does not."""
    ALONE: ClassVar[frozenset[str]] = frozenset()
    """Fields that cost a query: they are in single documents, but not in lists."""

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of its fields, in order."""
        return tuple(field.name for field in fields(cls))

    def present(self) -> dict[str, Any]:
        """Return its fields that have a value, in order."""
        found = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in found if value is not None}

    def as_json(self) -> dict[str, Any]:
        """Return it in JSON's types."""
        return {name: _plain(value) for name, value in self.present().items()}


def _plain(value: Any) -> Any:
    match value:
        case str() | int():
            return value  # most are, and to tell that something is no mapping takes long
        case Document():
            return value.as_json()
        case tuple():
            return [_plain(item) for item in value]
        case Mapping() if isinstance(next(iter(value.values()), None), Document):
            return {name: item.as_json() for name, item in value.items()}
        case _:
            return value


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvent(Document):
    """A message about a run or a step."""

    timestamp: int
    type: str = "LOG"
    level: str = "INFO"
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusEvent(Document):
    """A change of the status of a run or a step."""

    timestamp: int
    type: str = "STATUS"
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionEvent(Document):
    """An action of a user."""

    LEFT_OUT: ClassVar[Mapping[str, str]] = {"info": "the group of a permit's holder, which calve does not have"}

    timestamp: int
    type: str = "ACTION"
    action: str
    author: User
    message: str
    reason: str | None = None


Timeline = tuple[LogEvent | StatusEvent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowTimelineEvent(Document):
    """A change of a workflow."""

    author: User
    log: str
    timestamp: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowTimeline(Document):
    """The changes of a workflow, newest first."""

    workflow_id: str
    timeline_events: tuple[WorkflowTimelineEvent, ...]
