"""The artifacts of loops, subworkflows and other steps in Maestro's format, and the overviews in them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from calve.definition.params import Parameter
from calve.engine.control_steps import FOREACH_KEY, SUBWORKFLOW_KEY, WHILE_KEY
from calve.engine.instances import Blueprint
from calve.engine.model import FLAGS, Attempt, IterationRecord, Json, Leaf, Leaves, Run, RunPolicy, StepStatus
from calve.engine.views.document import Document
from calve.engine.views.sources import Child, LoopState, StepSource


@dataclass(frozen=True, slots=True, kw_only=True)
class CountReference(Document):
    """The number of leaf steps in a status, and the first hundred of those that are unfinished or failed."""

    cnt: int
    ref: Mapping[str, list[str]] | None = None
    """``workflow:run`` → ``instance:step:attempt``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RollupOverview(Document):
    """The leaf steps of a run at any depth, by status."""

    total_leaf_count: int
    overview: Mapping[str, CountReference] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusSummary(Document):
    """The number of steps in a status, with ordinal, start and end of each."""

    cnt: int
    steps: list[list[int | None]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeOverview(Document):
    """A summary of a run."""

    total_step_count: int
    step_overview: Mapping[str, StatusSummary]
    rollup_overview: RollupOverview | None = None
    run_status: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeachOverview(Document):
    """The progress of a foreach's iterations."""

    LEFT_OUT: ClassVar[Mapping[str, str]] = {"restart_info": "a run of the instance restarts iterations"}

    checkpoint: int
    """The number of iterations, from the first one, that have ended without a gap."""
    stats: Mapping[str, int] | None = None
    """Ended iterations, by status."""
    running_stats: Mapping[str, int] | None = None
    """The other iterations."""
    rollup: RollupOverview | None = None
    """The leaf steps of ended iterations."""
    running_rollup: RollupOverview | None = None
    """The leaf steps of the other iterations."""
    details: Mapping[str, list[int | list[int]]] | None = None
    """By status: numbers of iterations, and intervals of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeachArtifact(Document):
    """The artifact of a foreach, ``maestro_foreach``."""

    ADDED: ClassVar[Mapping[str, str]] = {"concurrency": "maximum number of iterations that run at once"}
    LEFT_OUT: ClassVar[Mapping[str, str]] = {
        "ancestor_iteration_count": "a restart reads the iterations themselves",
        "pending_action": "a run of the instance restarts iterations",
    }
    ALONE: ClassVar[frozenset[str]] = frozenset({"foreach_overview"})

    foreach_workflow_id: str
    foreach_identity: str
    foreach_run_id: int
    """The run of the instance that contains it; an iteration that was not run again has fewer runs."""
    run_policy: str
    run_id: int
    total_loop_count: int
    next_loop_index: int
    foreach_overview: ForeachOverview | None = None
    type: str = "FOREACH"
    concurrency: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WhileArtifact(Document):
    """The artifact of a while, ``maestro_while``."""

    ALONE: ClassVar[frozenset[str]] = frozenset(
        {"first_iteration", "last_status", "last_overview", "rollup", "loop_param_values"}
    )

    loop_workflow_id: str
    loop_identity: str
    loop_run_id: int
    """The run of the instance that contains it."""
    run_policy: str
    run_id: int
    first_iteration: int | None = None
    last_iteration: int
    last_status: str | None = None
    last_overview: RuntimeOverview | None = None
    rollup: RollupOverview | None = None
    """The leaf steps of all iterations except the last one."""
    loop_param_values: Mapping[str, list[Any]] | None = None
    """The params at the start of each iteration."""
    type: str = "WHILE"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubworkflowArtifact(Document):
    """The artifact of a subworkflow, ``maestro_subworkflow``."""

    ALONE: ClassVar[frozenset[str]] = frozenset({"subworkflow_overview"})

    subworkflow_id: str
    subworkflow_version_id: int
    subworkflow_instance_id: int | None = None
    subworkflow_run_id: int | None = None
    subworkflow_uuid: str | None = None
    subworkflow_overview: RuntimeOverview | None = None
    type: str = "SUBWORKFLOW"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotebookArtifact(Document):
    """The artifact of a Notebook step, ``maestro_notebook``."""

    output_path: Any
    type: str = "NOTEBOOK"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpArtifact(Document):
    """The request and the response of an Http step, ``maestro_http``."""

    request: Any
    status: str
    """SUCCESS or FAILED."""
    status_code: Any
    body: Any = None
    type: str = "HTTP"


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesArtifact(Document):
    """The job of a Kubernetes step: ``maestro_kubernetes``."""

    LEFT_OUT: ClassVar[Mapping[str, str]] = {
        "execution_script": "the command is in the params",
        "execution_output": "the job's output is in the log",
    }

    job_id: str
    command: Any = None
    type: str = "KUBERNETES"


Counts = Mapping[StepStatus, int]


def artifacts_of(run: Run, attempt: Attempt, params: Json, source: StepSource | None) -> dict[str, Any]:
    """Return the artifacts of an attempt; ``params`` are its params as shown.

    Those of the engine's own steps have Maestro's keys. Artifacts from a step's program are shown unchanged, under
    any name.
    """
    if attempt.is_leaf:
        found = _of_work(attempt, params)
        return {**({found[0]: found[1].as_json()} if found else {}), **attempt.artifacts}
    builders = {FOREACH_KEY: _foreach, WHILE_KEY: _while, SUBWORKFLOW_KEY: _subworkflow}
    return {
        key: builders[key](run, attempt, kept, source).as_json() if key in builders else kept
        for key, kept in attempt.artifacts.items()
    }


def _of_work(attempt: Attempt, params: Json) -> tuple[str, Document] | None:
    """Return the artifacts of some types of steps in Maestro, whose values calve has in params."""

    def given(name: str) -> Any:
        return params.get(name, {}).get("evaluated_result")

    match attempt.type:
        case "Notebook" if "output_path" in params:
            return "maestro_notebook", NotebookArtifact(output_path=given("output_path"))
        case "Http" if "status_code" in params and attempt.status.is_terminal:
            status = "SUCCESS" if attempt.status.is_complete else "FAILED"
            answer = {"status_code": given("status_code"), "body": given("response_body")}
            return "maestro_http", HttpArtifact(request=given("http"), status=status, **answer)
        case "Kubernetes" if isinstance(kept := attempt.artifacts.get("kubernetes"), Mapping) and "job" in kept:
            return "maestro_kubernetes", KubernetesArtifact(job_id=str(kept["job"]), command=given("kubernetes"))
        case _:
            return None


def _identity(run: Run, attempt: Attempt) -> str:
    parts = (run.workflow_id, run.instance_id, run.run_id, attempt.step_id, attempt.attempt_id, attempt.uuid)
    return "".join(f"[{part}]" for part in parts)


def _foreach(run: Run, attempt: Attempt, kept: Json, source: StepSource | None) -> Document:
    return ForeachArtifact(
        foreach_workflow_id=kept["loop_workflow_id"],
        foreach_identity=_identity(run, attempt),
        foreach_run_id=run.run_id,
        run_policy=kept.get("run_policy", RunPolicy.START_FRESH_NEW_RUN.value),
        run_id=run.run_id,
        total_loop_count=kept["total"],
        next_loop_index=kept["launched"],
        foreach_overview=_foreach_overview(source.loop) if source and source.loop else None,
        concurrency=kept["concurrency"],
    )


def _foreach_overview(loop: LoopState) -> ForeachOverview:
    over = Counter(each.status.value for each in loop.iterations if each.status.is_terminal)
    live = Counter(each.status.value for each in loop.iterations if not each.status.is_terminal)
    return ForeachOverview(
        checkpoint=_checkpoint(loop.iterations),
        stats=dict(over) or None,
        running_stats=dict(live) or None,
        rollup=rollup(loop.leaves.over, loop.leaves.named, is_live=False) if over else None,
        running_rollup=rollup(loop.leaves.live, loop.leaves.named, is_live=True) if live else None,
        details=_details(loop.iterations) or None,
    )


def _checkpoint(iterations: Iterable[IterationRecord]) -> int:
    found = 0
    for each in iterations:
        if each.number != found + 1 or not each.status.is_terminal:
            break
        found = each.number
    return found


def _details(iterations: Iterable[IterationRecord]) -> dict[str, list[int | list[int]]]:
    """Return the numbers of iterations by status, consecutive ones as an interval."""
    spans: dict[str, list[list[int]]] = {}
    for each in iterations:
        known = spans.setdefault(each.status.value, [])
        if known and known[-1][1] + 1 == each.number:
            known[-1][1] = each.number
        else:
            known.append([each.number, each.number])
    return {
        status: [first if first == last else [first, last] for first, last in known] for status, known in spans.items()
    }


def _while(run: Run, attempt: Attempt, kept: Json, source: StepSource | None) -> Document:
    loop, last = (source.loop, source.child) if source else (None, None)
    return WhileArtifact(
        loop_workflow_id=kept["loop_workflow_id"],
        loop_identity=_identity(run, attempt),
        loop_run_id=run.run_id,
        run_policy=kept.get("run_policy", RunPolicy.START_FRESH_NEW_RUN.value),
        run_id=run.run_id,
        first_iteration=loop.first if loop else None,
        last_iteration=kept["iteration"],
        last_status=last.run.status.value if last else None,
        last_overview=_of_child(last) if last else None,
        rollup=_all_but(loop.leaves, last.leaves if last else Leaves()) if loop else None,
        loop_param_values=_loop_values(attempt, loop) if loop else None,
    )


def _all_but(leaves: Leaves, last: Leaves) -> RollupOverview:
    left = Counter(counted(leaves))
    left.subtract(counted(last))
    gone = set(last.named)
    named = [each for each in leaves.named if each not in gone]
    return rollup({status: number for status, number in left.items() if number}, named)


def _loop_values(attempt: Attempt, loop: LoopState) -> dict[str, list[Any]]:
    names = Parameter.from_stored(attempt.params["loop_params"]).result
    return {name: [_shown(each.params[name]) for each in loop.iterations if name in each.params] for name in names}


def _shown(stored: Json) -> Any:
    """Return the value of a stored param; for a secret, asterisks."""
    return Parameter.from_stored(stored).as_json().get("evaluated_result")


def _subworkflow(run: Run, attempt: Attempt, kept: Json, source: StepSource | None) -> Document:
    del run, attempt
    child = source.child if source else None
    return SubworkflowArtifact(
        subworkflow_id=kept["subworkflow_id"],
        subworkflow_version_id=child.run.version_id if child else kept["subworkflow_version_id"],
        subworkflow_instance_id=child.run.instance_id if child else kept.get("subworkflow_instance_id"),
        subworkflow_run_id=child.run.run_id if child else kept.get("subworkflow_run_id"),
        subworkflow_uuid=child.run.uuid if child else kept.get("subworkflow_uuid"),
        subworkflow_overview=_of_child(child) if child else None,
    )


def _of_child(child: Child) -> RuntimeOverview:
    return runtime_overview(child.run, child.blueprint, child.attempts, child.leaves)


def runtime_overview(
    run: Run, blueprint: Blueprint, attempts: Iterable[Attempt], leaves: Leaves | None
) -> RuntimeOverview:
    """Return a summary of a run: its steps by status, and the leaf steps below it."""
    known = {attempt.step_id: attempt for attempt in attempts}
    return RuntimeOverview(
        total_step_count=len(blueprint.steps),
        step_overview=_step_overview(blueprint, known),
        rollup_overview=None if leaves is None else rollup(counted(leaves), leaves.named),
        run_status=run.run_status.value,
    )


def _step_overview(blueprint: Blueprint, known: Mapping[str, Attempt]) -> dict[str, StatusSummary]:
    found: dict[str, list[list[int | None]]] = {}
    for step_id, ordinal in blueprint.ordinals.items():
        attempt = known.get(step_id)
        if attempt is not None:
            times = [ordinal, attempt.times.get("start"), attempt.times.get("end")]
            found.setdefault(attempt.status.value, []).append(times)
    summaries = {status: StatusSummary(cnt=len(steps), steps=steps) for status, steps in found.items()}
    missing = sum(step_id not in known for step_id in blueprint.steps)
    return summaries | ({StepStatus.NOT_CREATED.value: StatusSummary(cnt=missing)} if missing else {})


def counted(leaves: Leaves) -> Counts:
    """Return the number of leaf steps in each status, running or ended."""
    return Counter(leaves.over) + Counter(leaves.live)


def rollup(counts: Counts, named: Iterable[Leaf] = (), *, is_live: bool | None = None) -> RollupOverview:
    """Return leaf steps by status, with references to those that Maestro names."""
    refs: dict[StepStatus, dict[str, list[str]]] = {}
    for leaf in named:
        if is_live in {None, leaf.is_live}:
            place = refs.setdefault(leaf.status, {}).setdefault(f"{leaf.workflow_id}:{leaf.run_id}", [])
            place.append(f"{leaf.instance_id}:{leaf.step_id}:{leaf.attempt_id}")
    overview = {
        status.value: CountReference(cnt=counts[status], ref=refs.get(status)) for status in FLAGS if counts.get(status)
    }
    return RollupOverview(total_leaf_count=sum(counts.values()), overview=overview or None)
