"""A small model of the engine: what was asked and what steps gave is all it knows, and it tells what follows.

It shares nothing with the engine but the names of statuses, actions and outcomes.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from calve.definition import Definition, installed, load
from calve.engine import Action, RunStatus, State, StepStatus

S = StepStatus
Edges = Mapping[str, Mapping[str, Callable[[int], bool]]]
"""Which steps follow a step, and for which ``n`` each edge holds."""


def always(_: int) -> bool:
    """Hold for every ``n``."""
    return True


@dataclass(frozen=True)
class Shape:
    """A workflow, or the inside of a loop: its text for the engine, the rest for the model."""

    text: str
    edges: Edges
    rule: str = "SEQUENTIAL"
    limit: int = 1
    """How many instances run at once."""
    step_limit: int = 100_000
    """How many of its steps do."""
    modes: Mapping[str, str] = field(default_factory=dict)
    retries: tuple[int, int, int] = (2, 10, 0)
    """Of errors, of the platform, of timeouts."""
    immediate: frozenset[str] = frozenset()
    composite: frozenset[str] = frozenset()

    def sources(self, step: str) -> list[str]:
        """Return the steps before a step."""
        return [source for source, targets in self.edges.items() if step in targets]

    def with_all_after(self, steps: Iterable[str]) -> set[str]:
        """Return some steps and all that come after them."""
        found: set[str] = set()
        for step in steps:
            found |= {step} | self.with_all_after(self.edges[step])
        return found


NO_RETRY = "retry_policy: {error_retry_limit: 0, platform_retry_limit: 0}"
BACKOFF = "{type: fixed_backoff, error_retry_backoff_in_secs: 5, platform_retry_backoff_in_secs: 7}"
ONCE_EACH = f"{{error_retry_limit: 1, platform_retry_limit: 1, timeout_retry_limit: 1, backoff: {BACKOFF}}}"
TIMEOUT = 600
"""Seconds that the step ``flaky`` may take."""

SHAPES = {
    "chain": Shape(
        """
Workflow:
  id: chain
  jobs:
    - job: {id: a, type: Sleep, transition: [b]}
    - job: {id: b, type: NoOp, transition: [c]}
    - job: {id: c, type: Sleep}
""",
        {"a": {"b": always}, "b": {"c": always}, "c": {}},
        immediate=frozenset({"b"}),
    ),
    "fork": Shape(
        """
Workflow:
  id: fork
  n: 0
  run_strategy: 2
  jobs:
    - job: {id: a, type: Sleep, transition: ["IF n > 5 THEN b", "IF n <= 5 THEN c", d]}
    - job: {id: b, type: Sleep, transition: ["IF n > 8 THEN e"]}
    - job: {id: c, type: Sleep, transition: [e]}
    - job: {id: d, type: Sleep, tags: [few]}
    - job: {id: e, type: Sleep}
""",
        {
            "a": {"b": lambda n: n > 5, "c": lambda n: n <= 5, "d": always},
            "b": {"e": lambda n: n > 8},
            "c": {"e": always},
            "d": {},
            "e": {},
        },
        "PARALLEL",
        limit=2,
    ),
    "flaky": Shape(
        f"""
Workflow:
  id: flaky
  run_strategy: strict_sequential
  jobs:
    - job: {{id: flaky, type: Sleep, timeout: {TIMEOUT}s, retry_policy: {ONCE_EACH}, transition: [after]}}
    - job: {{id: after, type: Sleep, retry_policy: {ONCE_EACH}}}
""",
        {"flaky": {"after": always}, "after": {}},
        "STRICT_SEQUENTIAL",
        retries=(1, 1, 1),
    ),
    "modes": Shape(
        f"""
Workflow:
  id: modes
  run_strategy: 3
  step_concurrency: 2
  jobs:
    - job: {{id: strict, type: Sleep, failure_mode: fail_immediately, {NO_RETRY}}}
    - job: {{id: lenient, type: Sleep, failure_mode: ignore_failure, {NO_RETRY}, transition: [later]}}
    - job: {{id: plain, type: Sleep, {NO_RETRY}, transition: [last]}}
    - job: {{id: later, type: Sleep, tags: [few], {NO_RETRY}}}
    - job: {{id: last, type: Sleep, {NO_RETRY}}}
""",
        {"strict": {}, "lenient": {"later": always}, "plain": {"last": always}, "later": {}, "last": {}},
        "PARALLEL",
        limit=3,
        step_limit=2,
        modes={"strict": "FAIL_IMMEDIATELY", "lenient": "IGNORE_FAILURE"},
        retries=(0, 0, 0),
    ),
    "loop": Shape(
        """
Workflow:
  id: loop
  run_strategy: last_only
  jobs:
    - foreach:
        id: each
        concurrency: 2
        ranges: {i: {from: 0, to: 3}}
        jobs:
          - job: {id: one, type: Sleep, tags: [few], transition: [two]}
          - job: {id: two, type: NoOp}
        transition: [after]
    - job: {id: after, type: Sleep}
""",
        {"each": {"after": always}, "after": {}},
        "LAST_ONLY",
        composite=frozenset({"each"}),
    ),
    "outer": Shape(
        """
Workflow:
  id: outer
  run_strategy: serial_latest_only
  jobs:
    - subworkflow: {id: inner, workflow_id: chain, transition: [after]}
    - job: {id: after, type: NoOp}
""",
        {"inner": {"after": always}, "after": {}},
        "SERIAL_LATEST_ONLY",
        immediate=frozenset({"after"}),
        composite=frozenset({"inner"}),
    ),
    "single": Shape(
        """
Workflow:
  id: single
  run_strategy: first_only
  jobs:
    - job: {id: gate, type: NoOp, tags: [few], transition: [work]}
    - job: {id: work, type: Sleep}
""",
        {"gate": {"work": always}, "work": {}},
        "FIRST_ONLY",
        immediate=frozenset({"gate"}),
    ),
}
ITERATION = Shape("", {"one": {"two": always}, "two": {}}, immediate=frozenset({"two"}))
WINDOW = 2
"""How many iterations of the loop run at once."""
DEFINITIONS: dict[str, Definition] = {
    name: load(shape.text, name=name, vocabulary=installed()).required() for name, shape in SHAPES.items()
}
FINAL = frozenset(status for status in S if status.is_final)
COMPLETE = frozenset({S.UNSATISFIED, S.SKIPPED, S.SUCCEEDED, S.COMPLETED_WITH_ERROR})
STEP_ENDS = {Action.STOP: S.STOPPED, Action.KILL: S.FATALLY_FAILED, Action.SKIP: S.SKIPPED}
RUN_ENDS = {Action.STOP: RunStatus.STOPPED, Action.KILL: RunStatus.FAILED}
FAILURES = {State.USER_ERROR: S.USER_FAILED, State.PLATFORM_ERROR: S.PLATFORM_FAILED, State.TIMED_OUT: S.TIMEOUT_FAILED}


@dataclass
class Said:
    """What the work of an attempt gave in the end, and whether it had been asked to end before."""

    state: State
    retries: int
    """How often the step had failed like this before."""
    was_asked: bool


@dataclass
class Model:
    """What was asked of runs and attempts, and what was recorded of attempts, all by uuid."""

    instances: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SHAPES, 0))
    """How many instances each workflow has had."""
    requests: dict[tuple[str, str], str] = field(default_factory=dict)
    asked: dict[str, list[Action]] = field(default_factory=dict)
    said: dict[str, Said] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    """Runs that were stopped before they began."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Runs that were made to skip a step."""
    ns: dict[str, int] = field(default_factory=dict)
    """The ``n`` of runs that were given one."""
    carried: dict[str, set[str]] = field(default_factory=dict)
    """The steps that a restart leaves as they are."""
    by_hand: set[str] = field(default_factory=set)
    """Runs and attempts that someone began by a restart."""

    def ask(self, uuid: str, action: Action) -> None:
        """Remember what was asked."""
        self.asked.setdefault(uuid, []).append(action)

    def is_asked(self, *uuids: str) -> bool:
        """Tell whether something was asked of one of these."""
        return any(uuid in self.asked for uuid in uuids)

    def step_ends(self, uuids: Iterable[str], mode: str | None) -> set[StepStatus]:
        """Return how an attempt may end by what was asked of it or of what is around it."""
        ends = {STEP_ENDS[action] for uuid in uuids for action in self.asked.get(uuid, ())}
        return ends | ({S.COMPLETED_WITH_ERROR} if mode == "IGNORE_FAILURE" and S.FATALLY_FAILED in ends else set())

    def run_ends(self, uuid: str) -> set[RunStatus]:
        """Return how a run may end by what was asked of it."""
        return {RUN_ENDS[action] for action in self.asked.get(uuid, ())}


def ended_as(shape: Shape, step: str, said: Said) -> StepStatus:
    """Return how an attempt ends whose work gave that, if nobody asked anything."""
    mode = shape.modes.get(step)
    fatal = S.COMPLETED_WITH_ERROR if mode == "IGNORE_FAILURE" else S.FATALLY_FAILED
    if said.state is State.DONE:
        return S.SUCCEEDED
    if said.state not in FAILURES:
        return fatal
    limit = shape.retries[list(FAILURES).index(said.state)]
    if said.retries < limit:
        return FAILURES[said.state]
    return S.TIMED_OUT if said.state is State.TIMED_OUT else fatal


def is_satisfied(shape: Shape, step: str, statuses: Mapping[str, StepStatus], n: int) -> bool:
    """Tell whether a step whose turn has come is to run."""
    sources = shape.sources(step)
    leads = [statuses[source] is not S.UNSATISFIED and shape.edges[source][step](n) for source in sources]
    return any(leads) or not sources


def is_ready(shape: Shape, step: str, statuses: Mapping[str, StepStatus]) -> bool:
    """Tell whether all that comes before a step is complete."""
    return all(statuses.get(source) in COMPLETE for source in shape.sources(step))


def fails_at_once(shape: Shape, statuses: Mapping[str, StepStatus]) -> bool:
    """Tell whether a step has failed that lets no other go on."""
    strict = [step for step, mode in shape.modes.items() if mode == "FAIL_IMMEDIATELY"]
    return any(statuses.get(step) is S.FATALLY_FAILED for step in strict)


def worst(statuses: Iterable[StepStatus]) -> RunStatus:
    """Return how a run ends whose steps ended like this."""
    found = set(statuses)
    if found & {S.FATALLY_FAILED, S.INTERNALLY_FAILED}:
        return RunStatus.FAILED
    if S.TIMED_OUT in found:
        return RunStatus.TIMED_OUT
    return RunStatus.STOPPED if S.STOPPED in found else RunStatus.SUCCEEDED
