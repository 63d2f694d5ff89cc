"""The step types of an installation: the built-in ones and those that packages add."""

from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points
from typing import Any, Protocol

from calve.definition.document import Node, entry, text
from calve.definition.model import ParamType
from calve.definition.problems import Problems, did_you_mean
from calve.definition.step_types.captures import ICDC, IP_CAPTURE, IP_COMMIT, check_references
from calve.definition.step_types.checks import check_step
from calve.definition.step_types.control_flow import (
    APPROVAL,
    FOREACH,
    JOIN,
    NO_OP,
    SLEEP,
    SUBWORKFLOW,
    TEMPLATE,
    TITUS,
    WHILE,
)
from calve.definition.step_types.programs import DOCKER, HTTP, JAVA, KUBERNETES, NOTEBOOK, PYTHON, SHELL
from calve.definition.step_types.queries import SPARK, SQL
from calve.definition.step_types.step_params import fields
from calve.definition.step_types.step_type import Output, Outputs, StepType

ENTRY_POINTS = "calve.step_types"

STEP_TYPES: dict[str, StepType] = {
    step_type.name: step_type
    for step_type in (
        NO_OP,
        SLEEP,
        SHELL,
        PYTHON,
        SQL,
        SPARK,
        NOTEBOOK,
        JAVA,
        DOCKER,
        KUBERNETES,
        HTTP,
        APPROVAL,
        IP_CAPTURE,
        IP_COMMIT,
        ICDC,
        SUBWORKFLOW,
        FOREACH,
        WHILE,
        TEMPLATE,
        TITUS,
        JOIN,
    )
}
"""The built-in step types, by name."""


def load_step_types() -> dict[str, StepType]:
    """Return the built-in step types and those that installed packages add."""
    found: list[StepType] = [point.load() for point in entry_points(group=ENTRY_POINTS)]
    return STEP_TYPES | {step_type.name: step_type for step_type in found}


class Templates(Protocol):
    """The job templates that a step may name as its type."""

    def step_type(self, name: str, version: str | None = None) -> str | None:
        """Return the step type of a template; None if there is no such template."""
        ...

    def names(self) -> Iterable[str]:
        """Return the names of the templates that may be the type of a job."""
        ...

    def workflow_names(self) -> Iterable[str]:
        """Return the names of the templates that expand into several steps."""
        ...


class _NoTemplates:
    def step_type(self, name: str, version: str | None = None) -> str | None:  # noqa: ARG002 - the port's signature
        return None

    def names(self) -> Iterable[str]:
        return ()

    def workflow_names(self) -> Iterable[str]:
        return ()


class StepTypes:
    """The step types of an installation."""

    def __init__(self, types: Mapping[str, StepType] = STEP_TYPES, templates: Templates | None = None) -> None:
        self._types = types
        self._folded = {name.casefold(): name for name in types}
        self._templates = templates or _NoTemplates()

    def __getitem__(self, name: str) -> StepType:
        return self._types[name]

    def resolve(self, name: str) -> str | None:
        """Return the declared spelling of a name in any case; None for an unknown type."""
        return self._folded.get(name.casefold())

    def config(self, type_name: str) -> tuple[str, frozenset[str]] | None:
        """Return the name of a type's config map and the fields in it; None if it has none."""
        step_type = self._types.get(self.resolve(type_name) or "")
        if step_type is None or step_type.config is None:
            return None
        return step_type.config, frozenset(step_type.known())

    def usable(self) -> tuple[str, ...]:
        """Return the step types that a job may have."""
        return tuple(item.name for item in self._types.values() if item.is_leaf and not item.refused)

    def names(self) -> tuple[str, ...]:
        """Return every name that may be the type of a job: step types, then job templates."""
        return (*self.usable(), *self._templates.names())

    def template(self, name: str, version: str | None = None) -> str | None:
        """Return the step type of a job template; None if there is no such template."""
        return self._templates.step_type(name, version)

    def check(self, step: Node, problems: Problems, *, kind: str = "step") -> None:
        """Report what is wrong with a step in canonical form.

        Args:
            step: the step itself, without its wrapper.
            problems: where to report it.
            kind: its wrapper: step, subworkflow, foreach, while or template.
        """
        named = entry(step, "type") if kind == "step" else None
        name = text(named) or "" if kind == "step" else kind
        step_type = self._types.get(self.resolve(name) or "")
        if step_type is None:
            if name and named:
                is_template = name in self._templates.workflow_names()
                hint = f"write - template: {{type: {name}, …}}" if is_template else did_you_mean(name, self.names())
                problems.add(named, "unknown_step_type", f"there is no step type {name}", hint=hint)
        elif named and step_type.refused:
            problems.add(named, "step_type_refused", step_type.refused)
        elif named and not step_type.is_leaf:
            message = f"{step_type.name} is not the type of a job"
            hint = f"write it as a job of its own kind: - {step_type.name}: {{id: …}}"
            problems.add(named, "step_type_refused", message, hint=hint)
        else:
            check_step(step, step_type, problems)

    def check_references(self, steps: Iterable[Node], problems: Problems) -> None:
        """Report what is wrong between the steps of one workflow; see ``check_references``."""
        check_references(steps, problems)

    def find(self, name: str) -> StepType:
        """Return the step type of a name in any case; for an unknown one, a type that declares nothing."""
        return self._types.get(self.resolve(name) or "", StepType(name, ""))

    def outputs(self, step: Node, *, kind: str = "step") -> Outputs:
        """Return the outputs that a step has after it has run."""
        name = text(entry(step, "type")) or "" if kind == "step" else kind
        step_type = self._types.get(self.resolve(name) or "")
        if step_type is None:
            return Outputs({}, is_open=True)
        config = {name: entry.plain() for name, entry in fields(step, step_type).items()}
        more = step_type.outputs_of(config)
        return Outputs({output.name: output for output in step_type.outputs} | dict(more.params), more.is_open)

    def stubs(self, step: Node, *, kind: str = "step") -> dict[str, dict[str, Any]]:
        """Return plausible outputs of a step as params, for a dry run."""
        return {name: stub(output) for name, output in self.outputs(step, kind=kind).params.items()}


_STUBS: dict[ParamType, Any] = {
    ParamType.STRING: "",
    ParamType.LONG: 0,
    ParamType.DOUBLE: 0.0,
    ParamType.BOOLEAN: True,
    ParamType.STRING_MAP: {},
    ParamType.STRING_ARRAY: [],
    ParamType.LONG_ARRAY: [],
    ParamType.DOUBLE_ARRAY: [],
    ParamType.BOOLEAN_ARRAY: [],
}
_NAMED_STUBS = {
    "icdc_table": "icdc.stub",
    "relation": "icdc.stub",
    "deletes_table": "icdc.stub_deletes",
    "deletes_relation": "icdc.stub_deletes",
    "range_predicate": "1 = 1",
    "exactness": "exact",
    "capture_id": "stub",
    "status_code": 200,
    "decision": "approved",
}


def stub(output: Output) -> dict[str, Any]:
    """Return a param with a plausible value for an output."""
    if output.type is ParamType.MAP:
        value: Any = {inner.name: stub(inner) for inner in output.params}
    else:
        value = _NAMED_STUBS.get(output.name, _STUBS[output.type])
    return {"type": output.type.value, "value": value}
