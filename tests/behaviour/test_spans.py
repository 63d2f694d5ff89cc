"""Spans of runs and attempts: one trace for a tree, whoever carries it out."""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace.status import StatusCode
from tests.engines import FATAL_ERROR, Playground, live, wait_for_end
from tests.http_receiver import receiving

from calve.telemetry import Spans, otlp_processor

NESTED = """
Workflow:
  id: w
  jobs:
    - foreach:
        id: loop
        loop_params: {n: [1, 2]}
        jobs:
          - job: {id: b, type: Shell, shell: {script: x}}
"""


@contextmanager
def spans_of(playground: Playground) -> Iterator[dict[str, list[ReadableSpan]]]:
    """Run the playground's one instance to its end; give its spans by name."""
    exporter = InMemorySpanExporter()
    spans = Spans(SimpleSpanProcessor(exporter), "test")
    playground.push(NESTED)
    run = playground.begin().run
    with live(playground, listener=spans.tell):
        wait_for_end(playground, run)
    spans.close()
    found: dict[str, list[ReadableSpan]] = {}
    for span in exporter.get_finished_spans():
        found.setdefault(span.name, []).append(span)
    yield found


def test_a_tree_is_one_trace(playground: Playground) -> None:
    """Every span knows its parent: the iteration its loop, the step its iteration."""
    with spans_of(playground) as found:
        assert sorted((name, len(spans)) for name, spans in found.items() if name in {"w", "w.loop", "w.b"}) == [
            ("w", 1),
            ("w.b", 2),
            ("w.loop", 1),
        ]
        every = [span for spans in found.values() for span in spans]
        assert len({span.context.trace_id for span in every}) == 1
        known = {span.context.span_id for span in every}
        assert [span.name for span in every if span.parent is None] == ["w"]
        assert all(span.parent.span_id in known for span in every if span.parent is not None)
        assert {span.status.status_code for span in every} == {StatusCode.OK}
        moved = [move for turn in found["calve.turn"] for move in (turn.attributes or {})["calve.moves"]]  # type: ignore[union-attr]
        assert moved.count("run SUCCEEDED") == 3
        assert len({span.context.span_id for span in every}) == len(every)
        (loop,) = found["w.loop"]
        assert (loop.attributes or {})["calve.step_type"] == "foreach"


def test_a_failure_is_an_error(playground: Playground) -> None:
    """With the reason."""
    playground.script.parts["b"] = FATAL_ERROR
    with spans_of(playground) as found:
        span = found["w.b"][0]
        assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "no way")
        assert found["w"][0].status.status_code is StatusCode.ERROR


def test_spans_are_sent_by_otlp(playground: Playground) -> None:
    """In batches; the rest goes when the process ends."""
    with receiving() as receiver:
        spans = Spans(otlp_processor(f"{receiver.url}/v1/traces"), "test")
        playground.push(NESTED)
        run = playground.begin().run
        with live(playground, listener=spans.tell):
            wait_for_end(playground, run)
        spans.close()
        bodies = b"".join(
            gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body
            for _, headers, body in receiver.requests
        )
        assert {path for path, _, _ in receiver.requests} == {"/v1/traces"}
        assert b"w.loop" in bodies
