"""Every operation is a field of GraphQL, with the arguments of its REST route and the same checks."""

from collections.abc import Iterator
from typing import Annotated, Any
from urllib.parse import quote

import pytest
from graphql import is_object_type
from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from strawberry.utils.str_converters import to_camel_case
from tests.engines import Playground
from tests.servers import Site, site_on

from calve.api.graphql.server import SCHEMA
from calve.operations import Operation, Parameter, Place, declared
from calve.operations.declaration import is_model

OPERATIONS = {one.id: one for _, one in declared()}
WRONG: tuple[Any, ...] = (" ", "\n", "x" * 2_000, -1, ["x y"] * 300, {"a b": {"c": []}})
"""Values of which most arguments refuse at least one."""
_WRONG_IN_URLS: dict[Any, tuple[Any, ...]] = {
    str: WRONG[:3],
    str | None: WRONG[:3],
    list[str] | None: (["x"] * 30,),
}
"""By the type of an argument; numbers otherwise."""


def _field(operation: Operation) -> Any:
    schema = SCHEMA._schema  # strawberry has no public way to it
    root = schema.query_type if operation.is_read else schema.mutation_type
    assert root is not None
    return root.fields[to_camel_case(operation.id)]


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_a_field_takes_the_arguments_of_its_route(operation: Operation) -> None:
    """And a page is its length and a cursor."""
    own = {to_camel_case(one.name) for one in operation.parameters if one.place is not Place.PAGE}
    page = set[str]()
    if operation.is_paged:
        page = {"first", "cursor" if "after" in own else "after"}
    assert set(_field(operation).args) == own | page


def test_a_value_that_rest_refuses_is_refused_in_the_same_words(playground: Playground) -> None:
    """With each argument of each operation that does not take everything."""
    with site_on(playground) as site:
        refused = [_refusals(site, operation, name, value) for operation, name, value in _refusable()]
    assert len(refused) > 200
    wrong = [pair for pair in refused if pair[0] != pair[1]]
    assert wrong == [], "\n".join(map(str, wrong))


def _refusable() -> Iterator[tuple[Operation, str, Any]]:
    """Yield operations, with an argument and a value that it refuses."""
    for operation in OPERATIONS.values():
        for one in operation.parameters:
            if one.place is Place.BODY and is_model(one.type):
                yield from ((operation, one.name, {name: value}) for name, value in _wrong_fields(one.type))
            elif one.place in {Place.PATH, Place.QUERY} and one.argument.checks:
                wrong = _WRONG_IN_URLS.get(one.type, (-1,))
                routed = (value for value in wrong if value != "\n" or ":path}" not in operation.path)
                yield from ((operation, one.name, value) for value in routed if _is_refused(one, value))


def _is_refused(parameter: Parameter, value: Any) -> bool:
    try:
        kind: Any = Annotated[parameter.type, Field(**parameter.argument.checks)]
        TypeAdapter(kind).validate_python(value)
    except ValidationError:
        return True
    return False


def _wrong_fields(model: type[BaseModel]) -> Iterator[tuple[str, Any]]:
    for name in model.model_fields:
        for value in WRONG:
            try:
                model.model_validate({name: value})
            except ValidationError as error:
                if error.errors()[0]["loc"][:1] == (name,):
                    yield name, value
                    break


def _refusals(site: Site, operation: Operation, name: str, value: Any) -> tuple[Any, Any]:
    """Return how REST and GraphQL refuse a value: the operation, the code, and what is wrong."""
    given = {one.name: _valid(one) for one in operation.parameters if one.is_required} | {name: value}
    by_place: dict[Place, dict[str, Any]] = {place: {} for place in Place}
    path = operation.path.replace(":path}", "}")
    for one in operation.parameters:
        if one.name in given:
            by_place[one.place][one.argument.alias or one.name] = given[one.name]
            path = path.replace(f"{{{one.name}}}", quote(str(given[one.name]), safe=""))
    body = next(iter(by_place[Place.BODY].values()), by_place[Place.FIELD])
    sent: dict[str, Any] = {"json": body} if operation.method in {"POST", "PUT"} else {}
    answer = site.client.request(operation.method, f"/api/v3{path}", params=by_place[Place.QUERY], **sent).json()
    field = _field(operation)
    variables = {to_camel_case(one): value for one, value in given.items()}
    types = ", ".join(f"${one}: {field.args[one].type}" for one in variables)
    arguments = ", ".join(f"{one}: ${one}" for one in variables)
    kind = "query" if operation.is_read else "mutation"
    fields = "{ __typename }" if is_object_type(field.type.of_type) else ""
    query = f"{kind}({types}) {{ {to_camel_case(operation.id)}({arguments}) {fields} }}"
    told = site.client.post("/graphql", json={"query": query, "variables": variables}).json()["errors"][0]
    return (
        (operation.id, name, answer["code"], answer["message"].partition(": ")[2]),
        (operation.id, name, told["extensions"]["code"], told["message"].partition(": ")[2]),
    )


def _valid(parameter: Parameter) -> Any:
    examples = parameter.argument.checks.get("examples")
    if examples:
        return examples[0]
    return {int: 1, bool: True, str: "x"}.get(parameter.type, {})
