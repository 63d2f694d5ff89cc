"""Runs inside runs."""

import pytest
from tests.engines import Playground

from calve.definition.params import InitiatorType
from calve.engine import RunStatus, State
from calve.engine.control_steps import Loop, loop_param, outcome_of, worst
from calve.engine.instances import UnitOfWork
from calve.engine.model import Children
from calve.errors import ParamError

TWICE = """
Workflow:
  id: w
  run_strategy: parallel
  jobs:
    - foreach:
        id: loop
        loop_params: {i: [1]}
        jobs:
          - job: {id: a, type: NoOp}
"""


@pytest.mark.parametrize(
    ("children", "wanted"),
    [
        (Children(), RunStatus.SUCCEEDED),
        (Children(active=3), RunStatus.SUCCEEDED),
        (Children(stopped=1), RunStatus.STOPPED),
        (Children(stopped=1, timed_out=1), RunStatus.TIMED_OUT),
        (Children(stopped=1, timed_out=1, failed=1), RunStatus.FAILED),
    ],
)
def test_the_worst_of_many_ends(children: Children, wanted: RunStatus) -> None:
    """FAILED, then TIMED_OUT, then STOPPED."""
    assert worst(children) is wanted


def test_the_end_of_a_child_is_an_outcome() -> None:
    """Failures of children are final."""
    ends = [RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.STOPPED, RunStatus.TIMED_OUT]
    states = [outcome_of(status).state for status in ends]
    assert states == [State.DONE, State.FATAL_ERROR, State.STOPPED, State.TIMED_OUT]


@pytest.mark.parametrize(("value", "kind"), [(1, "LONG"), (True, "BOOLEAN"), (1.5, "DOUBLE"), ("${x}", "STRING")])
def test_a_loop_gives_plain_values(value: object, kind: str) -> None:
    """As they are: nothing in them is looked up."""
    param = loop_param("i", value, InitiatorType.FOREACH, 5)
    assert (param.type.value, param.result, param.evaluated_time) == (kind, value, 5)


def test_a_loop_gives_nothing_else() -> None:
    """No param could hold it."""
    with pytest.raises(ParamError, match=r"\[i\]"):
        loop_param("i", [1], InitiatorType.WHILE, 5)


def test_a_loop_has_a_name_of_its_own_in_every_instance(playground: Playground) -> None:
    """And the same one in every run of it."""
    playground.push(TWICE)
    names = []
    for run in (playground.start(), playground.start()):
        state = UnitOfWork(playground.tools, 0).state(run.uuid)
        names.append(Loop(state, playground.attempt(run, "loop"), InitiatorType.FOREACH).name)
        kept = playground.attempt(run, "loop").artifacts["maestro_foreach"]["loop_workflow_id"]
        assert names[-1] == kept
        assert kept.startswith("maestro_foreach_")
    assert len(set(names)) == 2
