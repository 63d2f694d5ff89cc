"""Pages: one function answers with HTML, with the REST document that the page shows, and with a stream of updates."""

import gzip
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from urllib.parse import quote

from fastapi import Header, Query, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from calve.api import Document, Problem, Routes, WebCaller, caller_of, in_slow_thread, in_thread
from calve.operations import Policy, event_number
from calve.web.frame import FLASH, environment, flash, frame, rendered_regions
from calve.web.live import OFTEN, Thread, stream

if TYPE_CHECKING:
    from fastapi import APIRouter

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {"Content-Security-Policy": CONTENT_SECURITY_POLICY, "Vary": "Accept, Accept-Encoding, Cookie"}
_LEVEL = 5
_IS_LIVE = "is_live"
_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_UNAUTHORIZED = 401
_TITLES = {
    401: "Sign in again",
    403: "You may not do this",
    404: "Not found",
    429: "Too many requests",
    503: "Not available now",
}
Handler = TypeVar("Handler", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Page:
    """The content of a page, and the template that renders it."""

    template: str
    title: str
    document: Any
    """The document of the REST API that the page shows, which callers who accept JSON get."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """Further variables of the template."""
    here: str = ""
    """The entry of the navigation that the page belongs to."""
    regions: tuple[str, ...] = ()
    """The names of the regions that the page's stream keeps up to date; see ``_region`` in ``calve.web.frame``."""
    status: int = 200

    def context(self) -> dict[str, Any]:
        """Return the template variables of this page."""
        return {"page": self, "document": self.document, **self.values}


class Pages:
    """Pages about one topic.

    Args:
        tag: the topic.
        is_slow: whether they may wait for something other than the state database.
    """

    def __init__(self, tag: str, *, is_slow: bool = False) -> None:
        self.routes = Routes(tag, prefix="", is_slow=is_slow)
        self._is_slow = is_slow

    @property
    def router(self) -> "APIRouter":
        """The routes."""
        return self.routes.router

    def get(
        self, path: str, name: str, policy: Policy, *, live: bool = False, every: float = OFTEN, **more: Any
    ) -> Callable[[Handler], Handler]:
        """Make a function that takes ``call: Call`` and returns a ``Page`` answer GET and HEAD.

        Args:
            path: the path of the page; the path of its stream starts with ``/live`` in addition.
            name: the name of the route.
            policy: who may see the page.
            live: whether the page has regions that its stream keeps up to date. A function with a parameter ``is_live``
                learns whether it renders for the stream: it can leave slow work to the stream, which starts at once.
            every: the minimum number of seconds between two messages of the stream.
            more: see ``calve.api.Routes``.
        """

        def decorate(handler: Handler) -> Handler:
            page = _with_request(handler, partial(_page, live=live))
            self.routes.get(path, name, policy, include_in_schema=False, **more)(page)
            self.routes.head(path, f"head_{name}", policy, include_in_schema=False, **more)(page)
            if live:
                streaming = _stream_of(handler, every, in_slow_thread if self._is_slow else in_thread)
                self.routes.get(f"/live{path}", f"live_{name}", policy, include_in_schema=False)(streaming)
            return handler

        return decorate

    def post(self, path: str, name: str, policy: Policy, **more: Any) -> Callable[[Handler], Handler]:
        """Make a function that returns a response answer POST."""
        return self.routes.post(path, name, policy, include_in_schema=False, **more)


def _with_request(handler: Callable[..., Any], answer: Callable[..., Response]) -> Callable[..., Response]:
    """Return an endpoint that passes the request, the caller and the bound handler to ``answer``."""
    own = {"request"} & inspect.signature(handler).parameters.keys()

    def answering(request: Request, **arguments: Any) -> Response:
        given = {**arguments, **dict.fromkeys(own, request)}
        return answer(request, arguments["call"], partial(handler, **given))

    return _described(answering, handler, inspect.Parameter("request", _KEYWORD, annotation=Request))


def _described(made: Callable[..., Any], handler: Callable[..., Any], *more: inspect.Parameter) -> Callable[..., Any]:
    """Set the signature of an endpoint, for FastAPI: the parameters of the handler, and ``more``."""
    given = [one.replace(kind=_KEYWORD) for one in inspect.signature(handler).parameters.values()]
    names = {one.name for one in more}
    made.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [*more, *(one for one in given if one.name not in names | {_IS_LIVE})]
    )
    made.__name__, made.__doc__ = handler.__name__, handler.__doc__
    return made


def _page(request: Request, call: WebCaller, make: Callable[[], Page | Response], *, live: bool) -> Response:
    after = call.engine.state.last_event() if live else 0  # before the page is made, so that nothing is missed
    made = make()
    if isinstance(made, Response):
        return made
    return answered(request, call, made, live=f"/live{_address(request, after=after)}" if live and made.regions else "")


def answered(request: Request, call: WebCaller, page: Page, *, live: str = "") -> Response:
    """Return a page as HTML, or as the REST document if the caller accepts JSON but not HTML."""
    accept = request.headers.get("accept", "")
    if "json" in accept and "html" not in accept:
        return Document(page.document, page.status, headers={"Vary": "Accept, Cookie"})
    return html(request, call, page, live=live)


def html(request: Request, call: WebCaller, page: Page, *, live: str = "") -> Response:
    """Return a page as HTML, and delete the cookie with the message that the page has shown."""
    values = {**frame(request, call), "live": live, **page.context()}
    text = environment().get_template(page.template).render(values)
    answer = _compressed(request, text, page.status)
    if FLASH in request.cookies:
        flash(request, answer, "")
    return answer


def _compressed(request: Request, text: str, status: int) -> Response:
    """Return HTML, compressed if the browser accepts it: a list of workflows with all of its bars has 200 kB.

    The length of compressed text can reveal a token next to text that an attacker chose (BREACH). To measure it, the
    attacker has to make the browser send requests with its session cookie, which ``SameSite=Strict`` prevents.
    """
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return HTMLResponse(text, status, headers=_HEADERS)
    content = gzip.compress(text.encode(), _LEVEL, mtime=0)
    return HTMLResponse(content, status, headers={**_HEADERS, "Content-Encoding": "gzip"})


def error_page(request: Request, problem: Problem) -> Response:
    """Return the page for an error; callers who are not signed in are redirected to sign in."""
    if problem.status == _UNAUTHORIZED and request.method == "GET":
        return RedirectResponse(f"/sign-in?next={quote(_address(request), safe='/')}", 303)
    title = _TITLES.get(problem.status, "This did not work")
    page = Page("error.html", title, {}, {"problem": problem}, status=problem.status)
    answer = html(request, caller_of(request), page)
    answer.headers.update(problem.headers)
    return answer


def _address(request: Request, **more: Any) -> str:
    url = request.url.include_query_params(**more) if more else request.url
    return f"{url.path}?{url.query}".removesuffix("?")


_After = Annotated[int, Query(ge=0, lt=2**63)]
_LastEventId = Annotated[str | None, Header(max_length=20)]


def _stream_of(handler: Callable[..., Page], every: float, thread: Thread) -> Callable[..., Any]:
    """Return an endpoint that streams the regions of a page after each event of its workflow or instance."""
    told = dict.fromkeys({_IS_LIVE} & inspect.signature(handler).parameters.keys(), True)

    async def streaming(
        request: Request, call: WebCaller, after: int, last_event_id: str | None, **arguments: Any
    ) -> Response:
        def regions() -> dict[str, str]:
            page = handler(call=call, **arguments, **told)
            return rendered_regions(page.template, {**frame(request, call), **page.context()})

        start = event_number(last_event_id, after) or 0
        chosen = (arguments.get("workflow_id") or None, arguments.get("instance_id"))
        is_due = bool(told) or last_event_id is not None
        return await in_thread(stream, call, chosen, start, regions, every, thread, is_due=is_due)

    return _described(
        streaming,
        handler,
        inspect.Parameter("request", _KEYWORD, annotation=Request),
        inspect.Parameter("after", _KEYWORD, annotation=_After, default=0),
        inspect.Parameter("last_event_id", _KEYWORD, annotation=_LastEventId, default=None),
    )
