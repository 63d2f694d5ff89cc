"""What an installation adds to the language of definitions: step types, templates, default params."""

from dataclasses import dataclass
from functools import cache

from calve.definition.params import DEFAULT_PARAMS, DefaultParams
from calve.definition.step_types import StepTypes, load_step_types
from calve.definition.templates import JobTemplates, PushedTemplates, shipped


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The step types, templates and default params of an installation."""

    types: StepTypes
    templates: JobTemplates
    defaults: DefaultParams = DEFAULT_PARAMS


@cache
def installed() -> Vocabulary:
    """Return the built-in vocabulary and what installed packages add."""
    templates = JobTemplates.of(shipped())
    return Vocabulary(StepTypes(load_step_types(), templates), templates)


def vocabulary_with(pushed: PushedTemplates) -> Vocabulary:
    """Return the installed vocabulary and the templates that were pushed."""
    templates = installed().templates.with_pushed(pushed)
    return Vocabulary(StepTypes(load_step_types(), templates), templates)
