"""What all templates share: filters, the caller and their permissions, the menu, and regions."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import cache, partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
from markupsafe import Markup

from calve import __version__
from calve.addresses import instance_page, table_page, workflow_page
from calve.api.access import RequestInfo, page_token, set_cookie
from calve.errors import AccessError
from calve.operations import Operation, PermissionScope, declared
from calve.web import formats, static_files
from calve.web.legend import tone_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jinja2.runtime import Context
    from starlette.requests import Request
    from starlette.responses import Response

    from calve.api import WebCaller

THEME = "calve_theme"
FLASH = "calve_flash"
_FLASH_SECONDS = 60
_MENU = (
    ("/instances", "Instances", "list_instances", "engine"),
    ("/approvals", "Approvals", "list_approvals", "engine"),
    ("/breakpoints", "Breakpoints", "list_all_breakpoints", "engine"),
    ("/triggers", "Triggers", "list_triggers", "triggers"),
    ("/signals", "Signals", "list_signals", "signals"),
    ("/workers", "Workers", "list_workers", "engine"),
    ("/tag-permits", "Tag permits", "list_tag_permits", "engine"),
    ("/alerts", "Alerts", "list_alerts", "administration"),
    ("/job-templates", "Job templates", "list_job_templates", "engine"),
    ("/users", "Users", "list_users", "accounts"),
    ("/tokens", "Tokens", "list_tokens", "accounts"),
    ("/secrets", "Secrets", "list_secrets", "administration"),
    ("/audit", "Audit log", "read_audit", "accounts"),
)
"""The entries of the menu: path, label, the operation that the page performs, and the service that it requires."""
_LONGEST = 500


@cache
def environment() -> Environment:
    """Return the template environment: text is escaped, and an undefined name is an error."""
    made = Environment(
        loader=PackageLoader("calve.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        tone=tone_of,
        words=formats.words,
        shown=formats.shown,
        brief=formats.brief,
        cause=formats.cause,
        duration=formats.duration,
        size=formats.size,
        number=formats.number,
        moment=formats.moment,
        clock=formats.clock,
        since=_since,
    )
    made.tests["partial"] = _is_partial
    made.globals.update(
        static=static_files.address,
        elements=static_files.elements,
        region=_region,
        version=__version__,
        workflow_page=workflow_page,
        instance_page=instance_page,
        table_page=table_page,
    )
    return made


@pass_context
def _since(context: "Context", then: int) -> str:
    return formats.since(then, context["now"])


def _is_partial(info: "Mapping[str, Any]") -> bool:
    """Tell whether a page shows only a part of a list, by its ``page_info``."""
    return bool(info["has_previous_page"] or info["has_next_page"])


@pass_context
def _region(context: "Context", name: str, caller: "Callable[[], str] | None" = None) -> Markup:
    """Return a region of the page, which the page's stream keeps up to date.

    Its content is that of ``{% call region("name") %} … {% endcall %}``; without a ``call`` block, that of the template
    ``_name.html`` in the folder of the page's template.
    """
    path = PurePosixPath(context["page"].template).parent / f"_{name}.html"
    inner = caller() if caller else environment().get_template(path.as_posix()).render(context.get_all())
    context["parts"][name] = inner
    return Markup('<div id="{}" class="region">{}</div>').format(name, Markup(inner))  # noqa: S704 - a template made it


def rendered_regions(template: str, values: "Mapping[str, Any]") -> dict[str, str]:
    """Render a page, and return the HTML of its regions by name."""
    parts: dict[str, str] = {}
    environment().get_template(template).render({**values, "parts": parts})
    return parts


@cache
def operations() -> "Mapping[str, Operation]":
    """Return all operations by id."""
    return {one.id: one for _, one in declared()}


def may(call: "WebCaller", operation_id: str, workflow_id: str = "") -> bool:
    """Tell whether the caller may perform an operation on a workflow; pages only show buttons for what is allowed."""
    policy = operations()[operation_id].policy
    if policy.scope is PermissionScope.SOMEWHERE and workflow_id:
        return call.may(policy.permission, workflow_id)
    try:
        policy.check(call.principal, workflow_id)
    except AccessError:
        return False
    return True


def _menu(call: "WebCaller") -> list[tuple[str, str]]:
    """Return the path and the label of each menu entry that the caller may open."""
    return [
        (path, label)
        for path, label, operation_id, service in _MENU
        if getattr(call.services, service) is not None and may(call, operation_id)
    ]


def frame(request: "Request", call: "WebCaller") -> dict[str, Any]:
    """Return the template variables that all pages share."""
    info = getattr(request.state, "info", None)
    token = page_token(call.principal, info) if isinstance(info, RequestInfo) else None
    theme = request.cookies.get(THEME, "")
    return {
        "me": call.principal,
        "csrf": token or "",
        "has_session": token is not None,
        "theme": theme if theme in {"light", "dark"} else "",
        "flash": _flashed(request),
        "now": call.engine.tools.clock(),
        "may": partial(may, call),
        "menu": _menu(call),
        "path": _page_address(request),
        "live": "",
        "parts": {},
    }


def _page_address(request: "Request") -> str:
    """Return the address of the page that a request is for; for a stream, without ``/live`` and ``after``."""
    url = request.url
    if url.path.startswith("/live/"):
        url = url.replace(path=url.path.removeprefix("/live")).remove_query_params("after")
    return f"{url.path}?{url.query}".removesuffix("?")


def flash(request: "Request", answer: "Response", message: str) -> None:
    """Set the cookie with a message that the next page shows, once; an empty message deletes the cookie."""
    info = getattr(request.state, "info", None)
    is_secure = isinstance(info, RequestInfo) and info.is_secure
    text = urlsafe_b64encode(message[:_LONGEST].encode("utf-8", "replace")).decode()
    set_cookie(answer, FLASH, text, is_secure=is_secure, seconds=_FLASH_SECONDS if message else 0)


def _flashed(request: "Request") -> str:
    try:
        return urlsafe_b64decode(request.cookies.get(FLASH, "")).decode()[:_LONGEST]
    except ValueError:
        return ""
