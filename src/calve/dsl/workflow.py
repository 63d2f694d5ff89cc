"""A workflow as it is described in Python, and the definition it gives."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

from calve.definition.document import Node
from calve.definition.loading import Loaded, checked
from calve.definition.model.workflow import Definition
from calve.definition.problems import Problems, TooManyProblems
from calve.definition.scripts import Scripts, StepFiles
from calve.definition.vocabulary import Vocabulary, installed
from calve.definition.writing import to_json, to_yaml
from calve.dsl.building import Document, steps_of
from calve.dsl.fields import Tags, all_params, without_nothing
from calve.dsl.graphs import Graph
from calve.dsl.places import here
from calve.dsl.triggers import Duration, Trigger
from calve.dsl.values import Reference, Source, Value, refer

Criticality: TypeAlias = Literal["CRITICAL", "HIGH", "MEDIUM", "LOW"]
Rule: TypeAlias = Literal[
    "SEQUENTIAL", "STRICT_SEQUENTIAL", "FIRST_ONLY", "LAST_ONLY", "PARALLEL", "SERIAL_LATEST_ONLY"
]

_FIELDS = ("name", "description", "tags", "timeout", "criticality", "instance_step_concurrency")
_PROPERTIES = (
    "owner",
    "access_control",
    "run_strategy",
    "step_concurrency",
    "alerting",
    "alerting_disabled",
    "signal_trigger_disabled",
    "time_trigger_disabled",
    "incremental_trigger_disabled",
)
_BESIDE = ("is_active", "git_info", "extra_info")

COLLECTED: ContextVar["list[Workflow] | None"] = ContextVar("calve_dsl_collected", default=None)
"""Where workflows are gathered while a file is read."""


class Workflow(Source):
    """A workflow; the steps that are described inside its ``with`` are its steps.

    ``wf["name"]`` refers to one of its params, in texts and as a value.

    Args:
        workflow_id: The id of the workflow.
        owner: Who owns it: a name, or a mapping with a ``name`` and whatever else is to be kept.
        triggers: What starts it: ``cron(…)``, ``interval(…)``, ``signal(…)``, ``incremental(…)``.
        name: What people call it.
        description: What it is for; Markdown.
        tags: Tags of this version.
        timeout: How long a run may take: seconds, or a text such as ``"2 hours"``.
        criticality: How much depends on it.
        instance_step_concurrency: How many steps of one run may run at once, those of its children included.
        run_strategy: What happens when it is started while it runs: a rule, a number (that many in parallel), or
            ``{"rule": "PARALLEL", "workflow_concurrency": 5}``.
        step_concurrency: How many steps of all its runs may run at once.
        alerting: Who is told what.
        alerting_disabled: Tell nobody.
        time_trigger_disabled: Let time not start it.
        signal_trigger_disabled: Let signals not start it.
        incremental_trigger_disabled: Let changes of tables not start it.
        access_control: Who may do what with it.
        properties_description: What it is for, whatever the version.
        properties_tags: Tags whatever the version.
        is_active: Whether this version is the one that runs.
        git_info: Where the definition came from.
        extra_info: What else is to be kept with the definition.
        params: Params of the workflow by name, whatever the name.
        **more: Params of the workflow whose names are no keywords.
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
        self._said = _said(locals())
        self._graph = Graph(f"the workflow {workflow_id}")
        self._place = here()
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
        """Let the steps run one after the other, in the order of their description."""
        self._graph.is_sequential = True

    def build(self) -> Definition:
        """Return the definition, or raise ``DefinitionInvalid`` with all that is wrong, each with its line."""
        document = Document(Problems(), self._place)
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
        """Return the definition and all that was noticed, warnings too, as ``calve.definition.load`` does for a text.

        Args:
            vocabulary: The step types, templates and default params there are; those installed, unless told.
            scripts: The files that ``$S3{path}`` stands for; left as they are, unless told.
            files: The files that steps read when they run; not checked, unless told.
        """
        document = Document(Problems(), self._place)
        definition = self._checked(document, vocabulary, scripts, files)
        return Loaded(self._place.file, definition, tuple(document.problems))

    def to_yaml(self) -> str:
        """Return the workflow as YAML, as it is described: a definition that ``build`` finds nothing wrong with."""
        return to_yaml(self._written())

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return the workflow as JSON, as it is described: a definition that ``build`` finds nothing wrong with.

        Args:
            indent: How far each level is set in; None for one line.
        """
        return to_json(self._written(), indent=indent)

    def _written(self) -> dict[str, Any]:
        self.build()
        # Templates are written by their names, not as the steps that they stand for here.
        described = self._document(Document(Problems(), self._place))
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
        workflow = {**self._said["workflow"], "steps": steps_of(self._graph, document)}
        return document.node({**self._said, "workflow": workflow}, self._place)


def _said(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the arguments of a workflow say, in a definition's words."""
    workflow = without_nothing({"id": given["workflow_id"], **{name: given[name] for name in _FIELDS}})
    for trigger in given["triggers"]:
        workflow.setdefault(trigger.field, []).append(trigger)
    if params := all_params({}, given):
        workflow["params"] = params
    properties = {name: given[name] for name in _PROPERTIES}
    properties |= {name: given[f"properties_{name}"] for name in ("description", "tags")}
    beside = without_nothing({name: given[name] for name in _BESIDE})
    return {"properties": without_nothing(properties), "workflow": workflow, **beside}
