"""Metrics in Prometheus's format, computed when scraped: gauges of the current state, and counters of events.

Counters count what this process has seen: like all Prometheus counters, they start at zero with the process. Each
process sees all events of the store, whichever process caused them, so it is enough to scrape one.
"""

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from calve.telemetry.model import Ended, Gauges, Happened, TelemetryState

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Histogram
    from prometheus_client.core import Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.1, 0.5, 1, 5, 15, 60, 300, 900, 3_600, 14_400, 86_400)
_WAITS = (0.05, 0.1, 0.5, 1, 2, 5, 15, 30, 60, 300, 900, 3_600)


class Metrics:
    """Counts events from its first scrape on."""

    def __init__(self, state: TelemetryState, clock: Callable[[], int]) -> None:
        from prometheus_client import CollectorRegistry

        self._state, self._clock = state, clock
        self._lock = threading.Lock()
        self._after: int | None = None
        self._registry = CollectorRegistry(auto_describe=False)
        self._counts = _Counts(self._registry)
        self._gauges = Gauges()
        self._now = 0
        self._registry.register(_Gauges(lambda: (self._gauges, self._now)))

    def scrape(self) -> bytes:
        """Return all metrics, in Prometheus's text format.

        Raises:
            StoreUnavailable: the state database is unavailable.
        """
        from prometheus_client import generate_latest

        with self._lock:
            # Two scrapes at a time would count the same events twice.
            self._catch_up()
            self._now = self._clock()
            self._gauges = self._state.gauges(self._now)
            return generate_latest(self._registry)

    def _catch_up(self) -> None:
        """Count the events since the last scrape; nothing from before the first one."""
        if self._after is None:
            self._after = self._state.newest()
        while True:
            happened = self._state.happened(self._after)
            self._counts.add(happened)
            self._after = happened.upto
            if happened.is_all:
                return


class _Counts:
    """The counters and histograms."""

    def __init__(self, registry: "CollectorRegistry") -> None:
        from prometheus_client import Counter, Histogram

        self._begun: Counter = Counter(
            "calve_runs_started", "Runs that started, by initiator.", ["initiator"], registry=registry
        )
        self._runs: Counter = Counter(
            "calve_runs_ended", "Runs that ended, by workflow and status.", ["workflow", "status"], registry=registry
        )
        self._steps: Counter = Counter(
            "calve_step_attempts_ended",
            "Attempts of steps that ended, by type of step and status.",
            ["type", "status"],
            registry=registry,
        )
        self._run_seconds: Histogram = Histogram(
            "calve_run_duration_seconds", "How long runs took.", ["status"], buckets=_SECONDS, registry=registry
        )
        self._step_seconds: Histogram = Histogram(
            "calve_step_duration_seconds", "How long attempts took.", ["type"], buckets=_SECONDS, registry=registry
        )
        self._wait_seconds: Histogram = Histogram(
            "calve_run_wait_seconds", "How long runs waited before they started.", buckets=_WAITS, registry=registry
        )
        self._latency: Histogram = Histogram(
            "calve_trigger_latency_seconds",
            "How long after its scheduled time, or the commit to its table, a triggered run was made.",
            ["initiator"],
            buckets=_WAITS,
            registry=registry,
        )

    def add(self, happened: Happened) -> None:
        """Count events."""
        for begun in happened.begun:
            self._begun.labels(begun.initiator).inc()
            self._wait_seconds.observe(max(0, begun.waited) / 1_000)
            if begun.latency is not None:
                self._latency.labels(begun.initiator).observe(max(0, begun.latency) / 1_000)
        for run in happened.runs:
            self._runs.labels(run.workflow_id, run.status).inc()
            _observe(self._run_seconds, run.status, run)
        for step in happened.steps:
            self._steps.labels(step.type, step.status).inc()
            _observe(self._step_seconds, step.type, step)


def _observe(histogram: "Histogram", label: str, ended: Ended) -> None:
    if ended.took is not None:
        histogram.labels(label).observe(max(0, ended.took) / 1_000)


class _Gauges:
    """The current state, as a Prometheus collector."""

    def __init__(self, ask: Callable[[], tuple[Gauges, int]]) -> None:
        self._ask = ask

    def collect(self) -> "Iterator[Metric]":
        """Yield a metric for each gauge."""
        from prometheus_client.core import GaugeMetricFamily

        gauges, now = self._ask()
        for name, text, value in _plain(gauges, now):
            yield GaugeMetricFamily(name, text, value=value)
        for name, text, label, values in (
            ("calve_queue_tasks", "Tasks in the queue.", "kind", gauges.tasks),
            ("calve_instances", "Instances that are not over.", "status", gauges.instances),
            ("calve_triggers", "Triggers of active versions.", "kind", gauges.triggers),
            ("calve_alerts", "Alerts that are waiting or have failed.", "status", gauges.alerts),
        ):
            family = GaugeMetricFamily(name, text, labels=[label])
            for key, count in values.items():
                family.add_metric([key], count)
            yield family


def _plain(gauges: Gauges, now: int) -> Iterator[tuple[str, str, float]]:
    yield "calve_workers", "Workers that are alive.", gauges.workers
    yield "calve_workers_draining", "Workers that accept no more work.", gauges.draining
    yield "calve_worker_slots", "How many steps the workers can carry out at once.", gauges.slots
    yield "calve_queue_due_tasks", "Tasks that are due, and wait for a worker.", gauges.due
    yield "calve_captures_open", "Captures that are neither committed nor abandoned.", gauges.captures
    yield "calve_triggers_failing", "Triggers whose last check failed.", gauges.failing_triggers
    lag = "How long the oldest due trigger has waited for a scheduler."
    yield "calve_scheduler_lag_seconds", lag, _age(gauges.oldest_trigger, now)


def _age(since: int | None, now: int) -> float:
    return 0.0 if since is None else max(0, now - since) / 1_000
