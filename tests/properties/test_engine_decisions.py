"""Whatever the graph and however its steps end, the engine's decisions are those of a simpler mind."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import product

from hypothesis import given, strategies as st

from calve.definition.composites import count_iterations, iteration_values
from calve.definition.model import FailureMode, Rule, RunStrategy
from calve.definition.params import ParsedRetryPolicy, Retries, RetryReason
from calve.engine import (
    QUEUE_BATCH,
    Attempt,
    QueueView,
    Restart,
    RunPolicy,
    RunStatus,
    State,
    StepStatus,
    arrive,
    leaving,
)
from calve.engine.attempts import retry_delay, retry_reason, status_after, with_failure_mode
from calve.engine.decisions import Create, Finish, StopOthers, decide
from calve.engine.instances import Dag
from calve.engine.model import final_status
from calve.engine.restarts import VersionChanges, plan_steps, run_again

S = StepStatus
COMPLETE = [S.SUCCEEDED, S.SKIPPED, S.COMPLETED_WITH_ERROR]
BROKEN = [S.FATALLY_FAILED, S.INTERNALLY_FAILED, S.STOPPED, S.TIMED_OUT]
RETRYABLE = [S.USER_FAILED, S.PLATFORM_FAILED, S.TIMEOUT_FAILED]


@dataclass(frozen=True)
class Plan:
    """A graph, which of its edges hold, and how each step ends if it runs."""

    dag: Dag
    holds: Mapping[tuple[str, str], bool]
    ends: Mapping[str, StepStatus]
    modes: Mapping[str, FailureMode]


@dataclass
class Gauges:
    """Where a step stands."""

    status: StepStatus
    edges: Mapping[str, bool] = field(default_factory=dict)


@st.composite
def dags(draw: st.DrawFn) -> Dag:
    """Make a graph of a few steps, which stand in the definition in any order."""
    steps = draw(st.permutations([f"s{number}" for number in range(draw(st.integers(1, 7)))]))
    pairs = [(sooner, later) for sooner in steps for later in steps if sooner < later]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return Dag(
        {step: {later: "" for sooner, later in edges if sooner == step} for step in steps},
        {step: tuple(sooner for sooner, later in edges if later == step) for step in steps},
    )


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Make a graph, and what will become of it."""
    dag = draw(dags())
    holds = {(step, later): draw(st.booleans()) for step, edges in dag.successors.items() for later in edges}
    kinds = st.one_of(st.sampled_from(COMPLETE), st.sampled_from(BROKEN))
    modes = {step: draw(st.sampled_from([None, *FailureMode])) for step in dag.successors}
    ends = {step: with_failure_mode(draw(kinds), modes[step]) for step in dag.successors}
    return Plan(dag, holds, ends, {step: mode for step, mode in modes.items() if mode})


def foreseen(plan: Plan) -> dict[str, StepStatus]:
    """Return how every step ends that ever begins, if none fails at once: by going through the steps one by one."""
    found: dict[str, StepStatus] = {}
    for step in sorted(plan.dag.successors):  # each edge leads to a later name
        sources = plan.dag.predecessors[step]
        if any(source not in found or found[source] in BROKEN for source in sources):
            continue
        leads = [source for source in sources if plan.holds[source, step] and found[source] is not S.UNSATISFIED]
        found[step] = plan.ends[step] if leads or not sources else S.UNSATISFIED
    return found


def ended(plan: Plan, step: str, status: StepStatus) -> Gauges:
    """Return a step that has ended, with the edges that then hold."""
    is_open = status in COMPLETE
    return Gauges(status, {later: is_open and plan.holds[step, later] for later in plan.dag.successors[step]})


def played(plan: Plan, data: st.DataObject) -> tuple[dict[str, Gauges], RunStatus, bool]:
    """Play a run to its end; return its steps, its status, and whether the others were stopped on the way."""
    states: dict[str, Gauges] = {}
    is_stopping = False
    while True:
        moves = list(decide(plan.dag, states, plan.modes))
        under_way = [step for step, state in states.items() if not state.status.is_final]
        for move in moves:
            match move:
                case Create(step, is_satisfied):
                    assert step not in states, "a step is made once"
                    assert not is_stopping, "nothing begins any more"
                    before = [states[source].status for source in plan.dag.predecessors[step] if source in states]
                    assert len(before) == len(plan.dag.predecessors[step])
                    assert all(status.is_complete for status in before)
                    states[step] = Gauges(S.RUNNING) if is_satisfied else ended(plan, step, S.UNSATISFIED)
                case StopOthers(step):
                    assert plan.modes[step] is FailureMode.FAIL_IMMEDIATELY
                    assert states[step].status is S.FATALLY_FAILED
                    assert under_way
                    is_stopping = True
                    states |= {other: Gauges(S.STOPPED) for other in under_way}
                case Finish(status):
                    assert len(moves) == 1
                    assert not under_way, "it ends when all steps have"
                    return states, status, is_stopping
        if not moves:
            assert under_way, "a run neither moves nor waits"
            step = data.draw(st.sampled_from(sorted(under_way)))
            if states[step].status is S.RUNNING and data.draw(st.booleans()):
                states[step] = Gauges(data.draw(st.sampled_from(RETRYABLE)))
            else:
                states[step] = ended(plan, step, plan.ends[step])


@given(plans(), st.data())
def test_a_run_comes_to_the_end_that_can_be_foreseen(plan: Plan, data: st.DataObject) -> None:
    """Each step once, after all before it; UNSATISFIED goes as far as it should; the worst end counts."""
    states, status, is_stopped = played(plan, data)
    found = {step: state.status for step, state in states.items()}
    at_once = [
        step
        for step, end in found.items()
        if end is S.FATALLY_FAILED and plan.modes.get(step) is FailureMode.FAIL_IMMEDIATELY
    ]
    if not at_once:
        assert not is_stopped
        assert found == foreseen(plan)
    else:
        assert all(end in {S.STOPPED, foreseen(plan).get(step)} for step, end in found.items())
        assert status is RunStatus.FAILED
    order = [RunStatus.FAILED, RunStatus.TIMED_OUT, RunStatus.STOPPED, RunStatus.SUCCEEDED]
    assert status is min((run_end(end) for end in found.values()), key=order.index)


def run_end(status: StepStatus) -> RunStatus:
    """Return how a run ends that has one step, which ended like this."""
    if status in {S.FATALLY_FAILED, S.INTERNALLY_FAILED}:
        return RunStatus.FAILED
    return {S.TIMED_OUT: RunStatus.TIMED_OUT, S.STOPPED: RunStatus.STOPPED}.get(status, RunStatus.SUCCEEDED)


@given(plans(), st.data())
def test_a_run_that_was_ended_begins_nothing_and_ends_with_what_is_under_way(plan: Plan, data: st.DataObject) -> None:
    """However far it has come."""
    known = data.draw(st.dictionaries(st.sampled_from(sorted(plan.dag.successors)), st.sampled_from(list(S))))
    states = {step: ended(plan, step, status) for step, status in known.items() if status is not S.NOT_CREATED}
    moves = list(decide(plan.dag, states, {}, is_ending=True))
    if all(state.status.is_final for state in states.values()):
        assert moves == [Finish(final_status(state.status for state in states.values()))]
    else:
        assert not moves


@given(st.lists(st.sampled_from(list(FailureMode)), min_size=1), st.sampled_from(list(S)))
def test_a_failure_is_ignored_only_where_it_is_fatal_and_only_by_that_mode(
    modes: list[FailureMode], status: StepStatus
) -> None:
    """Everything else stays as it is."""
    for mode in modes:
        is_ignored = status is S.FATALLY_FAILED and mode is FailureMode.IGNORE_FAILURE
        assert with_failure_mode(status, mode) is (S.COMPLETED_WITH_ERROR if is_ignored else status)


@given(dags(), st.data())
def test_a_restart_runs_again_all_that_follows_and_nothing_incomplete_is_omitted(dag: Dag, data: st.DataObject) -> None:
    """From what is incomplete, or from a step; and nothing runs again that need not."""
    statuses = data.draw(
        st.dictionaries(st.sampled_from(sorted(dag.successors)), st.sampled_from([*COMPLETE, S.UNSATISFIED, *BROKEN]))
    )
    known = {step: Attempt(step, "", "", step, 1, 1, "NoOp", status) for step, status in statuses.items()}
    first = data.draw(st.sampled_from(sorted(dag.successors)))
    incomplete = {step for step in dag.successors if step not in statuses or statuses[step] in BROKEN}
    for policy, starts in (
        (RunPolicy.RESTART_FROM_INCOMPLETE, incomplete),
        (RunPolicy.RESTART_FROM_SPECIFIC, {first}),
        (RunPolicy.RESTART_FROM_BEGINNING, set(dag.successors)),
    ):
        anew = run_again(dag, known, policy, Restart((first,)))
        assert starts <= anew
        assert all(later in anew for step in anew for later in dag.successors[step])
        assert all(step in starts or set(dag.predecessors[step]) & anew for step in anew)


Holds = Mapping[tuple[str, str], bool]


def gone_through(dag: Dag, holds: Holds, kept: Mapping[str, Attempt], failing: Collection[str]) -> dict[str, Attempt]:
    """Return how the steps of a run end that begins with some attempts, if some of the others fail."""
    found = dict(kept)
    while creates := [move for move in decide(dag, found, {}) if isinstance(move, Create)]:
        for move in creates:
            name = move.step_id
            status = S.SUCCEEDED if move.is_satisfied else S.UNSATISFIED
            status = S.FATALLY_FAILED if move.is_satisfied and name in failing else status
            edges = {later: status is S.SUCCEEDED and holds[name, later] for later in dag.successors[name]}
            found[name] = Attempt(name, "", "", name, 1, 1, "NoOp", status, edges=edges)
    return found


@given(dags(), st.data())
def test_a_run_with_another_version_ends_like_a_new_instance_of_it(dag: Dag, data: st.DataObject) -> None:
    """Whatever failed and whatever changed: kept is what would do the same again, and nothing that changed is kept."""
    older, newer = ({pair: data.draw(st.booleans()) for pair in _pairs(dag)} for _ in range(2))
    some = st.sets(st.sampled_from(sorted(dag.successors)))
    before = gone_through(dag, older, {}, failing=data.draw(some))
    changed = data.draw(some)
    edges = {
        step: {later: newer[step, later] for later in dag.successors[step]}
        for step, attempt in before.items()
        if attempt.status is S.SUCCEEDED
    }
    news = VersionChanges(dict.fromkeys(changed, "text"), edges)
    again = run_again(dag, before, RunPolicy.RESTART_FROM_INCOMPLETE, Restart(is_latest=True), news)
    kept = {
        step: replace(attempt, edges=edges.get(step, attempt.edges))
        for step, attempt in before.items()
        if step not in again
    }
    assert all(later in again for step in again for later in dag.successors[step])
    assert all(attempt.status.is_complete for attempt in kept.values())
    assert not {step for step in kept if step in changed and kept[step].status is S.SUCCEEDED}
    ended = gone_through(dag, newer, kept, failing=())
    fresh = gone_through(dag, newer, {}, failing=())
    assert {step: attempt.status for step, attempt in ended.items()} == {
        step: attempt.status for step, attempt in fresh.items()
    }
    planned = plan_steps(dag, before, RunPolicy.RESTART_FROM_INCOMPLETE, Restart(is_latest=True), news)
    assert {step.step_id for step in planned if step.fate.runs} == again
    assert all(step.reason for step in planned)


@given(dags(), st.data())
def test_what_is_to_be_kept_is_kept_with_all_before_it(dag: Dag, data: st.DataObject) -> None:
    """So that nothing that runs again comes before it."""
    some = st.sets(st.sampled_from(sorted(dag.successors)))
    before = gone_through(dag, dict.fromkeys(_pairs(dag), True), {}, failing=data.draw(some))
    keep = tuple(step for step in data.draw(some) if step in before and before[step].status.is_complete)
    news = VersionChanges(dict.fromkeys(data.draw(some), "text"))
    again = run_again(dag, before, RunPolicy.RESTART_FROM_INCOMPLETE, Restart(is_latest=True, keep=keep), news)
    assert not dag.with_ancestors(keep) & again
    freely = run_again(dag, before, RunPolicy.RESTART_FROM_INCOMPLETE, Restart(is_latest=True), news)
    assert again <= freely


def _pairs(dag: Dag) -> list[tuple[str, str]]:
    return [(step, later) for step in dag.successors for later in dag.successors[step]]


@given(st.dictionaries(st.text(min_size=1), st.lists(st.integers(), max_size=4), min_size=1, max_size=4))
def test_iterations_are_all_combinations_the_first_list_fastest(lists: dict[str, list[int]]) -> None:
    """As itertools gives them, read from the right."""
    names = list(reversed(lists))
    expected = [dict(zip(names, values, strict=True)) for values in product(*(lists[name] for name in names))]
    assert [iteration_values(lists, index) for index in range(count_iterations(lists))] == expected


@given(
    st.fixed_dictionaries({reason: st.integers(0, 4) for reason in RetryReason}),
    st.lists(st.sampled_from([State.USER_ERROR, State.PLATFORM_ERROR, State.TIMED_OUT]), max_size=20),
)
def test_each_reason_is_tried_again_as_often_as_its_limit_says(
    limits: dict[RetryReason, int], failures: list[State]
) -> None:
    """Whatever other reasons there were between."""
    policy = ParsedRetryPolicy(*(Retries(limits[reason], 1, 1, 1) for reason in RetryReason))
    reasons = dict(zip([State.USER_ERROR, State.PLATFORM_ERROR, State.TIMED_OUT], RetryReason, strict=True))
    retries: dict[str, int] = {}
    for number, failure in enumerate(failures):
        reason = reasons[failure]
        status = status_after(failure, retries, policy)
        same = sum(reasons[other] is reason for other in failures[:number])
        assert status.is_retryable is (same < limits[reason])
        if not status.is_retryable:
            assert status is (S.TIMED_OUT if failure is State.TIMED_OUT else S.FATALLY_FAILED)
            return
        assert retry_reason(status) is reason
        retries[reason] = retries.get(reason, 0) + 1


@given(
    st.sampled_from(State),
    st.sampled_from(RetryReason),
    st.integers(0, 20),
    st.builds(Retries, st.just(9), st.integers(1, 100), st.integers(1, 4), st.integers(1, 9_999), st.booleans()),
)
def test_a_failure_of_the_infrastructure_is_retried_at_once_then_as_others(
    state: State, reason: RetryReason, retries: int, given: Retries
) -> None:
    """Its first retry needs no delay, the next ones have the delays of the policy; one that names them is followed."""
    policy = ParsedRetryPolicy(given, given, given)
    delay = retry_delay(state, reason, retries, policy)
    if state is State.INFRASTRUCTURE_ERROR and not given.is_delay_given:
        assert delay == (given.delay(retries - 1) if retries else 0)
    else:
        assert delay == given.delay(retries)
    assert delay <= retry_delay(state, reason, retries + 1, policy)


@dataclass
class Line:
    """The instances of a workflow, moved by hand."""

    strategy: RunStrategy
    queued: list[str] = field(default_factory=list)
    active: list[str] = field(default_factory=list)
    blocking: set[str] = field(default_factory=set)
    begun: list[str] = field(default_factory=list)
    born: int = 0

    @property
    def view(self) -> QueueView:
        """The line as a strategy sees it."""
        return QueueView(tuple(self.queued), tuple(self.active), bool(self.blocking))

    def arrive(self) -> None:
        """Start one more; what it stops is over at once."""
        arrival = arrive(self.strategy, self.view)
        self.born += 1
        if not arrival.is_refused:
            self.queued = [name for name in self.queued if name not in arrival.stopped]
            self.active = [name for name in self.active if name not in arrival.stopped]
            self.queued.append(f"{self.born:03d}")

    def let_go(self) -> None:
        """Let instances leave the queue."""
        going = list(leaving(self.strategy, self.view))
        assert going == self.queued[: len(going)], "first come, first served"
        assert not (going and self.strategy.rule is Rule.STRICT_SEQUENTIAL and self.blocking)
        self.queued, self.active = self.queued[len(going) :], self.active + going
        self.begun += going


STRATEGIES = st.one_of(
    st.sampled_from([RunStrategy(rule=rule) for rule in Rule if rule is not Rule.PARALLEL]),
    st.integers(1, 4).map(lambda number: RunStrategy(rule=Rule.PARALLEL, workflow_concurrency=number)),
)


@given(STRATEGIES, st.lists(st.sampled_from(["start", "start", "end", "fail", "unblock"]), max_size=40), st.data())
def test_a_run_strategy_is_kept_whatever_comes(strategy: RunStrategy, moves: list[str], data: st.DataObject) -> None:
    """Never more than are allowed, in order, none kept waiting for nothing; a blocked line stands still."""
    line = Line(strategy)
    for move in moves:
        if move == "start":
            line.arrive()
        elif move == "unblock":
            line.blocking.clear()
        elif line.active:
            name = data.draw(st.sampled_from(line.active))
            line.active.remove(name)
            line.blocking |= {name} if move == "fail" else set()
        line.let_go()
        assert len(line.active) <= strategy.concurrency
        assert line.begun == sorted(line.begun)
        is_held = strategy.rule is Rule.STRICT_SEQUENTIAL and line.blocking
        assert is_held or not line.queued or len(line.active) == strategy.concurrency
        live = len(line.queued) + len(line.active)
        if strategy.rule in {Rule.FIRST_ONLY, Rule.LAST_ONLY}:
            assert live <= 1
        if strategy.rule is Rule.SERIAL_LATEST_ONLY:
            assert len(line.queued) <= 1
    if strategy.rule in {Rule.LAST_ONLY, Rule.SERIAL_LATEST_ONLY} and moves and moves[-1] == "start":
        assert f"{line.born:03d}" in {*line.queued, *line.active}


@given(st.integers(1, 200), st.integers(0, 5))
def test_not_too_many_leave_the_queue_in_one_go(waiting: int, active: int) -> None:
    """However wide the strategy."""
    queued = tuple(f"{number:03d}" for number in range(waiting))
    view = QueueView(queued, tuple(f"a{number}" for number in range(active)))
    going = leaving(RunStrategy(rule=Rule.PARALLEL, workflow_concurrency=1_000), view)
    assert going == queued[:QUEUE_BATCH]
