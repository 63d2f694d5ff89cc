"""Definitions and templates loaded from text: every check, all problems together."""

import gc
from dataclasses import dataclass, replace
from typing import cast

from calve.definition.captures import check_capture_order, complete
from calve.definition.document import Node, all_steps, entry
from calve.definition.dry_run import dry_run
from calve.definition.files import SCRIPT_MISSING, Scripts, StepFiles, inline
from calve.definition.forms import canonical
from calve.definition.graph import check_graph
from calve.definition.model import LOOPS, Definition
from calve.definition.problems import Problem, Problems, Severity, TooManyProblems, did_you_mean
from calve.definition.syntax import read
from calve.definition.templates import JobTemplate, expand, read_template
from calve.definition.validation import REQUEST_BYTES, check_document, validated
from calve.definition.vocabulary import Vocabulary, installed
from calve.errors import DefinitionInvalid
from calve.expressions import system_millis


@dataclass(frozen=True, slots=True)
class Loaded:
    """The result of loading a text: a definition if there was no error, and all problems."""

    name: str
    definition: Definition | None
    problems: tuple[Problem, ...]

    def required(self) -> Definition:
        """Return the definition, or raise all errors together."""
        if self.definition is None:
            raise Problems(list(self.problems)).as_error(self.name)
        return self.definition

    def to_push(self) -> "Loaded":
        """Return the result for a definition to push: a script that was not found is an error."""
        if not any(problem.code == SCRIPT_MISSING for problem in self.problems):
            return self
        found = (
            replace(problem, severity=Severity.ERROR) if problem.code == SCRIPT_MISSING else problem
            for problem in self.problems
        )
        return Loaded(self.name, None, tuple(found))


def load(
    text: str | bytes,
    *,
    name: str,
    vocabulary: Vocabulary,
    scripts: Scripts | None = None,
    files: StepFiles | None = None,
) -> Loaded:
    """Read a definition in any of its forms, check it, and do a dry run.

    Args:
        text: the definition.
        name: what messages call it.
        vocabulary: the step types, templates and default params that it may use.
        scripts: reads the files named by ``$S3{path}``; such references are left alone if it is not given.
        files: finds the files that steps read when they run; they are not checked if it is not given.
    """
    problems = Problems()
    definition = None
    # A large definition creates so many objects that garbage collection would take a quarter of the time.
    collects = gc.isenabled()
    gc.disable()
    try:
        document = read(text, name=name, problems=problems, most=REQUEST_BYTES)
        shaped = canonical(document, problems, vocabulary.types) if document is not None else None
        if shaped is not None:
            definition = checked(shaped, problems, vocabulary, scripts, files)
    except TooManyProblems:
        pass
    finally:
        (gc.enable if collects else gc.disable)()
    return Loaded(name, definition if not problems.errors else None, tuple(problems))


def checked(
    document: Node,
    problems: Problems,
    vocabulary: Vocabulary,
    scripts: Scripts | None = None,
    files: StepFiles | None = None,
) -> Definition | None:
    """Check a canonical document and return its definition, with its templates expanded and its captures named."""
    document = complete(expand(document, vocabulary.templates, problems), problems)
    if scripts is not None:
        document = inline(document, scripts, problems)
    definition = validated(document, problems)
    workflow = entry(document, "workflow")
    steps = list(all_steps(workflow))
    for kind, step in steps:
        if kind not in LOOPS:  # the params of loops are checked by check_document
            vocabulary.types.check(step, problems, kind=kind)
    vocabulary.types.check_references([step for _, step in steps], problems)
    check_document(document, problems)
    check_graph(workflow, problems)
    if definition is not None and workflow is not None and not problems.errors:
        check_capture_order(workflow, vocabulary.types, problems, files)
        dry_run(definition, document, vocabulary, problems, system_millis, files)
    return definition


def load_template(text: str | bytes, *, name: str, vocabulary: Vocabulary) -> JobTemplate:
    """Return the template that a YAML or JSON text holds.

    Raises:
        DefinitionInvalid: it has errors, an unknown step type, inherits from a missing template or itself, or has
            the name of a built-in template.
    """
    problems = Problems()
    read = read_template(text, name=name, problems=problems, types=vocabulary.types)
    problems.raise_if_any(name)
    template = cast("JobTemplate", read)  # never None where there are no errors
    job_type, version = template.definition.job_type, template.definition.version
    if installed().templates.versions(job_type):
        raise DefinitionInvalid(f"the template {job_type} is built into calve.", remedy="Choose another job_type.")
    _check_type(template, vocabulary)
    vocabulary.templates.plus(template).lineage(job_type, version)
    return template


def _check_type(template: JobTemplate, vocabulary: Vocabulary) -> None:
    wanted = template.definition.step_type
    if wanted is None:
        return
    usable = vocabulary.types.usable()
    if vocabulary.types.resolve(wanted) not in usable:
        raise DefinitionInvalid(f"there is no step type {wanted} for jobs.", remedy=did_you_mean(wanted, usable))
