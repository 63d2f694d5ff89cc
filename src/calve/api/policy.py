"""The policy of a route: which permission it takes, and where. A route without one is refused."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from fastapi.routing import APIRoute, APIWebSocketRoute
from starlette.requests import HTTPConnection
from starlette.routing import BaseRoute, Mount

from calve.access import ANONYMOUS, ROOT, Permission, allows_somewhere, namespace_of
from calve.api.callers import principal_of, require
from calve.errors import Forbidden, SettingsInvalid, Unauthenticated


class Scope(StrEnum):
    """Where a permission has to hold."""

    WORKFLOW = "workflow"
    """In the namespace of the workflow that the path names."""
    EVERYWHERE = "everywhere"
    """In all namespaces: it is about what belongs to no workflow."""
    SOMEWHERE = "somewhere"
    """In some namespace: the route itself looks at each workflow that it meets."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Who may use a route."""

    permission: Permission
    scope: Scope = Scope.WORKFLOW

    async def __call__(self, request: HTTPConnection) -> None:
        """Let a request or a WebSocket through, or refuse it.

        Raises:
            Unauthenticated: we do not know who it is.
            Forbidden: it is not allowed.
        """
        principal = principal_of(request)
        match self.scope:
            case Scope.WORKFLOW:
                require(principal, self.permission, namespace_of(request.path_params["workflow_id"]))
            case Scope.EVERYWHERE:
                require(principal, self.permission, ROOT)
            case Scope.SOMEWHERE:
                if not allows_somewhere(principal, self.permission):
                    raise (Unauthenticated() if principal == ANONYMOUS else Forbidden())
            case _:
                assert_never(self.scope)


READ = Policy(Permission.READ)
RUN = Policy(Permission.RUN)
EDIT = Policy(Permission.EDIT)
READ_SOMEWHERE = Policy(Permission.READ, Scope.SOMEWHERE)
RUN_SOMEWHERE = Policy(Permission.RUN, Scope.SOMEWHERE)
EDIT_SOMEWHERE = Policy(Permission.EDIT, Scope.SOMEWHERE)
PUBLIC = Policy(Permission.PUBLIC, Scope.EVERYWHERE)
SIGNED_IN = Policy(Permission.SIGNED_IN, Scope.EVERYWHERE)
ADMINISTER = Policy(Permission.ADMINISTER, Scope.EVERYWHERE)


def policy_of(route: BaseRoute) -> Policy | None:
    """Return the policy of a route, if it has one."""
    dependencies = route.dependencies if isinstance(route, APIRoute | APIWebSocketRoute) else ()
    policies = [one.dependency for one in dependencies if isinstance(one.dependency, Policy)]
    return policies[0] if len(policies) == 1 else None


def check_policies(routes: Iterable[BaseRoute]) -> None:
    """Refuse an app with a route that everybody could use because nobody thought of it.

    Raises:
        SettingsInvalid: a route has no policy.
    """
    bare = [getattr(route, "path", repr(route)) for route in _all(routes) if policy_of(route) is None]
    if bare:
        raise SettingsInvalid(
            f"These routes have no policy: {', '.join(bare)}.",
            remedy="Give each one: dependencies=[Depends(Policy(…))].",
        )


def _all(routes: Iterable[BaseRoute]) -> Iterator[BaseRoute]:
    for route in routes:
        if isinstance(route, Mount) and route.routes:
            yield from _all(route.routes)
        else:
            yield route
