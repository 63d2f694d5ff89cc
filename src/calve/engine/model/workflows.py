"""Stored workflows and their versions. Times are milliseconds, as in Maestro."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WorkflowRecord:
    """A workflow, with what is the same for all versions."""

    workflow_id: str
    active_version: int | None
    latest_version: int
    properties: Json
    """The latest snapshot of its properties, as JSON of ``calve.definition``'s ``Properties``."""
    created_at: int
    modified_at: int
    activated_at: int | None = None
    """When the active version was activated."""


@dataclass(frozen=True, slots=True)
class VersionRecord:
    """One version of a workflow; never changes."""

    workflow_id: str
    version_id: int
    definition: Json
    """The whole pushed definition, as JSON of ``calve.definition``'s ``Definition``."""
    author: str
    created_at: int
