"""Whatever happens in whatever order, and whoever dies over it, the engine does what a small model can explain."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import Phase, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import Engine as Database, create_engine, delete
from tests.engines import DONE, FATAL_ERROR, PLATFORM_ERROR, USER_ERROR, Playground
from tests.properties.engine_checks import Checks, is_over
from tests.properties.engine_model import COMPLETE, DEFINITIONS, FINAL, SHAPES, Model, Said
from tests.properties.engine_workers import Member, Picture
from tests.scope import in_ci

from calve import failpoints
from calve.engine import (
    Action,
    Address,
    Breakpoint,
    Changes,
    NewTask,
    Outcome,
    RunPolicy,
    RunStatus,
    Started,
    StartStatus,
    State,
    StepStatus,
    Task,
    TaskKind,
)
from calve.errors import ActionRefused, LeaseLost, RequestInvalid, WorkflowMissing
from calve.failpoints import FailpointReached
from calve.store import Store, open_store
from calve.store.tables import metadata, param_set

OUTCOMES = [
    DONE,
    DONE,
    USER_ERROR,
    PLATFORM_ERROR,
    FATAL_ERROR,
    Outcome(State.TIMED_OUT),
    Outcome(State.CONTINUE, poll_after=30),
]
FAULTS = ["store.engine.before_commit:1:error", "store.engine.after_commit:1:error"]
POINTS = [Breakpoint(name, step) for name, step in [("chain", "a"), ("loop", "two"), ("fork", "d")]]
ROUNDS = 300
"""How many times whatever is due is done before a run counts as stuck; each time does at least one thing."""

NORMAL = 100
"""How many examples hypothesis makes when nobody says anything."""

outcomes = st.sampled_from(OUTCOMES)
members = st.integers(0, 1)
which = st.integers(0, 20)
"""One of however many there are."""


@contextmanager
def armed(plan: str | None) -> Iterator[None]:
    """Let the next commit fail."""
    failpoints.arm(plan)
    try:
        yield
    finally:
        failpoints.arm(None)


class EngineMachine(RuleBasedStateMachine):
    """Pushes, starts, works, dies, stops and restarts; then lets everything come to its end."""

    url: ClassVar[str]
    store: ClassVar[Store]
    database: ClassVar[Database]
    folder: ClassVar[Path]

    def __init__(self) -> None:
        super().__init__()
        with self.database.begin() as connection:
            for table in metadata.sorted_tables:
                if table is not param_set:  # never removed, so the store remembers what it has written
                    connection.execute(delete(table))
        self.playground = Playground(self.store, self.url, self.folder)
        self.engine, self.state, self.clock = self.playground.engine, self.playground.state, self.playground.clock
        self.pool = [Member(self.playground, self.folder), Member(self.playground, self.folder)]
        self.ghosts: list[tuple[Member, Task]] = []
        self.dead: set[str] = set()
        self.model = Model()
        self.checks = Checks(self.model)
        for definition in DEFINITIONS.values():
            self.engine.push(definition)
        self.look()

    @initialize(names=st.lists(st.sampled_from(list(SHAPES)), min_size=1, max_size=4))
    def begin(self, names: list[str]) -> None:
        """Start with some instances."""
        for name in names:
            self.start(name, 9, None)
            self.look()

    def look(self) -> Picture:
        """Look at everything that is stored."""
        with self.database.connect() as connection:
            self.picture = self.checks.picture = Picture.of(connection)
        return self.picture

    def pick(self, rows: list[Any], number: int) -> Any:
        """Return one of some rows, the later ones first."""
        return sorted(rows, key=lambda row: row.uuid, reverse=True)[number % len(rows)]

    def unchanged(self, act: Callable[[], object]) -> None:
        """Do something that must change nothing."""
        before = self.look()
        act()
        assert self.look() == before

    # Starting.

    @rule(
        name=st.sampled_from(list(SHAPES)),
        n=st.sampled_from([0, 7, 9]),
        request=st.sampled_from([None, None, "r", "s"]),
    )
    def start(self, name: str, n: int, request: str | None) -> None:
        """Start an instance of a workflow that was perhaps just pushed again; the same request starts it once."""
        if n == 0:
            assert self.engine.push(DEFINITIONS[name]).version_id == len(self.state.versions(name))
        runs = [run for run in self.picture.runs.values() if run.workflow_id == name]
        live = [run for run in runs if not is_over(run)]
        started = self.engine.start(name, request_id=request, params={"n": n} if name == "fork" else {})
        if request is not None and (name, request) in self.model.requests:
            assert started.status is StartStatus.DUPLICATED
            assert started.run.uuid == self.model.requests[name, request]
            return
        if request is not None:
            self.model.requests[name, request] = started.run.uuid
        self.model.ns[started.run.uuid] = n
        assert started.run.instance_id == max((run.instance_id for run in runs), default=0) + 1
        self.arrived(name, live, started)

    def arrived(self, name: str, live: list[Any], started: Started) -> None:
        """Work out what one more instance does to those that were live before it came."""
        rule_ = SHAPES[name].rule
        is_refused = rule_ == "FIRST_ONLY" and bool(live)
        assert started.status is (StartStatus.STOPPED if is_refused else StartStatus.CREATED)
        if is_refused:
            self.model.refused.add(started.run.uuid)
        stopped = {"LAST_ONLY": live, "SERIAL_LATEST_ONLY": [run for run in live if run.is_queued]}
        for run in stopped.get(rule_, []):
            self.model.ask(run.uuid, Action.STOP)

    # Working.

    def is_due(self) -> bool:
        """Tell whether there is something to take."""
        return any(task.owner is None and task.due_at <= self.clock() for task in self.picture.tasks.values())

    @precondition(is_due)
    @rule(member=members, runs=st.integers(0, 3), steps=st.integers(0, 3))
    def claim(self, member: int, runs: int, steps: int) -> None:
        """Take some tasks."""
        self.pool[member].claim(runs, steps)

    def is_busy(self) -> bool:
        """Tell whether someone has something in hand."""
        return any(member.hand for member in self.pool)

    def has_work(self) -> bool:
        """Tell whether there is something to do."""
        return self.is_busy() or self.is_due()

    def held(self, number: int) -> tuple[Member, Task]:
        """Take a task out of someone's hands; what is due is claimed before."""
        self.pool[number % 2].claim(2, 2)
        self.look()
        found = [(member, task) for member in self.pool for task in member.hand]
        member, task = found[number % len(found)]
        member.hand.remove(task)
        return member, task

    @precondition(has_work)
    @rule(number=which, outcome=outcomes, is_greedy=st.booleans())
    def work(self, number: int, outcome: Outcome, *, is_greedy: bool) -> None:
        """Do a task."""
        member, task = self.held(number)
        member.is_greedy = is_greedy
        assert self.done(member, task, outcome), "a task was lost that nobody took away"

    @precondition(has_work)
    @rule(number=which, outcome=outcomes, fault=st.sampled_from(FAULTS))
    def work_while_the_database_fails(self, number: int, outcome: Outcome, fault: str) -> None:
        """Do a task; the transaction fails before it is written, or its answer is lost: it is done again."""
        member, task = self.held(number)
        member.is_greedy = False
        with armed(fault), pytest.raises(FailpointReached):
            member.do(task, outcome)
        if "before" in fault:
            assert self.done(member, task, outcome)
        else:
            self.recorded(member, task, outcome)
            self.unchanged(lambda: member.do(task, outcome))

    @precondition(has_work)
    @rule(
        number=which,
        other=which,
        outcome=outcomes,
        another=outcomes,
        what=st.sampled_from(["tasks", "tasks", "stop", "reap"]),
    )
    def work_while_others_do(self, number: int, other: int, outcome: Outcome, another: Outcome, what: str) -> None:
        """Do a task; while it is on its way to be written, something else happens to the same instance."""
        member, task = self.held(number)
        member.is_greedy = False
        root = self.picture.runs[task.run_uuid].root_uuid
        is_taken = False

        def do_others() -> None:
            rival = self.pool[1 - self.pool.index(member)]
            rival.is_greedy = False
            self.state.release(member.hand)
            member.hand = []
            rival.claim(10, 10)
            mine = [each for each in rival.hand if self.look().runs[each.run_uuid].root_uuid == root]
            for each in mine[: 1 + other % 3]:
                rival.hand.remove(each)
                assert self.done(rival, each, another)

        def stop() -> None:
            run = self.picture.runs[root]
            if not is_over(run):
                self.engine.stop(Address(run.workflow_id, run.instance_id, run.run_id))
                self.model.ask(run.uuid, Action.STOP)

        def reap() -> None:
            nonlocal is_taken
            is_taken = True
            self.taken_for_dead(member)

        member.state.meanwhile = {"tasks": do_others, "stop": stop, "reap": reap}[what]
        is_written = self.done(member, task, outcome)
        member.state.meanwhile = None
        assert is_written is not is_taken

    @precondition(lambda self: self.parents())
    @rule(number=which, outcome=outcomes)
    def move_while_children_end(self, number: int, outcome: Outcome) -> None:
        """Move a run that waits for others, while these go on."""
        parents = self.parents()
        self.state.commit(Changes(tasks=[NewTask(TaskKind.RUN, parents[number % len(parents)])]))
        member, rival = self.pool
        for each in self.pool:
            self.state.release(each.hand)
            each.hand, each.is_greedy = [], False
        member.claim(10, 0)
        mine = [task for task in member.hand if task.key in parents]
        member.hand = [task for task in member.hand if task not in mine]
        rival.claim(0, 10)

        def go_on() -> None:
            steps, rival.hand = rival.hand, []
            for each in steps:
                assert self.done(rival, each, outcome)

        member.state.meanwhile = go_on
        self.look()
        for task in mine:
            assert self.done(member, task, DONE)
        member.state.meanwhile = None

    def parents(self) -> list[str]:
        """Return the runs that wait for others."""
        live = [run for run in self.picture.runs.values() if not is_over(run)]
        return sorted({run.parent_run for run in live} & {run.uuid for run in live})

    def done(self, member: Member, task: Task, outcome: Outcome) -> bool:
        """Do a task, and let the model know; tell whether it was written."""
        turn = member.do(task, outcome)
        if turn is not None:
            self.recorded(member, task, outcome)
        return turn is not None

    def recorded(self, member: Member, task: Task, outcome: Outcome) -> None:
        """Let the model know what was recorded of an attempt."""
        if task.kind is TaskKind.STEP and self.picture.attempts[task.key].status == StepStatus.RUNNING:
            self.said(member, self.picture.attempts[task.key], outcome)
        self.look()

    def said(self, member: Member, attempt: Any, outcome: Outcome) -> None:
        """Let the model know what the work of an attempt that was running has given."""
        run = self.picture.runs[attempt.run_uuid]
        was_asked = self.model.is_asked(attempt.uuid, run.uuid) or self.checks.is_cut(run)
        state = outcome.state
        if not member.work.is_executed:
            is_late = attempt.timeout_at is not None and attempt.timeout_at <= self.clock()
            state = State.TIMED_OUT if is_late and not was_asked else State.STOPPED
        if was_asked or state is not State.CONTINUE:
            said = [
                self.model.said[row.uuid]
                for row in self.picture.attempts.values()
                if (row.run_uuid, row.step_id) == (attempt.run_uuid, attempt.step_id) and row.uuid in self.model.said
            ]
            self.model.said[attempt.uuid] = Said(state, sum(each.state is state for each in said), was_asked)

    @precondition(is_busy)
    @rule(number=which, outcome=outcomes)
    def release(self, number: int, outcome: Outcome) -> None:
        """Give a task back, take it again, and find that the first hold of it is worth nothing any more."""
        member, task = self.held(number)
        self.state.release([task])
        member.claim(10, 10)
        if any(again.key == task.key for again in member.hand):
            self.void(member, task, outcome)

    @precondition(has_work)
    @rule(member=members, outcome=outcomes, is_greedy=st.booleans())
    def work_through(self, member: int, outcome: Outcome, *, is_greedy: bool) -> None:
        """Take whatever is due, and do it all."""
        worker = self.pool[member]
        worker.is_greedy = is_greedy
        worker.claim(10, 10)
        hand, worker.hand = worker.hand, []
        for task in hand:
            assert self.done(worker, task, outcome)

    @precondition(lambda self: any(task.due_at > self.clock() for task in self.picture.tasks.values()))
    @rule(seconds=st.sampled_from([6, 60, 700]))
    def advance(self, seconds: int) -> None:
        """Let time go by; heartbeats call for what is past its time."""
        self.clock.now += seconds * 1_000
        late = self.state.overdue(self.clock())
        self.state.commit(Changes(tasks=[NewTask(TaskKind.RUN, uuid) for uuid in late]))

    # Dying.

    @precondition(is_busy)
    @rule(member=members, is_silent=st.booleans())
    def die(self, member: int, *, is_silent: bool) -> None:
        """Let a worker die with all that it holds, another one in its place; or take one for dead that lives."""
        worker = self.pool[member]
        if is_silent:
            self.taken_for_dead(worker)
            return
        self.dead.add(worker.uuid)
        self.ghosts += [(worker, task) for task in worker.hand]
        self.pool[member] = Member(self.playground, self.folder)

    @precondition(lambda self: any(task.owner in self.dead for task in self.picture.tasks.values()))
    @rule()
    def reap(self) -> None:
        """Find the dead."""
        buried = self.state.reap(10**12, is_gone=lambda record: record.uuid in self.dead)
        assert set(buried) <= self.dead

    def taken_for_dead(self, worker: Member) -> None:
        """Take everything from a worker that lives; it learns of it by its next heartbeat, and begins anew."""
        self.dead.add(worker.uuid)
        self.reap()
        worker.claim(10, 10)
        self.ghosts += [(worker, task) for task in worker.hand]
        worker.hand = []
        assert not self.state.heartbeat(worker.uuid).is_alive
        worker.register()
        assert self.state.heartbeat(worker.uuid).is_alive

    @precondition(lambda self: self.ghosts)
    @rule(number=which, outcome=outcomes)
    def come_back_too_late(self, number: int, outcome: Outcome) -> None:
        """Let someone record what is no longer theirs to record."""
        member, task = self.ghosts[number % len(self.ghosts)]
        self.reap()
        self.void(member, task, outcome)

    def void(self, member: Member, task: Task, outcome: Outcome) -> None:
        """Try to record something about a task that is no longer held."""
        turn = (
            member.transactions.decide
            if task.kind is TaskKind.RUN
            else lambda it: member.transactions.record(it, outcome)
        )

        def record() -> None:
            with pytest.raises(LeaseLost):
                turn(task)

        self.unchanged(record)
        self.unchanged(lambda: self.state.release([task]))

    # Commanding.

    @rule(number=which, action=st.sampled_from([Action.STOP, Action.KILL, Action.SKIP]), is_run=st.booleans())
    def end(self, number: int, action: Action, *, is_run: bool) -> None:
        """Stop or kill an instance or an iteration; stop, kill or skip a step that is under way."""
        if is_run and action is not Action.SKIP:
            self.end_run(number, action)
        elif self.under_way():
            self.end_step(number, action)

    def end_run(self, number: int, action: Action) -> None:
        """Stop or kill an instance, or an iteration."""
        run = self.pick([run for run in self.picture.runs.values() if run.is_latest], number)
        act = self.engine.stop if action is Action.STOP else self.engine.kill
        address = Address(run.workflow_id, run.instance_id)
        if is_over(run):
            self.refused(lambda: act(address))
        else:
            act(address)
            self.model.ask(run.uuid, action)

    def refused(self, act: Callable[[], object]) -> None:
        """Do what cannot be done now."""

        def refused() -> None:
            with pytest.raises((ActionRefused, RequestInvalid, WorkflowMissing)):
                act()

        self.unchanged(refused)

    def under_way(self) -> list[Any]:
        """Return the attempts that are not over."""
        attempts = self.picture.attempts.values()
        return [row for row in attempts if StepStatus(row.status) not in FINAL and not row.is_superseded]

    def end_step(self, number: int, action: Action) -> None:
        """Stop, kill or skip a step that is under way."""
        attempt = self.pick(self.under_way(), number)
        run = self.picture.runs[attempt.run_uuid]
        act = {Action.STOP: self.engine.stop, Action.KILL: self.engine.kill, Action.SKIP: self.engine.skip}[action]
        address = Address(run.workflow_id, run.instance_id, None, (attempt.step_id,))
        try:
            act(address)
        except ActionRefused:
            assert attempt.status == StepStatus.CREATED
            return
        self.model.ask(attempt.uuid, action)

    @precondition(lambda self: any(is_over(run) for run in self.picture.runs.values()))
    @rule(number=which, policy=st.sampled_from(list(RunPolicy)[1:]), step=which, is_skipping=st.booleans())
    def restart(self, number: int, policy: RunPolicy, step: int, *, is_skipping: bool) -> None:
        """Restart an instance: all of it, what is incomplete, or from a step, which may be skipped."""
        runs = [run for run in self.picture.runs.values() if run.is_latest and run.inline_step is None]
        run = self.pick(runs, number)
        shape, statuses = SHAPES[run.workflow_id], self.checks.statuses(run)
        name = list(shape.edges)[step % len(shape.edges)]
        is_specific = policy is RunPolicy.RESTART_FROM_SPECIFIC
        address = Address(run.workflow_id, run.instance_id, None, (name,) if is_specific else ())
        request: dict[str, Any] = {} if is_specific else {"policy": policy}
        request |= {"params": {"n": self.checks.n_of(run)}} if run.workflow_id == "fork" else {}
        request |= {"skip": (name,)} if is_specific and is_skipping else {}
        anew = {
            RunPolicy.RESTART_FROM_BEGINNING: set(shape.edges),
            RunPolicy.RESTART_FROM_SPECIFIC: shape.with_all_after([name]),
        }.get(policy) or shape.with_all_after(each for each in shape.edges if statuses.get(each) not in COMPLETE)
        if not is_over(run):
            self.restart_in_place(run, address, statuses.get(name), shape.modes.get(name))
        elif not anew:
            self.refused(lambda: self.engine.restart(address, **request))
        else:
            live = [
                each for each in self.picture.runs.values() if each.workflow_id == run.workflow_id and not is_over(each)
            ]
            started = self.engine.restart(address, **request)
            self.model.by_hand.add(started.run.uuid)
            self.model.ns[started.run.uuid] = self.checks.n_of(run)
            self.model.carried[started.run.uuid] = statuses.keys() - anew
            if "skip" in request:
                self.model.skipped[started.run.uuid] = name
            self.arrived(run.workflow_id, live, started)

    def restart_in_place(self, run: Any, address: Address, status: StepStatus | None, mode: str | None) -> None:
        """Restart a failed step of a run that goes on, or be refused."""
        is_failed = status in FINAL and status not in COMPLETE
        if not address.path or not is_failed or mode is not None:
            self.refused(lambda: self.engine.restart(address))
            return
        self.engine.restart(address)
        self.model.by_hand.add(self.look().newest(run.uuid)[address.path[0]].uuid)

    @rule(what=st.sampled_from(["unblock", "limit", "pause", "unpause"]), number=which)
    def control(self, what: str, number: int) -> None:
        """Unblock an instance, limit the tag, set a breakpoint or take it away."""
        point = POINTS[number % len(POINTS)]
        match what:
            case "unblock":
                self.unblock(self.pick([run for run in self.picture.runs.values() if run.is_latest], number))
            case "limit":
                self.engine.limit_tag("few", number % 3)
            case "pause":
                self.engine.pause(point)
            case _:
                self.engine.unpause(point)

    def unblock(self, run: Any) -> None:
        """Let a line go on in spite of a failure."""
        address = Address(run.workflow_id, run.instance_id)
        if run.status == RunStatus.FAILED:
            self.engine.unblock(address)
        else:
            self.refused(lambda: self.engine.unblock(address))

    def paused(self) -> list[Any]:
        """Return the attempts that are paused, and are to stay so."""
        attempts = self.picture.attempts.values()
        return [row for row in attempts if row.status == StepStatus.PAUSED and row.action is None]

    @precondition(lambda self: self.paused())
    @rule(number=which)
    def resume(self, number: int) -> None:
        """Let a paused step go on."""
        attempt = self.pick(self.paused(), number)
        run = self.picture.runs[attempt.run_uuid]
        self.engine.resume(Address(run.workflow_id, run.instance_id, None, (attempt.step_id,)))

    # What is always true, and in the end.

    @invariant()
    def everything_can_be_explained(self) -> None:
        """Look at all tables."""
        self.checks.look(self.look(), self.clock())

    def teardown(self) -> None:
        """Let everything go on and go well: every instance comes to its end, and nothing is left over."""
        failpoints.arm(None)
        for point in POINTS:
            self.engine.unpause(point)
        self.engine.limit_tag("few", 1_000)
        self.dead |= {member.uuid for member in self.pool}
        self.reap()
        worker = Member(self.playground, self.folder)
        for _ in range(ROUNDS):
            if not self.round(worker):
                break
        left = [run for run in self.look().runs.values() if not is_over(run)]
        assert not left, f"these never end: {left}"
        assert not self.picture.tasks
        assert not self.picture.claims
        self.everything_can_be_explained()

    def round(self, worker: Member) -> bool:
        """Do whatever is due, or let time go by until something is; tell whether there was anything."""
        worker.claim(100, 100)
        hand, worker.hand = worker.hand, []
        for task in hand:
            assert self.done(worker, task, DONE)
        blocking = [run for run in self.look().runs.values() if run.is_blocking]
        for run in blocking:
            self.engine.unblock(Address(run.workflow_id, run.instance_id))
        due = self.state.next_due(self.clock())
        self.clock.now += due or 0
        return bool(hand) or due is not None or bool(blocking)


@contextmanager
def opened(url: str, folder: Path) -> Iterator[None]:
    """Let the machine run on a database."""
    with open_store(url) as store, ExitStack() as stack:
        database = create_engine(url)
        stack.callback(database.dispose)
        EngineMachine.url, EngineMachine.store, EngineMachine.database = url, store, database
        EngineMachine.folder = folder
        yield


def examples(number: int, steps: int) -> settings:
    """Say how many examples there are: so many for a landing; many more to explore, and the smallest that fails."""
    is_exploring = settings().max_examples > NORMAL
    phases = list(Phase) if is_exploring else [Phase.explicit, Phase.generate]
    return settings(max_examples=number * (20 if is_exploring else 1), stateful_step_count=steps, phases=phases)


def test_the_engine_agrees_with_the_model_on_sqlite(tmp_path: Path) -> None:
    """With all that can happen between any two transactions."""
    with opened(f"sqlite:///{tmp_path}/calve.db", tmp_path):
        run_state_machine_as_test(EngineMachine, settings=examples(in_ci(8, otherwise=45), 50))


def test_the_engine_agrees_with_the_model_on_postgres(postgres_database: str, tmp_path: Path) -> None:
    """The same."""
    with opened(postgres_database, tmp_path):
        run_state_machine_as_test(EngineMachine, settings=examples(in_ci(4, otherwise=14), 40))
