"""Values of the engine for tests: runs, attempts and tasks with all that does not matter filled in."""

from collections.abc import Callable
from dataclasses import replace
from threading import Barrier, Thread
from typing import Any, TypeVar
from uuid import uuid4

from calve.engine import (
    Admission,
    Attempt,
    Changes,
    Committed,
    NewTask,
    Parent,
    Permit,
    Run,
    RunStatus,
    Start,
    Started,
    StepStatus,
    Task,
    TaskKind,
    WorkerRecord,
)
from calve.errors import CalveError
from calve.store import SqlEngineState

NOW = 1_760_000_000_000
Result = TypeVar("Result")


def new_id() -> str:
    """Give a fresh uuid."""
    return str(uuid4())


def pushed(engine: SqlEngineState, workflow_id: str = "daily", strategy: Any = None) -> None:
    """Push a workflow with a run strategy."""
    properties = {"owner": "me"} if strategy is None else {"owner": "me", "run_strategy": strategy}
    engine.push(workflow_id, {"workflow": {"id": workflow_id}}, properties, is_active=True, author="me", now=NOW)


def fresh(workflow_id: str = "daily", **more: Any) -> Run:
    """Make a run that has not been started."""
    uuid = new_id()
    numbers: dict[str, Any] = {"instance_id": 0, "run_id": 1, "version_id": 1, "created_at": NOW}
    return Run(uuid, workflow_id, **(numbers | {"owner_workflow": workflow_id, "root_uuid": uuid} | more))


def started(engine: SqlEngineState, workflow_id: str = "daily", **more: Any) -> Started:
    """Start an instance."""
    return engine.commit(Changes(starts=[Start(fresh(workflow_id, **more))])).started[0]


def running(engine: SqlEngineState, workflow_id: str = "daily", **more: Any) -> Run:
    """Start an instance and take its task away."""
    run = started(engine, workflow_id, **more).run
    worker = registered(engine)
    engine.commit(Changes(done=engine.claim(worker, NOW, runs=1_000, steps=0)))
    return run


def ended(engine: SqlEngineState, run: Run, status: RunStatus, **more: Any) -> Committed:
    """End a run, whatever it is doing."""
    now = loaded(engine, run.uuid)
    return engine.commit(Changes(runs=[replace(now, status=status, run_status=status, ended_at=NOW, **more)]))


def loaded(engine: SqlEngineState, uuid: str) -> Run:
    """Read a run that is there."""
    found = engine.load(uuid)
    assert found is not None
    return found.run


def iteration(parent: Run, attempt: Attempt, number: int, **more: Any) -> Run:
    """Make an iteration of a loop."""
    return fresh(
        f"loop_{attempt.uuid}",
        **{
            "instance_id": number,
            "owner_workflow": parent.workflow_id,
            "root_uuid": parent.root_uuid,
            "parent": Parent(parent.uuid, attempt.step_id, attempt.uuid),
            "inline_step": attempt.step_id,
            "status": RunStatus.IN_PROGRESS,
            **more,
        },
    )


def attempt_of(run: Run, step_id: str = "merge", **more: Any) -> Attempt:
    """Make an attempt of a step."""
    values: dict[str, Any] = {"step_instance_id": 1, "attempt_id": 1, "type": "NoOp", "status": StepStatus.RUNNING}
    return Attempt(new_id(), run.uuid, run.root_uuid, step_id, **(values | more))


def wanting(attempt: Attempt, *permits: Permit, owner: str | None = None, priority: int = 0) -> Admission:
    """Let an attempt want permits."""
    return Admission(
        replace(attempt, status=StepStatus.WAITING_FOR_PERMITS),
        replace(attempt, status=StepStatus.RUNNING),
        permits,
        NewTask(TaskKind.STEP, attempt.run_uuid, attempt.uuid, owner=owner),
        priority,
    )


def registered(engine: SqlEngineState, uuid: str | None = None) -> str:
    """Make a worker known."""
    uuid = uuid or new_id()
    engine.register(WorkerRecord(uuid, "host", 17, NOW, NOW, 4))
    return uuid


def run_tasks(engine: SqlEngineState) -> set[str]:
    """Take every task of a run that is due, and give it back; return their runs."""
    worker = registered(engine)
    tasks = engine.claim(worker, NOW, runs=10_000, steps=0)
    engine.retire(worker)
    return {task.run_uuid for task in tasks}


def refused(engine: SqlEngineState, changes: Changes, error: type[CalveError]) -> None:
    """Try a commit that must fail."""
    try:
        engine.commit(changes)
    except error:
        return
    raise AssertionError(f"no {error.__name__}")


def stolen(task: Task) -> Task:
    """Return a task as someone who held it before knows it."""
    return replace(task, generation=task.generation - 1)


def at_once(count: int, work: Callable[[int], Result]) -> list[Result | CalveError]:
    """Do something in many threads at the same moment; return what each gave or raised."""
    barrier = Barrier(count)
    results: dict[int, Result | CalveError] = {}

    def body(number: int) -> None:
        barrier.wait()
        try:
            results[number] = work(number)
        except CalveError as error:
            results[number] = error

    threads = [Thread(target=body, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [results[number] for number in range(count)]  # one that raised anything else is not here
