"""Signals: announced, read, traced. The name of a signal defines its namespace, as that of a workflow does."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from calve.access import Permission
from calve.engine import Signal
from calve.engine.views import SignalInstance
from calve.operations import shapes
from calve.operations.arguments import InstanceId, WorkflowId
from calve.operations.caller import Caller
from calve.operations.declaration import Argument, Document, Topic, operation, request
from calve.operations.pages import FIRST, LIMIT, Page, bad_cursor, look_through, page_json
from calve.operations.policy import READ, READ_SOMEWHERE, RUN_SOMEWHERE
from calve.operations.requests import RequestId
from calve.triggers.signals import announced_json, lineage_json, signal_json

_PART = LIMIT + 1
_NAME = r"^[^\x00-\x20\x7f]{1,256}$"
Name = Annotated[str, Argument("The signal's name.", pattern=_NAME, examples=["demo.day_ready"])]
Number = Annotated[str | int, Argument("The signal's number, or latest.", pattern=r"^(?i:latest|[0-9]{1,18})$")]


class SignalRequest(BaseModel):
    """A signal; all other fields are its payload."""

    model_config = ConfigDict(frozen=True, extra="allow")

    name: Annotated[str, Field(pattern=_NAME, examples=["demo.day_ready"])]
    params: Annotated[dict[str, str | int], Field(max_length=128, examples=[{"day": 20260101}])] = {}
    request_id: Annotated[
        RequestId | None,
        Field(description="A name for this request: a signal is announced once for it, even with other params."),
    ] = None
    request_time: JsonValue = None

    def payload(self) -> dict[str, Any]:
        """Return the fields that are passed on unchanged."""
        return dict(self.model_extra or {})


class Signals(Topic):
    """Announces signals, and reads what they started and released."""

    __slots__ = ()
    tag = "signals"

    def announce(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        *,
        payload: Mapping[str, Any] | None = None,
        request_id: str | None = None,
    ) -> Document:
        """Announce a signal.

        Args:
            name: its name.
            params: texts and integers, which triggers and steps match.
            payload: further fields, which nothing matches.
            request_id: a name for this request: a signal is announced once for it, even with other params. Without it,
                the same name and params are one signal.
        """
        given = {} if request_id is None else {"request_id": request_id}
        return self.announce_signal(
            request(SignalRequest, **{**(payload or {}), "name": name, "params": dict(params or {}), **given})
        )

    @operation("POST /signals", RUN_SOMEWHERE, answer=SignalInstance, is_repeatable=True)
    def announce_signal(self, request: SignalRequest) -> Document:
        """Announce a signal: workflows and steps that wait for it start or continue."""
        self.call.require(Permission.RUN, request.name)
        announced = self.call.signals.announce(
            request.name, request.params, payload=request.payload(), request_id=request.request_id
        )
        return announced_json(announced)

    def signals(self, name: str | None = None) -> Iterator[Document]:
        """Yield all signals, or those with a name, newest first."""
        return self.pages(self.list_signals, name=name)

    @operation("GET /signals", READ_SOMEWHERE, answer=shapes.Page, is_slow=True)
    def list_signals(
        self,
        page: Page = FIRST,
        name: Annotated[str | None, Argument("Only signals with this name.", max_length=256)] = None,
    ) -> Document:
        """List all signals, or those with a name, newest first."""
        page, call = page.forward(), self.call

        def look(cursor: str | None) -> tuple[list[Signal], str | None]:
            part = call.signals.list(name=name, before=_place(cursor) if cursor else None, limit=_PART)
            seen = [signal for signal in part if call.may(Permission.READ, signal.name)]
            return seen, _cursor(part[-1]) if len(part) == _PART else None

        found, onward = look_through(page, page.cursor, look)
        return page_json(found, page, signal_json, _cursor, onward)

    @operation("GET /signals/{name:path}/instances/{number}/lineage", READ_SOMEWHERE, id="get_signal_lineage")
    def lineage(self, name: Name, number: Number = "latest") -> Document:
        """Return who sent a signal, and what it started and released, as far as the caller may see it."""
        self.call.require(Permission.READ, name)
        return seen_lineage(self.call, lineage_json(self.call.signals.lineage(name, _number(number))))

    @operation("GET /signals/{name:path}/instances/{number}", READ_SOMEWHERE, id="get_signal", answer=SignalInstance)
    def signal(self, name: Name, number: Number = "latest") -> Document:
        """Return a signal by its number, or the latest one with its name."""
        self.call.require(Permission.READ, name)
        seq, signals = _number(number), self.call.signals
        return signal_json(signals.latest(name) if seq is None else signals.instance(name, seq))

    @operation("GET /workflows/{workflow_id}/instances/{instance_id}/signals", READ, id="get_instance_signals")
    def instance_signals(self, workflow_id: WorkflowId, instance_id: InstanceId) -> Document:
        """Return which signals started an instance, released its steps, or were sent by it, as far as visible."""
        document = lineage_json(self.call.signals.lineage_of(workflow_id, instance_id))
        for key in ("started_by", "released_by", "sent"):
            document[key] = [one for one in document[key] if self.call.may(Permission.READ, one["signal"]["name"])]
        return document


def seen_lineage(call: Caller, document: Document) -> Document:
    """Return what a caller may see of a lineage."""
    parties = {key: [party for party in document[key] if _may_see(call, party)] for key in ("started", "released")}
    sender = document["sent_by"]
    return {**document, **parties, "sent_by": sender if sender is not None and _may_see(call, sender) else None}


def _may_see(call: Caller, party: dict[str, Any]) -> bool:
    return call.may(Permission.READ, str(party.get("workflow_id", "")))


def _cursor(signal: Signal) -> str:
    return f"{signal.announced_at}.{signal.seq}.{signal.name}"


def _place(cursor: str) -> tuple[int, str, int]:
    at, _, rest = cursor.partition(".")
    seq, _, name = rest.partition(".")
    if not (name and all(part.isascii() and part.isdecimal() and len(part) <= 18 for part in (at, seq))):
        raise bad_cursor(cursor)
    return int(at), name, int(seq)


def _number(number: str | int) -> int | None:
    return number if isinstance(number, int) else int(number) if number.isdecimal() else None
