"""The web application of a project."""

import shutil
from functools import partial
from typing import TYPE_CHECKING

from calve.app.access import access_control_on
from calve.app.project import Project
from calve.settings import Settings

if TYPE_CHECKING:
    from fastapi import FastAPI


def web_on(project: Project, host: str) -> "FastAPI":
    """Return the web application of a project, for a server that listens on an address.

    Raises:
        SettingsInvalid: other machines could reach the server, and the settings do not define how it is protected.
    """
    from calve.api import FairThreads, Streams, WebServices, create_app
    from calve.api.access import guarded
    from calve.telemetry import Metrics
    from calve.web import add_pages

    settings, store = project.settings, project.store
    services = WebServices(
        project.engine,
        project.captures,
        project.tables,
        project.lineage,
        signals=project.signals,
        triggers=project.triggers,
        accounts=project.accounts,
        administration=project.administration,
        changed=project.changed,
        scrape=Metrics(store.telemetry, project.engine.tools.clock).scrape,
        probes={"database": store.problem, "disk": partial(_disk_problem, settings)},
        body_limit=settings.server.max_body,
        streams=Streams(settings.server.streams, settings.server.streams_per_caller),
        graphql=settings.server.graphql,
        queries=FairThreads(settings.server.threads),
    )
    return create_app(services, **guarded(access_control_on(store, settings, host), add_pages))


def _disk_problem(settings: Settings) -> str | None:
    """Return the problem with the disk, if there is one."""
    free = shutil.disk_usage(settings.home if settings.home.is_dir() else settings.project).free
    return f"{free} bytes are free in {settings.home}." if free < settings.server.min_free else None
