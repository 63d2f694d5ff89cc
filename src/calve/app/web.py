"""The web application of a project."""

import shutil
from functools import partial
from typing import TYPE_CHECKING

from calve.app.capturing import captures_on
from calve.app.entrance import entrance_on
from calve.app.workplace import Workplace
from calve.settings import Settings

if TYPE_CHECKING:
    from fastapi import FastAPI


def web_on(workplace: Workplace, host: str) -> "FastAPI":
    """Return the web application of a project, for a server that listens on an address.

    Raises:
        SettingsInvalid: others could reach it, and the settings do not say how it is protected.
    """
    from calve.api import Services, create_app
    from calve.api.access import guarded
    from calve.api.streams import Streams
    from calve.api.threads import FairThreads
    from calve.telemetry import Metrics

    settings, store = workplace.settings, workplace.store
    services = Services(
        workplace.engine,
        captures_on(workplace.lake, store),
        signals=workplace.signals,
        triggers=store.triggers,
        changed=workplace.watcher().changed,
        scrape=Metrics(store.telemetry, workplace.engine.tools.clock).scrape,
        probes={"database": store.problem, "disk": partial(_disk_problem, settings)},
        body_limit=settings.server.max_body,
        streams=Streams(settings.server.streams, settings.server.streams_per_caller),
        graphql=settings.server.graphql,
        queries=FairThreads(settings.server.threads),
    )
    return create_app(services, **guarded(entrance_on(store, settings, host)))


def _disk_problem(settings: Settings) -> str | None:
    """Return what is wrong with the disk, if anything is."""
    free = shutil.disk_usage(settings.home if settings.home.is_dir() else settings.project).free
    return f"{free} bytes are free in {settings.home}." if free < settings.server.min_free else None
