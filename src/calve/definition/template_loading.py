"""From a text to a template that may be pushed: every check that needs the other templates."""

from typing import cast

from calve.definition.problems import Problems, did_you_mean
from calve.definition.templates import JobTemplate, read_template
from calve.definition.vocabulary import Vocabulary, installed
from calve.errors import DefinitionInvalid


def load_template(text: str | bytes, *, name: str, vocabulary: Vocabulary) -> JobTemplate:
    """Return the template that a YAML or JSON text holds.

    Raises:
        DefinitionInvalid: it is none, is of no step type that there is, inherits from nothing or from itself, or has
            the name of one that comes with the product.
    """
    problems = Problems()
    read = read_template(text, name=name, problems=problems, types=vocabulary.types)
    problems.raise_if_any(name)
    template = cast("JobTemplate", read)  # it is there where nothing is wrong
    job_type, version = template.definition.job_type, template.definition.version
    if installed().templates.versions(job_type):
        raise DefinitionInvalid(f"the template {job_type} comes with calve.", remedy="Choose another job_type.")
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
