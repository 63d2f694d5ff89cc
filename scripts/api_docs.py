"""Write the routes of the REST reference and the schema of the GraphQL reference from their declarations.

From the root of the repository: python scripts/api_docs.py [--check]
"""

import sys
from collections import defaultdict

from fastapi.routing import APIRoute  # noqa: TID253 - the routes are what the page lists
from generated import REFERENCE, between, write

from calve.api import access
from calve.api.app import routers
from calve.api.graphql.server import SCHEMA
from calve.api.routing import policy_of
from calve.operations import PREFIX, declared

REST = REFERENCE / "rest.md"
GRAPHQL = REFERENCE / "graphql.md"
HEAD = ("| | path | permission | method | what |", "|---|---|---|---|---|")


def rest(text: str) -> str:
    """Return the page with a table of routes for each topic."""
    rows: defaultdict[str, list[str]] = defaultdict(list)
    for router in (*routers(), *access.ROUTERS):
        rows[str(router.tags[0])] += [_row(route) for route in router.routes if isinstance(route, APIRoute)]
    for topic, lines in rows.items():
        text = between(text, topic, "\n".join([*HEAD, *lines]))
    return text


def _row(route: APIRoute) -> str:
    policy = policy_of(route)
    assert policy is not None, route.path  # noqa: S101 - the server refuses to start without
    (verb,) = route.methods
    path = route.path.replace(":path", "")
    shown = f"`{path.removeprefix(PREFIX)}`" + ("" if path.startswith(PREFIX) else f" (not under `{PREFIX}`)")
    method = _METHODS.get(route.operation_id or "", "")
    what = (route.description or "").partition("\n")[0].replace("``", "`")
    return f"| {verb} | {shown} | {policy.permission.value} {policy.scope.value} | {method} | {what} |"


_METHODS = {one.id: f"`{one.name}`" for _, one in declared()}


def graphql(text: str) -> str:
    """Return the page with the schema."""
    return between(text, "schema", f"```graphql\n{SCHEMA.as_str().strip()}\n```")


def main() -> int:
    """Write both pages, or tell which of them are out of date."""
    pages = {REST: rest, GRAPHQL: graphql}
    return write({path: page(path.read_text(encoding="utf-8")) for path, page in pages.items()}, "api-docs")


if __name__ == "__main__":
    sys.exit(main())
