"""Job templates: pushed, and deleted once nothing uses them."""

from collections.abc import Iterator

from calve.definition import Definition, JobTemplate, installed
from calve.definition.model.steps import TypedStep
from calve.definition.templates import version_of
from calve.engine.model import VersionRecord
from calve.engine.work import Tools
from calve.errors import RequestInvalid

_SHOWN = 5


def push(tools: Tools, template: JobTemplate, author: str) -> JobTemplate:
    """Keep a template; return it with who did so, and when."""
    now = tools.clock()
    about = {"version_author": author, "create_time": now}
    kept = template.model_copy(update={"metadata": template.metadata.model_copy(update=about)})
    tools.state.keep_template(kept, now)
    return kept


def delete(tools: Tools, job_type: str, version: str | None) -> int:
    """Forget a template in a version, or in all; return how many were forgotten.

    A step whose template is not there would run without its params: a ``sub_type`` that no template has is a label.

    Raises:
        RequestInvalid: it comes with the product, or something uses it.
    """
    if installed().templates.versions(job_type):
        raise RequestInvalid(f"The job template {job_type} comes with calve: it cannot be deleted.")
    users = [*dict.fromkeys(_workflows(tools, job_type, version)), *_heirs(tools, job_type, version)]
    if users:
        more = f" and {len(users) - _SHOWN} more" if len(users) > _SHOWN else ""
        raise RequestInvalid(
            f"The job template {job_type} is used by {', '.join(users[:_SHOWN])}{more}.",
            remedy="Push them without it, or deactivate or delete them, and wait for their instances, first.",
        )
    return tools.state.remove_templates(job_type, version)


def _workflows(tools: Tools, job_type: str, version: str | None) -> Iterator[str]:
    for record in tools.state.versions_naming(job_type):
        if any(version in {None, used} for used in _versions_in(record, job_type)):
            yield record.workflow_id


def _versions_in(record: VersionRecord, job_type: str) -> Iterator[str]:
    workflow = Definition.model_validate(record.definition).workflow
    for step in workflow.all_steps():
        if isinstance(step, TypedStep) and step.sub_type == job_type:
            yield version_of(step.sub_type_version, workflow.params)


def _heirs(tools: Tools, job_type: str, version: str | None) -> Iterator[str]:
    for template in tools.state.templates():
        about = template.definition
        goes_too = about.job_type == job_type and version in {None, about.version}
        inherited = about.inherit_from.get(job_type)
        if inherited is not None and version in {None, inherited} and not goes_too:
            yield f"the template {about.job_type} {about.version}"
