"""The statuses of many steps and iterations at once: one letter each, so that thousands are a few kilobytes."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated

from calve.access import Permission, namespaces
from calve.definition.model import ForeachStep, WhileStep
from calve.definition.params import Parameter, shown
from calve.engine import (
    Address,
    Blueprint,
    FailedRun,
    GridCell,
    GridRow,
    InstanceQuery,
    Run,
    RunStatus,
    StepStatus,
    find,
    find_attempt,
    loop_of,
    params_from_stored,
    type_of,
)
from calve.engine.views import run_source
from calve.errors import RequestInvalid
from calve.operations import shapes
from calve.operations.arguments import InstanceId, StepPath, WorkflowId, step_address
from calve.operations.declaration import Argument, Document, Topic, jsonable, operation
from calve.operations.documents import present, recent_run_json
from calve.operations.instances import OfParams, Statuses, params_of
from calve.operations.pages import FIRST, Page, look_through, page_json
from calve.operations.policy import READ

CELLS = 20_000
"""Maximum number of cells in a grid: for a workflow with many steps it shows fewer instances."""
STEP_LETTERS = {
    StepStatus.NOT_CREATED: ".",
    StepStatus.CREATED: "c",
    StepStatus.INITIALIZED: "i",
    StepStatus.PAUSED: "p",
    StepStatus.WAITING_FOR_SIGNALS: "g",
    StepStatus.EVALUATING_PARAMS: "e",
    StepStatus.WAITING_FOR_PERMITS: "w",
    StepStatus.STARTING: "b",
    StepStatus.RUNNING: "r",
    StepStatus.FINISHING: "f",
    StepStatus.DISABLED: "d",
    StepStatus.UNSATISFIED: "u",
    StepStatus.SKIPPED: "k",
    StepStatus.SUCCEEDED: "s",
    StepStatus.COMPLETED_WITH_ERROR: "o",
    StepStatus.USER_FAILED: "U",
    StepStatus.PLATFORM_FAILED: "P",
    StepStatus.TIMEOUT_FAILED: "M",
    StepStatus.FATALLY_FAILED: "F",
    StepStatus.INTERNALLY_FAILED: "I",
    StepStatus.STOPPED: "x",
    StepStatus.TIMED_OUT: "t",
}
RUN_LETTERS = {
    RunStatus.CREATED: "c",
    RunStatus.IN_PROGRESS: "r",
    RunStatus.PAUSED: "p",
    RunStatus.SUCCEEDED: "s",
    RunStatus.FAILED: "F",
    RunStatus.STOPPED: "x",
    RunStatus.TIMED_OUT: "t",
}
"""A letter that iterations and steps share has the same meaning for both."""
NOT_BEGUN = "."
_LOOKED_THROUGH = 1_000
"""How many iterations are read at once when searching for a param."""


class Grids(Topic):
    """Reads the statuses of many steps and iterations."""

    __slots__ = ()
    tag = "grids"

    @operation("GET /workflows/{workflow_id}/grid", READ, id="get_grid", answer=shapes.Grid, is_slow=True)
    def grid(
        self,
        workflow_id: WorkflowId,
        runs: Annotated[int, Argument("Maximum number of instances.", ge=1, le=500)] = 50,
    ) -> Document:
        """Return the newest instances of a workflow and the statuses of their steps, as letters."""
        engine = self.call.engine
        record = engine.workflow(workflow_id)
        version = record.active_version or record.latest_version
        blueprint = engine.tools.blueprints.get(workflow_id, version)
        rows = engine.state.grid(workflow_id, max(1, min(runs, CELLS // len(blueprint.steps))))
        steps = _ordered(blueprint, rows)
        return {
            "workflow_id": workflow_id,
            "workflow_version_id": version,
            "steps": [present(step_id=step_id, type=type_name) for step_id, type_name in steps.items()],
            "legend": {letter: status.value for status, letter in STEP_LETTERS.items()},
            "runs": [_row_json(row, steps) for row in rows],
        }

    @operation(
        "GET /workflows/{workflow_id}/instances/{instance_id}/steps/{step_id:path}/iterations",
        READ,
        answer=shapes.IterationPage,
        is_slow=True,
    )
    def list_iterations(
        self,
        workflow_id: WorkflowId,
        instance_id: InstanceId,
        step_id: StepPath,
        page: Page = FIRST,
        statuses: Statuses = None,
        param: OfParams = None,
        run: Annotated[
            int | None, Argument("As an earlier run left them. Default: the newest.", ge=1, lt=2**31)
        ] = None,
        *,
        letters: Annotated[bool, Argument("Include the statuses of all iterations, as letters.")] = True,
    ) -> Document:
        """Return the statuses of all iterations of a loop, as letters, and a page of them with params and errors."""
        page, address = page.forward(), step_address(workflow_id, instance_id, step_id, run)
        self.call.require_inside(Permission.READ, address)
        name, total, started_by = self._loop(address)
        state = self.call.engine.state
        look = partial(state.iteration_runs, name, statuses=statuses or (), started_by=started_by)
        found, onward = _iterations(look, page, params_of(param))
        failed = [one for one in found[: page.limit] if one.status in {RunStatus.FAILED, RunStatus.TIMED_OUT}]
        causes = state.explained(failed, namespaces=namespaces(self.call.principal, Permission.READ)) if failed else {}
        document = page_json(
            found,
            page,
            lambda one: _iteration_json(one, causes.get(one.uuid)),
            lambda one: str(one.instance_id),
            onward,
        )
        if not letters:
            return document
        return {**_letters(state.iteration_statuses(name, started_by=started_by), total), **document}

    def first_inside(self, workflow_id: str, instance_id: int, step_id: str) -> str:
        """Return the id of the first step inside of a loop, without reading its iterations."""
        address = step_address(workflow_id, instance_id, step_id)
        self.call.require_inside(Permission.READ, address)
        run, attempt = find_attempt(self.call.engine.state, address)
        source = run_source(self.call.engine.tools, run, [attempt], with_leaves=False)
        loop = source.blueprint_of(attempt).steps[attempt.step_id]
        if not isinstance(loop, ForeachStep | WhileStep):
            raise RequestInvalid(f"{address} is not a loop.")
        return loop.steps[0].id

    def _loop(self, address: Address) -> tuple[str, int | None, Sequence[str]]:
        """Return the workflow id of a loop's iterations, their total if known, and the runs that may have started them.

        These are the runs of the loop's instance up to the one that the address names; for the latest run, the list is
        empty, which stands for all iterations.
        """
        state = self.call.engine.state
        found = find(state, address)
        loop = None if found.attempt is None else loop_of(found.attempt)
        if loop is None:
            raise RequestInvalid(f"{address} is not a loop, or has not started.")
        around = [] if found.run.is_latest else state.runs(found.run.workflow_id, found.run.instance_id)
        started_by = [one.uuid for one in around if one.run_id <= found.run.run_id]
        return loop["loop_workflow_id"], loop.get("total"), started_by


def _iterations(read: Callable[..., list[Run]], page: Page, params: Mapping[str, str]) -> tuple[list[Run], str | None]:
    """Return the iterations of a page, and the cursor to continue from if the search ended before the page was full."""
    limit, wanted = _LOOKED_THROUGH if params else page.limit + 1, InstanceQuery(params=params)

    def look(cursor: str | None) -> tuple[list[Run], str | None]:
        found = read(holding=params.values(), after=int(cursor or 0), limit=limit)
        is_last = not params or len(found) < limit
        return [run for run in found if wanted.is_met_by(run)], None if is_last else str(found[-1].instance_id)

    return look_through(page, str(page.number() or 0), look)


def _ordered(blueprint: Blueprint, rows: Iterable[GridRow]) -> dict[str, str | None]:
    """Return the steps in the order of the graph, with their types; those of earlier versions come last."""
    waiting = {step_id: set(before) for step_id, before in blueprint.dag.predecessors.items()}
    order: dict[str, str | None] = {}
    while waiting:
        ready = [step_id for step_id, before in waiting.items() if before <= order.keys()]
        order |= {step_id: type_of(blueprint.steps[step_id]) for step_id in ready}
        waiting = {step_id: before for step_id, before in waiting.items() if step_id not in order}
    return order | {step_id: None for row in rows for step_id in row.cells if step_id not in order}


def _row_json(row: GridRow, steps: Iterable[str]) -> Document:
    cells = [row.cells.get(step_id, GridCell(StepStatus.NOT_CREATED, None)) for step_id in steps]
    return {
        **recent_run_json(row.run),
        "workflow_version_id": row.version_id,
        "steps": "".join(STEP_LETTERS[cell.status] for cell in cells),
        "durations": [cell.duration for cell in cells],
    }


def _letters(statuses: Iterable[tuple[int, str]], total: int | None) -> Document:
    letter_of: Mapping[str, str] = {status.value: letter for status, letter in RUN_LETTERS.items()}
    found = dict(statuses)
    last = max(max(found, default=0), total or 0)
    counts = Counter(found.values())
    return {
        "first": 1,
        "total": total,
        "letters": "".join(letter_of[found[number]] if number in found else NOT_BEGUN for number in range(1, last + 1)),
        "legend": {NOT_BEGUN: "NOT_CREATED", **{letter: status.value for status, letter in RUN_LETTERS.items()}},
        "counts": {**counts, **({"NOT_CREATED": last - len(found)} if last > len(found) else {})},
    }


def _is_system(param: Parameter) -> bool:
    return param.source is not None and param.source.is_system


def _iteration_json(run: Run, failed: FailedRun | None) -> Document:
    params = params_from_stored(run.params)
    return present(
        iteration=run.instance_id,
        workflow_run_id=run.run_id,
        status=run.status.value,
        params=jsonable(shown({name: one.result for name, one in params.items() if not _is_system(one)})),
        create_time=run.created_at,
        start_time=run.started_at,
        end_time=run.ended_at,
        error=failed.error if failed else None,
        path="/".join(failed.path) if failed else None,
    )
