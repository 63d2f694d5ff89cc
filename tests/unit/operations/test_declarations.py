"""What follows from the declaration of an operation."""

import inspect
import re
from typing import Any, get_type_hints

import pytest

from calve.access import LOOPBACK, Permission, Principal, PrincipalKind, Role
from calve.capture import CHANGES
from calve.client import Client
from calve.definition.model import DATA_OPERATIONS, Properties
from calve.errors import Forbidden
from calve.operations import Caller, Operation, Operations, Place, declared
from calve.operations.captures import CaptureRequest
from calve.operations.requests import PropertiesRequest

ALL = [one for _, one in declared()]


@pytest.mark.parametrize("operation", ALL, ids=lambda one: one.id)
def test_an_operation_is_whole(operation: Operation) -> None:
    """It says what it does, every argument has a place, and its scope can be checked."""
    assert operation.doc.endswith(".")
    named = set(re.findall(r"{(\w+)(?::path)?}", operation.path))
    assert named == {one.name for one in operation.parameters if one.place is Place.PATH}
    fields = {one.name for one in operation.parameters if one.place is Place.FIELD}
    assert operation.model is None or fields <= set(operation.model.model_fields)
    if operation.policy.scope == "workflow":
        assert "workflow_id" in named
    if operation.is_read:
        assert operation.policy.permission in {
            Permission.READ,
            Permission.LOGS,
            Permission.SIGNED_IN,
            Permission.ADMINISTER,
            Permission.AUDIT,
        }


def test_ids_are_unique() -> None:
    """They are names in OpenAPI and GraphQL."""
    ids = [one.id for one in ALL]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("operation", ALL, ids=lambda one: one.id)
def test_a_client_has_the_same_methods(operation: Operation) -> None:
    """Local and remote are the same call, with the same types."""
    mine, theirs = getattr(Operations, operation.name), getattr(Client, operation.name)
    assert inspect.signature(mine) == inspect.signature(theirs)
    assert "return" in get_type_hints(mine)


def test_who_lacks_the_permission_is_refused_before_anything_is_done() -> None:
    """In one place, whatever the operation; refused changes are noted for the audit log."""
    nobody: Any = None
    caller = Caller(nobody, Principal("ann", PrincipalKind.USER, {"team": Role.VIEWER}))
    with pytest.raises(Forbidden):
        Operations(caller).stop_workflow("team.w")
    with pytest.raises(Forbidden):
        Operations(caller).users()
    with pytest.raises(Forbidden):
        Operations(caller).limit_tag("gold", 3)
    assert [(one.permission, one.workflow_id, one.is_allowed) for one in caller.asked] == [
        (Permission.RUN, "team.w", False),
        (Permission.EDIT, "", False),
    ]


def test_a_refusal_says_which_permission_is_missing() -> None:
    """Also if it is missing in every namespace."""
    nobody: Any = None
    caller = Caller(nobody, Principal("ann", PrincipalKind.USER, {"team": Role.VIEWER}))
    with pytest.raises(Forbidden, match=r"^ann may not run in team\.$"):
        Operations(caller).stop_workflow("team.w")
    with pytest.raises(Forbidden, match=r"^ann may not run in any namespace\.$"):
        Operations(caller).capture_changes(CaptureRequest(tables=["db.t"], consumer="team.w"))


def test_what_needs_no_services_is_answered() -> None:
    """By the function itself."""
    nobody: Any = None
    assert "SUCCEEDED" in Operations(Caller(nobody, LOOPBACK)).instance_actions()


def test_a_request_changes_every_property() -> None:
    """But for tags, which have operations of their own; the others of its fields reset one."""
    asked = {name for name in PropertiesRequest.model_fields if not name.startswith("reset_")}
    assert asked == Properties.model_fields.keys() - {"tags"}


def test_definitions_and_captures_name_the_same_operations() -> None:
    """Neither of the two packages may import the other."""
    assert tuple(CHANGES) == DATA_OPERATIONS
