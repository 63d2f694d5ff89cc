"""Workflows: their definitions, versions and properties."""

import json
from collections.abc import Collection, Iterator, Mapping
from difflib import unified_diff
from pathlib import Path
from typing import Annotated, Any, Literal

from calve.access import Permission, namespaces
from calve.definition import Definition, load, param_changes, resolve, step_changes, subworkflows, to_yaml
from calve.definition.model import VALID_THROUGH, Workflow
from calve.definition.params import Parameter
from calve.engine import VersionRecord, WorkflowOrder, WorkflowQuery, WorkflowRow
from calve.engine.views import ActionEvent, WorkflowTimeline, flat
from calve.errors import RequestInvalid, WorkflowMissing
from calve.operations import models, shapes
from calve.operations.arguments import Tag, Version, Word, WorkflowId
from calve.operations.caller import Caller
from calve.operations.declaration import Argument, Document, Topic, jsonable, operation
from calve.operations.documents import (
    action_event,
    properties_json,
    recent_run_json,
    timeline_json,
    version_json,
    workflow_json,
    workflow_overview_json,
)
from calve.operations.pages import FIRST, Page, bad_cursor, page_json, page_of_numbers
from calve.operations.policy import EDIT, EDIT_SOMEWHERE, READ, READ_SOMEWHERE
from calve.operations.requests import JSON_BODY, YAML_BODY, PropertiesRequest, TagBody
from calve.operations.triggers import trigger_json
from calve.texts import check_text
from calve.triggers import Trigger, TriggerType

TIMELINE = 300
RECENT = 20
"""Maximum number of instances of each workflow in a list of workflows."""
_DIGITS = 18
ANY = ""
"""Stands for a workflow or a signal whose name only a run can compute: it may be any, in any namespace."""
Given = str | bytes | Path | Mapping[str, Any]
"""A definition: YAML or JSON as text, a file of these, or JSON's own types."""


class Workflows(Topic):
    """Pushes, reads and deletes workflows."""

    __slots__ = ()
    tag = "workflows"

    def push(self, definition: Given) -> Document:
        """Store a definition as the next version of its workflow.

        Raises:
            DefinitionInvalid: it is invalid; the context lists all problems.
        """
        text, is_json = _text(definition)
        return self.push_workflow(text) if is_json else self.push_workflow_yaml(text)

    def validate(self, definition: Given) -> Document:
        """Check a definition without storing it."""
        text, is_json = _text(definition)
        return self.validate_workflow(text) if is_json else self.validate_workflow_yaml(text)

    @operation(
        "POST /workflows",
        EDIT_SOMEWHERE,
        answer=models.WorkflowDefinition,
        openapi=JSON_BODY,
        is_slow=True,
    )
    def push_workflow(self, body: bytes) -> Document:
        """Store a definition as the next version of its workflow."""
        return _pushed(self.call, body)

    @operation(
        "POST /workflows/yaml",
        EDIT_SOMEWHERE,
        answer=models.WorkflowDefinition,
        openapi=YAML_BODY,
        is_slow=True,
    )
    def push_workflow_yaml(self, body: bytes) -> Document:
        """Store a definition as the next version of its workflow."""
        return _pushed(self.call, body)

    @operation("PUT /workflows/actions/validate", EDIT_SOMEWHERE, answer=ActionEvent, openapi=JSON_BODY, is_slow=True)
    def validate_workflow(self, body: bytes) -> Document:
        """Check a definition without storing it."""
        return _checked(self.call, body)

    @operation(
        "PUT /workflows/actions/validate/yaml",
        EDIT_SOMEWHERE,
        answer=ActionEvent,
        openapi=YAML_BODY,
        is_slow=True,
    )
    def validate_workflow_yaml(self, body: bytes) -> Document:
        """Check a definition without storing it."""
        return _checked(self.call, body)

    def workflows(
        self, *, search: str | None = None, tag: str | None = None, owner: str | None = None
    ) -> Iterator[Document]:
        """Yield workflows by id: all, or those whose id contains ``search``, with a tag, or of an owner."""
        return self.pages(self.list_workflows, search=search, tag=tag, owner=owner)

    @operation("GET /workflows", READ_SOMEWHERE, answer=shapes.Workflows)
    def list_workflows(
        self,
        page: Page = FIRST,
        search: Annotated[str, Argument("Only workflows whose id contains this text.", max_length=128)] = "",
        tag: Annotated[str | None, Argument("Only workflows with this tag.", max_length=128)] = None,
        owner: Annotated[str | None, Argument("Only workflows of this owner.", max_length=128)] = None,
        sort: Annotated[Literal["id", "last_run"], Argument("By id, or by the last start, latest first.")] = "id",
        include: Annotated[
            str,
            Argument(
                "What to add to each: runs (the newest 20 instances), triggers (with the next time that one fires).",
                pattern="^((runs|triggers)(,(runs|triggers))*)?$",
                examples=["runs,triggers"],
            ),
        ] = "",
    ) -> Document:
        """List workflows by id, or those that were started last first."""
        page, order = page.forward(), WorkflowOrder(sort)
        query = WorkflowQuery(
            contains=search,
            owner=owner,
            tag=tag,
            namespaces=namespaces(self.call.principal, Permission.READ),
            order=order,
            after=after_workflow(page.cursor, order),
            limit=page.limit + 1,
        )
        found = self.call.engine.state.workflow_rows(query)
        extras = _included(self.call, [row.workflow.workflow_id for row in found[: page.limit]], include.split(","))
        return page_json(
            found,
            page,
            lambda row: {**workflow_json(row), **extras[row.workflow.workflow_id]},
            lambda row: workflow_cursor(row, order),
        )

    @operation("DELETE /workflows/{workflow_id}", EDIT, id="delete_workflow", answer=ActionEvent)
    def delete(self, workflow_id: WorkflowId) -> Document:
        """Delete a workflow with its versions, instances and logs."""
        self.call.engine.delete(workflow_id)
        message = f"The workflow [{workflow_id}] is deleted."
        return action_event("DELETE", self.call.name, self.call.engine.tools.clock(), message).as_json()

    def versions(self, workflow_id: str) -> Iterator[Document]:
        """Yield the versions of a workflow, newest first."""
        return self.pages(self.list_versions, workflow_id=workflow_id)

    @operation("GET /workflows/{workflow_id}/versions/pagination", READ, answer=models.Versions, is_slow=True)
    def list_versions(self, workflow_id: WorkflowId, page: Page = FIRST) -> Document:
        """List the versions of a workflow, newest first."""
        workflow = self.call.engine.workflow(workflow_id)
        versions = self.call.engine.state.versions(workflow_id)
        return page_of_numbers(versions, page, lambda one: one.version_id, lambda one: version_json(workflow, one))

    @operation(
        "GET /workflows/{workflow_id}/versions/{version}",
        READ,
        id="get_version",
        answer=models.WorkflowDefinition,
        is_slow=True,
    )
    def version(
        self,
        workflow_id: WorkflowId,
        version: Version = "active",
        *,
        enriched: Annotated[bool, Argument("Add the resolved params, and the next times of its triggers.")] = False,
    ) -> Document:
        """Return a version of a workflow."""
        workflow = self.call.engine.workflow(workflow_id)
        record = _version(self.call, workflow_id, version)
        return version_json(workflow, record, _extras(self.call, record) if enriched else None)

    @operation(
        "GET /workflows/{workflow_id}/versions/{version}/diff/{other}",
        READ,
        id="diff_versions",
        answer=shapes.VersionDiff,
        is_slow=True,
    )
    def diff(self, workflow_id: WorkflowId, version: Version, other: Version) -> Document:
        """Compare two versions of a workflow: a unified diff, and the changed steps and params."""
        older, newer = (_version(self.call, workflow_id, one) for one in (version, other))
        before, after = (Definition.model_validate(one.definition).workflow for one in (older, newer))
        name, other_name = (f"{workflow_id} version {one.version_id}" for one in (older, newer))
        lines, other_lines = (to_yaml(jsonable(one.definition)).splitlines() for one in (older, newer))
        return {
            "workflow_id": workflow_id,
            "from": _version_json(older),
            "to": _version_json(newer),
            "diff": "\n".join(unified_diff(lines, other_lines, name, other_name, lineterm="")),
            "steps": [change.as_json() for change in step_changes(before, after)],
            "params": [change.as_json() for change in param_changes(before, after)],
        }

    @operation(
        "GET /workflows/{workflow_id}/overview", READ, id="get_workflow_overview", answer=models.WorkflowOverview
    )
    def workflow(self, workflow_id: WorkflowId) -> Document:
        """Return a summary of a workflow: its versions, its properties, and how many instances have which status."""
        workflow = self.call.engine.workflow(workflow_id)
        state = self.call.engine.state
        latest = next((run.instance_id for run in state.numbered(workflow_id, limit=1)), None)
        return workflow_overview_json(workflow, state.instance_counts(workflow_id), latest)

    @operation(
        "GET /workflows/{workflow_id}/timeline",
        READ,
        id="get_workflow_timeline",
        answer=WorkflowTimeline,
        is_slow=True,
    )
    def timeline(self, workflow_id: WorkflowId) -> Document:
        """Return the versions of a workflow with their authors and times, newest first."""
        self.call.engine.workflow(workflow_id)
        return timeline_json(workflow_id, self.call.engine.state.versions(workflow_id)[:TIMELINE])


def _version(call: Caller, workflow_id: str, version: str | int) -> VersionRecord:
    record = call.engine.state.version(workflow_id, str(version).lower())
    if record is None:
        raise WorkflowMissing(f"{workflow_id} has no version {version}.", workflow=workflow_id)
    return record


def _version_json(version: VersionRecord) -> Document:
    return {
        "workflow_version_id": version.version_id,
        "version_author": version.author,
        "create_time": version.created_at,
    }


def workflow_cursor(row: WorkflowRow, order: WorkflowOrder) -> str:
    """Return the cursor of the page after a workflow."""
    return row.workflow.workflow_id if order is WorkflowOrder.ID else f"{abs(row.rank)}.{row.workflow.workflow_id}"


def after_workflow(cursor: str | None, order: WorkflowOrder) -> tuple[int, str] | None:
    """Return the rank and the id that a cursor of ``workflow_cursor`` stands for.

    Raises:
        RequestInvalid: it is not such a cursor.
    """
    if not cursor:
        return None
    if order is WorkflowOrder.ID:
        return 0, cursor
    rank, dot, workflow_id = cursor.partition(".")
    if not (dot and workflow_id and rank.isascii() and rank.isdecimal() and len(rank) <= _DIGITS):
        raise bad_cursor(cursor)
    return (-int(rank) if order is WorkflowOrder.LAST_RUN else int(rank)), workflow_id


def _included(call: Caller, workflow_ids: list[str], include: Collection[str]) -> dict[str, Document]:
    """Return the additions to a list of workflows, by workflow: one query for all instances, one for triggers."""
    extras: dict[str, Document] = {workflow_id: {} for workflow_id in workflow_ids}
    if "runs" in include:
        for workflow_id, runs in call.engine.state.recent_runs(workflow_ids, RECENT).items():
            extras[workflow_id]["runs"] = [recent_run_json(run) for run in runs]
    if "triggers" in include:
        triggers: dict[str, list[Trigger]] = {workflow_id: [] for workflow_id in workflow_ids}
        for trigger in call.triggers.of_workflows(workflow_ids):
            triggers[trigger.workflow_id].append(trigger)
        for workflow_id, own in triggers.items():
            times = [
                one.due_at for one in own if one.kind is TriggerType.TIME and one.is_begun and one.due_at is not None
            ]
            extras[workflow_id]["next_fire_time"] = min(times, default=None)
            extras[workflow_id]["triggers"] = [trigger_json(one) for one in own]
    return extras


def _text(definition: Given) -> tuple[bytes, bool]:
    """Return a definition as text, and whether it is JSON."""
    if isinstance(definition, Mapping):
        check_text(definition)
        return json.dumps(definition).encode(), True
    check_text(definition if isinstance(definition, str) else "", "The definition")
    text = definition.encode() if isinstance(definition, str) else definition
    if isinstance(text, Path):
        text = _content(text)
    try:
        return text, isinstance(json.loads(text), dict)
    except ValueError:
        return text, False


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise RequestInvalid(f"{file} cannot be read: {error.strerror}") from error


def _pushed(call: Caller, body: bytes) -> Document:
    definition, warnings = _read(call, body)
    record = call.engine.push(definition, author=call.name)
    written = version_json(call.engine.workflow(record.workflow_id), record)
    # Maestro has the document inside; calve's clients read its fields outside.
    return {"workflow_definition": written, **written, **warnings}


def _checked(call: Caller, body: bytes) -> Document:
    _, warnings = _read(call, body)
    message = "the workflow definition is valid."
    return {**action_event("VALIDATE", call.name, call.engine.tools.clock(), message).as_json(), **warnings}


def defined(call: Caller, body: bytes) -> Definition:
    """Return the definition of a body if the caller may push it.

    Raises:
        DefinitionInvalid: it is not a valid definition.
    """
    definition, _ = _read(call, body)
    return definition


def _read(call: Caller, body: bytes) -> tuple[Definition, Document]:
    """Return the definition of a body, and the warnings for the answer."""
    loaded = load(body, name="the body", vocabulary=call.engine.tools.vocabulary)
    definition = loaded.required()
    workflow = definition.workflow
    call.require(Permission.EDIT, workflow.id)
    for name in (*_started_by(workflow), *_sent_by(workflow)):
        call.require(Permission.RUN, name)
    for name in _awaited_by(workflow):
        call.require(Permission.READ, name)
    warnings = [problem.as_json() for problem in loaded.problems]
    return definition, {"warnings": warnings} if warnings else {}


def _started_by(workflow: Workflow) -> Iterator[str]:
    """Yield the ids of the workflows that steps start, and ANY for each one that is an expression."""
    return (each.workflow_id or ANY for each in subworkflows(workflow))


def _sent_by(workflow: Workflow) -> Iterator[str]:
    """Yield the names of the signals that steps send, and ANY for each one that is an expression."""
    outputs = (output for step in workflow.all_steps() for output in step.signal_outputs)
    return (ANY if "$" in output.name else output.name for output in outputs)


def _awaited_by(workflow: Workflow) -> Iterator[str]:
    """Yield the names of the signals that steps and triggers wait for, and ANY for each one that is an expression.

    Waits for how far a table is complete are left out: the engine checks whether the workflow may read the table.
    """
    by_steps = (awaited.name for step in workflow.all_steps() for awaited in step.signal_dependencies)
    by_triggers = (name for trigger in workflow.signal_triggers for name in trigger.definitions)
    for name in (*(ANY if "$" in name else name for name in by_steps), *by_triggers):
        if not name.startswith(VALID_THROUGH):
            yield name


def _extras(call: Caller, version: VersionRecord) -> models.DefinitionExtras:
    """Return the params that are known before a run, including default params, and the next starts."""
    tools = call.engine.tools
    definition = Definition.model_validate(version.definition)
    found = resolve(definition, tools.vocabulary, run={}, clock=tools.clock)
    times = _next_times(call, version)
    return models.DefinitionExtras(
        workflow_params=_params(found.workflow),
        step_params={step_id: _params(params) for step_id, params in found.steps.items()},
        next_execution_time=times[0] if times else None,
        next_execution_times=times or None,
    )


def _params(params: Mapping[str, Parameter]) -> dict[str, Any]:
    return {name: flat(param.as_json()) for name, param in params.items()}


def _next_times(call: Caller, version: VersionRecord) -> list[int]:
    state = call.services.triggers
    if state is None:
        return []
    triggers = state.triggers(workflow_id=version.workflow_id, kind=TriggerType.TIME)
    begun = (one for one in triggers if one.is_begun and one.version_id == version.version_id)
    return sorted(one.due_at for one in begun if one.due_at is not None)


class Properties(Topic):
    """Changes the properties of workflows, which apply to all versions."""

    __slots__ = ()
    tag = "properties"

    @operation("POST /workflows/{workflow_id}/properties", EDIT, answer=models.PropertiesSnapshot)
    def change_properties(self, workflow_id: WorkflowId, request: PropertiesRequest) -> Document:
        """Change properties; those that are not given stay as they are."""
        return properties_json(
            self.call.engine.change_properties(workflow_id, request.changes(), reset=request.reset())
        )

    @operation(
        "GET /workflows/{workflow_id}/properties-snapshot/{snapshot}",
        READ,
        id="get_properties",
        answer=models.PropertiesSnapshot,
    )
    def properties(self, workflow_id: WorkflowId, snapshot: Word = "latest") -> Document:
        """Return the current properties: ``latest``, or the time of their change. Earlier ones are not kept."""
        workflow = self.call.engine.workflow(workflow_id)
        if snapshot.lower() not in {"latest", "current", str(workflow.modified_at)}:
            raise WorkflowMissing(
                f"{workflow_id} has no snapshot {snapshot} of its properties.", remedy="Only the latest one is kept."
            )
        return properties_json(workflow)

    @operation("POST /workflows/{workflow_id}/properties/tag", EDIT, answer=models.PropertiesSnapshot)
    def add_workflow_tag(self, workflow_id: WorkflowId, tag: TagBody) -> Document:
        """Add a tag to a workflow, for all of its versions."""
        given = tag.model_dump(exclude={"namespace"})
        by = {"creator": {"name": self.call.name}, "created_at_milli": self.call.engine.tools.clock()}
        return properties_json(self.call.engine.tag(workflow_id, {**given, **by, "namespace": "PLATFORM"}))

    @operation("DELETE /workflows/{workflow_id}/properties/tag/{tag}", EDIT, answer=models.PropertiesSnapshot)
    def delete_workflow_tag(self, workflow_id: WorkflowId, tag: Tag) -> Document:
        """Remove a tag from a workflow."""
        return properties_json(self.call.engine.untag(workflow_id, tag))
