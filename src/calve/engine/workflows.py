"""Changes to the properties of workflows and to job templates, which belong to no version."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from calve.definition import Definition, JobTemplate, installed
from calve.definition.model import Properties, TypedStep
from calve.definition.templates import version_of
from calve.engine.instances import Tools
from calve.engine.model import Json, VersionRecord
from calve.errors import RequestInvalid

PropertyChange = Callable[[Json], Json]


def with_changes(changes: Mapping[str, Any], reset: Collection[str] = ()) -> PropertyChange:
    """Return a function that merges changes into properties; it keeps those that are None, and removes ``reset``.

    Raises:
        RequestInvalid: a property is unknown or invalid, or is both changed and reset.
    """
    given = {name: value for name, value in changes.items() if value is not None}
    if both := sorted(given.keys() & set(reset)):
        raise RequestInvalid(f"{', '.join(both)} cannot be both set and reset.")
    written = _checked(given)
    return lambda before: {name: value for name, value in {**before, **written}.items() if name not in set(reset)}


def with_tag(tag: str | Mapping[str, Any]) -> PropertyChange:
    """Return a function that adds a tag, replacing one of the same name.

    Raises:
        RequestInvalid: the tag is invalid.
    """
    (written,) = _checked({"tags": [tag]})["tags"]
    return lambda before: {**before, "tags": [*_without(before, _name(written)), written]}


def without_tag(name: str) -> PropertyChange:
    """Return a function that removes a tag, if it exists."""
    return lambda before: {**before, "tags": _without(before, name)}


def _checked(given: Mapping[str, Any]) -> dict[str, Any]:
    try:
        properties = Properties.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise RequestInvalid(f"The property {place} is invalid: {first['msg']}.", property=place) from None
    written = properties.as_json()
    return {name: written[name] for name in given if name in written}


def _without(properties: Json, name: str) -> list[Any]:
    return [tag for tag in properties.get("tags", ()) if _name(tag) != name]


def _name(tag: Any) -> str:
    return str(tag if isinstance(tag, str) else tag["name"])


_SHOWN = 5


def push_template(tools: Tools, template: JobTemplate, author: str) -> JobTemplate:
    """Store a template; return it with its author and time."""
    now = tools.clock()
    about = {"version_author": author, "create_time": now}
    kept = template.model_copy(update={"metadata": template.metadata.model_copy(update=about)})
    tools.state.keep_template(kept, now)
    return kept


def delete_template(tools: Tools, job_type: str, version: str | None) -> int:
    """Delete a template in one version, or in all; return how many were deleted.

    Refused while a step uses it, which would then run without its params: an unknown ``sub_type`` is only a label.

    Raises:
        RequestInvalid: it is built in, or something uses it.
    """
    if installed().templates.versions(job_type):
        raise RequestInvalid(f"The job template {job_type} is built in and cannot be deleted.")
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
