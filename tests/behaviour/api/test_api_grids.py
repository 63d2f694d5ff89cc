"""The statuses of many steps and iterations as letters, through REST, on both databases."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.access_setup import AccessSetup, bearer
from tests.engines import BUSY, DONE, FATAL_ERROR, Playground
from tests.servers import Site, site_on

from calve.api.access import guarded
from calve.engine import Outcome, RunStatus, State, StepContext, StepStatus
from calve.operations.grids import RUN_LETTERS, STEP_LETTERS

pytestmark = pytest.mark.each_store

GRAPH = """
Workflow:
  id: sales.w
  jobs:
    - job: {id: last, type: Sleep}
    - job: {id: first, type: Sleep, transition: [left, right]}
    - job: {id: left, type: Sleep, transition: [last]}
    - job: {id: right, type: Sleep, transition: [last]}
"""
LOOP = """
Workflow:
  id: sales.loop
  jobs:
    - foreach:
        id: every
        concurrency: 3
        loop_params: {n: [10, 20, 30, 40, 50]}
        jobs:
          - job: {id: load, type: Sleep, '!n<long>': n}
    - job: {id: plain, type: NoOp}
"""
OLD = "Workflow: {id: sales.w, jobs: [{job: {id: gone, type: Sleep}}]}"


@pytest.fixture
def site(playground: Playground, access: AccessSetup) -> Iterator[Site]:
    """Give a server where everybody has to sign in."""
    with site_on(playground, **guarded(access.control())) as site:
        yield site


@pytest.fixture
def ann(access: AccessSetup) -> dict[str, str]:
    """Give the header of someone who may read what is below sales."""
    return bearer(access.token("viewer@sales"))


def test_every_status_has_a_letter_of_its_own() -> None:
    """No two of them have the same, and none is left out."""
    for letters, statuses in ((STEP_LETTERS, StepStatus), (RUN_LETTERS, RunStatus)):
        assert set(letters) == set(statuses)
        assert len(set(letters.values())) == len(letters)


def test_a_grid_has_the_steps_of_the_newest_runs(site: Site, ann: dict[str, str], access: AccessSetup) -> None:
    """In the order of the graph, those of an earlier version last; a restart keeps what it did not run again."""
    play = site.playground
    play.push(OLD)
    play.start("sales.w")
    play.push(GRAPH)
    play.script.parts |= {"right": FATAL_ERROR, "first": [Outcome(State.CONTINUE, poll_after=7), DONE]}
    run = play.start("sales.w")
    play.advance(7)
    grid = site.get("/workflows/sales.w/grid", headers=ann)
    assert [one["step_id"] for one in grid["steps"]] == ["first", "left", "right", "last", "gone"]
    assert [one["steps"] for one in grid["runs"]] == ["ssF..", "....s"]
    newest = grid["runs"][0]
    assert (newest["workflow_instance_id"], newest["workflow_version_id"], newest["status"]) == (2, 2, "FAILED")
    assert (newest["durations"][0], newest["durations"][3]) == (7_000, None)
    play.script.parts.clear()
    play.restart(run)
    grid = site.get("/workflows/sales.w/grid?runs=1", headers=ann)
    assert [(one["workflow_run_id"], one["steps"]) for one in grid["runs"]] == [(2, "ssss")]
    assert {grid["legend"][letter] for letter in "sF."} == {"SUCCEEDED", "FATALLY_FAILED", "NOT_CREATED"}
    site.get("/workflows/sales.w/grid", headers=bearer(access.token("viewer@ops")), status=403)


def _fails_at(*numbers: int) -> Any:
    def act(context: StepContext) -> Outcome:
        number = context.params["n"]
        return FATAL_ERROR if number in numbers else BUSY if number == 30 else DONE

    return act


def test_iterations_are_a_letter_each(site: Site, ann: dict[str, str], access: AccessSetup) -> None:
    """With their counts, and a page of documents by status: params, times, and the first error."""
    play = site.playground
    play.push(LOOP)
    play.script.parts["load"] = _fails_at(20)
    play.start("sales.loop")
    path = "/workflows/sales.loop/instances/1/steps/every/iterations"
    seen = site.get(path, headers=ann)
    assert seen["letters"][:3] == "sFr"
    assert (seen["first"], seen["total"], len(seen["letters"])) == (1, 5, 5)
    assert seen["counts"]["FAILED"] == 1
    assert sum(seen["counts"].values()) == 5
    assert seen["elements"][0]["params"] == {"n": 10, "loop_index": 0}
    (failed,) = site.get(f"{path}?status=FAILED&letters=false", headers=ann)["elements"]
    assert (failed["iteration"], failed["error"], failed["path"]) == (2, "no way", "load")
    assert failed["params"]["n"] == 20
    page = site.get(f"{path}?limit=1&letters=false", headers=ann)
    assert page["page_info"]["has_next_page"] is True
    (second,) = site.get(f"{path}?limit=1&cursor={page['page_info']['end_cursor']}", headers=ann)["elements"]
    assert second["iteration"] == 2
    site.get("/workflows/sales.loop/instances/1/steps/plain/iterations", headers=ann, status=400)
    site.get(path, headers=bearer(access.token("viewer@ops")), status=403)
    play.engine.stop_all("sales.loop")
    play.settle()


def test_iterations_are_found_by_param_and_as_an_earlier_run_left_them(site: Site, ann: dict[str, str]) -> None:
    """A restart runs again what failed; the run before it keeps how it ended."""
    play = site.playground
    play.push(LOOP.replace("concurrency: 3", "concurrency: 1"))
    play.script.parts["load"] = _fails_at(20)
    run = play.start("sales.loop")
    play.engine.stop_all("sales.loop")
    play.settle()
    path = "/workflows/sales.loop/instances/1/steps/every/iterations"
    first = site.get(path, headers=ann)["letters"]
    play.script.parts["load"] = DONE
    play.restart(play.fresh(run))
    assert site.get(path, headers=ann)["letters"] == "sssss"
    assert site.get(f"{path}?run=2", headers=ann)["letters"] == "sssss"
    old = site.get(f"{path}?run=1&status=FAILED", headers=ann)
    assert (old["letters"], [one["workflow_run_id"] for one in old["elements"]]) == (first, [1])
    assert "F" in first
    found = site.get(f"{path}?param=n=20&letters=false", headers=ann)
    assert [one["iteration"] for one in found["elements"]] == [2]
    assert found["page_info"]["has_next_page"] is False
    assert site.get(f"{path}?param=n=2&letters=false", headers=ann)["elements"] == []
    site.get(f"{path}?param=n", headers=ann, status=400)
