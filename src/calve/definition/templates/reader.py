"""Templates read from text, and the built-in ones."""

from importlib.resources import files
from typing import cast

from pydantic import ValidationError

from calve.definition.document import Node, entries, entry
from calve.definition.forms import StepTypeNames, canonical, typed_params
from calve.definition.problems import Problems
from calve.definition.step_types import StepTypes
from calve.definition.syntax import read
from calve.definition.templates.model import JobTemplate


def read_template(text: str | bytes, *, name: str, problems: Problems, types: StepTypeNames) -> JobTemplate | None:
    """Return the template in a YAML or JSON text; None if it has errors, which are reported.

    Its params are written in full, as in Maestro; its steps as ``steps``, or as ``jobs`` and ``dag``.
    """
    document = read(text, name=name, problems=problems)
    if document is None:
        return None
    shaped = _shaped(document, problems, types)
    try:
        template = JobTemplate.model_validate(shaped.plain())
    except ValidationError as error:
        for line in error.errors(include_url=False):
            field = ".".join(str(part) for part in line["loc"] if isinstance(part, str)) or "the template"
            problems.add(shaped.at(line["loc"]), line["type"], f"{field}: {line['msg']}")
        return None
    return template if not problems.errors else None


def _shaped(document: Node, problems: Problems, types: StepTypeNames) -> Node:
    definition = entry(document, "definition")
    if definition is None:
        return document
    parts = dict(entries(definition))
    if "params" in parts:
        parts["params"] = typed_params(parts["params"], problems)
    piece = {key: parts.pop(key) for key in ("steps", "jobs", "dag") if key in parts}
    if piece:
        workflow = definition.made({"workflow": definition.made({"id": "template", **piece})})
        shaped = canonical(workflow, problems, types)
        if (steps := entry(shaped, "workflow", "steps")) is not None:
            parts["steps"] = steps
    return document.made({**entries(document), "definition": definition.made(parts)})


def shipped() -> tuple[JobTemplate, ...]:
    """Return the built-in templates."""
    folder = files("calve.definition.templates") / "shipped"
    found = (_required(file.name, file.read_text("utf-8")) for file in folder.iterdir())
    return tuple(sorted(found, key=lambda template: template.definition.job_type))


def _required(name: str, text: str) -> JobTemplate:
    problems = Problems()
    template = read_template(text, name=name, problems=problems, types=StepTypes())
    problems.raise_if_any(name)
    return cast("JobTemplate", template)  # never None where there are no errors
