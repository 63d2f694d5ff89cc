"""What every template knows: the filters, who is signed in, what they may do, and what stands around a page."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import cache, partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
from markupsafe import Markup

from calve import __version__
from calve.api.access import RequestInfo, page_token, set_cookie
from calve.errors import AccessError
from calve.operations import Operation, Scope, declared
from calve.web import formats, static_files
from calve.web.legend import tone_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jinja2.runtime import Context
    from starlette.requests import Request
    from starlette.responses import Response

    from calve.api import WebCaller

THEME = "calve_theme"
FLASH = "calve_flash"
_FLASH_SECONDS = 60
_MENU = (
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
"""What the menu leads to besides: the operation that each page performs, and the service that it takes."""
_LONGEST = 500


@cache
def environment() -> Environment:
    """Return what renders templates: text is escaped, and a name that is not known is an error."""
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
        duration=formats.duration,
        size=formats.size,
        number=formats.number,
        moment=formats.moment,
        clock=formats.clock,
        since=_since,
    )
    made.globals.update(
        static=static_files.address, elements=static_files.elements, region=_region, version=__version__
    )
    return made


@pass_context
def _since(context: "Context", then: int) -> str:
    return formats.since(then, context["now"])


@pass_context
def _region(context: "Context", name: str) -> Markup:
    """Return a region of the page, which its stream keeps up to date."""
    inner = rendered_region(context["page"].template, name, context.get_all())
    return Markup('<div id="{}" class="region">{}</div>').format(name, Markup(inner))  # noqa: S704 - a template's own


def rendered_region(template: str, name: str, values: "Mapping[str, Any]") -> str:
    """Return the content of a region: its template, from the folder of the page's."""
    path = PurePosixPath(template).parent / f"_{name}.html"
    return environment().get_template(path.as_posix()).render(values)


@cache
def operations() -> "Mapping[str, Operation]":
    """Return all operations by id."""
    return {one.id: one for _, one in declared()}


def may(call: "WebCaller", operation_id: str, workflow_id: str = "") -> bool:
    """Tell whether the caller may perform an operation on a workflow: the pages show no button that is refused."""
    policy = operations()[operation_id].policy
    if policy.scope is Scope.SOMEWHERE and workflow_id:
        return call.may(policy.permission, workflow_id)
    try:
        policy.check(call.principal, workflow_id)
    except AccessError:
        return False
    return True


def _menu(call: "WebCaller") -> list[tuple[str, str]]:
    """Return the pages of the menu that the caller may see: address and label of each."""
    return [
        (path, label)
        for path, label, operation_id, service in _MENU
        if getattr(call.services, service) is not None and may(call, operation_id)
    ]


def frame(request: "Request", call: "WebCaller") -> dict[str, Any]:
    """Return what every page of a request is rendered with."""
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
        "path": f"{request.url.path}?{request.url.query}".removesuffix("?"),
        "live": "",
    }


def flash(request: "Request", answer: "Response", message: str) -> None:
    """Let the next page show a message, once."""
    info = getattr(request.state, "info", None)
    is_secure = isinstance(info, RequestInfo) and info.is_secure
    text = urlsafe_b64encode(message[:_LONGEST].encode("utf-8", "replace")).decode()
    set_cookie(answer, FLASH, text, is_secure=is_secure, seconds=_FLASH_SECONDS if message else 0)


def _flashed(request: "Request") -> str:
    try:
        return urlsafe_b64decode(request.cookies.get(FLASH, "")).decode()[:_LONGEST]
    except ValueError:
        return ""
