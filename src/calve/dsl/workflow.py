"""``Workflow``: a workflow described in Python, and the definition that it builds."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

from calve.definition import (
    Loaded,
    Node,
    Problems,
    Scripts,
    StepFiles,
    TooManyProblems,
    Vocabulary,
    checked,
    installed,
    to_json,
    to_yaml,
)
from calve.definition.model import Definition, Properties
from calve.dsl.document import Document, steps_of
from calve.dsl.graph import Graph
from calve.dsl.location import here
from calve.dsl.triggers import Duration, Trigger
from calve.dsl.values import ParamSource, Reference, Tags, Value, all_params, given_fields, refer

Criticality: TypeAlias = Literal["CRITICAL", "HIGH", "MEDIUM", "LOW"]
Rule: TypeAlias = Literal[
    "SEQUENTIAL", "STRICT_SEQUENTIAL", "FIRST_ONLY", "LAST_ONLY", "PARALLEL", "SERIAL_LATEST_ONLY"
]

_FIELDS = ("name", "description", "tags", "timeout", "criticality", "instance_step_concurrency")
_PROPERTIES = tuple(name for name in Properties.model_fields if name not in _FIELDS)
_BESIDE = ("is_active", "git_info", "extra_info")

COLLECTED: ContextVar["list[Workflow] | None"] = ContextVar("calve_dsl_collected", default=None)
"""Collects the workflows of a file while it runs."""


class Workflow(ParamSource):
    """A workflow; the steps that are described inside its ``with`` are its steps.

    ``wf["name"]`` refers to one of its params, in texts and as a value.

    Args:
        workflow_id: The id of the workflow.
        owner: The owner: a name, or a mapping with a ``name`` and further data.
        triggers: What starts it: ``cron(…)``, ``interval(…)``, ``signal(…)``, ``incremental(…)``.
        name: A title for people.
        description: What it is for; Markdown.
        tags: Tags of this version.
        timeout: How long a run may take: seconds, or a text such as ``"2 hours"``.
        criticality: How much depends on it.
        instance_step_concurrency: How many steps of one run may run at once, those of its children included.
        run_strategy: What happens when it is started while it runs: a rule, a number (that many in parallel), or
            ``{"rule": "PARALLEL", "workflow_concurrency": 5}``.
        step_concurrency: How many steps of all its runs may run at once.
        alerting: Whom to alert, and when.
        alerting_disabled: Send no alerts.
        time_trigger_disabled: Do not start it by time.
        signal_trigger_disabled: Do not start it by signals.
        incremental_trigger_disabled: Do not start it by changes of tables.
        access_control: Who may do what with the workflow.
        properties_description: What it is for, in all versions.
        properties_tags: Tags of all versions.
        is_active: Whether this version becomes the active one.
        git_info: Where the definition came from.
        extra_info: Further data to keep with the definition.
        params: Params of the workflow by name, whatever the name.
        **more: Params of the workflow whose names are not keywords.
    """

    def __init__(
        self,
        workflow_id: str,
        /,
        *,
        owner: str | Mapping[str, Any] | None = None,
        triggers: Sequence[Trigger] = (),
        name: str | None = None,
        description: str | None = None,
        tags: Tags = (),
        timeout: Duration | None = None,
        criticality: Criticality | None = None,
        instance_step_concurrency: int | None = None,
        run_strategy: Rule | int | Mapping[str, Any] | None = None,
        step_concurrency: int | None = None,
        alerting: Mapping[str, Any] | None = None,
        alerting_disabled: bool | None = None,
        time_trigger_disabled: bool | None = None,
        signal_trigger_disabled: bool | None = None,
        incremental_trigger_disabled: bool | None = None,
        access_control: Mapping[str, Any] | None = None,
        properties_description: str | None = None,
        properties_tags: Tags = (),
        is_active: bool | None = None,
        git_info: Mapping[str, Any] | None = None,
        extra_info: Mapping[str, Any] | None = None,
        params: Mapping[str, Value] | None = None,
        **more: Value,
    ) -> None:
        self._given = _definition(locals())
        self._graph = Graph(f"the workflow {workflow_id}")
        self._location = here()
        self.id = workflow_id
        if (collected := COLLECTED.get()) is not None:
            collected.append(self)

    def __enter__(self) -> Self:
        self._graph.enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._graph.leave()

    def __getitem__(self, name: str) -> Reference:
        return refer(name)

    def __repr__(self) -> str:
        return f"Workflow({self.id!r})"

    def sequential(self) -> None:
        """Run the steps one after the other, in the order of their description."""
        self._graph.is_sequential = True

    def build(self) -> Definition:
        """Return the definition, or raise ``DefinitionInvalid`` with all problems, each with its line."""
        document = Document(Problems(), self._location)
        definition = self._checked(document)
        if definition is None:
            raise document.error(self._graph.name)
        return definition

    def load(
        self,
        *,
        vocabulary: Vocabulary | None = None,
        scripts: Scripts | None = None,
        files: StepFiles | None = None,
    ) -> Loaded:
        """Return the definition and all problems, including warnings, as ``calve.definition.load`` does for a text.

        Args:
            vocabulary: The step types, templates and default params. Default: those installed.
            scripts: Reads the files that ``$S3{path}`` refers to. Default: the references stay as they are.
            files: Reads the files that steps read when they run. Default: they are not checked.
        """
        document = Document(Problems(), self._location)
        definition = self._checked(document, vocabulary, scripts, files)
        return Loaded(self._location.file, definition, tuple(document.problems))

    def to_yaml(self) -> str:
        """Return the workflow as YAML, as it is described; raise ``DefinitionInvalid`` as ``build`` does."""
        return to_yaml(self._written())

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return the workflow as JSON, as it is described; raise ``DefinitionInvalid`` as ``build`` does.

        Args:
            indent: The indentation of each level; None for a single line.
        """
        return to_json(self._written(), indent=indent)

    def _written(self) -> dict[str, Any]:
        self.build()
        # Templates are written by name, not expanded.
        described = self._document(Document(Problems(), self._location))
        return Definition.model_validate(described.plain()).as_json()

    def _checked(
        self,
        document: Document,
        vocabulary: Vocabulary | None = None,
        scripts: Scripts | None = None,
        files: StepFiles | None = None,
    ) -> Definition | None:
        definition = None
        with suppress(TooManyProblems):
            definition = checked(self._document(document), document.problems, vocabulary or installed(), scripts, files)
        return definition if not document.problems.errors else None

    def _document(self, document: Document) -> Node:
        if self._graph.is_open:
            raise here().refuse(
                f"{self._graph.name} is still being described", remedy="Build it after its with statement."
            )
        workflow = {**self._given["workflow"], "steps": steps_of(self._graph, document)}
        return document.node({**self._given, "workflow": workflow}, self._location)


def _definition(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a workflow as a definition spells them."""
    workflow = given_fields({"id": given["workflow_id"], **{name: given[name] for name in _FIELDS}})
    for trigger in given["triggers"]:
        workflow.setdefault(trigger.field, []).append(trigger)
    if params := all_params({}, given, given.keys() - {"self", "more"}):
        workflow["params"] = params
    properties = {name: given[name] for name in _PROPERTIES}
    properties |= {name: given[f"properties_{name}"] for name in ("description", "tags")}
    beside = given_fields({name: given[name] for name in _BESIDE})
    return {"properties": given_fields(properties), "workflow": workflow, **beside}
