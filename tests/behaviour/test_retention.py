"""What has been kept for long enough goes, and nothing else does."""

import threading
from dataclasses import dataclass, field

import pytest
from sqlalchemy import func, select
from tests.access_setup import LOCAL, PASSWORD, AccessSetup
from tests.engines import BUSY, DONE, FATAL_ERROR, Playground

from calve.access import Act, verify
from calve.alerts import DEFINITIONS, Alert, Message, MessageStatus, Route
from calve.capture.inspection import LagSample
from calve.definition.model import AlertType
from calve.engine import Changes, LogChunk, RunPolicy, RunStatus
from calve.errors import SignalMissing
from calve.lake import TableName
from calve.retention import Ages, Pruner, RecordKind, pruner as pruning
from calve.store.retention import instances as retained_instances
from calve.store.tables import attempt as attempt_table, event as event_table, log_chunk, run as run_table, signal_use
from calve.triggers import Scheduler, TriggerType
from calve.triggers.signals import Signals, SignalTriggers

pytestmark = pytest.mark.each_store

DAY = 86_400_000
AGES = Ages(dict.fromkeys(RecordKind, 10 * DAY), {RecordKind.SIGNALS: 100 * DAY})
ONE = "Workflow: {id: w, jobs: [{job: {id: a, type: NoOp}}]}"


@dataclass
class Place:
    """A playground that is pruned."""

    playground: Playground
    pruner: Pruner = field(init=False)
    signals: Signals = field(init=False)

    def __post_init__(self) -> None:
        """Prune by the clock of the playground."""
        self.pruner = Pruner(self.playground.store.retention, AGES, self.playground.clock)
        self.signals = Signals(self.playground.state, self.playground.clock)

    def pass_days(self, days: int) -> None:
        """Let time pass in which nothing happens."""
        self.playground.clock.now += days * DAY

    def gone(self, kind: RecordKind) -> int:
        """Prune; return how much of a kind went, which is what was foretold."""
        foretold = self.pruner.survey()
        gone = self.pruner.prune()
        assert gone == foretold
        return gone[kind]

    def scheduler(self) -> Scheduler:
        """Return a scheduler of signal triggers."""
        kinds = {TriggerType.SIGNAL: SignalTriggers(self.playground.state)}
        return Scheduler(self.playground.tools, self.playground.store.triggers, kinds)

    def numbers(self, name: str) -> list[int]:
        """Return the numbers of the signals of a name that are still there."""
        return sorted(each.seq for each in self.signals.list(name=name))


@pytest.fixture
def place(playground: Playground) -> Place:
    """Give a place, on both databases."""
    return Place(playground)


@pytest.fixture
def access(place: Place) -> AccessSetup:
    """Give a door and an office whose clock is that of the place."""
    return AccessSetup(place.playground.store.access, now=place.playground.clock.now)


# Signals.


def test_old_signals_go_and_the_newest_of_each_name_stays(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """In several batches, some of which hold nothing that may go."""
    monkeypatch.setattr(pruning, "BATCH", 3)
    monkeypatch.setattr(pruning, "BREATH", 0)
    for number in range(10):
        place.signals.announce("x", {"n": number})
    place.signals.announce("y")
    place.pass_days(101)
    place.signals.announce("z")
    assert place.gone(RecordKind.SIGNALS) == 9
    assert (place.numbers("x"), place.numbers("y"), place.numbers("z")) == ([10], [1], [1])
    assert place.gone(RecordKind.SIGNALS) == 0
    assert place.signals.announce("x", {"n": "new"}).signal.seq == 11


def test_a_signal_that_has_done_something_goes_sooner(place: Place) -> None:
    """With the trace of what it has done; one that nobody has used may yet be waited for."""
    place.playground.push(
        "Workflow: {id: w, jobs: [{job: {id: a, type: NoOp, signal_dependencies: [{name: x, match_params: "
        "{n: {param: {value: 1, type: LONG}, operator: '='}}}]}}]}"
    )
    place.scheduler().turn()
    for number in (1, 2, 3):
        place.signals.announce("x", {"n": number})
    run = place.playground.start()
    place.pass_days(11)
    assert place.gone(RecordKind.SIGNALS) == 1
    assert place.numbers("x") == [2, 3]
    assert place.signals.lineage_of("w", run.instance_id).released_by == ()
    with pytest.raises(SignalMissing):
        place.signals.lineage("x", 1)


def test_a_signal_that_a_trigger_has_not_read_stays(place: Place) -> None:
    """However old it is: before the trigger begins, while nobody looks, and while it waits for its counterpart."""
    trigger = "Trigger: {signals: {x: {}, y: {}}}\n"
    place.playground.push(trigger + ONE)
    place.signals.announce("x", {"n": 1})
    place.signals.announce("x", {"n": 2})
    place.pass_days(200)
    assert place.gone(RecordKind.SIGNALS) == 0
    scheduler = place.scheduler()
    while scheduler.turn().synced:
        pass
    assert place.gone(RecordKind.SIGNALS) == 0
    place.signals.announce("y")
    assert [len(scheduler.turn().started) for _ in range(2)] == [1, 0]
    place.playground.settle()
    place.pass_days(200)
    assert place.gone(RecordKind.SIGNALS) == 1
    assert place.numbers("x") == [2]


def test_a_signal_that_a_waiting_step_has_not_examined_stays(place: Place) -> None:
    """Those that it has looked at, and that do not fit, may go."""
    place.playground.push(
        "Workflow: {id: w, jobs: [{job: {id: a, type: NoOp, signal_dependencies: [{name: x, "
        "match_params: {n: {param: {value: 7, type: LONG}, operator: '='}}}]}}]}"
    )
    place.scheduler().turn()
    place.signals.announce("x", {"n": 1})
    run = place.playground.start()
    place.signals.announce("x", {"n": 7})
    place.signals.announce("x", {"n": 8})
    place.pruner.ages = Ages(dict.fromkeys(RecordKind, DAY))  # a step does not wait for long
    place.pass_days(2)
    assert place.gone(RecordKind.SIGNALS) == 1
    assert place.numbers("x") == [2, 3]
    place.playground.settle()
    assert place.playground.fresh(run).status.value == "SUCCEEDED"


# Alerts.


def alert(kind: AlertType, at: int, workflow_id: str = "w") -> Message:
    """Return a message about the first run of a workflow."""
    return Message(Alert(f"{kind}/{at}", kind, workflow_id, at, 1, 1), Route("one"))


def test_messages_that_are_over_go(place: Place) -> None:
    """One that waits stays, and so do those that would be found again: of a live run, and of the newest version."""
    state, now = place.playground.store.alerts, place.playground.clock()
    place.playground.script.parts["a"] = BUSY
    place.playground.push("Workflow: {id: live, jobs: [{job: {id: a, type: Sleep}}]}")
    run = place.playground.start("live")
    sent = [
        alert(AlertType.RUN_SUCCESS, 1),
        alert(AlertType.LONG_RUNNING, 2, "live"),
        alert(AlertType.DEFINITION_CHANGE, now),
    ]
    waiting = alert(AlertType.RUN_SUCCESS, 3)
    position = state.position(DEFINITIONS, now)
    state.take(DEFINITIONS, position, now, [*sent, waiting], now)
    for each in sent[:2]:
        state.sent(each.id, now)
    state.failed(sent[2].id, "no", None)
    place.pass_days(11)
    assert place.gone(RecordKind.ALERTS) == 1
    assert {each.message.id for each in state.messages()} == {sent[1].id, sent[2].id, waiting.id}
    place.playground.script.parts["a"] = DONE
    place.playground.advance(3_600)
    assert place.playground.fresh(run).status.is_terminal
    state.take(DEFINITIONS, now, now + 1, [], now)
    assert place.gone(RecordKind.ALERTS) == 2
    assert [each.status for each in state.messages()] == [MessageStatus.WAITING]


# The audit log.


def test_the_audit_log_is_whole_after_its_beginning_was_pruned(place: Place, access: AccessSetup) -> None:
    """A line says what went, again and again; who cuts off more is found out."""
    state = place.playground.store.access
    for name in ("ann", "bob", "cyd"):
        access.accounts.add_user(name, PASSWORD, {}, LOCAL)
    place.pass_days(11)
    access.now = place.playground.clock.now
    access.accounts.add_user("dan", PASSWORD, {}, LOCAL)
    assert place.gone(RecordKind.AUDIT) == 3
    assert verify(state.entries()).is_whole
    assert [(each.seq, each.act.action) for each in state.entries()] == [(4, "add_user"), (5, "prune_audit")]
    place.pass_days(11)
    assert [place.gone(RecordKind.AUDIT) for _ in range(3)] == [1, 1, 0]
    verdict = verify(state.entries())
    assert (verdict.is_whole, verdict.lines) == (True, 2)
    cut = verify(list(state.entries())[1:])
    assert (cut.is_whole, cut.broken_at, cut.problem) == (False, 1, "line 1 is missing")


def test_who_reads_the_audit_log_while_it_is_pruned_finds_it_whole(place: Place, access: AccessSetup) -> None:
    """Lines pruned after earlier ones were read are no gap; lines that no record mentions are one."""
    state = access.state
    for number in range(9):
        state.append(Act(number, "user:a", "test", "", "", "ok"))
    lines = list(state.entries())
    place.playground.store.retention.forget(RecordKind.AUDIT, [(4,)], 100)
    left = list(state.entries())
    read = [*lines[:2], *left]
    place.playground.store.retention.forget(RecordKind.AUDIT, [(7,)], 100)
    assert verify(read).is_whole
    assert verify([*read[:3], *state.entries()]).is_whole
    verdict = verify([*lines[:2], *left[1:]])
    assert (verdict.is_whole, verdict.broken_at, verdict.lines, verdict.problem) == (False, 3, 2, "line 3 is missing")
    verdict = verify([*lines[:3], *lines[5:]])
    assert (verdict.is_whole, verdict.broken_at, verdict.lines, verdict.problem) == (False, 4, 3, "line 4 is missing")


def test_two_prune_the_audit_log_once(place: Place, access: AccessSetup) -> None:
    """Who comes second finds that the lines are gone."""
    for name in ("ann", "bob"):
        access.accounts.add_user(name, PASSWORD, {}, LOCAL)
    state = place.playground.store.retention
    assert [state.forget(RecordKind.AUDIT, [(1,)], 1) for _ in range(2)] == [1, 0]


# Sessions and tokens.


def test_tokens_and_sessions_go_after_their_end(place: Place, access: AccessSetup) -> None:
    """A token that never expires stays until some time after it was revoked."""
    state = place.playground.store.access
    access.accounts.add_user("ann", PASSWORD, {}, LOCAL)
    access.authenticator.sign_in("ann", PASSWORD, "here")
    access.token("viewer", life=DAY)
    access.token("viewer", life=30 * DAY)
    access.token("viewer")
    place.pass_days(12)
    foretold = place.pruner.survey()
    assert (foretold[RecordKind.TOKENS], foretold[RecordKind.SESSIONS]) == (1, 1)
    assert place.pruner.prune() == foretold
    access.now = place.playground.clock.now
    for token in state.tokens():
        access.accounts.revoke_token(token.token_id, LOCAL)
    assert place.gone(RecordKind.TOKENS) == 0
    place.pass_days(11)
    assert place.gone(RecordKind.TOKENS) == 2
    assert state.tokens() == []


# Events and logs.


def test_events_of_live_instances_and_those_that_someone_has_not_seen_stay(place: Place) -> None:
    """And the last one, from which numbers go on."""
    playground = place.playground
    playground.script.parts["b"] = BUSY
    playground.push(ONE)
    playground.push("Workflow: {id: live, jobs: [{job: {id: b, type: Sleep}}]}")
    run, live = playground.start(), playground.start("live")
    newest = playground.state.events()[-1].seq
    place.pruner.followers = ("lineage",)
    position = playground.store.positions.position("lineage", 1)
    place.pass_days(11)
    assert place.gone(RecordKind.EVENTS) == 1
    playground.store.positions.move("lineage", position, newest)
    assert place.gone(RecordKind.EVENTS) > 0
    assert playground.state.events(run_uuid=run.uuid) == []
    assert len(playground.state.events(run_uuid=live.uuid)) > 1
    playground.script.parts["b"] = DONE
    playground.advance(3_600)
    place.pass_days(11)
    place.pruner.followers = ()
    assert place.gone(RecordKind.EVENTS) > 0
    assert len(playground.state.events()) == 1


def test_logs_of_steps_that_are_over_go(place: Place) -> None:
    """That of a step at work stays, however old it is."""
    playground = place.playground
    playground.script.parts["b"] = BUSY
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: Sleep}}, {job: {id: b, type: Sleep}}]}")
    run = playground.start()
    over, live = playground.attempt(run, "a"), playground.attempt(run, "b")
    logs = [LogChunk(each.uuid, number, "text") for each in (over, live) for number in (1, 2)]
    playground.state.commit(Changes(logs=logs))
    assert place.gone(RecordKind.LOGS) == 0
    place.pass_days(11)
    foretold, gone = place.pruner.survey(), place.pruner.prune()
    assert (foretold[RecordKind.LOGS], gone[RecordKind.LOGS]) == (1, 2)
    assert (playground.log(over), playground.log(live)) == ("", "texttext")
    assert place.gone(RecordKind.LOGS) == 0


# Instances.

TREE = """
Workflow:
  id: w
  run_strategy: sequential
  jobs:
    - foreach: {id: loop, ranges: {i: {from: 0, to: 3}}, jobs: [{job: {id: a, type: NoOp, signal_outputs: [s]}}]}
    - subworkflow: {id: call, workflow_id: child}
"""


def rows(place: Place) -> dict[str, int]:
    """Return how many rows tables have in which instances leave something."""
    tables = (run_table, attempt_table, event_table, log_chunk, signal_use)
    with place.playground.store._database.read() as connection:
        return {table.name: connection.scalar(select(func.count()).select_from(table)) or 0 for table in tables}


def test_an_instance_goes_with_all_that_belongs_to_it(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its restarts, iterations and subworkflows; in transactions that are small. Numbers go on."""
    monkeypatch.setattr(retained_instances, "RUNS", 2)
    place.pruner.ages = Ages({RecordKind.INSTANCES: 10 * DAY})
    playground = place.playground
    playground.push("Workflow: {id: child, jobs: [{job: {id: b, type: NoOp}}]}")
    playground.push(TREE)
    first = playground.start()
    playground.restart(first, policy=RunPolicy.RESTART_FROM_BEGINNING)
    before = rows(place)
    playground.start()
    grown = {name: count - before[name] for name, count in rows(place).items()}
    assert place.gone(RecordKind.INSTANCES) == 0
    place.pass_days(11)
    assert place.gone(RecordKind.INSTANCES) == 1
    assert rows(place) == grown
    assert playground.state.run("w", 1) is None
    assert playground.state.run("child", 1) is None
    assert place.gone(RecordKind.INSTANCES) == 0
    assert playground.start().instance_id == 3


def test_an_instance_that_is_not_over_or_holds_up_others_stays(place: Place) -> None:
    """So does one whose subworkflow goes on after it."""
    place.pruner.ages = Ages({RecordKind.INSTANCES: 10 * DAY})
    playground = place.playground
    playground.script.parts |= {"b": BUSY, "c": FATAL_ERROR}
    playground.push("Workflow: {id: child, jobs: [{job: {id: b, type: Sleep}}]}")
    playground.push("Workflow: {id: w, jobs: [{subworkflow: {id: call, workflow_id: child, sync: false}}]}")
    playground.push("Workflow: {id: s, run_strategy: strict_sequential, jobs: [{job: {id: c, type: Sleep}}]}")
    run = playground.start()
    playground.start()
    playground.start("s")
    playground.begin("s")
    assert run.status is RunStatus.SUCCEEDED
    place.pass_days(11)
    assert place.gone(RecordKind.INSTANCES) == 0
    keys = [(run.created_at, run.uuid)]
    assert playground.store.retention.forget(RecordKind.INSTANCES, keys, playground.clock()) == 0
    assert playground.state.run("w", 1) is not None


# How it is done.


def test_a_turn_is_limited_and_the_next_one_continues(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """No transaction takes more than a batch, no turn more than a few of them."""
    monkeypatch.setattr(pruning, "BATCH", 2)
    monkeypatch.setattr(pruning, "BATCHES", 2)
    for number in range(7):
        place.signals.announce("x", {"n": number})
    place.pass_days(101)
    assert [place.pruner.turn()[RecordKind.SIGNALS] for _ in range(3)] == [4, 2, 0]


def test_of_several_one_prunes(place: Place) -> None:
    """Who comes after it in the next minutes has nothing to do; told to stop, it ends."""
    other = Place(place.playground)
    for each in (place, other):
        place.signals.announce("x", {"n": id(each)})
    place.pass_days(101)
    turns: list[str] = []
    stop = threading.Event()

    class Watched(Pruner):
        def turn(self, stop: threading.Event | None = None) -> dict[RecordKind, int]:
            turns.append("turn")
            return super().turn(stop)

    watched = [Watched(place.playground.store.retention, AGES, place.playground.clock) for _ in range(2)]
    threads = [threading.Thread(target=each.run, args=(stop,)) for each in watched]
    for thread in threads:
        thread.start()
    deadline = threading.Event()
    while place.numbers("x") != [2] and not deadline.wait(0.05):
        pass
    stop.set()
    for thread in threads:
        thread.join()
    assert turns == ["turn"]


def test_a_database_that_is_unavailable_is_tolerated(place: Place) -> None:
    """Pruning goes on when it is back."""
    stop = threading.Event()

    class Away(Pruner):
        def turn(self, _: threading.Event | None = None) -> dict[RecordKind, int]:
            stop.set()
            raise RuntimeError

    Away(place.playground.store.retention, AGES, place.playground.clock).run(stop)
    assert stop.is_set()


def test_samples_of_lag_go_when_they_are_old(place: Place) -> None:
    """And only those."""
    samples = place.playground.store.lag_samples
    table = TableName("lake", ("db",), "events")
    for at in (0, 5 * DAY, 20 * DAY):
        samples.add([LagSample(who, table, at, 1, 1, 1, 1, at, at, None) for who in ("a", "b")])
    place.playground.clock.now = 20 * DAY
    assert place.gone(RecordKind.LAG) == 4
    assert [one.at for one in samples.samples(table, 0, 1)] == [20 * DAY] * 2
