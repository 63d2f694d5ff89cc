"""The incremental trigger: starts a workflow when its tables have changes that it has not committed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from calve.capture import Captures, Checkpoint, Uncommitted
from calve.definition.model import IncrementalTrigger
from calve.definition.params import InitiatorType
from calve.engine import Initiator, Run, Tools
from calve.lake import Lake
from calve.namespaces import ROOT, namespace_of
from calve.triggers.model import Evaluation, Fire, Trigger, TriggerState
from calve.triggers.tables.decision import ChangeRules, Decision, Memory, Reaction, UncommittedChange, counted, decide
from calve.triggers.tables.watches import TableWatch, rules_of, watches_of

DISABLED = "incremental_trigger_disabled"


@dataclass(frozen=True, slots=True)
class _Found:
    """The uncommitted changes of one table for one consumer."""

    watch: TableWatch
    uncommitted: Uncommitted

    @property
    def table(self) -> str:
        return str(self.watch.table)


class TableChanges:
    """Decides from the metadata of tables and the checkpoints of the workflow's captures."""

    def __init__(self, tools: Tools, state: TriggerState, captures: Captures, lake: Lake) -> None:
        self._tools = tools
        self._state = state
        self._captures = captures
        self._lake = lake

    def begin(self, trigger: Trigger, now: int) -> Evaluation:
        """Evaluate immediately, because uncommitted changes count; marks of its own begin at the current snapshot."""
        return self.evaluate(trigger, now)

    def evaluate(self, trigger: Trigger, now: int) -> Evaluation:
        """Find uncommitted changes, and decide what to do about them.

        Raises:
            CaptureError, LakeError: a table is missing, re-created, rolled back, or its history expired.
        """
        record = self._tools.state.workflow(trigger.workflow_id)
        if record is None or record.properties.get(DISABLED):
            return Evaluation((), {**trigger.state, "version": trigger.version_id}, None)
        # Before the tables are read: an instance that ends later makes this trigger due again, so no change is missed.
        is_busy = self._state.is_unfinished(trigger.workflow_id)
        definition = IncrementalTrigger.model_validate(trigger.definition)
        rules = rules_of(definition)
        workflow = self._tools.blueprints.get(trigger.workflow_id, trigger.version_id).workflow
        found = self._find(trigger, watches_of(workflow, definition, self._lake.parse))
        changes = _changes(found, rules, now)
        decision = decide(changes, Memory.from_json(trigger.state), rules, now, is_busy=is_busy)
        fires = (_fire(trigger, changes, now),) if decision.reaction is Reaction.FIRE else ()
        return Evaluation(fires, _state(trigger, decision, found, changes, now), decision.due_at)

    def _find(self, trigger: Trigger, watches: Sequence[TableWatch]) -> list[_Found]:
        marks = trigger.state.get("marks", {})
        is_limited = namespace_of(trigger.workflow_id) != ROOT
        captures = self._captures.for_workflow(trigger.workflow_id) if is_limited else self._captures
        return [_Found(watch, _uncommitted(captures, watch, marks.get(str(watch.table)))) for watch in watches]


def _uncommitted(captures: Captures, watch: TableWatch, mark: dict[str, Any] | None) -> Uncommitted:
    table = str(watch.table)
    if watch.consumer is not None:
        return captures.uncommitted(table, watch.consumer, watch.wanted)
    if mark is not None:
        return captures.since(table, Checkpoint.from_json(mark), watch.wanted)
    new = captures.since(table, None, watch.wanted)
    return Uncommitted(new.table, new.table_uuid, new.metadata_location, new.head, new.head, ())


def _changes(found: Sequence[_Found], rules: ChangeRules, now: int) -> list[UncommittedChange]:
    """Return the relevant changes by table; with several consumers of one table, that of the slowest."""
    changes: dict[str, UncommittedChange] = {}
    for each in found:
        change = counted(each.uncommitted, rules, is_first=each.watch.wanted.start is not None, now=now)
        known = changes.get(each.table)
        if change is not None and (known is None or change.commits > known.commits):
            changes[each.table] = change
    return list(changes.values())


def _fire(trigger: Trigger, changes: Sequence[UncommittedChange], now: int) -> Fire:
    """Return the start; its key is unique to this evaluation, so that a checkpoint that is set back fires again."""
    committed_at = max(each.last_at for each in changes)
    told = {
        "type": "incremental",
        "trigger_id": trigger.trigger_id,
        "trigger_uuid": trigger.uuid,
        "tables": [each.as_json() for each in changes],
        "committed_at": committed_at,
        "noticed_at": now,
    }
    named = ",".join(sorted(each.identity for each in changes))
    return Fire(f"{named}@{trigger.made_at}.{trigger.seq}", Initiator(InitiatorType.INCREMENTAL, trigger=told))


def _state(
    trigger: Trigger, decision: Decision, found: Sequence[_Found], changes: Sequence[UncommittedChange], now: int
) -> dict[str, Any]:
    """Return the trigger's state; its own marks advance when it fires, whatever happens to the instance."""
    is_fired = decision.reaction is Reaction.FIRE
    own = [each.uncommitted for each in found if each.watch.consumer is None]
    names = [each.table for each in found if each.watch.consumer is None]
    marks = {
        name: (each.head if is_fired or each.start is None else each.start).as_json()
        for name, each in zip(names, own, strict=True)
    }
    seen: dict[str, str] = {}
    for each in found:
        seen.setdefault(each.table, each.uncommitted.metadata_location)  # the older one: polling notices a newer one
    latest = _latency(changes, now) if is_fired else trigger.state.get("latest")
    return {
        "version": trigger.version_id,
        "seen": seen,
        "marks": marks,
        "verdict": decision.reaction.value,
        "latest": latest,
        **decision.memory.as_json(),
    }


def _latency(changes: Sequence[UncommittedChange], now: int) -> dict[str, int]:
    committed_at = max(each.last_at for each in changes)
    return {"committed_at": committed_at, "fired_at": now, "latency_ms": now - committed_at}


def latency_of(run: Run) -> int | None:
    """Return the milliseconds from the newest commit of its tables to an instance's start; None for other triggers."""
    if run.initiator.type is not InitiatorType.INCREMENTAL:
        return None
    return run.created_at - int(run.initiator.trigger["committed_at"])


def latest_latency(trigger: Trigger) -> int | None:
    """Return the milliseconds from the newest commit to a trigger's last firing; None if it never fired."""
    latest = trigger.state.get("latest")
    return None if latest is None else int(latest["latency_ms"])
