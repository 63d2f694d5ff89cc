"""The pages about step types and editors are complete, and their examples are right."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator
from tests.unit.definition.templates.makers import template

from calve.definition.document import all_steps, entry
from calve.definition.forms import canonical
from calve.definition.problems import Problems
from calve.definition.schema import schema
from calve.definition.step_types import STEP_TYPES, Field, StepTypes
from calve.definition.syntax import read
from calve.definition.templates import JobTemplates, expand, read_template, shipped
from calve.definition.validation import validated

DOCS = Path(__file__).parents[4] / "docs"
PAGES = ("reference/step-types.md", "reference/templates.md", "howto/complete-yaml-in-your-editor.md")
TEMPLATES = JobTemplates.of([*shipped(), template("nightly_spark", step_type="Spark")])
TYPES = StepTypes(templates=TEMPLATES)


def _section(name: str) -> str:
    page = (DOCS / PAGES[0]).read_text(encoding="utf-8")
    parts = re.split(r"^## (.*)$", page, flags=re.MULTILINE)
    return next((body for heading, body in zip(parts[1::2], parts[2::2], strict=True) if heading == f"`{name}`"), "")


def _named(fields: tuple[Field, ...], prefix: str = "") -> Iterator[tuple[str, Field]]:
    for item in fields:
        yield f"{prefix}{item.name}", item
        yield from _named(item.fields, f"{item.name}.")


@pytest.mark.parametrize("name", [name for name, item in STEP_TYPES.items() if not item.refused])
def test_every_field_choice_and_output_of_a_type_is_documented(name: str) -> None:
    """In the section of the type, with the words that the declaration has."""
    section = _section(name)
    declared = STEP_TYPES[name]
    assert declared.doc in section
    for shown, item in _named((*declared.fields, *declared.params)):
        row = next((line for line in section.splitlines() if line.startswith(f"| `{shown}` |")), "")
        assert item.doc in row
        assert [choice for choice in item.choices if f"`{choice}`" not in row] == []
        assert ("**required**" in row) == item.required
    outputs = [*declared.outputs, *(declared.outputs_of({}).params.values() if name != "ICDC" else ())]
    assert [output.name for output in outputs if f"| `{output.name}` | {output.type} |" not in section] == []


def test_the_types_that_are_refused_are_documented_too() -> None:
    """With what to use instead."""
    page = (DOCS / PAGES[0]).read_text(encoding="utf-8")
    assert [name for name, item in STEP_TYPES.items() if item.refused and f"| `{name}` |" not in page] == []


def _examples(page: str) -> Iterator[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    yield from re.findall(r"^```yaml\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


EXAMPLES = [(page, example) for page in PAGES for example in _examples(page)]


@pytest.mark.parametrize(("page", "example"), EXAMPLES, ids=[f"{page}-{n}" for n, (page, _) in enumerate(EXAMPLES)])
def test_every_example_is_right(page: str, example: str) -> None:
    """For the schema and for the checks; a list of jobs is taken for those of a workflow."""
    assert page in PAGES
    problems = Problems()
    if "job_type:" in example:
        assert read_template(example, name=page, problems=problems, types=TYPES)
        return
    jobs = re.sub("^", "  ", example, flags=re.MULTILINE)
    text = f"Workflow:\n  id: w\n  jobs:\n{jobs}" if example.startswith("- ") else example
    assert not list(Draft202012Validator(schema()).iter_errors(yaml.safe_load(text)))
    document = read(text, name=page, problems=problems)
    assert document is not None
    shaped = canonical(document, problems, TYPES)
    assert shaped is not None
    expanded = expand(shaped, TEMPLATES, problems)
    assert validated(expanded, problems)
    for _, step in all_steps(entry(expanded, "workflow")):
        TYPES.check(step, problems)
    assert not problems.found


def test_every_param_of_a_shipped_template_is_documented() -> None:
    """In the section of the template."""
    page = (DOCS / PAGES[1]).read_text(encoding="utf-8")
    for item in shipped():
        section = page.partition(f"## `{item.definition.job_type}`")[2].partition("\n## ")[0]
        given = [name for name, param in item.definition.params.items() if not name.endswith("_sql") and param]
        assert [name for name in given if f"`{name}`" not in section] == []
