"""Forms follow from operations: what they give is checked by the declaration, and so is what they ask for."""

from typing import Any

import pytest

from calve.engine import RunPolicy
from calve.errors import RequestInvalid
from calve.operations import Place
from calve.web.forms import arguments_of, inputs_of, nested, parsed
from calve.web.frame import operations


def _arguments(operation_id: str, body: str) -> dict[str, Any]:
    return arguments_of(operations()[operation_id], parsed(body.encode()))


def test_texts_become_the_types_of_the_parameters() -> None:
    """What a form does not name has its default."""
    given = _arguments("stop_instance", "workflow_id=w&instance_id=7&reason=a+b&csrf=x&next=/")
    assert given == {"workflow_id": "w", "instance_id": 7, "reason": "a b"}
    assert _arguments("stop_instance", "workflow_id=w&instance_id=7&reason=") == {"workflow_id": "w", "instance_id": 7}


def test_fields_fill_the_body_of_an_operation() -> None:
    """Lists by repeating a name, mappings by dots or as JSON."""
    body = "workflow_id=w&instance_id=7&restart_policy=RESTART_FROM_BEGINNING&latest=true&skip=a&keep=b&keep=c"
    request = _arguments("restart_instance", f"{body}&run_params.day=20260101&run_params:json=")["request"]
    assert request.restart_policy is RunPolicy.RESTART_FROM_BEGINNING
    assert (request.latest, request.skip, request.keep) == (True, ["a"], ["b", "c"])
    assert request.run_params == {"day": "20260101"}
    by_json = _arguments("restart_instance", "workflow_id=w&instance_id=7&run_params:json=%7B%22day%22%3A5%7D")
    assert by_json["request"].run_params == {"day": 5}


def test_a_param_with_a_dot_in_its_name_is_one_param() -> None:
    """Only the first dot of a field tells the mapping from its key."""
    assert nested(parsed(b"run_params.a.b=1")) == {"run_params": {"a.b": "1"}}


def test_the_text_of_a_definition_is_the_body() -> None:
    """As bytes; lines end as the operation expects them."""
    assert _arguments("push_workflow_yaml", "body=a%3A%0D%0A++b") == {"body": b"a:\n  b"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("workflow_id=w", "instance_id is missing"),
        ("workflow_id=w&instance_id=x", "instance_id: Input should be a valid integer"),
        ("workflow_id=w&instance_id=0", "instance_id: Input should be greater"),
        ("workflow_id=%2Fetc&instance_id=1", "workflow_id: String should match"),
        ("workflow_id=w&instance_id=1&reason:json=%7B", "reason is not JSON"),
        ("workflow_id=w&workflow_id.x=1", "workflow_id is given twice"),
    ],
)
def test_what_is_not_valid_is_refused(body: str, message: str) -> None:
    """With the name of the field."""
    with pytest.raises(RequestInvalid, match=message):
        _arguments("stop_instance", body)


@pytest.mark.parametrize("body", [b"a=%00", b"a=%ff", b"\xff", b"&".join(b"a=1" for _ in range(1_001))])
def test_what_is_not_text_or_too_much_is_refused(body: bytes) -> None:
    """Before anything is done with it."""
    with pytest.raises(RequestInvalid):
        parsed(body)


def test_a_form_asks_for_what_is_not_given() -> None:
    """What is required first, few values as a choice, mappings as JSON."""
    asked = inputs_of(operations()["restart_instance"], {"workflow_id": ["w"]})
    kinds = {one.name: one.kind for one in asked}
    assert asked[0].name == "instance_id"
    assert asked[0].is_required
    assert (kinds["latest"], kinds["restart_policy"], kinds["run_params:json"]) == ("checkbox", "select", "area")
    assert "workflow_id" not in kinds


def test_every_change_has_a_form() -> None:
    """Whatever an operation takes, its form asks for it."""
    for operation in operations().values():
        names = {one.name.partition(":")[0] for one in inputs_of(operation, {})}
        wanted = {one.name for one in operation.parameters if one.place not in {Place.BODY, Place.PAGE}}
        assert wanted <= names, operation.id
