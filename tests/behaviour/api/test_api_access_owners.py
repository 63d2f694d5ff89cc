"""Whose consumers, tables, signals, secrets and subworkflows are: walked through steps, REST, GraphQL and triggers.

Everything is asked by an editor of ``sales``. What is of ``sales`` is theirs; what is of ``finance`` does not exist for
them, whichever way they take.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.access_setup import AccessSetup, bearer
from tests.engines import BUSY, FATAL_ERROR, Playground
from tests.servers import Site, services_on, site_on
from tests.unit.steps.programs import workspace

from calve.api.access import guarded
from calve.app import captures_on, deliveries_on, new_id, utc_now
from calve.app.captures import may_read, table_rights_on
from calve.capture import Captures
from calve.delivery import Deliveries, Delivery
from calve.engine import Run, RunStatus
from calve.errors import CaptureMissing, Forbidden, TableMissing
from calve.lake import Lake, TableRights
from calve.settings import load
from calve.steps.captures import ICDC, IpCapture, IpCommit
from calve.steps.processes.fork_server import ForkServers
from calve.steps.sql import WORK, Sql
from calve.testing import PyIcebergWriter
from calve.triggers import Scheduler, TriggerKind, TriggerType
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
        return self.last(workflow_id).status is RunStatus.SUCCEEDED

    def triggers(self, workflow_id: str, **params: str) -> bool:
        """Let a signal start a workflow, whose params it gives; tell whether it succeeded."""
        self.go()
        before = len(self.playground.state.instances(workflow_id=workflow_id))
        Signals(self.playground.state, self.playground.clock).announce(f"{OWN}.go", params)
        self.go()
        assert len(self.playground.state.instances(workflow_id=workflow_id)) == before + 1
        return self.last(workflow_id).status is RunStatus.SUCCEEDED

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

    def last(self, workflow_id: str) -> Run:
        """Return the newest instance of a workflow."""
        return self.playground.state.instances(workflow_id=workflow_id)[0]


@pytest.fixture
def town(playground: Playground, access: AccessSetup, tmp_path: Path) -> Iterator[Town]:
    """Give it, with a client that shows the token of an editor of sales."""
    store = playground.store
    names = ("CAPTURE", "WRITE")
    connections = {f"{name}.warehouse": f"sqlite:///{tmp_path}/{name}.db" for name in (OWN, OTHER)}
    settings = load(tmp_path, {f"CALVE_ACCESS__TABLES__{name}": GRANTS for name in names})
    lake, writer = Lake(settings), PyIcebergWriter(settings)
    for number, namespace in enumerate((OWN, OTHER)):
        writer.create(f"{namespace}.t", COLUMNS, days=True)
        writer.append([{"id": 1_000 * number + each, "day": 1, "n": 0} for each in (1, 2)])
    captures, deliveries = captures_on(lake, store), deliveries_on(lake, store)
    forks, store_url = ForkServers(WORK, workspace(tmp_path)), settings.store.url
    playground.executor.runtimes = {
        **playground.runtimes,
        "IpCapture": lambda: IpCapture(captures, deliveries),
        "IpCommit": lambda: IpCommit(captures, deliveries),
        "ICDC": lambda: ICDC(captures, deliveries, lake),
        "SQL": lambda: Sql(connections, tmp_path, store_url, forks),
    }
    playground.secrets.update({f"{OWN}.key": "ours", f"{OTHER}.key": "theirs"})
    kinds: dict[TriggerType, TriggerKind] = {
        TriggerType.SIGNAL: SignalTriggers(playground.state),
        TriggerType.INCREMENTAL: TableChanges(playground.tools, store.triggers, captures, lake),
    }
    signals = Signals(playground.state, playground.clock)
    for namespace in (OWN, OTHER):
        playground.push(f"Workflow: {{id: {namespace}.child, jobs: [{{job: {{id: inner, type: Sleep}}}}]}}")
        captures.commit(captures.capture([f"{namespace}.t"], f"{namespace}.etl/capture").capture_id or "")
        signals.announce(f"{namespace}.ready", {"day": 1})
    scheduler = Scheduler(playground.tools, store.triggers, kinds)
    watcher = Watcher(lake, store.triggers, playground.clock, interval=15)
    services = services_on(playground, captures=captures, changed=watcher.changed)
    with site_on(playground, services, **guarded(access.control())) as site:
        site.client.headers.update(bearer(access.token("editor@sales")))
        yield Town(playground, site, lake, writer, captures, deliveries, scheduler)
    forks.close()
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
VALID = "{job: {id: a, type: NoOp, signal_dependencies: ['%s']}}"
SEND = "{job: {id: a, type: NoOp, signal_outputs: ['${name}']}}"
CALL = "{subworkflow: {id: call, workflow_id: '${name}'}}"
QUERY = "{job: {id: q, type: SQL, sql: {connection: '${name}', query: SELECT 1}}}"


def _by_step(job: str, name: str) -> Way:
    """Return the way of a run that someone of sales starts, whose param names the thing."""

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
    "connection, step": _by_step(QUERY, "{}.warehouse"),
    "connection, trigger": _by_trigger(QUERY, "{}.warehouse"),
}


@pytest.mark.parametrize("namespace", [OWN, OTHER])
def test_nobody_reaches_what_is_of_another_namespace(town: Town, namespace: str) -> None:
    """Whichever way is taken; what is of one's own namespace is reached by all of them."""
    town.writer.create("sales.empty", COLUMNS, days=True)
    before = _of_finance(town)
    wrong = [way for way, reaches in WALK.items() if reaches(town, namespace) is not (namespace == OWN)]
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


# What the walk cannot tell.


def test_what_is_not_granted_looks_like_what_is_not_there(town: Town) -> None:
    """The same answer, with no name but the one that was asked for, for tables and for captures."""

    def told(path: str, name: str, body: dict[str, Any]) -> str:
        answer = town.site.client.post(f"/api/v3{path.replace('NAME', name)}", json=body)
        assert answer.status_code == 404
        return answer.text.replace(name, "NAME")

    def plan(table: str) -> str:
        return told("/captures/plan", table, {"tables": [table], "consumer": "sales.e/c", "ranges": ["id"]})

    assert plan("finance.t") == plan("finance.nothing") == plan("sales.nothing") == plan("nowhere.t")
    foreign = town.opened(OTHER)
    for act in ("commit", "abandon"):
        path = f"/captures/NAME/actions/{act}"
        assert told(path, foreign, {}) == told(path, "nothing", {})


def test_what_was_captured_before_a_grant_ended_is_not_shown(town: Town) -> None:
    """Neither the capture, nor the checkpoint, its moves or its lag; nor can it be committed."""
    mine = "sales.old/capture"
    first = str(town.captures.capture(["finance.t"], mine).capture_id)
    town.captures.commit(first)
    second = str(town.captures.capture(["finance.t"], mine).capture_id)
    for path in ("/captures", "/checkpoints", "/checkpoints/log", "/lag"):
        assert town.site.get(f"{path}?consumer={mine}")["elements"] == []
        assert town.captures.checkpoints(mine)
    for capture_id in (first, second):
        town.site.get(f"/captures/{capture_id}", 404)
        town.site.get(f"/captures/{capture_id}/files", 404)
    town.site.post(f"/captures/{second}/actions/commit", status=404)
    given = {"table": "finance.t", "consumer": mine, "reason": "r"}
    assert town.site.delete("/checkpoints", 404, params=given)["code"] == "checkpoint_missing"
    assert town.site.post("/captures", {"tables": ["finance.t"], "consumer": mine}, 404)["code"] == "table_missing"


def test_a_reader_of_a_table_may_plan_and_not_capture(town: Town, access: AccessSetup) -> None:
    """And who may read it everywhere may plan for every consumer, but needs more to capture."""
    services = services_on(town.playground, captures=captures_on(_with(town.lake, read=OWN), town.playground.store))
    wanted = {"tables": ["finance.t"], "consumer": "sales.e/c"}
    with site_on(town.playground, services, **guarded(access.control())) as site:
        site.client.headers.update(bearer(access.token("editor@sales")))
        assert site.post("/captures/plan", wanted)["tables"][0]["records"] == 2
        assert site.post("/captures", wanted, 404)["code"] == "table_missing"
        body = {"table": "finance.t", "consumer": "sales.e/c", "to": "latest", "reason": "r"}
        assert site.put("/checkpoints", body, 404)["code"] == "table_missing"
    town.site.client.headers.update(bearer(access.token("viewer", "runner@sales")))
    assert town.rest("POST", "/captures/plan", json=wanted)
    assert not town.rest("POST", "/captures", json=wanted)
    town.site.client.headers.update(bearer(access.token("runner")))
    assert town.rest("POST", "/captures", json=wanted)


def _with(lake: Lake, **given: Any) -> Lake:
    """Return a lake under other settings of its tables."""
    reads = {given["read"]: ("finance.*",)} if "read" in given else {}
    tables = lake.settings.access.tables.model_copy(update={"read": reads, "policy": given.get("policy", "auto")})
    access = lake.settings.access.model_copy(update={"tables": tables})
    return Lake(lake.settings.model_copy(update={"access": access}))


def test_tables_are_open_until_someone_has_a_role_in_a_namespace(
    playground: Playground, access: AccessSetup, tmp_path: Path
) -> None:
    """Nobody has to set anything alone; the first token of a namespace closes them, unless the settings say more."""
    lake, writer = Lake(load(tmp_path, {})), PyIcebergWriter(load(tmp_path, {}))
    writer.create("db.events", COLUMNS, days=True)

    def may(**given: Any) -> bool:
        captures = captures_on(_with(lake, **given) if given else lake, playground.store)
        try:
            captures.for_workflow("sales.w").plan(["db.events"], "sales.w/c")
        except TableMissing:
            return False
        return True

    def shares() -> bool:
        """Tell whether a workflow of a namespace may use a consumer of none."""
        try:
            captures_on(lake, playground.store).for_workflow("sales.w").capture(["db.events"], "daily", supersede=True)
        except Forbidden:
            return False
        return True

    assert may()
    assert not may(policy="closed")
    access.token("admin")
    assert may()
    assert shares()
    access.token("viewer@finance")
    assert not may()
    assert not shares()
    assert may(policy="open")
    assert captures_on(lake, playground.store).plan(["db.events"], "daily").tables
    assert captures_on(lake, playground.store).for_workflow("w").plan(["db.events"], "w/c").tables
    with pytest.raises(Forbidden, match="another namespace"):
        captures_on(_with(lake, policy="open"), playground.store).for_workflow("a.w").plan(["db.events"], "b.w/c")
    writer.close()
    lake.close()


def test_groups_of_a_provider_make_namespaces_too(playground: Playground, tmp_path: Path) -> None:
    """Their people are known only once they have signed in."""
    lake = Lake(load(tmp_path, {"CALVE_ACCESS__OIDC__ROLES": '{"data": "editor@sales"}'}))
    with pytest.raises(TableMissing):
        captures_on(lake, playground.store).for_workflow("sales.w").plan(["db.events"], "sales.w/c")
    lake.close()


def test_a_trigger_may_name_anything_where_all_people_are_the_same(town: Town) -> None:
    """So it is for someone alone; a workflow without a namespace may always."""
    town.playground.push(_workflow("by_trigger", CALL, param=BY_SIGNAL, trigger=TRIGGER))
    alone = replace(town.playground.tools, has_namespaces=lambda: False)
    town.scheduler._tools = alone
    assert town.triggers("sales.by_trigger", thing="finance.child")
    town.scheduler._tools = town.playground.tools
    root = _workflow("x", CALL, param=BY_SIGNAL, trigger=TRIGGER).replace("sales.x", "root_workflow")
    town.playground.push(root)
    town.playground.engine.deactivate("sales.by_trigger")
    assert town.triggers("root_workflow", thing="finance.child", n="2")


def test_only_own_triggers_are_told_that_a_table_has_changed(town: Town, access: AccessSetup) -> None:
    """Nor is it told how many others watch it."""
    for workflow_id in ("sales.a", "finance.a", "finance.b"):
        trigger = "Trigger: {incremental: shared.t}\n"
        town.playground.push(f"{trigger}Workflow: {{id: {workflow_id}, jobs: [{NOTHING}]}}")
    town.scheduler.turn()
    assert town.site.post("/tables/shared.t/changed")["triggers"] == 1
    everywhere = bearer(access.token("runner"))
    assert town.site.post("/tables/shared.t/changed", headers=everywhere)["triggers"] == 3


FAILING = (
    "Workflow: {id: finance.child, y: '1', '!hidden<long>': Long.parseLong(y), jobs: [{job: {id: a, type: NoOp}}]}"
)
PARENT = """
Workflow: {id: sales.parent, dag: sequential, jobs: [
  {foreach: {id: loop, ranges: {i: {from: 0, to: 1}}, jobs: [{subworkflow: {id: call, workflow_id: finance.child}}]}},
  {subworkflow: {id: direct, workflow_id: finance.child}}]}
"""


def test_readers_of_a_parent_learn_nothing_of_subworkflows_of_others(town: Town, access: AccessSetup) -> None:
    """Neither causes, nor names of steps, nor logs, nor documents; how it ended, they do."""

    def fail(context: Any) -> Any:
        context.log("hidden words")
        return replace(FATAL_ERROR, message="hidden cause")

    town.playground.push(PARENT.replace("dag: sequential, ", ""))
    town.playground.script.parts["inner"] = fail
    run = town.playground.start("sales.parent")
    assert run.status is RunStatus.FAILED
    place = "/workflows/sales.parent/instances/1"
    paths = [place, f"{place}/runs/1", f"{place}/steps", f"{place}/steps/loop", f"{place}/steps/direct"]
    paths += [f"{place}/steps/loop/1/call", f"{place}/runs/1/steps/direct/attempts/latest", f"{place}/signals"]
    everybody = bearer(access.token("viewer"))
    inside = [f"{place}/steps/{path}" for path in ("direct/inner", "direct/nothing", "loop/1/call/inner")]
    inside += [f"{place}/runs/1/steps/direct/inner/attempts/latest"]
    for path in paths:
        told = json.dumps(town.site.get(path))
        assert "hidden" not in told, path
        assert "inner" not in told, path
    for path in inside:
        town.site.get(path, 403)
        if "runs" not in path:
            town.site.get(f"{path}/logs", 403)
    failures = town.site.get(place)["failures"]
    assert {(one["path"], one["status"]) for one in failures} == {
        ("loop/1/call", "FATALLY_FAILED"),
        ("direct", "FATALLY_FAILED"),
    }
    query = '{ instance(workflowId: "sales.parent", instanceId: 1) { overview steps { document } } }'
    assert "hidden" not in json.dumps(town.graphql(query))
    shown = town.site.get(place, headers=everybody)
    assert {one["path"] for one in shown["failures"]} == {"loop/1/call/inner", "direct/inner"}
    assert "hidden cause" in json.dumps(shown)
    logs = town.site.client.get(f"/api/v3{place}/steps/direct/inner/logs", headers=everybody)
    assert "hidden words" in logs.text
    assert town.site.get(f"{place}/steps/nothing/inner", 404)["code"] == "workflow_missing"


def test_nobody_acts_on_steps_of_subworkflows_of_others(town: Town, access: AccessSetup) -> None:
    """Neither by REST nor by GraphQL; whoever may run both does, and the step of the parent is the parent's."""
    asking = "{job: {id: ask, type: Approval, approval: {message: 'hidden question'}}}"
    town.playground.push(f"Workflow: {{id: finance.child, jobs: [{asking}]}}")
    town.playground.push(PARENT)
    town.playground.start("sales.parent")
    place = "/workflows/sales.parent/instances/1"
    shown = town.site.get(place)
    assert "hidden" not in json.dumps(shown)
    assert (shown["waiting"], shown["waiting_count"]) == ([], 1)
    step = f"{place}/steps/loop/1/call/ask"
    for act in ("approve", "reject", "skip", "stop", "kill", "bypass", "resume"):
        town.site.put(f"{step}/actions/{act}", status=403)
    for act in ("restart", "plan-restart"):
        town.site.post(f"{step}/actions/{act}", status=403)
    paused = "/workflows/steps/breakpoints/sales.parent/instances/1/runs/1/steps/loop/1/call/ask/attempts/1"
    town.site.put(f"{paused}/actions/resume", status=403)
    about = 'workflowId: "sales.parent", instanceId: 1, stepPath: "loop/1/call/ask"'
    assert town.graphql(f"mutation {{ act(action: APPROVE, {about}) {{ status }} }}") is None
    assert town.graphql(f"mutation {{ restart({about}) {{ status }} }}") is None
    both = bearer(access.token("runner@sales", "runner@finance"))
    assert "hidden question" in json.dumps(town.site.get(place, headers=both)["waiting"])
    town.site.put(f"{step}/actions/approve?blocking=false", headers=both)
    town.playground.settle()
    assert town.playground.state.instances(workflow_id="finance.child")[0].status is not RunStatus.SUCCEEDED
    town.site.put(f"{place}/steps/direct/actions/stop?blocking=false")
    town.playground.settle()
    assert [run.status for run in town.playground.state.instances(workflow_id="finance.child")] == [
        RunStatus.STOPPED,
        RunStatus.SUCCEEDED,
    ]


def test_progress_of_subworkflows_of_others_is_not_told(town: Town) -> None:
    """It is what their steps print."""

    def work(context: Any) -> Any:
        context.log("-- progress: hidden part\n")
        return BUSY

    town.playground.push(PARENT)
    town.playground.script.parts["inner"] = work
    run = town.playground.start("sales.parent")
    assert "hidden" not in json.dumps(town.site.get("/workflows/sales.parent/instances/1"))
    town.playground.engine.kill(town.playground.address(run))
    town.playground.settle()


def test_why_a_subworkflow_of_others_could_not_begin_is_not_told(town: Town) -> None:
    """Its own namespace is; nor does a parent of the same namespace lose anything."""
    town.playground.push(FAILING)
    calling = "Workflow: {{id: {}.parent, jobs: [{{subworkflow: {{id: direct, workflow_id: finance.child, y: z}}}}]}}"
    for namespace in (OWN, OTHER):
        town.playground.push(calling.format(namespace))
        run = town.playground.start(f"{namespace}.parent")
        assert run.status is RunStatus.FAILED
        assert ("hidden" in town.playground.told(run, "direct")) is (namespace == OTHER)


@pytest.mark.parametrize("name", ["vtts/finance.t", "vtts/${source}"])
def test_nobody_waits_until_a_table_of_others_is_complete(town: Town, name: str) -> None:
    """A signal tells that too; the workflow's right to read the table counts, whoever wrote or started it."""
    tools = town.playground.tools
    rights = table_rights_on(town.lake, town.playground.store)
    town.playground.transactions._tools = replace(tools, may_read_table=partial(may_read, town.lake, rights))
    town.playground.push(_workflow("valid", VALID % name, param="source: finance.t"))
    assert not town.runs("sales.valid")
    said = town.playground.told(town.last("sales.valid"), "a")
    assert "may not wait for the signal vtts/finance.t" in said
    own = name.replace("finance", "sales")
    town.playground.push(_workflow("valid", VALID % own, param="source: sales.t"))
    Signals(town.playground.state, town.playground.clock).announce("vtts/sales.t", {"through": 5})
    assert town.runs("sales.valid")
    assert not may_read(town.lake, rights, "sales.w", "not a.table. ")
    assert may_read(town.lake, rights, "w", "not a.table. ")


def test_no_trigger_waits_until_a_table_of_others_is_complete(town: Town) -> None:
    """It says that there is no such table."""
    rights = table_rights_on(town.lake, town.playground.store)
    kind = SignalTriggers(town.playground.state, may_read_table=partial(may_read, town.lake, rights))
    scheduler = Scheduler(town.playground.tools, town.playground.store.triggers, {TriggerType.SIGNAL: kind})
    for namespace in (OWN, OTHER):
        definition = _workflow(namespace, NOTHING, trigger=f"Trigger: {{signal: vtts/{namespace}.t}}\n")
        assert town.pushes(definition)
    for _ in range(3):
        scheduler.turn()
    errors = [one.error or "none" for one in town.playground.store.triggers.triggers()]
    assert [error.partition(",")[0] for error in errors] == ["Table finance.t does not exist", "none"]


def test_what_was_staged_is_not_published_once_the_grant_has_ended(town: Town) -> None:
    """The right to write is looked at when a step begins, and again when its rows are to be seen."""
    held = [TableRights()]
    store = town.playground.store
    deliveries = Deliveries(
        town.lake, store.deliveries, store.captures, clock=utc_now, new_id=new_id, tables=lambda: held[0]
    )
    staging = deliveries.stage(["finance.t"], Delivery("sales.w/load", None, "run"), "attempt")
    held[0] = TableRights(is_closed=True)
    with pytest.raises(TableMissing):
        deliveries.publish(staging)
    deliveries.discard(staging)
