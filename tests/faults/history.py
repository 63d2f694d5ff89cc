"""All that a store remembers of what has happened, as plain values."""

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, select

from calve.engine import Blueprints, RunStatus, StepStatus
from calve.store import open_store
from calve.store.engine.rows import EVENT
from calve.store.tables import metadata


@dataclass(frozen=True, slots=True)
class RunFact:
    """A run."""

    uuid: str
    workflow_id: str
    instance_id: int
    run_id: int
    status: RunStatus
    owner_workflow: str
    predecessors: Mapping[str, tuple[str, ...]]
    """Of each of its steps."""
    parent_attempt: str | None = None
    request_id: str | None = None
    is_inline: bool = False


@dataclass(frozen=True, slots=True)
class AttemptFact:
    """An attempt of a step."""

    uuid: str
    run_uuid: str
    step_id: str
    attempt_id: int
    type: str
    status: StepStatus
    is_superseded: bool = False
    artifacts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Move:
    """Something came from one state to another: a run, or (with a step) an attempt."""

    run_uuid: str
    before: str | None
    after: str
    step_id: str | None = None
    attempt_id: int | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """How many instances, and how many steps, of a workflow may be under way at once."""

    instances: int
    steps: int


@dataclass(frozen=True, slots=True)
class History:
    """What a store holds, and what its workers have written down."""

    runs: tuple[RunFact, ...] = ()
    attempts: tuple[AttemptFact, ...] = ()
    moves: tuple[Move, ...] = ()
    """In the order in which they were recorded."""
    limits: Mapping[str, Limits] = field(default_factory=dict)
    requests: Mapping[str, str] = field(default_factory=dict)
    """What was asked to be started: the workflow, by the name of the request."""
    journal: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The words of the calls for an attempt, by its uuid."""
    left: tuple[str, ...] = ()
    """What is left in the queue, among the claims, and among the workers that count as alive."""


def read_history(url: str, requests: Mapping[str, str], journal: Path) -> History:
    """Read everything out of a store on which nobody works any more."""
    with open_store(url) as store:
        blueprints = Blueprints(store.engine.version)
        raw = _Raw(url)
        runs = tuple(_run(row, blueprints) for row in raw.rows("run"))
        return History(
            runs,
            tuple(_attempt(row) for row in raw.rows("attempt")),
            tuple(
                Move(event.run_uuid, event.before, event.after or "", event.step_id, event.attempt_id)
                for event in map(EVENT.from_row, raw.rows("event"))
            ),
            {row.workflow_id: _limits(json.loads(row.properties)) for row in raw.rows("workflow")},
            requests,
            read_journal(journal),
            (
                *(f"task {row.key} owned by {row.owner}" for row in raw.rows("task")),
                *(f"claim on {row.permit} of {row.attempt_uuid}" for row in raw.rows("permit_claim")),
                *(f"worker {row.uuid}" for row in raw.rows("worker") if not row.is_dead),
            ),
        )


def read_journal(path: Path) -> dict[str, tuple[str, ...]]:
    """Return the words of the calls of each attempt; the last line of a file may be torn."""
    found: dict[str, list[str]] = defaultdict(list)
    lines = path.read_text().splitlines() if path.exists() else []
    for attempt, word, _pid, _at in (line.split() for line in lines):
        found[attempt].append(word)
    return {attempt: tuple(words) for attempt, words in found.items()}


class _Raw:
    """The tables as they are."""

    def __init__(self, url: str) -> None:
        self._engine = create_engine(url)

    def rows(self, name: str) -> list[Any]:
        table = metadata.tables[name]
        with self._engine.connect() as connection:
            found = list(connection.execute(select(table).order_by(*table.primary_key)))
        self._engine.dispose()
        return found


def _run(row: Any, blueprints: Blueprints) -> RunFact:
    blueprint = blueprints.get(row.owner_workflow, row.version_id, row.inline_step)
    before = {step: tuple(sources) for step, sources in blueprint.dag.predecessors.items()}
    return RunFact(
        row.uuid,
        row.workflow_id,
        row.instance_id,
        row.run_id,
        RunStatus(row.status),
        row.owner_workflow,
        before,
        row.parent_attempt,
        row.request_id,
        row.inline_step is not None,
    )


def _attempt(row: Any) -> AttemptFact:
    return AttemptFact(
        row.uuid,
        row.run_uuid,
        row.step_id,
        row.attempt_id,
        row.type,
        StepStatus(row.status),
        bool(row.is_superseded),
        json.loads(row.artifacts),
    )


def _limits(properties: Mapping[str, Any]) -> Limits:
    strategy = properties.get("run_strategy") or {}
    return Limits(strategy.get("workflow_concurrency") or 1, properties.get("step_concurrency") or 100_000)
