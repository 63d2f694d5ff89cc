"""Who asks, and what he may ask for."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated

from fastapi import Depends, Request
from starlette.requests import HTTPConnection

from calve.access import ANONYMOUS, ROOT, Permission, Principal, allows, namespace_of, namespaces
from calve.api.services import Services
from calve.api.threads import Deadline
from calve.capture import Captures, ConsumerRight
from calve.engine import Address, Engine, Initiator
from calve.engine.addresses import find
from calve.engine.views.sources import MayRead, reads_all
from calve.errors import Forbidden, RequestInvalid, Unauthenticated, WorkflowMissing
from calve.namespaces import workflow_of
from calve.triggers import TriggerState
from calve.triggers.signals import Signals


@dataclass(frozen=True, slots=True)
class Asked:
    """A change that a request asks for."""

    permission: Permission
    workflow_id: str
    is_allowed: bool


async def _always() -> bool:
    return True


_LOOKING = frozenset({Permission.READ, Permission.LOGS})


@dataclass(frozen=True, slots=True)
class Caller:
    """One request: who asks, and whom to ask."""

    services: Services
    principal: Principal
    asked: list[Asked] = field(default_factory=list)
    """What the request was let do, or refused, beside what its route's policy says; for the audit log."""
    holds: Callable[[], Awaitable[bool]] = _always
    """Tells whether the caller is still who he was, and may still do the same; for what goes on for long."""
    deadline: Deadline = field(default_factory=Deadline)
    """Until when the request is worked on."""

    @property
    def engine(self) -> Engine:
        """The engine."""
        return self.services.engine

    @property
    def captures(self) -> Captures:
        """The captures, as far as the caller may use them.

        Raises:
            RequestInvalid: this server has none.
        """
        if self.services.captures is None:
            raise RequestInvalid("This server knows no lake.")
        return self.services.captures.for_caller(CaptureRights(self))

    @property
    def signals(self) -> Signals:
        """The signals.

        Raises:
            RequestInvalid: this server has none.
        """
        if self.services.signals is None:
            raise RequestInvalid("This server knows no signals.")
        return self.services.signals

    @property
    def triggers(self) -> TriggerState:
        """The triggers.

        Raises:
            RequestInvalid: this server has none.
        """
        if self.services.triggers is None:
            raise RequestInvalid("This server knows no triggers.")
        return self.services.triggers

    def changed(self, table: str) -> int:
        """Let triggers that the caller may run look at a table now; return how many watch it."""
        return self.services.changed(table, partial(self.may, Permission.RUN))

    @property
    def is_ending(self) -> bool:
        """Tell whether the server is about to end."""
        return self.services.ending.is_set()

    @property
    def name(self) -> str:
        """Who it is, for the records."""
        return self.principal.name

    @property
    def initiator(self) -> Initiator:
        """Who starts something by this request, and in which namespaces he may start what its params name."""
        granted = namespaces(self.principal, Permission.RUN)
        return Initiator(user=self.name, within=None if granted == (ROOT,) else granted)

    @property
    def may_read(self) -> MayRead:
        """What tells whether the caller may read a workflow."""
        is_everywhere = allows(self.principal, Permission.READ, ROOT)
        return reads_all if is_everywhere else partial(self.may, Permission.READ)

    def may(self, permission: Permission, workflow_id: str) -> bool:
        """Tell whether the caller may do that with a workflow."""
        return allows(self.principal, permission, namespace_of(workflow_id))

    def require(self, permission: Permission, workflow_id: str) -> None:
        """Let the caller do that with a workflow, or refuse.

        Raises:
            Unauthenticated: we do not know who it is.
            Forbidden: it is not allowed.
        """
        if permission not in _LOOKING:
            self.asked.append(Asked(permission, workflow_id, is_allowed=self.may(permission, workflow_id)))
        require(self.principal, permission, namespace_of(workflow_id))

    def require_inside(self, permission: Permission, address: Address) -> None:
        """Let the caller do that with a step, or refuse: its path may lead into subworkflows of other namespaces.

        Raises:
            Forbidden: it is not allowed in one of them.
        """
        if len(address.path) > 1:
            with suppress(WorkflowMissing, RequestInvalid):  # there is nothing there: what is asked for says so
                find(self.engine.state, address, lambda run: self.require(permission, run.owner_workflow))


@dataclass(frozen=True, slots=True)
class CaptureRights:
    """What a caller may do with consumers and tables: what they may do with the workflows of a consumer's namespace."""

    call: Caller

    @property
    def own_consumer(self) -> str:
        """None: a person keeps no place in a table."""
        return ""

    def may(self, permission: ConsumerRight, consumer: str) -> bool:
        """Tell whether they may do that with a consumer."""
        return self.call.may(Permission(permission), workflow_of(consumer))

    def require(self, permission: ConsumerRight, consumer: str) -> None:
        """Let them do that with a consumer, or refuse.

        Raises:
            Unauthenticated, Forbidden: they may not.
        """
        self.call.require(Permission(permission), workflow_of(consumer))

    def namespace(self, permission: ConsumerRight, consumer: str) -> str:
        """Return the consumer's namespace; who may do that everywhere may use all tables."""
        is_everywhere = allows(self.call.principal, Permission(permission), ROOT)
        return ROOT if is_everywhere else namespace_of(workflow_of(consumer))


def require(principal: Principal, permission: Permission, namespace: str) -> None:
    """Let somebody do that in a namespace, or refuse.

    Raises:
        Unauthenticated: we do not know who it is.
        Forbidden: it is not allowed.
    """
    if allows(principal, permission, namespace):
        return
    if principal == ANONYMOUS:
        raise Unauthenticated
    where = f" in {namespace}" if namespace else ""
    raise Forbidden(f"{principal.name} may not {permission.value}{where}.")


def principal_of(request: HTTPConnection) -> Principal:
    """Return who asks, as a middleware has found out; nobody, if there is none."""
    found = getattr(request.state, "principal", ANONYMOUS)
    assert isinstance(found, Principal)  # noqa: S101 - only our own middleware writes it
    return found


def caller_of(request: HTTPConnection) -> Caller:
    """Return the request, or the WebSocket, as routes know it."""
    about = request.state
    asked, holds = getattr(about, "asked", []), getattr(about, "holds", _always)
    return Caller(request.app.state.services, principal_of(request), asked, holds)


async def _caller(request: Request) -> Caller:
    return caller_of(request)


Call = Annotated[Caller, Depends(_caller)]
"""The request, for a route."""
