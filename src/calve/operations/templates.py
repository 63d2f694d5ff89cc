"""Job templates, installed and pushed."""

from typing import Annotated

from calve.definition import JobTemplate, load_template
from calve.engine.views import ActionEvent
from calve.errors import WorkflowMissing
from calve.operations import shapes
from calve.operations.arguments import Word
from calve.operations.caller import Caller
from calve.operations.declaration import Argument, Document, Topic, operation
from calve.operations.documents import action_event
from calve.operations.policy import EDIT_EVERYWHERE, READ_SOMEWHERE
from calve.operations.requests import JSON_TEMPLATE, YAML_TEMPLATE

Version = Annotated[str, Argument(max_length=128)]
Versions = Annotated[str | None, Argument("The version. Default: all of them.", max_length=128)]


class Templates(Topic):
    """Lists, pushes and deletes job templates."""

    __slots__ = ()
    tag = "job templates"

    def templates(self) -> list[Document]:
        """Return all job templates, including installed ones, in all of their versions."""
        return self.list_job_templates("*")

    @operation("GET /job-templates", READ_SOMEWHERE, answer=list[shapes.Template], is_slow=True)
    def list_job_templates(self, version: Version = "default") -> list[Document]:
        """Return the job templates of a version; ``*`` stands for all versions."""
        templates = self.call.engine.tools.vocabulary.templates.all()
        return [_template_json(one) for one in templates if version in {"*", one.definition.version}]

    @operation("GET /job-templates/{type}", READ_SOMEWHERE, id="get_job_template", answer=shapes.Template, is_slow=True)
    def template(self, type: Word, version: Version = "default") -> Document:  # noqa: A002 - Maestro's name
        """Return a job template."""
        found = self.call.engine.tools.vocabulary.templates.get(type, version)
        if found is None:
            raise WorkflowMissing(f"Job template {type} has no version {version}.", template=type)
        return _template_json(found)

    @operation("POST /job-templates", EDIT_EVERYWHERE, answer=shapes.Template, openapi=JSON_TEMPLATE, is_slow=True)
    def push_job_template(self, body: bytes) -> Document:
        """Store a job template, replacing one of the same type and version. Steps that start later use it."""
        return _pushed(self.call, body)

    @operation(
        "POST /job-templates/yaml",
        EDIT_EVERYWHERE,
        answer=shapes.Template,
        openapi=YAML_TEMPLATE,
        is_slow=True,
    )
    def push_job_template_yaml(self, body: bytes) -> Document:
        """Store a job template, replacing one of the same type and version. Steps that start later use it."""
        return _pushed(self.call, body)

    @operation("DELETE /job-templates/{type}", EDIT_EVERYWHERE, answer=ActionEvent, is_slow=True)
    def delete_job_template(self, type: Word, version: Versions = None) -> Document:  # noqa: A002 - Maestro's name
        """Delete a pushed job template that no active or running version uses."""
        count = self.call.engine.delete_template(type, version)
        message = f"Removed [{count}] job template versions for job type: [{type}][{version}]"
        return action_event("DELETE", self.call.name, self.call.engine.tools.clock(), message).as_json()


def _pushed(call: Caller, body: bytes) -> Document:
    template = load_template(body, name="the body", vocabulary=call.engine.tools.vocabulary)
    return _template_json(call.engine.push_template(template, author=call.name))


def _template_json(template: JobTemplate) -> Document:
    written = template.as_json()
    return {**written, "definition": {**written["definition"], "version": template.definition.version}}
