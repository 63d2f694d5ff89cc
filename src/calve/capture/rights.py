"""Who calls captures, and which consumers and tables they may use. Pure.

A consumer belongs to the namespace of its workflow: ``sales.etl/capture`` to ``sales``. The settings grant tables to
namespaces. ``Captures`` checks these rights before it does anything, so the same rules apply to all callers.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from calve.errors import CaptureMissing, Forbidden
from calve.namespaces import ROOT, is_shared, namespace_of, owns, workflow_of


class ConsumerRight(StrEnum):
    """What may be done with a consumer; the values are those of permissions."""

    READ = "read"
    """Read its checkpoints and captures."""
    RUN = "run"
    """Capture for it, commit and abandon."""
    EDIT = "edit"
    """Move its checkpoint by hand."""


class CaptureCaller(Protocol):
    """A caller of captures."""

    @property
    def own_consumer(self) -> str:
        """The consumer that represents the caller itself; empty, and so in no namespace, if there is none."""
        ...

    def may(self, permission: ConsumerRight, consumer: str) -> bool:
        """Tell whether the caller has a permission on a consumer."""
        ...

    def require(self, permission: ConsumerRight, consumer: str) -> None:
        """Check that the caller has a permission on a consumer.

        Raises:
            AccessError: they lack it.
        """
        ...

    def namespace(self, permission: ConsumerRight, consumer: str) -> str:
        """Return the namespace whose tables they may use for a consumer; ``ROOT`` is all tables."""
        ...

    def namespaces(self, permission: ConsumerRight) -> tuple[str, ...]:
        """Return the namespaces whose consumers they have that permission on, which includes those below."""
        ...


class Local:
    """A caller with direct access to the state database: the command line of a project, the Python API, maintenance."""

    own_consumer = ""

    def may(self, permission: ConsumerRight, consumer: str) -> bool:  # noqa: ARG002 - everything
        """Return true: nothing is refused."""
        return True

    def require(self, permission: ConsumerRight, consumer: str) -> None:
        """Refuse nothing."""

    def namespace(self, permission: ConsumerRight, consumer: str) -> str:  # noqa: ARG002 - everything
        """Return the root namespace: all tables."""
        return ROOT

    def namespaces(self, permission: ConsumerRight) -> tuple[str, ...]:  # noqa: ARG002 - everything
        """Return the root namespace: all consumers."""
        return (ROOT,)


@dataclass(frozen=True, slots=True)
class OfWorkflow:
    """A step or a trigger of a workflow: it has the consumers of its namespace, and of those below it."""

    workflow_id: str
    has_shared: bool = False
    """Whether consumers without a namespace, such as ``daily``, are allowed: if all namespaces belong to the same
    people."""

    @property
    def own_consumer(self) -> str:
        """The workflow itself."""
        return self.workflow_id

    def may(self, permission: ConsumerRight, consumer: str) -> bool:  # noqa: ARG002 - a step does all of it
        """Tell whether a consumer is in the workflow's namespace."""
        return owns(self.workflow_id, consumer) or (self.has_shared and is_shared(consumer))

    def require(self, permission: ConsumerRight, consumer: str) -> None:
        """Refuse a consumer of another namespace.

        Raises:
            Forbidden: it is one.
        """
        if not self.may(permission, consumer):
            raise Forbidden(
                f"{self.workflow_id} may not use the consumer {consumer}: it belongs to another namespace.",
                remedy="Leave consumer out, or name one of the workflow's own namespace: "
                f"{_example(self.workflow_id, consumer)}.",
            )

    def namespace(self, permission: ConsumerRight, consumer: str) -> str:  # noqa: ARG002 - the same for all
        """Return the workflow's own namespace."""
        return namespace_of(self.workflow_id)

    def namespaces(self, permission: ConsumerRight) -> tuple[str, ...]:  # noqa: ARG002 - the same for all
        """Return the workflow's own namespace."""
        return (namespace_of(self.workflow_id),)


def no_capture(capture_id: str) -> CaptureMissing:
    """Return the one answer for a capture that does not exist and for one that the caller may not see."""
    return CaptureMissing(f"There is no capture {capture_id!r}.", capture_id=capture_id)


def _example(workflow_id: str, consumer: str) -> str:
    return f"{namespace_of(workflow_id)}.{workflow_of(consumer).rpartition('.')[2] or 'name'}"
