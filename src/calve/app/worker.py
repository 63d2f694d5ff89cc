"""Workers, which run steps on this machine, and the runtimes of steps."""

import atexit
import logging
import os
import sys
import time
from functools import cache, partial
from typing import TYPE_CHECKING

from calve.app.attempt_folders import AttemptFolders, folders_on
from calve.app.captures import captures_on, deliveries_on, table_rights_on
from calve.app.host import is_gone, this_process
from calve.app.log_uploads import PART, LogUploads, uploads_on
from calve.settings import Settings, StepLogSettings, TelemetrySettings
from calve.store import Store

if TYPE_CHECKING:
    from calve.access import Secrets
    from calve.engine import Listener, LogLimits, Runtimes, StepAddress, Tools, Transaction, Worker, WorkerOptions
    from calve.lake import Lake
    from calve.telemetry import Spans

log = logging.getLogger(__name__)


def worker_on(
    tools: "Tools",
    settings: Settings,
    secrets: "Secrets",
    runtimes: "Runtimes",
    *,
    options: "WorkerOptions | None",
    listener: "Listener",
) -> "Worker":
    """Return a worker on this machine; it starts when it is run."""
    from calve.engine import AnchoredClock, Executor, Worker

    folders = folders_on(settings, tools.state)
    folder = folders.folder
    uploads = uploads_on(folder, settings.logs, settings.project, tools.state)
    clock = tools.clock
    assert isinstance(clock, AnchoredClock)  # noqa: S101 - open_project made it
    return Worker(
        tools,
        lambda turns, left: Executor(
            tools, turns, runtimes, folder, secrets.for_step, time.monotonic, left, limits_of(settings.logs)
        ),
        clock=clock,
        identity=this_process(),
        is_gone=is_gone,
        options=options or _options(settings),
        listener=traced(settings.telemetry, listener),
        upkeep=lambda: _tidied(folders, uploads),
    )


def runtimes_on(store: Store, lake: "Lake", tools: "Tools", settings: Settings) -> "Runtimes":
    """Return the runtimes of all installed types of steps."""
    from calve.steps import Services, Workspace, load_isolation, load_runtimes

    workspace = Workspace(
        project=settings.project,
        environment=os.environ,  # noqa: TID251 - passed to the programs of steps, never read
        python=sys.executable,
        java_home=settings.spark.java_home,
        variables=settings.worker.environment,
        isolation=load_isolation(settings),
    )
    return load_runtimes(
        Services(
            tools.clock,
            workspace,
            settings,
            lake,
            captures_on(lake, store),
            deliveries_on(lake, store),
            declared=partial(_declared, tools),
            tables=table_rights_on(lake, store),
        )
    )


def _options(settings: Settings) -> "WorkerOptions":
    from calve.engine import WorkerOptions

    given = settings.worker
    return WorkerOptions(
        slots=given.slots,
        lease=given.lease.total_seconds(),
        drain=given.drain.total_seconds(),
        tries=given.tries,
    )


def limits_of(settings: StepLogSettings) -> "LogLimits":
    """Return how much of a log is stored in the database."""
    from calve.engine import LogLimits

    return LogLimits(settings.head, settings.tail, None if settings.location is None else PART)


def _tidied(folders: AttemptFolders, uploads: LogUploads | None) -> None:
    if uploads is not None:
        uploads.turn()
    if count := folders.sweep():
        log.info("%d working folders of steps were deleted", count)


def _declared(tools: "Tools", place: "StepAddress") -> list[tuple[str, str]]:
    """Return the targets of the workflow of a step, by stream."""
    from calve.steps.captures import declared_in

    run = tools.state.run(place.workflow_id, place.instance_id)
    if run is None:
        return []
    return declared_in(tools.blueprints.get(place.workflow_id, run.version_id).workflow)


def traced(settings: TelemetrySettings, listener: "Listener") -> "Listener":
    """Return a listener that also sends spans, if the settings have the address of a collector."""
    if settings.otlp_url is None:
        return listener
    spans = _spans(settings.otlp_url, settings.service)

    def heard(turn: "Transaction") -> None:
        spans.tell(turn)
        listener(turn)

    return heard


@cache
def _spans(url: str, service: str) -> "Spans":
    """Return the sender of this process's spans; when the process ends, it sends the remaining ones."""
    from calve.telemetry import Spans, otlp_processor

    spans = Spans(otlp_processor(url), service)
    atexit.register(spans.close)
    return spans
