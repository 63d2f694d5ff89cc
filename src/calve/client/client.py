"""The client of a server: all operations, performed over HTTP."""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from calve.addresses import instance_page
from calve.client.events import EventStream, wait
from calve.client.server import Server
from calve.operations import DEFAULT, PREFIX, Document, Operation, Operations, Page, Parameter, Place

_FOLLOWED = 3_600.0


class Client(Operations):
    """Sends requests to a calve server.

    Answers are documents in Maestro's format, as plain dictionaries; an error of the server is raised as the same
    ``CalveError`` that the engine raises in process. Reads are repeated if no answer arrives, and so are starts, with
    the same request id.

    >>> with Client("http://127.0.0.1:8765") as client:  # doctest: +SKIP
    ...     client.push(Path("pipeline.yaml"))
    ...     started = client.start("demo.pipeline", {"my_query": "SELECT 1"})
    ...     ended = client.wait("demo.pipeline", started["workflow_instance_id"])
    """

    def __init__(
        self, url: str, token: str | None = None, *, timeout: float = 30.0, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.server = Server(url, token, timeout=timeout, sleep=sleep)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self.server.close()

    def perform(self, operation: Operation, arguments: dict[str, Any]) -> Any:
        """Send the request of an operation, and return the answer."""
        query: dict[str, Any] = {}
        given: dict[str, Any] = {}
        fields: dict[str, Any] = {}
        for one in operation.parameters:
            if one.name not in arguments:
                continue
            value = arguments[one.name]
            match one.place:
                case Place.PATH:
                    pass
                case Place.QUERY:
                    query[one.argument.alias or one.name] = to_jsonable_python(value)
                case Place.PAGE:
                    query |= _page(value)
                case Place.BODY:
                    given["body"] = _body(value)
                case Place.FIELD:
                    fields[one.name] = to_jsonable_python(value)
                case Place.RAW:
                    given |= {"text": value, "media": _media(operation)}
        if fields:
            given["body"] = fields
        is_repeatable = operation.is_read or operation.is_repeatable
        path = _path(operation.path, operation.parameters, arguments)
        return self.server.ask(operation.method, path, query=query, is_repeatable=is_repeatable, **given)

    def pages(self, listed: Callable[..., Document], *, limit: int = DEFAULT, **given: Any) -> Iterator[Document]:
        """Yield all elements of a list, page by page; the server chooses the length of a page."""
        del limit  # meant for calls in this process; over HTTP, the server limits the size of an answer
        return super().pages(listed, limit=DEFAULT, **given)

    def request_id(self, given: str | None) -> str | None:
        """Return the given id or a new one, so that a repeated request does not start anything twice."""
        return given or str(uuid.uuid4())

    def wait(
        self, workflow_id: str, instance_id: int, run_id: int | None = None, *, timeout: float | None = None
    ) -> Document:
        """Wait until an instance has ended, and return it as ``instance`` does.

        Raises:
            WaitedTooLong: it has not ended after ``timeout`` seconds.
        """
        events = EventStream(self.server, after=0, pause=time.sleep, workflow_id=workflow_id, instance_id=instance_id)
        return wait(
            events,
            lambda: self.instance(workflow_id, instance_id, run_id),
            name=f"{workflow_id} {instance_id}",
            timeout=timeout,
            pause=time.sleep,
        )

    def logs(
        self,
        workflow_id: str,
        instance_id: int,
        step_id: str,
        *,
        attempt: int | None = None,
        run: int | None = None,
        is_followed: bool = False,
        offset: int | None = None,
        tail: int | None = None,
    ) -> Iterator[str]:
        """Yield a step's log; if followed, until the attempt has ended, starting at a byte or with the last lines."""
        place = f"{PREFIX}/workflows/{_quoted(workflow_id)}/instances/{instance_id}/steps/{_quoted(step_id)}/logs"
        start = {"offset": offset, "tail": tail} if is_followed else {}
        query = {"attempt": attempt, "run": run, "follow": is_followed or None, **start}
        silence = _FOLLOWED if is_followed else self.server.timeout
        try:
            with self.server.stream(place, accept="text/plain", silence=silence, query=query) as answer:
                yield from answer.iter_text()
        except httpx.TransportError as error:
            raise self.server.unreachable(error) from error

    def events(
        self, *, after: int = 0, workflow_id: str | None = None, instance_id: int | None = None
    ) -> Iterator[Document]:
        """Yield events in order, without end, starting after event number ``after``, also after a lost connection.

        Each has a ``seq``: keep the last one to continue there later.
        """
        stream = EventStream(
            self.server, after=after, pause=time.sleep, workflow_id=workflow_id, instance_id=instance_id
        )
        return iter(stream)

    def view_url(self, run: Mapping[str, Any]) -> str | None:
        """Return the address of the page that shows an instance; None if the server has no such page."""
        place = instance_page(run["workflow_id"], run["workflow_instance_id"])
        return f"{self.server.url}{place}" if self.server.has_page(place) else None


def connect(url: str, token: str | None = None) -> Client:
    """Return the operations of a server."""
    return Client(url, token)


def _path(path: str, parameters: tuple[Parameter, ...], arguments: Mapping[str, Any]) -> str:
    for one in parameters:
        if one.place is Place.PATH:
            value = _quoted(arguments.get(one.name, one.default))
            path = path.replace(f"{{{one.name}:path}}", value).replace(f"{{{one.name}}}", value)
    return PREFIX + path


def _quoted(value: Any) -> str:
    return quote(str(value), safe="")


def _page(page: Page) -> dict[str, Any]:
    limit = {} if page.limit == DEFAULT else {"last" if page.is_backward else "limit": page.limit}
    return {**limit, "cursor": page.cursor}


def _body(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_unset=True)
    return [_body(one) for one in value]


def _media(operation: Operation) -> str:
    (media,) = operation.openapi["requestBody"]["content"]
    return "application/x-yaml" if media == "application/yaml" else media
