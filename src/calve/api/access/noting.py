"""What the gate writes into the audit log."""

import logging
from collections.abc import Iterable
from typing import Any

from starlette.types import Message, Scope, Send

from calve.access import ANONYMOUS, Act, Door, Permission, Principal, who
from calve.api.access.visits import Visit
from calve.api.callers import Asked
from calve.api.policy import policy_of
from calve.api.threads import in_thread
from calve.errors import CalveError

_LOG = logging.getLogger(__name__)
_SIZE = 200
_FAILED = 400
_REFUSED = frozenset({401, 403})
_CHANGING = frozenset({Permission.RUN, Permission.EDIT, Permission.ADMINISTER})
_STARTS = ("/actions/start", "/actions/start-batch")


def audited(send: Send, scope: Scope, principal: Principal, visit: Visit, door: Door) -> Send:
    """Write down what was changed, and what was refused to somebody known, before he gets the answer."""
    if not visit.changes or principal == ANONYMOUS:
        return send

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start" and _is_notable(scope, visit, message["status"]):
            await in_thread(_note, door, _act(scope, principal, visit, message["status"], door.clock()))
        await send(message)

    return sending


def _is_notable(scope: Scope, visit: Visit, status: int) -> bool:
    """Tell what goes into the audit log: not starts, of which the instances themselves say who asked for them."""
    if status in _REFUSED or scope["state"]["asked"]:
        return True
    route = scope.get("route")
    policy = policy_of(route) if route is not None else None
    return policy is not None and policy.permission in _CHANGING and not visit.path.endswith(_STARTS)


def _act(scope: Scope, principal: Principal, visit: Visit, status: int, now: int) -> Act:
    action = getattr(scope.get("route"), "operation_id", None) or visit.method
    asked: list[Asked] = scope["state"]["asked"]
    detail: dict[str, Any] = {"status": status}
    if asked:
        detail["asked"] = [f"{one.permission} {one.workflow_id}" for one in asked]
    return Act(now, who(principal), action, visit.path[:_SIZE], visit.source, _result(status, asked), detail)


def _result(status: int, asked: Iterable[Asked]) -> str:
    if status in _REFUSED or not all(one.is_allowed for one in asked):
        return "denied"
    return "ok" if status < _FAILED else "failed"


def _note(door: Door, act: Act) -> None:
    try:
        door.state.append(act)
    except CalveError as error:
        _LOG.error("The audit log cannot be written: %s", error.message)
