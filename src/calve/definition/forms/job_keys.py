"""The keys that each kind of job has, and what they mean."""

from enum import StrEnum

from calve.definition.forms.keys import same


class Kind(StrEnum):
    """The five kinds of steps, by the names of their wrappers."""

    STEP = "step"
    SUBWORKFLOW = "subworkflow"
    FOREACH = "foreach"
    WHILE = "while"
    TEMPLATE = "template"

    @property
    def is_loop(self) -> bool:
        """Tell whether it holds other jobs."""
        return self in {Kind.FOREACH, Kind.WHILE}


WRAPPERS: dict[str, Kind] = {
    "job": Kind.STEP,
    "subworkflow": Kind.SUBWORKFLOW,
    "foreach": Kind.FOREACH,
    "while": Kind.WHILE,
    "template": Kind.TEMPLATE,
}
"""The kinds by the words that YAML has for them."""

_ALL = same(
    "id",
    "name",
    "description",
    "failure_mode",
    "tags",
    "timeout",
    "transition",
    "depends_on",
    "signal_dependencies",
    "signal_outputs",
) | {"dependsOn": "depends_on"}
_LOOPS = same("loop_params", "jobs", "dag") | {"params": "loop_params", "steps": "jobs"}

KEYS: dict[Kind, dict[str, str]] = {
    Kind.STEP: _ALL | same("type", "type_version", "retry_policy", "targets", "params"),
    Kind.SUBWORKFLOW: _ALL
    | same("workflow_id", "version", "sync", "explicit_params", "params")
    | {"subworkflow_id": "workflow_id", "subworkflow_version": "version"},
    Kind.FOREACH: _ALL | _LOOPS | same("concurrency", "ranges", "strict_ordering") | {"job_concurrency": "concurrency"},
    Kind.WHILE: _ALL | _LOOPS | same("condition"),
    Kind.TEMPLATE: _ALL
    | same("type", "type_version", "params")
    | {"sub_type": "type", "sub_type_version": "type_version"},
}
"""The fields that the keys of each kind mean."""

AS_THEY_ARE: dict[Kind, tuple[str, ...]] = {
    Kind.STEP: ("retry_policy", "targets"),
    Kind.SUBWORKFLOW: ("sync", "explicit_params"),
    Kind.FOREACH: ("concurrency", "strict_ordering"),
    Kind.WHILE: ("condition",),
    Kind.TEMPLATE: (),
}
"""The fields of each kind that are the step's as they are, beside those of all kinds."""

ONLY_OURS: dict[str, str] = {
    "retry_policy": "job",
    "targets": "job",
    "strict_ordering": "foreach",
}
"""The owners of keys that Maestro's YAML lacks: on other jobs they are mistakes, where its own keys become params."""

OF_TEMPLATES = frozenset({"targets"})
"""Those among them that a template may have as a param, to hand it to its jobs."""
