"""All routes, held against their documentation and their policies."""

from pathlib import Path

import pytest
from fastapi.routing import APIRoute  # noqa: TID253 - what is looked at

from calve.api import access
from calve.api.app import routers
from calve.api.routes import check_policies, policy_of
from calve.errors import SettingsInvalid

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "rest.md"
ROUTES = [route for router in (*routers(), *access.ROUTERS) for route in router.routes if isinstance(route, APIRoute)]


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.operation_id)
def test_every_route_is_documented(route: APIRoute) -> None:
    """With its method, its path, its policy and what it does."""
    policy = policy_of(route)
    assert policy is not None
    path = route.path.replace(":path", "").removeprefix("/api/v3")
    rule = f"| {policy.permission.value} {policy.scope.value} |"
    (method,) = route.methods or {""}
    lines = [
        line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith(f"| {method} | `{path}`")
    ]
    assert len(lines) == 1, f"{method} {path} is not in {PAGE.name}"
    assert rule in lines[0], f"{method} {path} takes {rule}"
    said = (route.description or "").partition("\n")[0].replace("``", "`")
    assert lines[0].endswith(f"| {said} |"), f"{method} {path} is described as: {said}"


def test_names_of_operations_are_unique() -> None:
    """Clients are made of them."""
    names = [route.operation_id for route in ROUTES]
    assert len(set(names)) == len(names)


def test_a_route_without_a_policy_is_refused() -> None:
    """B.4-48: nobody can use a route by accident."""

    def nothing() -> None:
        """Do nothing."""

    with pytest.raises(SettingsInvalid, match="/bare"):
        check_policies([*ROUTES, APIRoute("/bare", nothing)])
