"""The start of a workflow: a form derived from its params, and the equivalent commands."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Annotated, Any

from fastapi import Query, Request

from calve.access import PrincipalKind
from calve.addresses import workflow_page
from calve.api import Call, WebCaller, problem_of
from calve.definition import to_yaml
from calve.errors import CalveError
from calve.operations import PREFIX, RUN, Operations
from calve.web.forms import Fields, first, parsed
from calve.web.page import Page, Pages
from calve.web.pages.workflow import default_of

pages = Pages("starts", is_slow=True)

Document = dict[str, Any]
_KINDS = {"LONG": "a whole number", "DOUBLE": "a number", "BOOLEAN": "true or false"}
"""What to enter for a param of a type; for types that are not listed, JSON."""
_Text = Annotated[str, Query(max_length=128)]


@pages.get("/workflows/{workflow_id}/start", "start_page", RUN)
def start(call: Call, request: Request, workflow_id: str, version: _Text = "active") -> Page:
    """Show the form for the params of a start, and the equivalent commands."""
    return start_form(call, request, workflow_id, version, parsed(request.url.query.encode()))


def start_form(
    call: WebCaller,
    request: Request,
    workflow_id: str,
    version: str,
    given: Fields,
    error: CalveError | None = None,
) -> Page:
    """Return the form of a start as the user has filled it in, with errors beside the fields."""
    document = Operations(call).version(workflow_id, version)
    written = document["workflow"].get("params") or {}
    about = {name: default_of(param) for name, param in written.items()}
    asked = [
        _Field(name, one, first(given, _field_name(name, one["type"])))
        for name, one in about.items()
        if not one["is_fixed"]
    ]
    wrong = {one.name: one.fault for one in asked if one.text and one.fault}
    named = str(error.context.get("param", "")) if error else ""
    if error and not wrong and named in {one.name for one in asked}:
        wrong = {named: error.message}
    values = {
        "name": workflow_id,
        "chosen_version": version,
        "fields": asked,
        "wrong": wrong,
        "error": None if wrong else error,
        "commands": _commands(call, request, workflow_id, version, [one for one in asked if one.text]),
        "next": f"{workflow_page(workflow_id)}?tab=runs",
    }
    is_fragment = request.headers.get("x-calve-fragment") == "1"
    template = "workflows/_start.html" if is_fragment else "workflows/start.html"
    status = problem_of(error).status if error else 200
    return Page(template, f"Start {workflow_id}", document, values, here="workflows", status=status)


def _field_name(name: str, kind: str) -> str:
    return f"run_params.{name}" + ("" if kind == "STRING" else ":json")


@dataclass(frozen=True, slots=True)
class _Field:
    """A param in the form of a start, and the text that the user has entered for it."""

    name: str
    about: Document
    given: str = ""

    @property
    def text(self) -> str:
        """The entered text; empty if the param keeps its default."""
        return self.given if self.given.strip() else ""

    @property
    def field(self) -> str:
        """The name of the field, which ends with ``:json`` unless the param is a STRING."""
        return _field_name(self.name, self.about["type"])

    @property
    def fault(self) -> str:
        """The error in the text, as a sentence; empty if the text is valid."""
        if self.about["type"] == "STRING":
            return ""
        try:
            json.loads(self.text)
        except ValueError as error:
            kind = _KINDS.get(self.about["type"])
            return f"Write {kind}." if kind else f"This is not JSON: {error}."
        return ""

    @property
    def value(self) -> Any:
        """The value that the text stands for; the text itself if it is invalid."""
        return self.text if self.about["type"] == "STRING" or self.fault else json.loads(self.text)

    @property
    def word(self) -> str:
        """The param as an argument of ``calve run``, which parses JSON: a STRING that looks like JSON is quoted."""
        try:
            json.loads(self.text)
            is_json = True
        except ValueError:
            is_json = False
        is_quoted = is_json and self.about["type"] == "STRING"
        return quote(f"{self.name}={json.dumps(self.text, ensure_ascii=False) if is_quoted else self.text}")


def _commands(
    call: WebCaller, request: Request, workflow_id: str, version: str, fields: Sequence[_Field]
) -> tuple[str, str, str]:
    """Return the command and the HTTP request that are equivalent to a form, and the body of the request as YAML."""
    chosen = [] if version == "active" else ["--version", quote(version)]
    command = " ".join(["calve", "run", workflow_id, *(one.word for one in fields), *chosen, "--no-wait"])
    body = {"run_params": {one.name: one.value for one in fields}} if fields else {}
    address = f"{str(request.base_url).rstrip('/')}{PREFIX}/workflows/{workflow_id}/versions/{version}/actions/start"
    is_open = call.principal.kind is PrincipalKind.LOOPBACK
    headers = "-H 'Content-Type: application/json'" + ("" if is_open else ' -H "Authorization: Bearer $CALVE_TOKEN"')
    text = json.dumps(body, ensure_ascii=False)
    return command, f"curl {headers} -d {quote(text)} {quote(address)}", to_yaml(body) if body else ""
