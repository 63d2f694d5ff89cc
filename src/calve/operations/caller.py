"""The caller of an operation: who they are, what they may do, and the services that carry it out."""

from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from calve.access import Actor, Permission, Principal, allows, namespaces
from calve.errors import RequestInvalid, WorkflowMissing
from calve.namespaces import ROOT, namespace_of, workflow_of
from calve.operations.policy import require

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import timedelta

    from calve.access import Accounts, SealedSecret
    from calve.alerts import MessageStatus, StoredMessage
    from calve.capture import Captures, Collected, ConsumerRight
    from calve.capture.inspection import Tables
    from calve.engine import Address, Engine, Initiator
    from calve.engine.views import MayRead
    from calve.lineage import EdgeState
    from calve.triggers import TriggerState
    from calve.triggers.signals import Signals

_T = TypeVar("_T")
_READING = frozenset({Permission.READ, Permission.LOGS})


class Administration(Protocol):
    """The administration of a project: alerts, secrets, old records, garbage."""

    @property
    def instances_kept(self) -> int | None:
        """How many seconds instances are kept after their end; None: forever."""

    @property
    def is_worked(self) -> bool:
        """Whether a worker is alive, so that started instances run."""

    def alerts(self, status: "MessageStatus | None", limit: int) -> "Sequence[StoredMessage]":
        """Return alerts, newest first."""

    def test_channel(self, channel: str, to: "Sequence[str]") -> str:
        """Send a test message on a channel; return its id."""

    def secrets(self) -> "Sequence[SealedSecret]":
        """Return the secrets of the encrypted table."""

    def set_secret(self, name: str, text: str, actor: Actor) -> None:
        """Store a secret in the encrypted table."""

    def delete_secret(self, name: str, actor: Actor) -> None:
        """Remove a secret from the encrypted table."""

    def prune(self, *, is_dry_run: bool) -> dict[str, Any]:
        """Delete records older than their retention, or only count them."""

    def set_valid_through(self, table: str, time: str) -> int:
        """Store up to which time a table is complete; return it in milliseconds."""

    def collect_garbage(self, grace: "timedelta") -> "tuple[Sequence[Collected], Sequence[object]]":
        """Delete what captures and jobs left behind; return the captures and the branches."""


class Services(Protocol):
    """The services that carry out operations; a service that is None is not available."""

    @property
    def engine(self) -> "Engine":
        """The engine."""

    @property
    def captures(self) -> "Captures | None":
        """Captures, where there is a lake."""

    @property
    def tables(self) -> "Tables | None":
        """Tables, where there is a lake."""

    @property
    def lineage(self) -> "EdgeState | None":
        """Which steps read and wrote which tables."""

    @property
    def signals(self) -> "Signals | None":
        """Announced signals."""

    @property
    def triggers(self) -> "TriggerState | None":
        """The triggers of active versions."""

    @property
    def accounts(self) -> "Accounts | None":
        """Users, tokens and the audit log."""

    @property
    def administration(self) -> "Administration | None":
        """The administration of the project."""

    @property
    def changed(self) -> "Callable[[str, Callable[[str], bool]], int]":
        """Let the triggers of some workflows check a table now; return how many watch it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A permission that an operation requires in addition to that of its policy."""

    permission: Permission
    workflow_id: str
    is_allowed: bool


@dataclass(frozen=True, slots=True)
class Caller:
    """Who performs an operation, and the services that carry it out."""

    services: Services
    principal: Principal
    source: str = "cli"
    """The origin of the call: the address of a request, or the command line."""
    asked: list[Asked] = field(default_factory=list)
    """Which changes were allowed or refused, for the audit log."""

    @property
    def engine(self) -> "Engine":
        """The engine."""
        return self.services.engine

    @property
    def captures(self) -> "Captures":
        """The captures that the caller may use."""
        return _present(self.services.captures, "has no lake").for_caller(CaptureRights(self))

    @property
    def tables(self) -> "Tables":
        """The tables that the caller may see."""
        return _present(self.services.tables, "has no lake").for_caller(CaptureRights(self))

    @property
    def lineage(self) -> "EdgeState":
        """Which steps read and wrote which tables."""
        return _present(self.services.lineage, "keeps no lineage")

    @property
    def signals(self) -> "Signals":
        """The signals."""
        return _present(self.services.signals, "has no signals")

    @property
    def triggers(self) -> "TriggerState":
        """The triggers."""
        return _present(self.services.triggers, "has no triggers")

    @property
    def accounts(self) -> "Accounts":
        """Users, tokens and the audit log."""
        return _present(self.services.accounts, "has no users")

    @property
    def administration(self) -> "Administration":
        """The administration of the project."""
        return _present(self.services.administration, "cannot be administered")

    @property
    def actor(self) -> Actor:
        """The caller, for the audit log."""
        return Actor(self.principal, self.source)

    def changed(self, table: str) -> int:
        """Let the triggers that the caller may run check a table now; return how many watch it."""
        return self.services.changed(table, partial(self.may, Permission.RUN))

    @property
    def name(self) -> str:
        """The caller's name, for the records."""
        return self.principal.name

    @property
    def initiator(self) -> "Initiator":
        """Who starts an instance, and in which namespaces its params may name workflows."""
        from calve.engine import Initiator

        granted = namespaces(self.principal, Permission.RUN)
        return Initiator(user=self.name, within=None if granted == (ROOT,) else granted)

    @property
    def may_read(self) -> "MayRead":
        """Whether the caller may read a workflow, as a function."""
        from calve.engine.views import reads_all

        is_everywhere = allows(self.principal, Permission.READ, ROOT)
        return reads_all if is_everywhere else partial(self.may, Permission.READ)

    def may(self, permission: Permission, workflow_id: str) -> bool:
        """Tell whether the caller has a permission for a workflow."""
        return allows(self.principal, permission, namespace_of(workflow_id))

    def require(self, permission: Permission, workflow_id: str) -> None:
        """Refuse a caller who lacks a permission for a workflow; note changes for the audit log.

        Raises:
            Unauthenticated: the caller is not signed in.
            Forbidden: the caller lacks the permission.
        """
        if permission not in _READING:
            self.asked.append(Asked(permission, workflow_id, is_allowed=self.may(permission, workflow_id)))
        require(self.principal, permission, namespace_of(workflow_id))

    def require_inside(self, permission: Permission, address: "Address") -> None:
        """Refuse a caller who lacks a permission for a step, whose path may lead into subworkflows elsewhere.

        Raises:
            Forbidden: the caller lacks it in one of their namespaces.
        """
        from calve.engine import find

        if len(address.path) > 1:
            with suppress(WorkflowMissing, RequestInvalid):  # the operation itself reports what is missing
                find(self.engine.state, address, lambda run: self.require(permission, run.owner_workflow))


def _present(service: _T | None, otherwise: str) -> _T:
    """Return a service.

    Raises:
        RequestInvalid: this server does not have it.
    """
    if service is None:
        raise RequestInvalid(f"This server {otherwise}.")
    return service


@dataclass(frozen=True, slots=True)
class CaptureRights:
    """A caller's permissions for consumers and tables: those for the workflows of the consumer's namespace."""

    call: Caller

    @property
    def own_consumer(self) -> str:
        """None: users have no checkpoint of their own."""
        return ""

    def may(self, permission: "ConsumerRight", consumer: str) -> bool:
        """Tell whether the caller has a permission for a consumer."""
        return self.call.may(Permission(permission), workflow_of(consumer))

    def require(self, permission: "ConsumerRight", consumer: str) -> None:
        """Refuse a caller who lacks a permission for a consumer.

        Raises:
            Unauthenticated, Forbidden: the caller lacks it.
        """
        self.call.require(Permission(permission), workflow_of(consumer))

    def namespace(self, permission: "ConsumerRight", consumer: str) -> str:
        """Return the consumer's namespace; a caller with the permission everywhere may use all tables."""
        is_everywhere = allows(self.call.principal, Permission(permission), ROOT)
        return ROOT if is_everywhere else namespace_of(workflow_of(consumer))

    def namespaces(self, permission: "ConsumerRight") -> tuple[str, ...]:
        """Return the namespaces in which the caller has a permission."""
        return namespaces(self.call.principal, Permission(permission))
