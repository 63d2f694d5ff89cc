"""Job templates: those that are installed."""

from typing import Annotated, Any

from fastapi import Query
from starlette.responses import Response

from calve.access import Permission
from calve.api.answers import Document
from calve.api.identifiers import Word
from calve.api.policy import READ_SOMEWHERE, Policy, Scope
from calve.api.routing import Routes
from calve.api.services import Call, Caller
from calve.errors import RequestInvalid, WorkflowMissing

routes = Routes("job templates")
_CHANGE = Policy(Permission.ADMINISTER, Scope.EVERYWHERE)
_Version = Annotated[str, Query(max_length=128)]


@routes.get("/job-templates", "list_job_templates", READ_SOMEWHERE)
def list_templates(call: Call, version: _Version = "default") -> Response:
    """Return the job templates that have a version of that name."""
    templates = call.engine.tools.vocabulary.templates
    names = (*templates.names(), *templates.workflow_names())
    return Document([_written(call, name, version) for name in names if version in templates.versions(name)])


@routes.get("/job-templates/{type}", "get_job_template", READ_SOMEWHERE)
def get_template(call: Call, type: Word, version: _Version = "default") -> Response:  # noqa: A002 - Maestro's name
    """Return a job template."""
    return Document(_written(call, type, version))


@routes.post("/job-templates", "push_job_template", _CHANGE)
@routes.post("/job-templates/yaml", "push_job_template_yaml", _CHANGE)
def push(call: Call) -> Response:
    """Refuse a job template: they come with packages that are installed."""
    raise _fixed(call)


@routes.delete("/job-templates/{type}", "delete_job_template", _CHANGE)
def delete(call: Call, type: Word) -> Response:  # noqa: A002 - Maestro's name
    """Refuse to remove a job template: they come with packages that are installed."""
    del type
    raise _fixed(call)


def _fixed(call: Caller) -> RequestInvalid:
    names = ", ".join(call.engine.tools.vocabulary.templates.names())
    return RequestInvalid(
        f"Job templates come with packages that are installed, not over the network. There are: {names}.",
        remedy="Install a package with the entry point calve.step_types, or write a subworkflow.",
    )


def _written(call: Caller, name: str, version: str) -> dict[str, Any]:
    found = call.engine.tools.vocabulary.templates.find(name, version)
    if found is None:
        raise WorkflowMissing(f"There is no job template {name} in the version {version}.", template=name)
    return {"metadata": {"job_type": name, "version": version}, "definition": found.as_json()}
