"""Templates for tests."""

from typing import Any

from calve.definition.document import Node, all_steps, entry, text
from calve.definition.forms import canonical
from calve.definition.problems import Problems
from calve.definition.step_types import StepTypes
from calve.definition.syntax import read
from calve.definition.templates import JobTemplate, JobTemplates, expand


def text_param(value: str | None = None, **more: Any) -> dict[str, Any]:
    """Return a STRING param."""
    return {"type": "STRING", **({"value": value} if value is not None else {}), **more}


def template(job_type: str, **definition: Any) -> JobTemplate:
    """Return a template; of NoOp, unless it is given steps."""
    kind = {} if "steps" in definition or "step_type" in definition else {"step_type": "NoOp"}
    about = {"owner": "tester", "status": "alpha", "support": "us"}
    return JobTemplate.model_validate({**about, "definition": {"job_type": job_type, **kind, **definition}})


def noop(step_id: str, *after: str, **fields: Any) -> dict[str, Any]:
    """Return a NoOp step that leads to others."""
    successors = {"transition": {"successors": dict.fromkeys(after, "true")}} if after else {}
    return {"step": {"id": step_id, "type": "NoOp", **successors, **fields}}


def expanded(yaml: str, *templates: JobTemplate) -> tuple[Node, Problems]:
    """Return a workflow in YAML with its templates expanded, and the problems."""
    problems = Problems()
    document = read(yaml, name="w.yaml", problems=problems)
    assert document is not None
    shaped = canonical(document, problems, StepTypes())
    assert shaped is not None
    assert not problems.found
    return expand(shaped, JobTemplates.of(templates), problems), problems


def steps_of(document: Node) -> dict[str, Any]:
    """Return every step of a document by its id, plain."""
    return {text(entry(step, "id")) or "": step.plain() for _, step in all_steps(entry(document, "workflow"))}


def edges_of(document: Node) -> dict[str, dict[str, str]]:
    """Return where each step leads."""
    return {step_id: step.get("transition", {}).get("successors", {}) for step_id, step in steps_of(document).items()}
