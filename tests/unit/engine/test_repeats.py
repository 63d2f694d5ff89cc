"""Which steps a restart repeats although nothing undoes what they did."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.engines import FATAL_ERROR, Playground

from calve.engine import Address, Run, RunPolicy
from calve.engine.views import reads_all, repeated_work

INNER = """
        - job: {id: extract, type: Shell, shell: {script: "true"}}
        - job: {id: mail, type: Shell, shell: {script: "true"}}
        - job: {id: merge, type: Spark, spark: {script: "select 1"}, targets: [db.t]}
        dag: [extract -> mail -> merge]
""".rstrip()
INNER = INNER.replace("        dag", "      dag")
LOOP = f"""
Workflow:
  id: w
  jobs:
  - foreach:
      id: loop
      concurrency: COUNT
      ranges: {{i: {{from: 0, to: COUNT}}}}
      jobs:{INNER}
"""
NESTED = """
Workflow:
  id: w
  jobs:
  - foreach:
      id: loop
      concurrency: COUNT
      ranges: {i: {from: 0, to: COUNT}}
      jobs:
        - foreach:
            id: inner
            ranges: {j: {from: 0, to: 1}}
            jobs: [{job: {id: mail, type: Shell, shell: {script: "true"}}}]
"""
CHILD = """
Workflow:
  id: child
  jobs:
  - job: {id: mail, type: Shell, shell: {script: "true"}}
"""
PARENT = """
Workflow:
  id: w
  jobs:
  - subworkflow: {id: child}
"""
FROM_INCOMPLETE: dict[str, Any] = {"policy": RunPolicy.RESTART_FROM_INCOMPLETE}
FROM_BEGINNING: dict[str, Any] = {"policy": RunPolicy.RESTART_FROM_BEGINNING}


def _repeats(
    playground: Playground, run: Run, *path: str, may_read: Callable[[str], bool] = reads_all, **asked: Any
) -> tuple[str, ...]:
    address = Address(run.workflow_id, run.instance_id, None, path)
    plan = playground.engine.plan_restart(address, **asked)
    return repeated_work(playground.tools, address, plan, may_read=may_read, **asked)


@pytest.mark.parametrize("count", [3, 30])
def test_a_step_inside_a_failed_loop_is_named(playground: Playground, count: int) -> None:
    """That of the iterations that failed; of very many iterations, all that the definition names."""
    playground.push(LOOP.replace("COUNT", str(count)))
    playground.script.parts["mail"] = FATAL_ERROR
    run = playground.start()
    complete = () if count == 3 else ("loop/extract",)
    assert sorted(_repeats(playground, run, **FROM_INCOMPLETE)) == [*complete, "loop/mail"]
    assert _repeats(playground, run, "loop") == _repeats(playground, run, **FROM_INCOMPLETE)
    assert set(_repeats(playground, run, "loop", "1", "extract")) == {"loop/extract", "loop/mail"}
    assert set(_repeats(playground, run, **FROM_BEGINNING)) == {"loop/extract", "loop/mail"}


@pytest.mark.parametrize("count", [3, 30])
def test_a_step_inside_a_loop_of_a_failed_loop_is_named(playground: Playground, count: int) -> None:
    """By its path, without numbers."""
    playground.push(NESTED.replace("COUNT", str(count)))
    playground.script.parts["mail"] = FATAL_ERROR
    assert _repeats(playground, playground.start(), **FROM_INCOMPLETE) == ("loop/inner/mail",)


def test_what_is_delivered_to_targets_is_not_repeated(playground: Playground) -> None:
    """Nor is what succeeded before it in the same iteration."""
    playground.push(LOOP.replace("COUNT", "3"))
    playground.script.parts["merge"] = FATAL_ERROR
    assert _repeats(playground, playground.start(), **FROM_INCOMPLETE) == ()


def test_a_step_of_a_failed_subworkflow_is_named(playground: Playground) -> None:
    """To those who may read it; to others the subworkflow stands for it."""
    playground.push(CHILD)
    playground.push(PARENT)
    playground.script.parts["mail"] = FATAL_ERROR
    run = playground.start()
    assert _repeats(playground, run, **FROM_INCOMPLETE) == ("child/mail",)
    assert _repeats(playground, run, may_read=lambda name: name != "child", **FROM_INCOMPLETE) == ("child",)


def test_a_step_that_never_began_repeats_nothing(playground: Playground) -> None:
    """Its params were wrong, so that it did no work."""
    playground.push(
        'Workflow: {id: w, n: 1, jobs: [{job: {id: mail, type: Shell, "!to": "1 / n", shell: {script: "true"}}}]}'
    )
    assert _repeats(playground, playground.start(params={"n": 0}), **FROM_INCOMPLETE) == ()
