"""What a server keeps of workflows: definitions, versions, what is active."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from calve.client.server import Document, Server, path
from calve.errors import RequestInvalid
from calve.texts import check_text

Definition = str | bytes | Path | Mapping[str, Any]
"""A definition: YAML or JSON as text, a file of these, or JSON's own types."""


class Workflows:
    """Pushes, reads and deletes workflows."""

    server: Server

    def push(self, definition: Definition) -> Document:
        """Keep a definition as the next version of its workflow.

        Raises:
            DefinitionInvalid: it cannot be understood; its context holds every problem.
        """
        return self._defined("POST", definition, ("workflows",))

    def validate(self, definition: Definition) -> Document:
        """Check a definition without keeping it."""
        return self._defined("PUT", definition, ("workflows", "actions", "validate"))

    def workflow(self, workflow_id: str) -> Document:
        """Return a workflow at a glance: its versions and how its instances stand."""
        return document(self.server.get(path("workflows", workflow_id, "overview")))

    def version(self, workflow_id: str, version: str | int = "active") -> Document:
        """Return a version of a definition: active, latest, default, or a number."""
        return document(self.server.get(path("workflows", workflow_id, "versions", version)))

    def workflows(self, *, search: str | None = None) -> Iterator[Document]:
        """Yield workflows by id, all or those whose id contains ``search``."""
        return pages(self.server, path("workflows"), search=search)

    def activate(self, workflow_id: str, version: str | int = "latest") -> Document:
        """Make a version the one that starts and triggers use."""
        place = path("workflows", workflow_id, "versions", version, "actions", "activate")
        return document(self.server.ask("PUT", place))

    def deactivate(self, workflow_id: str) -> Document:
        """Make no version active: nothing starts by itself."""
        return document(self.server.ask("PUT", path("workflows", workflow_id, "actions", "deactivate")))

    def delete(self, workflow_id: str) -> None:
        """Forget a workflow and everything that it has done."""
        self.server.ask("DELETE", path("workflows", workflow_id))

    def templates(self) -> list[Document]:
        """Return the job templates, those that are installed there too, each in all of its versions."""
        return list(self.server.get(path("job-templates"), version="*"))

    def _defined(self, method: str, definition: Definition, place: tuple[str, ...]) -> Document:
        given = _given(definition)
        if isinstance(given, bytes):
            return document(self.server.ask(method, path(*place, "yaml"), text=given))
        return document(self.server.ask(method, path(*place), given))


def pages(server: Server, place: str, **query: Any) -> Iterator[Document]:
    """Yield all elements of a list, page by page."""
    cursor: str | None = None
    while True:
        page = server.get(place, cursor=cursor, **query)
        yield from page["elements"]
        about = page.get("page_info", {})
        cursor = about.get("end_cursor")
        if not about.get("has_next_page") or cursor is None:
            return


def _given(definition: Definition) -> bytes | Mapping[str, Any]:
    """Return JSON's types where it is JSON, otherwise text to be read as YAML."""
    if isinstance(definition, Mapping):
        return definition
    check_text(definition if isinstance(definition, str) else "", "The definition")
    text = definition.encode() if isinstance(definition, str) else definition
    if isinstance(text, Path):
        text = _content(text)
    try:
        read = json.loads(text)
    except ValueError:
        return text
    return read if isinstance(read, dict) else text


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise RequestInvalid(f"{file} cannot be read: {error.strerror}") from error


def document(answer: Any) -> Document:
    """Return an answer that is an object; nothing for one that says nothing."""
    return answer if isinstance(answer, dict) else {}
