"""Actions: one route performs all operations that make changes, with forms derived from their declarations."""

from functools import partial
from typing import Any

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from calve.api import Call, WebCaller, in_slow_thread, in_thread, problem_of
from calve.api.access import relative
from calve.errors import CalveError, Forbidden, Unauthenticated
from calve.operations import PREFIX, SIGNED_IN, Operation, Operations
from calve.web.forms import Fields, Form, arguments_of, first, inputs_of, parsed
from calve.web.frame import flash, may, operations
from calve.web.page import Page, Pages, html
from calve.web.pages import start_form

pages = Pages("actions")
CONFIRM = {
    "stop_instance": "Running steps are asked to stop; the instance can be restarted from where it stopped.",
    "kill_instance": "Running steps are killed immediately; undelivered output is discarded.",
    "commit_capture": "The checkpoint moves past this capture: the consumer does not get these rows again.",
    "abandon_capture": "The capture is abandoned. The next one starts from the same checkpoint, so nothing is lost.",
    "set_checkpoint": "Everything up to this place counts as processed, and is not captured again.",
    "reset_checkpoint": "The checkpoint is deleted: the next capture of this consumer takes the whole table.",
    "delete_workflow": "The workflow, its versions, instances and logs are deleted. This cannot be undone.",
}
"""The text of a confirmation, if the documentation of the operation does not explain the effect."""
_LEADS_TO = {
    "start_workflow": "/workflows/{workflow_id}/instances/{workflow_instance_id}",
    "delete_workflow": "/workflows",
    "delete_job_template": "/job-templates",
}
"""The page after an action, if it is not the previous one; names in braces are replaced from the answer."""


@pages.get("/actions/{operation_id}", "action_page", SIGNED_IN)
def action_page(call: Call, request: Request, operation_id: str) -> Page:
    """Show the form of an operation, or its confirmation; ``next`` and arguments are in the query."""
    operation = _operation(operation_id)
    fields = parsed(request.url.query.encode())
    if not may(call, operation_id, first(fields, "workflow_id")):
        raise Forbidden
    return _form_page(request, operation, fields)


@pages.post("/actions/{operation_id}", "perform_action", SIGNED_IN)
async def perform_action(call: Call, request: Request, operation_id: str, fields: Form) -> Response:
    """Perform an operation, and redirect to the next page; if it fails, show the form again with the error."""
    operation = _operation(operation_id)
    try:
        arguments = arguments_of(operation, fields)
        request.state.performed = (operation.id, _rest_path(operation, arguments))
        thread = in_slow_thread if operation.is_slow else in_thread
        answer = await thread(partial(getattr(Operations(call), operation.name), **arguments))
    except (Forbidden, Unauthenticated):
        raise
    except CalveError as error:
        if not may(call, operation_id, first(fields, "workflow_id")):  # an incomplete form fails before this check
            raise Forbidden from error
        if "text/html" not in request.headers.get("accept", ""):
            raise
        return await in_thread(_asked_again, request, call, operation, fields, error)
    return await in_thread(_done, request, call, operation, fields, answer)


def _operation(operation_id: str) -> Operation:
    found = operations().get(operation_id)
    if found is None or found.is_read:
        raise HTTPException(404)
    return found


def _label(operation: Operation) -> str:
    return operation.id.replace("_", " ").capitalize()


def _rest_path(operation: Operation, arguments: dict[str, Any]) -> str:
    defaults = {one.name: one.default for one in operation.parameters}
    return PREFIX + operation.path.replace(":path}", "}").format_map(defaults | arguments)


def _form_page(
    request: Request, operation: Operation, fields: Fields, *, error: CalveError | None = None, status: int = 200
) -> Page:
    label = _label(operation)  # never from the request: a link must not give a deletion another name
    asked = {*first(fields, "asked").split(","), "asked", "csrf", "next"}
    hidden = {name: texts for name, texts in fields.items() if name not in asked}
    values = {
        "operation": operation,
        "label": label,
        "confirm": CONFIRM.get(operation.id, operation.doc),
        "hidden": hidden,
        "given": fields,
        "next": relative(first(fields, "next", "/")),
        "inputs": inputs_of(operation, hidden),
        "error": error,
    }
    is_fragment = request.headers.get("x-calve-fragment") == "1"
    return Page("_action_form.html" if is_fragment else "action.html", label, {}, values, status=status)


def _asked_again(
    request: Request, call: WebCaller, operation: Operation, fields: Fields, error: CalveError
) -> Response:
    if operation.id == "start_workflow":  # its form is derived from the definition
        named = (first(fields, "workflow_id"), first(fields, "version", "active"))
        return html(request, call, start_form(call, request, *named, fields, error))
    page = _form_page(request, operation, fields, error=error, status=problem_of(error).status)
    return html(request, call, page)


def _done(request: Request, call: WebCaller, operation: Operation, fields: Fields, answer: Any) -> Response:
    """Redirect to the next page with a message; or show the answer itself, if the form has the field ``show``."""
    if first(fields, "show"):
        values = {"answer": answer, "next": relative(first(fields, "next", "/"))}
        return html(request, call, Page("action_answer.html", "Done", answer, values))
    led_back = RedirectResponse(_next(operation, fields, answer), 303)
    flash(request, led_back, _message(operation, answer))
    return led_back


def _next(operation: Operation, fields: Fields, answer: Any) -> str:
    """Return the address of the next page: that of what the action created, otherwise the one that the form names."""
    try:
        return _LEADS_TO[operation.id].format_map(answer)
    except KeyError:
        return relative(first(fields, "next", "/"))


def _message(operation: Operation, answer: Any) -> str:
    """Return the message of the answer, otherwise one that says that the action is done."""
    about = answer if isinstance(answer, dict) else {}
    event = about.get("timeline_event")
    text = about.get("message") or (event.get("message") if isinstance(event, dict) else None)
    return str(text) if text else f"{_label(operation)}: done."
