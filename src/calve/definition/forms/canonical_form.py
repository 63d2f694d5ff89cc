"""The canonical form: the one shape to which documents of all forms are converted."""

from collections.abc import Callable
from dataclasses import dataclass

from calve.definition.document import Node, entries as entries_of
from calve.definition.forms.jobs import StepTypeNames
from calve.definition.forms.keys import misspelt, same, sort_keys
from calve.definition.forms.maestro import from_bare_maestro, from_maestro, is_wrapped
from calve.definition.forms.triggers import merged, triggers
from calve.definition.forms.yaml_form import Parts, from_dsl, from_early, properties
from calve.definition.problems import Problems, did_you_mean

DEPTH = 100
"""How deep a document may be nested; deeper ones are refused before they are walked."""

_KEYS = same("workflow", "properties", "is_active", "git_info", "extra_info", "description", "trigger") | {
    "triggers": "trigger"
}
_FORMS = (
    "write Workflow: {id: …, jobs: […]} as in Maestro's YAML, "
    '{"properties": {…}, "workflow": {"id": …, "steps": […]}} as in its JSON, or id and steps'
)


@dataclass(frozen=True, slots=True)
class _Form:
    """How a workflow is written."""

    read: Callable[[Node, Problems, StepTypeNames], Parts]
    keeps_others: bool = False
    """Whether unknown keys beside the workflow are kept, as Maestro does."""


_DSL = _Form(from_dsl)
_EARLY = _Form(from_early)
_MAESTRO = _Form(from_maestro, keeps_others=True)
_BARE_MAESTRO = _Form(from_bare_maestro)


def canonical(document: Node, problems: Problems, types: StepTypeNames) -> Node | None:
    """Return a definition in canonical form, each part with the position where it was written.

    Args:
        document: a definition in any form.
        problems: where to report what is wrong.
        types: the step types and job templates that exist.

    Returns:
        ``{"properties": …, "workflow": …, …}``, or None if the form is not known.
    """
    if _is_deeper(document, DEPTH):
        problems.add(document, "too_deep", f"the document is nested more than {DEPTH} levels deep")
        return None
    keys = sort_keys(entries_of(document), _KEYS, problems, spelling=str.casefold)
    body = keys.fields.get("workflow")
    is_bare = body is None
    if body is None:
        body = document.made(keys.others)
    form = _form(body, is_bare=is_bare)
    if form is None:
        _report_unknown(body, problems)
        return None
    parts = form.read(body, problems, types)
    extra = {} if is_bare else _extra(keys.others, form, problems)
    return _definition(document, parts, keys.fields | extra, problems)


def _form(body: Node, *, is_bare: bool) -> _Form | None:
    entries = entries_of(body)
    if "jobs" in entries:
        return _DSL
    if "steps" not in entries:
        return None
    steps = entries["steps"].value
    if not isinstance(steps, list) or not steps or any(map(is_wrapped, steps)):
        return _BARE_MAESTRO if is_bare else _MAESTRO
    return _DSL if any(entries_of(item).keys() == {"job"} for item in steps) else _EARLY


def _report_unknown(body: Node, problems: Problems) -> None:
    """Report a document of unknown form, at the misspelt key if there is one."""
    for key, item in entries_of(body).items():
        if (meant := misspelt(key, ("workflow", "jobs", "steps"))) is not None:
            problems.add(item, "form_unknown", f"{key} looks like {meant}", hint=_FORMS, at_key=True)
            return
    problems.add(body, "form_unknown", "this is not a workflow: it has neither jobs nor steps", hint=_FORMS)


def _extra(others: dict[str, Node], form: _Form, problems: Problems) -> dict[str, Node]:
    """Return the unknown keys beside the workflow: Maestro's JSON keeps them, YAML has none."""
    kept: dict[str, Node] = {}
    for key, item in others.items():
        meant = misspelt(key, _KEYS)
        if not form.keeps_others or meant is not None:
            hint = f"did you mean {meant}?" if meant is not None else did_you_mean(key, _KEYS)
            problems.add(item, "unknown_key", f"{key} is not a known key next to a workflow", hint=hint, at_key=True)
        else:
            kept[key] = item
    return {"others": next(iter(kept.values())).made(kept)} if kept else {}


def _definition(document: Node, parts: Parts, fields: dict[str, Node], problems: Problems) -> Node:
    found: dict[str, Node] = {}
    if parts.properties or "properties" in fields:
        found["properties"] = _properties(document, parts, fields, problems)
    workflow = dict(entries_of(parts.workflow))
    if (description := fields.get("description")) is not None:
        if "description" in workflow:
            problems.add(description, "said_twice", "the workflow already has a description", at_key=True)
        workflow.setdefault("description", description)
    if (started := fields.get("trigger")) is not None:
        workflow = merged(workflow, triggers(started, problems))
    found["workflow"] = parts.workflow.made(workflow)
    is_active = fields.get("is_active", parts.is_active)
    if is_active is not None:
        found["is_active"] = is_active
    if (git_info := fields.get("git_info")) is not None:
        found["git_info"] = git_info
    if (extra := _extra_info(fields)) is not None:
        found["extra_info"] = extra
    return document.made(found)


def _properties(document: Node, parts: Parts, fields: dict[str, Node], problems: Problems) -> Node:
    outside = fields.get("properties")
    if outside is None:
        return properties(document.made(parts.properties))
    if not isinstance(outside.value, dict):
        return outside
    for key, item in parts.properties.items():
        if key in outside.value:
            problems.add(item, "said_twice", f"{key} is already given in properties", at_key=True)
    return properties(outside.made({**parts.properties, **outside.value}))


def _extra_info(fields: dict[str, Node]) -> Node | None:
    given, others = fields.get("extra_info"), fields.get("others")
    if given is None or others is None:
        return given or others
    return given.made({**entries_of(others), **entries_of(given)}) if isinstance(given.value, dict) else given


def _is_deeper(document: Node, limit: int) -> bool:
    waiting = [(document, 1)]
    while waiting:
        node, depth = waiting.pop()
        if depth > limit:
            return True
        match node.value:
            case list() as items:
                waiting += [(item, depth + 1) for item in items]
            case dict() as entries:
                waiting += [(item, depth + 1) for item in entries.values()]
            case _:
                pass
    return False
