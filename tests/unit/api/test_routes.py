"""The documentation and the policies of all routes."""

import subprocess
import sys
from pathlib import Path

import pytest
from fastapi.routing import APIRoute  # noqa: TID253 - what is looked at

from calve.api import access
from calve.api.app import routers
from calve.api.routes import check_policies
from calve.errors import SettingsInvalid

ROOT = Path(__file__).parents[3]
ROUTES = [route for router in (*routers(), *access.ROUTERS) for route in router.routes if isinstance(route, APIRoute)]


def test_the_reference_pages_are_up_to_date() -> None:
    """They are made from the declarations: ``make api-docs``."""
    command = [sys.executable, str(ROOT / "scripts" / "api_docs.py"), "--check"]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (said.returncode, said.stderr) == (0, "")


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
