"""Workers: what carries out steps on this machine, and with what."""

import logging
import os
import sys
import time
from functools import partial
from typing import TYPE_CHECKING

from calve.app.attempt_folders import AttemptFolders, folders_on
from calve.app.capturing import captures_on, deliveries_on, table_rights_on
from calve.app.log_location import PART, LogUploads, uploads_on
from calve.app.processes import is_gone, this_process
from calve.app.tracing import traced
from calve.settings import Settings, StepLogSettings
from calve.store import Store

if TYPE_CHECKING:
    from calve.access.secrets import Secrets
    from calve.engine import Listener, Runtimes, Tools, Worker, WorkerOptions
    from calve.engine.logs import LogLimits
    from calve.engine.ports import Place
    from calve.lake import Lake

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
    """Return a worker on this machine, which does nothing until it is run."""
    from calve.engine import AnchoredClock, Executor, Worker

    folders = folders_on(settings, tools.state)
    folder = folders.folder
    uploads = uploads_on(folder, settings.logs, settings.project, tools.state)
    clock = tools.clock
    assert isinstance(clock, AnchoredClock)  # noqa: S101 - open_workplace made it
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
    """Return what carries out steps, by type: all that is installed."""
    from calve.steps import Services, Surroundings, isolation_of, load_runtimes

    surroundings = Surroundings(
        project=settings.project,
        environment=os.environ,  # noqa: TID251 - handed to the programs that steps run, never read
        python=sys.executable,
        java_home=settings.spark.java_home,
        variables=settings.worker.environment,
        isolation=isolation_of(settings),
    )
    return load_runtimes(
        Services(
            tools.clock,
            surroundings,
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
    """Return how much of a log is kept."""
    from calve.engine.logs import LogLimits

    return LogLimits(settings.head, settings.tail, None if settings.location is None else PART)


def _tidied(folders: AttemptFolders, uploads: LogUploads | None) -> None:
    if uploads is not None:
        uploads.turn()
    if count := folders.sweep():
        log.info("%d folders of attempts were removed", count)


def _declared(tools: "Tools", place: "Place") -> list[tuple[str, str]]:
    """Return the targets of the workflow that a step stands in, by stream."""
    from calve.steps.captures.declared import declared_in

    run = tools.state.run(place.workflow_id, place.instance_id)
    if run is None:
        return []
    return declared_in(tools.blueprints.get(place.workflow_id, run.version_id).workflow)
