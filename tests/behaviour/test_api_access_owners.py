"""Whose consumers, tables, signals, secrets and subworkflows are: walked through steps, REST, GraphQL and triggers.

Everything is asked by an editor of ``sales``. What is of ``sales`` is theirs; what is of ``finance`` does not exist for
them, whichever way they take.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.accesses import Gatehouse, bearer
from tests.engines import Playground
from tests.servers import Site, services_on, site_on

from calve.api.access import guarded
from calve.app import captures_on, deliveries_on
from calve.capture import Captures
from calve.delivery import Deliveries, Delivery
from calve.engine import RunStatus
from calve.engine.model import Run
from calve.errors import CaptureMissing, TableMissing
from calve.lake import Lake
from calve.settings import load
from calve.steps.captures import ICDC, IpCapture, IpCommit
from calve.steps.sql import Sql
from calve.testing import PyIcebergWriter
from calve.triggers import Kind, Scheduler, TriggerKind
from calve.triggers.signals import Signals, SignalTriggers
from calve.triggers.tables import TableChanges, Watcher

OWN, OTHER = "sales", "finance"
GRANTS = json.dumps({OWN: [f"{OWN}.*"], OTHER: [f"{OTHER}.*"]})
COLUMNS = {"id": "long", "day": "int", "n": "long"}


@dataclass
class Town:
    """Two namespaces on one server, each with a table and a consumer, which have an open capture."""

    playground: Playground
    site: Site
    lake: Lake
    writer: PyIcebergWriter
    captures: Captures
    deliveries: Deliveries
    scheduler: Scheduler

    def rest(self, method: str, path: str, **options: Any) -> bool:
        """Ask for something by REST; tell whether it was done."""
        answer = self.site.client.request(method, f"/api/v3{path}", **options)
        assert answer.status_code in {200, 403, 404}, answer.text
        return answer.status_code == 200

    def graphql(self, query: str) -> Any:
        """Ask for something by GraphQL; return what it gave, None if it was refused."""
        answer = self.site.client.post("/graphql", json={"query": query}).json()
        codes = [error["extensions"]["code"] for error in answer.get("errors") or ()]
        assert set(codes) <= {"forbidden", "capture_missing", "table_missing"}, answer
        return None if codes else answer["data"]

    def pushes(self, definition: str) -> bool:
        """Push a definition by REST; tell whether it was taken."""
        headers = {"content-type": "application/yaml"}
        answer = self.site.client.post("/api/v3/workflows/yaml", content=definition, headers=headers)
        assert answer.status_code in {200, 400, 403}, answer.text
        return answer.status_code == 200

    def runs(self, workflow_id: str, **params: str) -> bool:
        """Start a workflow by REST with params; tell whether it succeeded."""
        self.site.start(workflow_id, run_params=params)
        self.playground.settle()
        return self._last(workflow_id).status is RunStatus.SUCCEEDED

    def triggers(self, workflow_id: str, **params: str) -> bool:
        """Let a signal start a workflow, whose params it gives; tell whether it succeeded."""
        self.go()
        before = len(self.playground.state.instances(workflow_id=workflow_id))
        Signals(self.playground.state, self.playground.clock).announce(f"{OWN}.go", params)
        self.go()
        assert len(self.playground.state.instances(workflow_id=workflow_id)) == before + 1
        return self._last(workflow_id).status is RunStatus.SUCCEEDED

    def go(self) -> None:
        """Let triggers and steps go on until nothing happens by itself."""
        for _ in range(20):
            self.playground.settle()
            turn = self.scheduler.turn()
            if not (turn.synced or turn.looked or turn.failed):
                return
        raise AssertionError("it never comes to rest")

    def opened(self, namespace: str) -> str:
        """Return the capture that the consumer of a namespace has open; it, and a checkpoint, are made if missing."""
        consumer, table = f"{namespace}.etl/capture", f"{namespace}.t"
        if not self.captures.checkpoints(consumer):
            self.captures.set_checkpoint(table, consumer, "latest", "begin")
        found = self.captures.open_capture(consumer)
        return found.capture_id if found else str(self.captures.capture([table], consumer).capture_id)

    def _last(self, workflow_id: str) -> Run:
        return self.playground.state.instances(workflow_id=workflow_id)[0]


@pytest.fixture
def town(playground: Playground, house: Gatehouse, tmp_path: Path) -> Iterator[Town]:
    """Give it, with a client that shows the token of an editor of sales."""
    store = playground.store
    names = ("CAPTURE", "WRITE")
    connections = {f"CALVE_CONNECTIONS__{name.upper()}": f"sqlite:///{tmp_path}/{name}.db" for name in (OWN, OTHER)}
    settings = load(tmp_path, {f"CALVE_ACCESS__TABLES__{name}": GRANTS for name in names} | connections)
    lake, writer = Lake(settings), PyIcebergWriter(settings)
    for number, namespace in enumerate((OWN, OTHER)):
        writer.create(f"{namespace}.t", COLUMNS, days=True)
        writer.append([{"id": 1_000 * number + each, "day": 1, "n": 0} for each in (1, 2)])
    captures, deliveries = captures_on(lake, store), deliveries_on(lake, store)
    playground.executor.runtimes = {
        **playground.runtimes,
        "IpCapture": lambda: IpCapture(captures, deliveries),
        "IpCommit": lambda: IpCommit(captures, deliveries),
        "ICDC": lambda: ICDC(captures, deliveries, lake),
        "SQL": lambda: Sql(settings.connections, tmp_path),
    }
    playground.secrets.update({f"{OWN}.key": "ours", f"{OTHER}.key": "theirs"})
    kinds: dict[Kind, TriggerKind] = {
        Kind.SIGNAL: SignalTriggers(playground.state),
        Kind.INCREMENTAL: TableChanges(playground.tools, store.triggers, captures, lake),
    }
    signals = Signals(playground.state, playground.clock)
    for namespace in (OWN, OTHER):
        playground.push(f"Workflow: {{id: {namespace}.child, jobs: [{{job: {{id: inner, type: Sleep}}}}]}}")
        captures.commit(captures.capture([f"{namespace}.t"], f"{namespace}.etl/capture").capture_id or "")
        signals.announce(f"{namespace}.ready", {"day": 1})
    scheduler = Scheduler(playground.tools, store.triggers, kinds)
    watcher = Watcher(lake, store.triggers, playground.clock, interval=15)
    services = services_on(playground, captures=captures, changed=watcher.changed)
    with site_on(playground, services, **guarded(house.entrance())) as site:
        site.client.headers.update(bearer(house.token("editor@sales")))
        yield Town(playground, site, lake, writer, captures, deliveries, scheduler)
    writer.close()
    lake.close()


# The walk: what each way does with a thing of a namespace, and whether it was let.

Way = Callable[[Town, str], bool]
TRIGGER = f"Trigger: {{signal: {OWN}.go}}\n"
BY_SIGNAL = f"'!name': \"params.getFromSignal('{OWN}.go', 'thing')\""


def _workflow(name: str, job: str, *, param: str = "name: none", trigger: str = "") -> str:
    return f"{trigger}Workflow: {{id: {OWN}.{name}, {param}, jobs: [{job}]}}"


CAPTURE = "{job: {id: c, type: IpCapture, ip_capture: {source_tables: %s, consumer: '%s', when_unchanged: run}}}"
OF_CONSUMER = CAPTURE % (f"{OWN}.t", "${name}")
OF_TABLE = CAPTURE % ("'${name}'", f"{OWN}.of_table")
NOTHING = "{job: {id: a, type: NoOp}}"
LOOP = "{foreach: {id: l, ranges: {i: {from: 0, to: 1}}, jobs: [JOB]}}"
COMMIT = (
    "{job: {id: c, type: IpCapture, ip_capture: {source_tables: sales.t}, transition: [m]}}, "
    "{job: {id: m, type: IpCommit, ip_commit: {capture_step: c, capture: '${name}'}}}"
)
ICDC_TARGET = "{job: {id: c, type: ICDC, icdc: {source_table: sales.t, target_table: '${name}'}}}"
AWAIT = "{job: {id: a, type: NoOp, signal_dependencies: ['${name}']}}"
SEND = "{job: {id: a, type: NoOp, signal_outputs: ['${name}']}}"
CALL = "{subworkflow: {id: call, workflow_id: '${name}'}}"
QUERY = "{job: {id: q, type: SQL, sql: {connection: '${name}', query: SELECT 1}}}"


def _by_step(job: str, name: str) -> Way:
    """Return the way of a run that somebody of sales starts, whose param names the thing."""

    def way(town: Town, namespace: str) -> bool:
        town.playground.push(_workflow("by_step", job))
        return town.runs(f"{OWN}.by_step", name=name.format(namespace))

    return way


def _by_trigger(job: str, name: str) -> Way:
    """Return the way of a run that a signal starts, whose param names the thing."""

    def way(town: Town, namespace: str) -> bool:
        town.playground.push(_workflow("by_trigger", job, param=BY_SIGNAL, trigger=TRIGGER))
        return town.triggers(f"{OWN}.by_trigger", thing=name.format(namespace))

    return way


def _by_definition(definition: str) -> Way:
    """Return the way of a definition that writes the thing out."""
    return lambda town, namespace: town.pushes(definition.replace("NAMESPACE", namespace))


def _by_rest(method: str, path: str, body: dict[str, Any] | None = None, *, is_query: bool = False) -> Way:
    def way(town: Town, namespace: str) -> bool:
        filled = json.loads(json.dumps(body or {}).replace("NAMESPACE", namespace))
        filled_path = path.replace("NAMESPACE", namespace)
        if "CAPTURE" in path:
            filled_path = filled_path.replace("CAPTURE", town.opened(namespace))
        given = {"params": filled} if is_query else {"json": filled} if body is not None else {}
        return town.rest(method, filled_path, **given)

    return way


def _listed(path: str, text: str) -> Way:
    """Return the way of a list: whether it has the thing."""

    def way(town: Town, namespace: str) -> bool:
        town.opened(namespace)
        return text.replace("NAMESPACE", namespace) in json.dumps(town.site.get(path.replace("NAMESPACE", namespace)))

    return way


def _queried(query: str, text: str) -> Way:
    def way(town: Town, namespace: str) -> bool:
        town.opened(namespace)
        found = town.graphql(query.replace("NAMESPACE", namespace))
        return text.replace("NAMESPACE", namespace) in json.dumps(found)

    return way


def _committed(town: Town, namespace: str) -> bool:
    town.playground.push(_workflow("commits", COMMIT))
    return town.runs(f"{OWN}.commits", name=town.opened(namespace))


def _delivered(town: Town, namespace: str) -> bool:
    return _is_staged(town, f"{namespace}.t", None)


def _delivered_capture(town: Town, namespace: str) -> bool:
    return _is_staged(town, f"{OWN}.t", town.opened(namespace))


def _is_staged(town: Town, target: str, capture_id: str | None) -> bool:
    try:
        staging = town.deliveries.stage([target], Delivery(f"{OWN}.w/load", capture_id, "run"), "attempt")
    except (TableMissing, CaptureMissing):
        return False
    town.deliveries.discard(staging)
    return True


def _watched(town: Town, namespace: str) -> bool:
    """Let a trigger watch a table, and tell whether it fires."""
    town.playground.push(_workflow("watches", NOTHING, trigger=f"Trigger: {{incremental: {namespace}.t}}\n"))
    return _fires(town, f"{OWN}.watches", namespace)


def _watched_consumer(town: Town, namespace: str) -> bool:
    """The same with a consumer, in a definition that was pushed before consumers had owners."""
    job = CAPTURE % (f"{OWN}.t", f"{OWN}.etl/capture")
    definition = f"Trigger: {{incremental: {OWN}.t}}\nWorkflow: {{id: {OWN}.old, jobs: [{job}]}}"
    record = town.playground.push(definition)
    old = json.loads(json.dumps(record.definition).replace(f"{OWN}.etl/capture", f"{namespace}.etl/capture"))
    town.playground.state.push(f"{OWN}.old", old, {}, is_active=True, author="", now=town.playground.clock())
    return _fires(town, f"{OWN}.old", OWN)


def _fires(town: Town, workflow_id: str, namespace: str) -> bool:
    town.scheduler.turn()
    town.writer.table = f"{namespace}.t"
    town.writer.append([{"id": 5, "day": 1, "n": 0}])
    town.playground.store.triggers.make_due([(workflow_id, "incremental:0")], town.playground.clock())
    town.scheduler.turn()
    (trigger,) = town.playground.store.triggers.triggers(workflow_id=workflow_id)
    has_fired = trigger.fired_at is not None
    assert has_fired is not bool(trigger.error)
    town.playground.engine.deactivate(workflow_id)
    town.playground.settle()
    return has_fired


def _secret(town: Town, namespace: str) -> bool:
    job = f"{{job: {{id: s, type: Sleep, key<secret>: {namespace}.key}}}}"
    town.playground.push(_workflow("keeps", job))
    return town.runs(f"{OWN}.keeps")


WALK: dict[str, Way] = {
    "consumer, step": _by_step(OF_CONSUMER, "{}.etl/capture"),
    "consumer, step that commits": _committed,
    "consumer, step that delivers": _delivered_capture,
    "consumer, definition": _by_definition(_workflow("d", CAPTURE % ("sales.t", "NAMESPACE.etl/capture"))),
    "consumer, definition with a loop": _by_definition(
        _workflow("l", LOOP.replace("JOB", CAPTURE % ("sales.t", "NAMESPACE.x/y")))
    ),
    "consumer, trigger": _by_trigger(OF_CONSUMER, "{}.etl/capture"),
    "consumer, trigger that watches": _watched_consumer,
    "consumer, REST plan": _by_rest("POST", "/captures/plan", {"tables": ["sales.t"], "consumer": "NAMESPACE.e/c"}),
    "consumer, REST capture": _by_rest("POST", "/captures", {"tables": ["sales.t"], "consumer": "NAMESPACE.e/c"}),
    "consumer, REST show": _by_rest("GET", "/captures/CAPTURE"),
    "consumer, REST files": _by_rest("GET", "/captures/CAPTURE/files"),
    "consumer, REST commit": _by_rest("POST", "/captures/CAPTURE/actions/commit"),
    "consumer, REST abandon": _by_rest("POST", "/captures/CAPTURE/actions/abandon"),
    "consumer, REST set": _by_rest(
        "PUT", "/checkpoints", {"table": "sales.t", "consumer": "NAMESPACE.e/c", "to": "latest", "reason": "r"}
    ),
    "consumer, REST reset": _by_rest(
        "DELETE",
        "/checkpoints",
        {"table": "NAMESPACE.t", "consumer": "NAMESPACE.etl/capture", "reason": "r"},
        is_query=True,
    ),
    "consumer, REST captures": _listed("/captures", "NAMESPACE.etl/capture"),
    "consumer, REST checkpoints": _listed("/checkpoints?consumer=NAMESPACE.etl/capture", "NAMESPACE.etl/capture"),
    "consumer, REST log": _listed("/checkpoints/log", "NAMESPACE.etl/capture"),
    "consumer, REST lag": _listed("/lag", "NAMESPACE.etl/capture"),
    "consumer, GraphQL captures": _queried("{ captures }", "NAMESPACE.etl/capture"),
    "consumer, GraphQL checkpoints": _queried('{ checkpoints(consumer: "NAMESPACE.etl/capture") }', "NAMESPACE.etl"),
    "table, step": _by_step(OF_TABLE, "{}.t"),
    "table, step by its full name": _by_step(OF_TABLE, "lake.{}.t"),
    "table, step that names a change": _by_step(ICDC_TARGET, "{}.changes"),
    "table, step that delivers": _delivered,
    "table, trigger": _by_trigger(OF_TABLE, "{}.t"),
    "table, trigger that watches": _watched,
    "table, REST plan": _by_rest(
        "POST", "/captures/plan", {"tables": ["NAMESPACE.t"], "consumer": "sales.e/c", "ranges": ["id"]}
    ),
    "table, REST plan of two": _by_rest(
        "POST", "/captures/plan", {"tables": ["sales.empty", "NAMESPACE.t"], "consumer": "sales.e/c"}
    ),
    "table, REST capture": _by_rest("POST", "/captures", {"tables": ["NAMESPACE.t"], "consumer": "sales.e/t"}),
    "table, REST set": _by_rest(
        "PUT", "/checkpoints", {"table": "NAMESPACE.t", "consumer": "sales.e/s", "to": "latest", "reason": "r"}
    ),
    "signal, step": _by_step(AWAIT, "{}.ready"),
    "signal, step that sends": _by_step(SEND, "{}.done"),
    "signal, definition": _by_definition(_workflow("s", AWAIT.replace("${name}", "NAMESPACE.ready"))),
    "signal, definition that sends": _by_definition(_workflow("s", SEND.replace("${name}", "NAMESPACE.ready"))),
    "signal, definition of a trigger": _by_definition(
        _workflow("s", NOTHING, trigger="Trigger: {signal: NAMESPACE.ready}\n")
    ),
    "signal, trigger": _by_trigger(AWAIT, "{}.ready"),
    "signal, trigger that sends": _by_trigger(SEND, "{}.done"),
    "signal, REST": _by_rest("GET", "/signals/NAMESPACE.ready/instances/latest"),
    "signal, REST lineage": _by_rest("GET", "/signals/NAMESPACE.ready/instances/1/lineage"),
    "signal, REST announce": _by_rest("POST", "/signals", {"name": "NAMESPACE.ready"}),
    "signal, REST list": _listed("/signals", '"name": "NAMESPACE.ready"'),
    "signal, GraphQL": _queried("{ signals }", '"name": "NAMESPACE.ready"'),
    "signal, GraphQL lineage": _queried('{ signalLineage(name: "NAMESPACE.ready") }', "NAMESPACE.ready"),
    "signal, GraphQL announce": _queried('mutation { announce(name: "NAMESPACE.ready") }', "NAMESPACE.ready"),
    "workflow, step": _by_step(CALL, "{}.child"),
    "workflow, definition": _by_definition(_workflow("s", CALL.replace("${name}", "NAMESPACE.child"))),
    "workflow, trigger": _by_trigger(CALL, "{}.child"),
    "workflow, REST": _by_rest("GET", "/workflows/NAMESPACE.child/versions/latest"),
    "workflow, GraphQL": _queried('{ workflow(id: "NAMESPACE.child") { id } }', "NAMESPACE.child"),
    "secret, step": _secret,
    "connection, step": _by_step(QUERY, "{}"),
}
FOR_ALL = {"connection, step"}
"""What is not held to namespaces: addresses in [connections] are for all workflows."""


@pytest.mark.parametrize("namespace", [OWN, OTHER])
def test_nobody_reaches_what_is_of_another_namespace(town: Town, namespace: str) -> None:
    """Whichever way is taken; what is of one's own namespace is reached by all of them."""
    town.writer.create("sales.empty", COLUMNS, days=True)
    before = _of_finance(town)
    wrong = [
        way for way, reaches in WALK.items() if reaches(town, namespace) is not (namespace == OWN or way in FOR_ALL)
    ]
    assert wrong == []
    if namespace == OTHER:
        assert _of_finance(town) == before


def _of_finance(town: Town) -> Any:
    """Return what the other namespace has, which nobody of this one may change."""
    town.opened(OTHER)
    signals = town.playground.state.signals_after(f"{OTHER}.ready", 0, 10)
    stored = [(one.capture_id, one.status) for one in town.captures.captures(f"{OTHER}.etl/capture")]
    runs = town.playground.state.instances(workflow_id=f"{OTHER}.child")
    return town.captures.checkpoints(f"{OTHER}.etl/capture"), stored, signals, runs
