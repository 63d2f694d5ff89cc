"""Whatever the definition, its steps and people do: a capture that was committed has been delivered.

The oracle knows nothing of graphs. It looks at what steps did, in the order in which they did it.
"""

import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, find, given, settings, strategies as st
from tests.engines import DONE, FATAL_ERROR, Playground
from tests.scope import in_ci

from calve.definition import Definition, installed, load
from calve.engine import Outcome, Run, RunPolicy, RunStatus, State, StepContext
from calve.store import open_store

WORDS = installed()
CAPTURED = Outcome(
    State.DONE, outputs={"capture_id": "c", "icdc_table": "icdc.t", "relation": "icdc.t", "changed": True, "records": 3}
)
REFUSED = Outcome(State.FATAL_ERROR, message="refused")
WORKERS = ("a", "b", "c", "d")
NO_RETRY = "retry_policy: {error_retry_limit: 0, platform_retry_limit: 0}"
CHILD = """
Workflow:
  id: child
  run_strategy: parallel  # an example that hypothesis gives up leaves its instance, which would block all others
  SOURCE: none
  jobs:
    - job: {id: inner, type: Shell, failure_mode: IGNORE_FAILURE, shell: {script: 'run ${SOURCE}'}}
"""
USING = {
    "writer": "type: Spark, targets: [db.NAME], spark: {script: 'INSERT INTO db.NAME SELECT * FROM ${k.relation}'}",
    "same": "type: Spark, targets: [db.same], spark: {script: 'INSERT INTO db.same SELECT * FROM ${k.relation}'}",
    "sql": "type: Spark, spark: {script: 'INSERT INTO db.other SELECT * FROM ${k.relation}'}",
    "reader": "type: Spark, spark: {script: 'SELECT count(*) FROM ${k.relation}'}",
    "shell": "type: Shell, shell: {script: 'run ${k.icdc_table}'}",
    "idle": "type: NoOp",
}
"""What a step may do with the rows, if anything."""
DELIVERING = frozenset({"writer", "same", "sql", "shell", "loop", "sub"})
CONDITIONS = (
    "n > 1",
    "n <= 1",
    "n == 2",
    "n == 1",
    "params.getFromStep('k', 'changed')",
    "params.getFromStep('ONE', 'MAESTRO_STEP_STATUS') == 'SUCCEEDED'",
    "params.getFromStep('OTHER', 'MAESTRO_STEP_STATUS') == 'COMPLETED_WITH_ERROR'",
)


@dataclass(frozen=True)
class Flow:
    """A workflow with a capture."""

    kinds: Mapping[str, str]
    """What each step is, in the order of the definition."""
    ways: Mapping[str, Sequence[str]]
    """The transitions of each step."""
    modes: Mapping[str, str]

    def text(self, name: str) -> str:
        """Return its definition."""
        jobs = [self._job(step, kind) for step, kind in self.kinds.items()]
        return "\n".join(["Workflow:", f"  id: {name}", "  n: 0", "  jobs:", *jobs])

    def _job(self, step: str, kind: str) -> str:
        way = "transition: [" + ", ".join(f'"{each}"' for each in self.ways.get(step, ())) + "]"
        mode = f"failure_mode: {self.modes.get(step, 'FAIL_AFTER_RUNNING')}"
        match kind:
            case "capture":
                return f"    - job: {{id: {step}, type: IpCapture, ip_capture: {{source_tables: [db.t]}}, {way}}}"
            case "commit":
                return f"    - job: {{id: {step}, type: IpCommit, ip_commit: {{capture_step: k}}, {way}}}"
            case "sub":
                given = "workflow_id: child, SOURCE: '${k.icdc_table}'"
                return f"    - subworkflow: {{id: {step}, {given}, {mode}, {way}}}"
            case "loop":
                body = f"{{id: {step}_in, {USING['writer'].replace('NAME', step)}, {mode}, {NO_RETRY}}}"
                return f"    - foreach: {{id: {step}, loop_params: {{i: [1, 2]}}, jobs: [job: {body}], {way}}}"
            case _:
                return f"    - job: {{id: {step}, {USING[kind].replace('NAME', step)}, {mode}, {NO_RETRY}, {way}}}"


RARELY = st.integers(0, 9).map(lambda number: number == 9)


@st.composite
def flows(draw: st.DrawFn) -> Flow:
    """Workflows of a capture, some steps and a commit; mostly with the commit behind the rest."""
    order = ["k", *WORKERS[: draw(st.integers(1, len(WORKERS)))]]
    kinds = {name: draw(st.sampled_from([*USING, "loop", "sub"])) for name in order[1:]}
    commits = ["commit", "commit2"] if draw(RARELY) else ["commit"]
    for commit in commits:
        order.insert(draw(st.integers(1, len(order))) if draw(RARELY) else len(order), commit)
    kinds |= {"k": "capture"} | dict.fromkeys(commits, "commit")
    asked = [each.replace("ONE", order[1]).replace("OTHER", order[-2]) for each in CONDITIONS]
    ways = {name: draw(_ways(order[position + 1 :], asked)) for position, name in enumerate(order[:-1])}
    for name, found in ways.items():
        if not found and kinds[name] != "commit" and not draw(RARELY):
            ways[name] = [order[-1]]
    modes = {name: draw(st.sampled_from(["FAIL_AFTER_RUNNING", "IGNORE_FAILURE"])) for name in order[1:]}
    return Flow({name: kinds[name] for name in order}, ways, modes)


def _ways(later: Sequence[str], asked: Sequence[str]) -> st.SearchStrategy[list[str]]:
    """Transitions to some of the steps that come later."""
    step, condition = st.sampled_from(later[:3]), st.sampled_from(asked)
    one = st.builds(lambda target: [target], step)
    two = st.lists(step, min_size=2, max_size=2, unique=True) if len(later) > 1 else one
    return st.one_of(
        one,
        two,
        st.builds(lambda to, when: [f"IF {when} THEN {to[0]}", f"OTHERWISE {to[-1]}"], two, condition).filter(_differ),
        st.builds(lambda to, when: [f"IF {when} THEN {to[0]}", *to[1:]], two, condition),
        st.builds(
            lambda to, when, other: [f"IF {when} THEN {to[0]}", *(f"IF {other} THEN {each}" for each in to[1:])],
            two,
            condition,
            condition,
        ),
    )


def _differ(ways: Sequence[str]) -> bool:
    return ways[0].split()[-1] != ways[1].split()[-1]


@dataclass(frozen=True)
class Deed:
    """Something that a step did."""

    step: str
    """The step; in a loop with the number of its iteration."""
    kind: str
    targets: frozenset[str]
    is_done: bool
    run_id: int


@dataclass
class Fate:
    """Decides how steps end, and remembers what they did."""

    flow: Flow
    outcomes: Mapping[str, Sequence[bool]]
    is_checked: bool = True
    """Whether commits heed what they are told."""
    deeds: list[Deed] = field(default_factory=list)

    def act(self, context: StepContext) -> Outcome:
        """Do a step's work."""
        name = context.place.step_id
        loop = name.removesuffix("_in")
        kind = "sub" if name == "inner" else self.flow.kinds[loop]
        if kind == "capture":
            return CAPTURED
        is_done = self._is_done(loop)
        if kind == "commit":
            is_done = not (self.is_checked and context.undelivered("k"))
        targets = {"writer": {name}, "loop": {name}, "same": {"same"}}.get(kind, set())
        self.deeds.append(Deed(f"{name}{context.place.part}", kind, frozenset(targets), is_done, _run_of(context)))
        return DONE if is_done else (REFUSED if kind == "commit" else FATAL_ERROR)

    def _is_done(self, name: str) -> bool:
        said = self.outcomes.get(name, (True,))
        number = sum(deed.step.startswith(name) for deed in self.deeds)
        return said[min(number, len(said) - 1)]

    def losses(self) -> list[str]:
        """Return why rows of the capture are lost."""
        committed = next((n for n, deed in enumerate(self.deeds) if deed.kind == "commit" and deed.is_done), None)
        used = {kind for kind in self.flow.kinds.values() if kind in DELIVERING | {"reader"}}
        if committed is None or not used:
            return []
        before, after = self.deeds[:committed], self.deeds[committed + 1 :]
        found = [f"{deed.step} used it after the commit" for deed in after if deed.kind in used]
        counting = (used & DELIVERING) or used
        if not any(deed.is_done and deed.kind in counting for deed in before):
            found.append("nobody used it")
        newest = {deed.step: number for number, deed in enumerate(before) if deed.kind in used}
        for number in newest.values():
            deed = before[number]
            if not deed.is_done and not any(_makes_good(deed, later) for later in before[number + 1 :]):
                found.append(f"{deed.step} did not deliver")
        return found


def _makes_good(failed: Deed, later: Deed) -> bool:
    if not later.is_done or later.kind == "commit" or (later.kind == "reader") > (failed.kind == "reader"):
        return False
    return not later.targets or failed.targets <= later.targets


def _run_of(context: StepContext) -> int:
    return int(context.title.split("/")[2])


@dataclass
class World:
    """An engine, and one instance after the other of workflows that are made up."""

    playground: Playground
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def run(
        self, definition: Definition, fate: Fate, n: int, restarts: Sequence[tuple[str, str]], chance: random.Random
    ) -> Run:
        """Run an instance in any order that the engine allows, and restart it while it has not succeeded."""
        playground = self.playground
        playground.engine.push(definition)
        playground.script.parts = _Parts(fate.act)
        run = self._settled(playground.begin(definition.workflow.id, params={"n": n}).run, chance)
        for how, step in restarts:
            if run.status is RunStatus.SUCCEEDED or any(one.kind == "commit" and one.is_done for one in fate.deeds):
                break
            run = self._settled(self._restarted(run, how, step), chance)
        return run

    def _restarted(self, run: Run, how: str, step: str) -> Run:
        engine, address = self.playground.engine, self.playground.address
        step = step if step in self.playground.tools.blueprints.get(run.workflow_id, run.version_id).steps else "a"
        match how:
            case "step":
                return engine.restart(address(run, step)).run
            case "skip":
                return engine.restart(address(run), skip=(step,)).run
            case "beginning":
                return engine.restart(address(run), policy=RunPolicy.RESTART_FROM_BEGINNING).run
            case _:
                return engine.restart(address(run)).run

    def _settled(self, run: Run, chance: random.Random) -> Run:
        while tasks := self.playground.claim():
            chance.shuffle(tasks)
            for task in tasks:
                self.playground.do(task)
        return self.playground.fresh(run)


class _Parts(dict[str, Any]):
    """The same part for every step."""

    def __init__(self, act: Callable[[StepContext], Outcome]) -> None:
        super().__init__()
        self._act = act

    def get(self, name: str, default: Any = None) -> Any:  # noqa: ARG002 - the signature of dict
        return self._act


@contextmanager
def world() -> Iterator[World]:
    """Give a world."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/calve.db"
        with open_store(url) as store:
            playground = Playground(store, url, Path(folder))
            playground.push(CHILD)
            yield World(playground)


OUTCOMES = st.fixed_dictionaries(
    {name: st.lists(st.sampled_from([True, False]), min_size=1, max_size=3) for name in (*WORKERS, "inner")}
)
RESTARTS = st.lists(
    st.tuples(st.sampled_from(["step", "skip", "beginning", "incomplete"]), st.sampled_from(WORKERS)), max_size=2
)


def test_whatever_is_committed_was_delivered() -> None:
    """For every definition that is accepted, every order, every failure and every restart."""
    with world() as place:

        @settings(max_examples=in_ci(40, otherwise=100))
        @given(flows(), OUTCOMES, st.sampled_from([0, 1, 2]), RESTARTS, st.randoms(use_true_random=False))
        def holds(
            flow: Flow,
            outcomes: Mapping[str, Sequence[bool]],
            n: int,
            restarts: Sequence[tuple[str, str]],
            chance: random.Random,
        ) -> None:
            definition = load(flow.text(f"w{next(place.numbers)}"), name="w", vocabulary=WORDS).definition
            if definition is not None:
                fate = Fate(flow, outcomes)
                place.run(definition, fate, n, restarts, chance)
                assert not fate.losses(), fate.deeds

        holds()


@pytest.mark.parametrize("kind", ["writer", "shell", "loop", "sub", "reader"])
def test_there_are_definitions_of_every_kind_that_are_accepted(kind: str) -> None:
    """Branches included, so that the property says something."""

    def is_accepted(flow: Flow) -> bool:
        branches = sum(len(ways) > 1 for ways in flow.ways.values())
        return (
            kind in flow.kinds.values()
            and branches > 1
            and load(flow.text("w"), name="w", vocabulary=WORDS).definition is not None
        )

    # Any one will do: to look for the smallest takes a hundred times as long.
    assert find(flows(), is_accepted, settings=settings(max_examples=2_000, phases=[Phase.generate]))


BAD = {
    "before": Flow({"k": "capture", "commit": "commit", "a": "writer"}, {"k": ["commit"], "commit": ["a"]}, {}),
    "beside": Flow({"k": "capture", "commit": "commit", "a": "writer"}, {"k": ["commit", "a"]}, {}),
    "around": Flow(
        {"k": "capture", "a": "writer", "commit": "commit"}, {"k": ["IF n > 1 THEN a", "commit"], "a": ["commit"]}, {}
    ),
    "read": Flow(
        {"k": "capture", "b": "reader", "a": "writer", "commit": "commit"},
        {"k": ["b"], "b": ["IF n > 1 THEN a", "OTHERWISE commit"], "a": ["commit"]},
        {},
    ),
    "ignored": Flow(
        {"k": "capture", "a": "writer", "commit": "commit"}, {"k": ["a"], "a": ["commit"]}, {"a": "IGNORE_FAILURE"}
    ),
    "ignored in a loop": Flow(
        {"k": "capture", "a": "loop", "commit": "commit"}, {"k": ["a"], "a": ["commit"]}, {"a": "IGNORE_FAILURE"}
    ),
    "ignored in a subworkflow": Flow(
        {"k": "capture", "a": "sub", "commit": "commit"}, {"k": ["a"], "a": ["commit"]}, {}
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_without_the_checks_rows_are_lost(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the property would notice: with both checks off it fails, with them on it holds."""
    flow, outcomes, chance = BAD[name], {"a": [False], "inner": [False]}, random.Random(1)
    with world() as place:
        checked = load(flow.text("checked"), name="w", vocabulary=WORDS)
        assert (checked.definition is None) is not name.startswith("ignored")
        if checked.definition is not None:
            heeding = Fate(flow, outcomes)
            place.run(checked.definition, heeding, 0, [], chance)
            assert not heeding.losses()
        monkeypatch.setattr("calve.definition.loader.check_capture_order", lambda *_: None)
        unchecked = load(flow.text("unchecked"), name="w", vocabulary=WORDS).required()
        careless = Fate(flow, outcomes, is_checked=False)
        place.run(unchecked, careless, 0, [], chance)
        assert careless.losses()
