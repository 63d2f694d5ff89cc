"""The OpenAPI document: FastAPI's, with calve's responses to invalid requests."""

from collections.abc import Iterable
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.routing import BaseRoute

_TEXT = (
    "Maestro's interface, with additions. Lists have pages: send end_cursor of one page as the cursor of the next. "
    "Errors have Maestro's format; with `Accept: application/problem+json`, that of RFC 9457."
)


def describe(app: FastAPI) -> None:
    """Set the OpenAPI document of an app."""
    known: dict[str, Any] = {}

    def openapi() -> dict[str, Any]:
        if not known:
            known.update(_document(app.title, app.version, app.routes))
        return known

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way


def _document(title: str, version: str, routes: Iterable[BaseRoute]) -> dict[str, Any]:
    document = get_openapi(title=title, version=version, description=_TEXT, routes=list(routes))
    for operations in document["paths"].values():
        for operation in operations.values():
            operation["responses"].pop("422", None)  # an invalid request is 400 here, which "default" describes
            _make_text_plain(operation["responses"])
    for name in ("HTTPValidationError", "ValidationError"):
        document.get("components", {}).get("schemas", {}).pop(name, None)
    return document


def _make_text_plain(responses: dict[str, Any]) -> None:
    """Remove JSON from the responses that are not JSON; errors are also available as problem documents."""
    for status, response in responses.items():
        content = response.get("content", {})
        if any(media == "text/plain" for media in content):
            content.pop("application/json", None)
        if status == "default" and "application/json" in content:
            content["application/problem+json"] = content["application/json"]
