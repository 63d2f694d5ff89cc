"""The routes of all pages."""

from calve.web.pages import (
    access,
    captures,
    home,
    instance_lists,
    instances,
    iterations,
    lineage,
    sign_in,
    signals,
    starts,
    steps,
    styleguide,
    tables,
    workers,
    workflow,
    workflows,
)

ROUTERS = (
    home.pages.router,
    workflows.pages.router,
    workflow.pages.router,
    starts.pages.router,
    instance_lists.pages.router,
    instances.pages.router,
    iterations.pages.router,
    tables.pages.router,
    captures.pages.router,
    lineage.pages.router,
    signals.pages.router,
    steps.pages.router,
    workers.pages.router,
    access.pages.router,
    styleguide.pages.router,
    sign_in.pages.router,
)
"""The routers, in the order in which their paths are matched."""
