"""Triggers as they are kept and fired, on both databases."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import cast

import pytest
from tests.engines import Playground, Unreliable, wait_for

from calve.definition.params import InitiatorType
from calve.engine import Changes, Initiator, RunStatus, StartStatus, TriggerMark
from calve.engine.ports import EngineState
from calve.errors import Conflict, RequestInvalid, StoreUnavailable
from calve.triggers import Evaluation, Fire, Scheduler, SchedulerRound, TimeTriggers, Trigger, TriggerType

pytestmark = pytest.mark.each_store

TIMED = """
Trigger: {{cron: '{cron}'}}
Workflow:
  id: {name}
  jobs: [{{job: {{id: a, type: NoOp}}}}]
"""


def timed(name: str = "w", cron: str = "0 * * * *") -> str:
    """Return a workflow with a time trigger."""
    return TIMED.format(name=name, cron=cron)


@dataclass
class Scripted:
    """A kind of trigger that does what a test says."""

    acts: list[Callable[[Trigger, int], Evaluation]] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)

    def begin(self, trigger: Trigger, now: int) -> Evaluation:
        """Be due at once."""
        self.seen.append(f"begin {trigger.workflow_id} {dict(trigger.state)}")
        return Evaluation((), {"begun": True}, now)

    def evaluate(self, trigger: Trigger, now: int) -> Evaluation:
        """Do the next thing."""
        self.seen.append(f"look {trigger.workflow_id} {dict(trigger.state)}")
        return self.acts.pop(0)(trigger, now)


def fire(key: str, due_at: int | None = None) -> Callable[[Trigger, int], Evaluation]:
    """Return what fires once."""
    fired = Fire(key, Initiator(InitiatorType.TIME))
    return lambda _trigger, _now: Evaluation((fired,), {"last": key}, due_at)


@pytest.fixture
def kind() -> Scripted:
    """Give a kind of trigger that does what a test says."""
    return Scripted()


@pytest.fixture
def scheduler(playground: Playground, kind: Scripted) -> Scheduler:
    """Give a scheduler whose time triggers do what a test says."""
    return Scheduler(playground.tools, playground.store.triggers, {TriggerType.TIME: kind})


def started(playground: Playground, workflow_id: str = "w") -> int:
    """Return how many instances there are."""
    return len(playground.state.instances(workflow_id=workflow_id))


def test_the_triggers_of_an_active_version_begin_and_fire(
    playground: Playground, kind: Scripted, scheduler: Scheduler
) -> None:
    """A pushed trigger begins with the next turn, and fires when it is due."""
    playground.push(timed())
    begun_at = playground.clock()
    first = scheduler.turn()
    assert (first.synced, first.looked, first.started) == (1, 1, ())
    kind.acts = [fire("one", due_at=playground.clock() + 1)]
    (begun,) = scheduler.turn().started
    assert (begun.status, begun.run.version_id, begun.run.initiator.type) == (StartStatus.CREATED, 1, "TIME")
    assert scheduler.turn().looked == 0
    assert kind.seen == ["begin w {}", "look w {'begun': True}"]
    (kept,) = playground.store.triggers.triggers(workflow_id="w")
    assert (kept.trigger_id, kept.kind, kept.state, kept.seq) == (
        "time:0",
        TriggerType.TIME,
        {"last": "one"},
        begun_at + 2,
    )
    assert (kept.due_at, kept.fired_at, kept.made_at) == (
        playground.clock() + 1,
        playground.clock(),
        playground.clock(),
    )
    assert kept.definition["cron"] == "0 * * * *"
    playground.settle()
    assert playground.fresh(begun.run).status is RunStatus.SUCCEEDED


def test_a_fire_key_starts_one_instance(playground: Playground, kind: Scripted, scheduler: Scheduler) -> None:
    """A trigger that gives a key again starts nothing again."""
    playground.push(timed())
    kind.acts = [fire("one", due_at=0), fire("one", due_at=0), fire("two")]
    turns = [scheduler.turn() for _ in range(4)]
    statuses = [each.status for turn in turns for each in turn.started]
    assert statuses == [StartStatus.CREATED, StartStatus.DUPLICATED, StartStatus.CREATED]
    assert started(playground) == 2


def test_a_version_with_the_same_trigger_continues_with_its_state(
    playground: Playground, kind: Scripted, scheduler: Scheduler
) -> None:
    """A push that leaves a trigger as it is does not make it begin again; one that changes it does, with its state."""
    playground.push(timed())
    scheduler.turn()
    playground.push(timed())
    kind.acts = [fire("one")]
    scheduler.turn()
    playground.push(timed(cron="30 * * * *"))
    scheduler.turn()
    assert kind.seen == ["begin w {}", "look w {'begun': True}", "begin w {'last': 'one'}"]
    assert [run.version_id for run in playground.state.instances(workflow_id="w")] == [2]


def test_a_deactivated_workflow_fires_no_more(playground: Playground, kind: Scripted, scheduler: Scheduler) -> None:
    """Not even if it is deactivated while its trigger is being looked at; its triggers go with the next turn."""
    playground.push(timed())
    scheduler.turn()

    def deactivate(trigger: Trigger, now: int) -> Evaluation:
        playground.state.activate("w", None, playground.clock())
        return fire("late")(trigger, now)

    kind.acts = [deactivate]
    assert scheduler.turn().started == ()
    assert scheduler.turn().synced == 1
    assert playground.store.triggers.triggers() == []
    assert started(playground) == 0
    assert scheduler.turn().synced == 0
    playground.state.activate("w", 1, playground.clock())
    scheduler.turn()
    assert len(playground.store.triggers.triggers()) == 1


def test_a_deleted_workflow_has_no_triggers(playground: Playground, kind: Scripted, scheduler: Scheduler) -> None:
    """They go with it at once, and one of the same name begins anew."""
    playground.push(timed())
    scheduler.turn()
    playground.engine.delete("w")
    assert playground.store.triggers.triggers() == []
    playground.push(timed())
    assert scheduler.turn().synced == 1
    assert kind.seen == ["begin w {}", "begin w {}"]


def test_a_trigger_that_cannot_be_examined_is_noted_and_left_alone_for_a_while(
    playground: Playground, kind: Scripted, scheduler: Scheduler
) -> None:
    """B.2-25: the error stands in its row, the others fire, and it is tried again later and later."""

    def stumble(trigger: Trigger, now: int) -> Evaluation:
        del trigger, now
        raise RuntimeError("poison")

    def refuse(trigger: Trigger, now: int) -> Evaluation:
        del trigger, now
        raise RequestInvalid("no such table")

    playground.push(timed("bad"))
    playground.push(timed("good"))
    scheduler.turn()
    kind.acts = [stumble, fire("one")]
    turn = scheduler.turn()
    assert (turn.looked, turn.failed, len(turn.started)) == (1, 1, 1)
    bad = playground.store.triggers.trigger("bad", "time:0")
    assert bad is not None
    assert (bad.error, bad.failures, bad.state) == ("RuntimeError: poison", 1, {"begun": True})
    playground.clock.now += 5_000
    kind.acts = [refuse]
    assert scheduler.turn().failed == 1
    bad = playground.store.triggers.trigger("bad", "time:0")
    assert bad is not None
    assert (bad.error, bad.failures, bad.due_at) == ("no such table", 2, playground.clock() + 30_000)
    playground.clock.now += 30_000
    kind.acts = [fire("two")]
    assert scheduler.turn().looked == 1
    bad = playground.store.triggers.trigger("bad", "time:0")
    assert bad is not None
    assert (bad.error, bad.failures) == (None, 0)


def test_what_makes_a_trigger_due_is_not_lost_to_a_look_under_way(
    playground: Playground, kind: Scripted, scheduler: Scheduler
) -> None:
    """A look that began before the reason came does not count; the trigger stays due."""
    playground.push(timed())
    scheduler.turn()

    def made_due(trigger: Trigger, now: int) -> Evaluation:
        playground.store.triggers.make_due([("w", "time:0"), ("w", "time:7")], now)
        return Evaluation((), trigger.state, None)

    kind.acts = [made_due, fire("one")]
    assert scheduler.turn().looked == 0
    assert len(scheduler.turn().started) == 1


def test_one_conflict_does_not_hold_up_the_others(playground: Playground, kind: Scripted, scheduler: Scheduler) -> None:
    """Of many triggers in one transaction, those that nobody else has moved are written."""
    for name in ("a", "b", "c"):
        playground.push(timed(name))
    scheduler.turn()

    def moved(trigger: Trigger, now: int) -> Evaluation:
        mark = TriggerMark("b", "time:0", trigger.seq, {}, None)
        playground.state.commit(Changes(marks=[mark]))
        return fire("one")(trigger, now)

    kind.acts = [fire("one"), fire("one"), moved]
    turn = scheduler.turn()
    assert sorted(each.run.workflow_id for each in turn.started) == ["a", "c"]
    stale = TriggerMark("b", "time:0", playground.clock(), {}, None)
    with pytest.raises(Conflict):
        playground.state.commit(Changes(marks=[stale]))


def test_a_look_at_a_trigger_that_is_gone_moves_no_later_one(
    playground: Playground, kind: Scripted, scheduler: Scheduler
) -> None:
    """A scheduler that stood still meanwhile knows one that was made anew from the one that it has read."""
    playground.push(timed())
    scheduler.turn()

    def renewed(trigger: Trigger, now: int) -> Evaluation:
        playground.engine.deactivate("w")
        other = Scheduler(playground.tools, playground.store.triggers, {TriggerType.TIME: Scripted()})
        other.turn()
        playground.clock.now += 60_000
        playground.engine.activate("w", "latest")
        assert other.turn().looked == 1
        return fire("one")(trigger, now)

    kind.acts = [renewed]
    assert scheduler.turn().started == ()
    (kept,) = playground.store.triggers.triggers(workflow_id="w")
    assert kept.state == {"begun": True}


def test_a_conflict_while_looking_leaves_the_trigger_due(
    playground: Playground, kind: Scripted, scheduler: Scheduler
) -> None:
    """Someone else was faster at something that the look needed: it is taken again."""

    def conflict(trigger: Trigger, now: int) -> Evaluation:
        del trigger, now
        raise Conflict("busy")

    playground.push(timed())
    scheduler.turn()
    kind.acts = [conflict, fire("one")]
    assert scheduler.turn().failed == 0
    assert len(scheduler.turn().started) == 1


def test_a_start_that_cannot_be_written_holds_up_its_own_trigger_only(playground: Playground, kind: Scripted) -> None:
    """B.2-25: what the database does not take is found among the others, and noted."""
    for name in ("a", "b", "c"):
        playground.push(timed(name))
    state = _Choking(playground.state, "b")
    tools = replace(playground.tools, state=cast("EngineState", state))
    scheduler = Scheduler(tools, playground.store.triggers, {TriggerType.TIME: kind})
    scheduler.turn()
    kind.acts = [fire("one"), fire("one"), fire("one")]
    turn = scheduler.turn()
    assert sorted(each.run.workflow_id for each in turn.started) == ["a", "c"]
    assert (turn.looked, turn.failed) == (2, 1)
    choked = playground.store.triggers.trigger("b", "time:0")
    assert choked is not None
    assert (choked.error, choked.state) == ("ValueError: too much of b", {"begun": True})


def test_what_cannot_be_written_at_all_is_let_be(playground: Playground, kind: Scripted) -> None:
    """Not even that it failed; the others go on."""
    for name in ("a", "b"):
        playground.push(timed(name))
    scheduler = Scheduler(playground.tools, playground.store.triggers, {TriggerType.TIME: kind})
    scheduler.turn()
    state = _Choking(playground.state, "b", is_for_marks=True)
    tools = replace(playground.tools, state=cast("EngineState", state))
    kind.acts = [fire("one"), fire("one")]
    turn = Scheduler(tools, playground.store.triggers, {TriggerType.TIME: kind}).turn()
    assert [each.run.workflow_id for each in turn.started] == ["a"]
    assert turn.failed == 0


class _Choking:
    """A state that cannot take the starts of one workflow."""

    def __init__(self, state: EngineState, workflow_id: str, *, is_for_marks: bool = False) -> None:
        self._state, self._workflow_id, self._is_for_marks = state, workflow_id, is_for_marks

    def __getattr__(self, name: str) -> object:
        return getattr(self._state, name)

    def commit(self, changes: Changes) -> object:
        """Choke, or pass on."""
        asked = {start.run.workflow_id for start in changes.starts}
        asked |= {mark.workflow_id for mark in changes.marks} if self._is_for_marks else set()
        if self._workflow_id in asked:
            raise ValueError(f"too much of {self._workflow_id}")
        return self._state.commit(changes)


def test_a_running_scheduler_tolerates_an_unavailable_database(playground: Playground, kind: Scripted) -> None:
    """It goes on when the database is there again, sleeps until it is called, and ends when it is told to."""
    playground.push(timed())
    state = Unreliable(playground.state)
    state.faults["version"] = [StoreUnavailable("away")]
    tools = replace(playground.tools, state=cast("EngineState", state))
    turns: list[SchedulerRound] = []
    kind.acts = [fire("one"), fire("two")]
    scheduler = Scheduler(tools, playground.store.triggers, {TriggerType.TIME: kind}, listener=turns.append)
    stop = threading.Event()
    thread = threading.Thread(target=scheduler.run, args=(stop,))
    thread.start()
    try:
        wait_for(lambda: sum(len(turn.started) for turn in turns) == 1)
        playground.store.triggers.make_due([("w", "time:0")], playground.clock())
        wait_for(lambda: sum(len(turn.started) for turn in turns) == 2)
    finally:
        stop.set()
        playground.state.wake()
        thread.join()
    assert started(playground) == 2


def test_a_scheduler_looks_at_its_own_kinds_only(playground: Playground, kind: Scripted) -> None:
    """Kinds that take long are left to a scheduler of their own."""
    playground.push(timed())
    other = Scheduler(playground.tools, playground.store.triggers, {TriggerType.INCREMENTAL: kind})
    assert (other.turn().synced, other.turn().looked) == (1, 0)
    assert playground.store.triggers.next_due([TriggerType.INCREMENTAL]) is None
    assert playground.store.triggers.next_due() == playground.clock()
    assert playground.store.triggers.triggers(kind=TriggerType.INCREMENTAL) == []


def test_a_workflow_that_is_activated_again_starts_over(
    playground: Playground, kind: Scripted, scheduler: Scheduler
) -> None:
    """Also if no scheduler has seen that it was inactive."""
    playground.push(timed())
    scheduler.turn()
    playground.state.activate("w", None, playground.clock())
    playground.state.activate("w", 1, playground.clock())
    scheduler.turn()
    assert kind.seen == ["begin w {}", "begin w {}"]


def test_a_run_by_time_knows_its_moment(playground: Playground) -> None:
    """RUN_TS and the dates that follow from it are those of the schedule, in its zone."""
    playground.push(
        "Trigger: {cron: '@hourly', timezone: Asia/Tokyo}\n"
        "Workflow: {id: w, jobs: [{job: {id: a, type: NoOp, day: '${TARGET_RUN_DATE} ${TARGET_RUN_HOUR} ${RUN_TS}'}}]}"
    )
    scheduler = Scheduler(playground.tools, playground.store.triggers, {TriggerType.TIME: TimeTriggers()})
    scheduler.turn()
    moment = playground.clock.now = 1_700_002_800_000
    (begun,) = scheduler.turn().started
    playground.clock.now += 40 * 60_000
    playground.settle()
    assert playground.result(begun.run, "a", "day") == f"20231115 08 {moment}"


def test_a_start_whose_params_make_no_sense_is_kept_as_failed(
    playground: Playground, kind: Scripted, scheduler: Scheduler
) -> None:
    """So that someone sees it; there is nobody who could be told right away."""
    playground.push(
        '{"workflow": {"id": "w", "time_triggers": [{"type": "PREDEFINED", "expression": "@hourly"}],'
        ' "params": {"size": {"type": "LONG", "value": 1, "mode": "CONSTANT"}},'
        ' "steps": [{"step": {"id": "a", "type": "NoOp"}}]}}'
    )
    scheduler.turn()
    wrong = Fire("one", Initiator(InitiatorType.TIME), {"size": 2})
    kind.acts = [lambda _trigger, _now: Evaluation((wrong,), {}, None)]
    (begun,) = scheduler.turn().started
    playground.settle()
    failed = playground.fresh(begun.run)
    assert failed.status is RunStatus.FAILED
    assert "size" in failed.message


def test_a_scheduler_goes_by_the_clock_that_it_is_given(playground: Playground) -> None:
    """A machine that slept wakes up to the right time, though the engine's clock stood still."""
    playground.push(timed())
    now = playground.clock()
    wall = iter((now, now + 3_600_000, now + 7_200_000))
    scheduler = Scheduler(
        playground.tools, playground.store.triggers, {TriggerType.TIME: TimeTriggers()}, clock=lambda: next(wall)
    )
    assert [len(scheduler.turn().started) for _ in range(3)] == [0, 1, 1]
