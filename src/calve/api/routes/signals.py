"""Signals: announced, looked up, traced. A signal lies in the namespace of its name, as a workflow does."""

from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field, JsonValue
from starlette.responses import Response

from calve.access import Permission
from calve.api import shapes
from calve.api.answers import Document
from calve.api.bodies import RequestId
from calve.api.callers import Call, Caller
from calve.api.identifiers import InstanceId, WorkflowId
from calve.api.paging import LIMIT, Paged, bad_cursor, look_through, page_json
from calve.api.policy import READ, READ_SOMEWHERE, RUN_SOMEWHERE
from calve.api.routing import Routes
from calve.engine.signals import Signal
from calve.triggers.signals import announced_json, lineage_json, signal_json

routes = Routes("signals")
_PART = LIMIT + 1
_NAME = r"^[^\x00-\x20\x7f]{1,256}$"
Name = Annotated[str, Path(pattern=_NAME, description="The signal's name.", examples=["demo.day_ready"])]
Number = Annotated[str, Path(pattern=r"^(?i:latest|[0-9]{1,18})$", description="The signal's number, or latest.")]


class SignalRequest(BaseModel):
    """A signal; what it holds besides is its payload."""

    model_config = ConfigDict(frozen=True, extra="allow")

    name: Annotated[str, Field(pattern=_NAME, examples=["demo.day_ready"])]
    params: Annotated[dict[str, str | int], Field(max_length=128, examples=[{"day": 20260101}])] = {}
    request_id: RequestId | None = None
    """Names the request: repeated, it is the same signal."""
    request_time: JsonValue = None

    def payload(self) -> dict[str, Any]:
        """Return what is passed on as it is."""
        return dict(self.model_extra or {})


@routes.post("/signals", "announce_signal", RUN_SOMEWHERE, shapes.SignalInstance)
def announce(call: Call, request: SignalRequest) -> Response:
    """Announce a signal: whatever waits for it starts or goes on."""
    call.require(Permission.RUN, request.name)
    announced = call.signals.announce(
        request.name, request.params, payload=request.payload(), request_id=request.request_id
    )
    return Document(announced_json(announced))


@routes.get("/signals", "list_signals", READ_SOMEWHERE, shapes.Page, is_slow=True)
def list_signals(call: Call, page: Paged, name: Annotated[str | None, Query(max_length=256)] = None) -> Response:
    """List signals, newest first."""
    page = page.forward()

    def look(cursor: str | None) -> tuple[list[Signal], str | None]:
        part = call.signals.list(name=name, before=_place(cursor) if cursor else None, limit=_PART)
        seen = [signal for signal in part if call.may(Permission.READ, signal.name)]
        return seen, _cursor(part[-1]) if len(part) == _PART else None

    found, onward = look_through(page, page.cursor, look)
    return Document(page_json(found, page, signal_json, _cursor, onward))


def _cursor(signal: Signal) -> str:
    return f"{signal.announced_at}.{signal.seq}.{signal.name}"


def _place(cursor: str) -> tuple[int, str, int]:
    at, _, rest = cursor.partition(".")
    seq, _, name = rest.partition(".")
    if not (name and all(part.isascii() and part.isdecimal() and len(part) <= 18 for part in (at, seq))):
        raise bad_cursor(cursor)
    return int(at), name, int(seq)


@routes.get("/signals/{name:path}/instances/{number}/lineage", "get_signal_lineage", READ_SOMEWHERE)
def lineage(call: Call, name: Name, number: Number) -> Response:
    """Return who sent a signal, and what it started or released, as far as the caller may see that."""
    call.require(Permission.READ, name)
    document = lineage_json(call.signals.lineage(name, _seq(number)))
    for key in ("started", "released"):
        document[key] = [party for party in document[key] if _may_see(call, party)]
    if document["sent_by"] is not None and not _may_see(call, document["sent_by"]):
        document["sent_by"] = None
    return Document(document)


@routes.get("/signals/{name:path}/instances/{number}", "get_signal", READ_SOMEWHERE, shapes.SignalInstance)
def get_signal(call: Call, name: Name, number: Number) -> Response:
    """Return a signal by its number, or the latest one of a name."""
    call.require(Permission.READ, name)
    seq = _seq(number)
    return Document(signal_json(call.signals.latest(name) if seq is None else call.signals.instance(name, seq)))


@routes.get("/workflows/{workflow_id}/instances/{instance_id}/signals", "get_instance_signals", READ)
def of_instance(call: Call, workflow_id: WorkflowId, instance_id: InstanceId) -> Response:
    """Return which signals started an instance or released its steps, and which it sent, if the caller may see them."""
    document = lineage_json(call.signals.lineage_of(workflow_id, instance_id))
    for key in ("started_by", "released_by", "sent"):
        document[key] = [one for one in document[key] if call.may(Permission.READ, one["signal"]["name"])]
    return Document(document)


def _seq(number: str) -> int | None:
    return int(number) if number.isdecimal() else None


def _may_see(call: Caller, party: dict[str, Any]) -> bool:
    return call.may(Permission.READ, str(party.get("workflow_id", "")))
