"""The lines that the middleware writes into the audit log."""

import logging
from collections.abc import Iterable
from typing import Any

from starlette.types import Message, Scope, Send

from calve.access import ANONYMOUS, Act, Authenticator, Permission, Principal, who
from calve.api.access.requests import RequestInfo
from calve.api.routes import policy_of
from calve.api.threads import in_thread
from calve.errors import CalveError
from calve.operations import Asked

_LOG = logging.getLogger(__name__)
_SIZE = 200
_FAILED = 400
_REFUSED = frozenset({401, 403})
_CHANGING = frozenset({Permission.RUN, Permission.EDIT, Permission.ADMINISTER})
_STARTS = ("/actions/start", "/actions/start-batch")


def audited(send: Send, scope: Scope, principal: Principal, info: RequestInfo, authenticator: Authenticator) -> Send:
    """Record what a known caller changed or was refused, before the response is sent."""
    if not info.changes or principal == ANONYMOUS:
        return send

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start" and _is_notable(scope, info, message["status"]):
            await in_thread(
                _note, authenticator, _act(scope, principal, info, message["status"], authenticator.clock())
            )
        await send(message)

    return sending


def _is_notable(scope: Scope, info: RequestInfo, status: int) -> bool:
    """Tell whether to record a request; starts are not recorded, because instances have the name of their initiator."""
    if status in _REFUSED or scope["state"]["asked"]:
        return True
    route = scope.get("route")
    policy = policy_of(route) if route is not None else None
    return policy is not None and policy.permission in _CHANGING and not info.path.endswith(_STARTS)


def _act(scope: Scope, principal: Principal, info: RequestInfo, status: int, now: int) -> Act:
    own = getattr(scope.get("route"), "operation_id", None) or info.method
    action, path = scope["state"].get("performed", (own, info.path))  # a form names its operation
    asked: list[Asked] = scope["state"]["asked"]
    detail: dict[str, Any] = {"status": status}
    if asked:
        detail["asked"] = [f"{one.permission} {one.workflow_id}" for one in asked]
    return Act(now, who(principal), action, path[:_SIZE], info.source, _result(status, asked), detail)


def _result(status: int, asked: Iterable[Asked]) -> str:
    if status in _REFUSED or not all(one.is_allowed for one in asked):
        return "denied"
    return "ok" if status < _FAILED else "failed"


def _note(authenticator: Authenticator, act: Act) -> None:
    try:
        authenticator.state.append(act)
    except CalveError as error:
        _LOG.error("The audit log cannot be written: %s", error.message)
