"""The keys of maps and jobs: which fields they mean, and which are misspelt."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from calve.definition.document import Node
from calve.definition.model import LOOPS, ForeachStep, SubworkflowStep, TemplateStep, TypedStep, WhileStep
from calve.definition.problems import Problems

SHORTEST_MISSPELT = 4
"""Shorter keys are too close to others."""

_MARKS = "!<("
_HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")


@dataclass(frozen=True, slots=True)
class Sorted:
    """The entries of a map: those with a meaning by field, and the others by key."""

    fields: dict[str, Node]
    others: dict[str, Node]


def same(*names: str) -> dict[str, str]:
    """Return keys that mean the fields of the same name."""
    return {name: name for name in names}


def as_written(key: str) -> str:
    """Return a key unchanged."""
    return key


@lru_cache(maxsize=4_096)
def snake(key: str) -> str:
    """Return ``source_table`` for ``sourceTable``."""
    return _HUMP.sub(r"_\1", key).lower()


def sort_keys(
    entries: Mapping[str, Node],
    known: Mapping[str, str],
    problems: Problems,
    *,
    spelling: Callable[[str], str] = as_written,
) -> Sorted:
    """Sort entries by ``known``, which maps keys to fields; a null field is left out."""
    fields: dict[str, Node] = {}
    others: dict[str, Node] = {}
    written: dict[str, str] = {}
    for key, item in entries.items():
        field = known.get(key) or known.get(spelling(key))
        if field is None:
            others[key] = item
        elif item.value is None:
            continue
        elif field in fields:
            problems.add(
                item, "said_twice", f"{key} means the same as {written[field]}, which is already given", at_key=True
            )
        else:
            fields[field] = item
            written[field] = key
    return Sorted(fields, others)


def without_misspelt(entries: Mapping[str, Node], known: Iterable[str], problems: Problems) -> dict[str, Node]:
    """Return the entries that may be params; report those that are probably misspelt keys."""
    names = list(known)
    kept: dict[str, Node] = {}
    for key, item in entries.items():
        meant = misspelt(key, names)
        if meant is None:
            kept[key] = item
            continue
        hint = f"write {key}<string> if you mean a param of that name"
        problems.add(item, "misspelt_key", f"{key} looks like {meant}", hint=hint, at_key=True)
    return kept


def misspelt(key: str, known: Iterable[str]) -> str | None:
    """Return the known key that differs from a key by one typing error; None if there is none."""
    names = list(known)
    if key in names or len(key) < SHORTEST_MISSPELT:
        return None
    # A key that ends in a digit is one of a series, and one with marks can only be a param.
    if key[-1].isdigit() or any(mark in key for mark in _MARKS):
        return None
    folded = key.casefold()
    return next((name for name in names if _within_one_edit(folded, name.casefold())), None)


def _within_one_edit(one: str, other: str) -> bool:
    """Tell whether one insertion, deletion, replacement or swap of neighbours makes the texts equal."""
    short, long = sorted((one, other), key=len)
    start = next((i for i, char in enumerate(short) if char != long[i]), len(short))
    short, long = short[start:], long[start:]
    if len(short) == len(long):
        return short[1:] == long[1:] or (short[:2] == long[:2][::-1] and short[2:] == long[2:])
    return short == long[1:]


class StepKind(StrEnum):
    """The five kinds of steps, by the names of their wrappers."""

    STEP = "step"
    SUBWORKFLOW = "subworkflow"
    FOREACH = "foreach"
    WHILE = "while"
    TEMPLATE = "template"

    @property
    def is_loop(self) -> bool:
        """Tell whether it holds other jobs."""
        return self in LOOPS


WRAPPERS: dict[str, StepKind] = {
    "job": StepKind.STEP,
    "subworkflow": StepKind.SUBWORKFLOW,
    "foreach": StepKind.FOREACH,
    "while": StepKind.WHILE,
    "template": StepKind.TEMPLATE,
}
"""The kinds by their names in YAML."""

_MODELS = {StepKind(model.kind): model for model in (TypedStep, SubworkflowStep, ForeachStep, WhileStep, TemplateStep)}
_REWRITTEN = frozenset(
    {"id", "name", "type", "sub_type", "sub_type_version", "transition", "params", "steps"}
    | {"signal_dependencies", "signal_outputs"}
)
UNCHANGED: dict[StepKind, tuple[str, ...]] = {
    kind: tuple(name for name in model.model_fields if name not in _REWRITTEN) for kind, model in _MODELS.items()
}
"""The fields of each kind of step that a job writes as the model has them."""

_ALL = same("id", "name", "transition", "depends_on", "signal_dependencies", "signal_outputs") | {
    "dependsOn": "depends_on"
}
_TYPED = same("type", "type_version", "params")
_LOOP = same("loop_params", "jobs", "dag") | {"params": "loop_params", "steps": "jobs"}
_OWN: dict[StepKind, dict[str, str]] = {
    StepKind.STEP: _TYPED,
    StepKind.SUBWORKFLOW: same("workflow_id", "version", "params")
    | {"subworkflow_id": "workflow_id", "subworkflow_version": "version"},
    StepKind.FOREACH: _LOOP | same("ranges") | {"job_concurrency": "concurrency"},
    StepKind.WHILE: _LOOP,
    StepKind.TEMPLATE: _TYPED | {"sub_type": "type", "sub_type_version": "type_version"},
}
KEYS: dict[StepKind, dict[str, str]] = {kind: _ALL | same(*UNCHANGED[kind]) | _OWN[kind] for kind in StepKind}
"""The keys of each kind of job, and the field that each key means."""

ONLY_OURS: dict[str, str] = {
    "retry_policy": "job",
    "targets": "job",
    "strict_ordering": "foreach",
}
"""Keys that Maestro's YAML does not have, and the kind they belong to: on other jobs they are errors, not params."""

OF_TEMPLATES = frozenset({"targets"})
"""Those of them that a template may have as a param, to pass it to its jobs."""
