"""The whole web UI: files, pages, actions, and errors as pages."""

from typing import TYPE_CHECKING

from calve.web import actions, static_files
from calve.web.page import error_page
from calve.web.pages import ROUTERS

if TYPE_CHECKING:
    from fastapi import FastAPI


def add_pages(app: "FastAPI") -> None:
    """Add the pages to an app, and let it answer errors with pages too."""
    static_files.warn()
    # The actions come last: /actions/sign-in is a page of its own, not an operation.
    for router in (static_files.routes.router, *ROUTERS, actions.pages.router):
        app.router.routes.extend(router.routes)
    app.state.error_page = error_page
