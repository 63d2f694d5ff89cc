"""Job templates: those that are installed, and those that are pushed."""

from typing import Annotated, Any

from fastapi import Query
from starlette.responses import Response

from calve.access import Permission
from calve.api import shapes
from calve.api.answers import Document
from calve.api.bodies import Raw
from calve.api.callers import Call
from calve.api.documents import action_event
from calve.api.examples import JSON_TEMPLATE, YAML_TEMPLATE
from calve.api.identifiers import Word
from calve.api.policy import READ_SOMEWHERE, Policy, Scope
from calve.api.routing import Routes
from calve.definition import JobTemplate, load_template
from calve.errors import WorkflowMissing

routes = Routes("job templates", is_slow=True)
_EDIT = Policy(Permission.EDIT, Scope.EVERYWHERE)
_Version = Annotated[str, Query(max_length=128)]
_Versions = Annotated[str | None, Query(max_length=128, description="The version; all of them, if none is named.")]


@routes.get("/job-templates", "list_job_templates", READ_SOMEWHERE, list[shapes.Template])
def list_templates(call: Call, version: _Version = "default") -> Response:
    """Return the job templates that have a version of that name; ``*`` stands for all versions."""
    templates = call.engine.tools.vocabulary.templates.all()
    return Document([_written(one) for one in templates if version in {"*", one.definition.version}])


@routes.get("/job-templates/{type}", "get_job_template", READ_SOMEWHERE, shapes.Template)
def get_template(call: Call, type: Word, version: _Version = "default") -> Response:  # noqa: A002 - Maestro's name
    """Return a job template."""
    found = call.engine.tools.vocabulary.templates.get(type, version)
    if found is None:
        raise WorkflowMissing(f"There is no job template {type} in the version {version}.", template=type)
    return Document(_written(found))


@routes.post("/job-templates", "push_job_template", _EDIT, shapes.Template, openapi_extra=JSON_TEMPLATE)
@routes.post("/job-templates/yaml", "push_job_template_yaml", _EDIT, shapes.Template, openapi_extra=YAML_TEMPLATE)
def push(call: Call, body: Raw) -> Response:
    """Keep a job template, in place of the one of the same type and version: steps that begin from now on take it."""
    template = load_template(body, name="the body", vocabulary=call.engine.tools.vocabulary)
    return Document(_written(call.engine.push_template(template, author=call.name)))


@routes.delete("/job-templates/{type}", "delete_job_template", _EDIT, shapes.ActionEvent)
def delete(call: Call, type: Word, version: _Versions = None) -> Response:  # noqa: A002 - Maestro's name
    """Forget a job template that was pushed, and that no version of a workflow uses that is active or at work."""
    count = call.engine.delete_template(type, version)
    message = f"Removed [{count}] job template versions for job type: [{type}][{version}]"
    return Document(action_event("DELETE", call.name, call.engine.tools.clock(), message).as_json())


def _written(template: JobTemplate) -> dict[str, Any]:
    written = template.as_json()
    return {**written, "definition": {**written["definition"], "version": template.definition.version}}
