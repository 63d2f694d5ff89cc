"""Runs, attempts and turns of the engine as OpenTelemetry spans, created when they end.

The ids of spans are derived from those of runs and attempts: whichever worker ends them, a tree is one trace, and a
span knows its parent before that one is created.
"""

import hashlib
import uuid
from typing import Any

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from calve import __version__
from calve.engine import RUN_EVENT, Attempt, Event, Run, RunStatus, StepStatus, Transaction

_NANOS = 1_000_000
_MOVES = 50
"""The most changes that are named in the span of a turn."""


def otlp_processor(url: str) -> SpanProcessor:
    """Return a processor that sends spans to a URL in the background, in batches."""
    return BatchSpanProcessor(OTLPSpanExporter(endpoint=url))


class Spans:
    """Creates a span for every run and attempt that ends, and for every turn that changed something."""

    def __init__(self, processor: SpanProcessor, service: str) -> None:
        self._processor = processor
        self._resource = Resource({"service.name": service, "service.version": __version__})
        self._scope = InstrumentationScope("calve", __version__)

    def tell(self, turn: Transaction) -> None:
        """Create the spans of a turn, and of what ended in it."""
        runs = {run.uuid: run for run in (*turn.changes.new_runs, *turn.changes.runs)}
        attempts = {_place(each): each for each in (*turn.changes.new_attempts, *turn.changes.attempts)}
        if turn.changes.events and runs:
            self._processor.on_end(self._of_turn(turn, next(iter(runs.values()))))
        for event in turn.changes.events:
            run = runs.get(event.run_uuid)
            attempt = attempts.get((event.run_uuid, event.step_id or "", event.attempt_id or 0))
            if event.kind == RUN_EVENT and run is not None and run.status.is_terminal:
                self._processor.on_end(self._of_run(run, event))
            elif attempt is not None and attempt.status.is_terminal:
                self._processor.on_end(self._of_attempt(attempt, run, event))

    def close(self) -> None:
        """Send the remaining spans, and stop."""
        self._processor.shutdown()

    def _of_turn(self, turn: Transaction, run: Run) -> ReadableSpan:
        """Return the span of a turn; its id is derived from its changes, because each change happens once."""
        moved = [f"{each.step_id or 'run'} {each.after}" for each in turn.changes.events]
        own = f"{run.uuid}/{run.seq}/{'/'.join(moved)}"
        return self._span(
            "calve.turn",
            _context(run.root_uuid, own),
            _context(run.root_uuid, run.uuid),
            since=turn.began_at,
            until=turn.ended_at,
            is_error=False,
            message="",
            attributes={**_of(turn.changes.events[0]), "calve.moves": moved[:_MOVES]},
        )

    def _of_run(self, run: Run, event: Event) -> ReadableSpan:
        parent = None if run.parent is None else _context(run.root_uuid, run.parent.attempt_uuid)
        return self._span(
            f"{run.workflow_id}",
            _context(run.root_uuid, run.uuid),
            parent,
            since=run.started_at or run.created_at,
            until=run.ended_at or event.at,
            is_error=run.status in {RunStatus.FAILED, RunStatus.TIMED_OUT},
            message=run.message,
            attributes={**_of(event), "calve.status": run.status.value, "calve.initiator": run.initiator.type.value},
        )

    def _of_attempt(self, attempt: Attempt, run: Run | None, event: Event) -> ReadableSpan:
        moments = {f"calve.time.{name}": at for name, at in attempt.times.items()}
        said = str(attempt.timeline[-1].get("message", "")) if attempt.timeline else ""
        return self._span(
            f"{run.owner_workflow if run else event.workflow_id}.{attempt.step_id}",
            _context(attempt.root_uuid, attempt.uuid),
            _context(attempt.root_uuid, attempt.run_uuid),
            since=attempt.times.get("create", event.at),
            until=attempt.ended_at or event.at,
            is_error=not attempt.status.is_complete and attempt.status is not StepStatus.STOPPED,
            message=said,
            attributes={
                **_of(event),
                **moments,
                "calve.status": attempt.status.value,
                "calve.step_id": attempt.step_id,
                "calve.attempt_id": attempt.attempt_id,
                "calve.step_type": attempt.type,
                "calve.worker": attempt.worker or "",
            },
        )

    def _span(
        self,
        name: str,
        context: SpanContext,
        parent: SpanContext | None,
        *,
        since: int,
        until: int,
        is_error: bool,
        message: str,
        attributes: dict[str, Any],
    ) -> ReadableSpan:
        return ReadableSpan(
            name,
            context,
            parent,
            self._resource,
            attributes,
            status=Status(StatusCode.ERROR, message) if is_error else Status(StatusCode.OK),
            start_time=since * _NANOS,
            end_time=max(since, until) * _NANOS,
            instrumentation_scope=self._scope,
        )


def _place(attempt: Attempt) -> tuple[str, str, int]:
    return attempt.run_uuid, attempt.step_id, attempt.attempt_id


def _of(event: Event) -> dict[str, Any]:
    return {
        "calve.workflow_id": event.workflow_id,
        "calve.instance_id": event.instance_id,
        "calve.run_id": event.run_id,
    }


def _context(root_uuid: str, own_uuid: str) -> SpanContext:
    """Return the ids of a span: the trace id is that of the root."""
    own = int.from_bytes(hashlib.sha256(own_uuid.encode()).digest()[:8])
    return SpanContext(uuid.UUID(root_uuid).int, own, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
