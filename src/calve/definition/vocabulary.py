"""The words that a definition may use besides the language's own: step types, templates, default params."""

from dataclasses import dataclass
from functools import cache

from calve.definition.params import DEFAULT_PARAMS, DefaultParams
from calve.definition.step_types import StepTypes, load_step_types
from calve.definition.templates import JobTemplates, PushedTemplates, shipped


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What an installation knows."""

    types: StepTypes
    templates: JobTemplates
    defaults: DefaultParams = DEFAULT_PARAMS


@cache
def installed() -> Vocabulary:
    """Return the built-in words and those that installed packages add."""
    templates = JobTemplates.of(shipped())
    return Vocabulary(StepTypes(load_step_types(), templates), templates)


def vocabulary_with(pushed: PushedTemplates) -> Vocabulary:
    """Return the words that are installed, and the templates that were pushed."""
    templates = installed().templates.with_pushed(pushed)
    return Vocabulary(StepTypes(load_step_types(), templates), templates)
