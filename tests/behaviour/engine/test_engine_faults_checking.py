"""The referee of the fault tests sees every kind of foul."""

from dataclasses import replace

import pytest
from tests.faults.checks import violations
from tests.faults.history import AttemptFact, History, Limits, Move, RunFact

from calve.engine import RunStatus, StepStatus

ONE = RunFact("r1", "w", 1, 1, RunStatus.SUCCEEDED, "w", {"a": (), "b": ("a",)}, request_id="q1")
TRIED = AttemptFact("x1", "r1", "a", 1, "Shell", StepStatus.USER_FAILED, is_superseded=True, artifacts={"by": "u"})
AGAIN = AttemptFact("x2", "r1", "a", 2, "Shell", StepStatus.SUCCEEDED, artifacts={"by": "v"})
NEXT = AttemptFact("x3", "r1", "b", 1, "Shell", StepStatus.SUCCEEDED, artifacts={"by": "w"})
MOVES = (
    Move("r1", None, "CREATED"),
    Move("r1", "CREATED", "IN_PROGRESS"),
    Move("r1", "NOT_CREATED", "RUNNING", "a", 1),
    Move("r1", "RUNNING", "USER_FAILED", "a", 1),
    Move("r1", "NOT_CREATED", "RUNNING", "a", 2),
    Move("r1", "RUNNING", "SUCCEEDED", "a", 2),
    Move("r1", "NOT_CREATED", "RUNNING", "b", 1),
    Move("r1", "RUNNING", "SUCCEEDED", "b", 1),
    Move("r1", "IN_PROGRESS", "SUCCEEDED"),
)
FAIR = History(
    (ONE,),
    (TRIED, AGAIN, NEXT),
    MOVES,
    {"w": Limits(1, 1)},
    {"q1": "w"},
    {"x1": ("u",), "x2": ("v", "other"), "x3": ("w",)},
)
TWIN = replace(ONE, uuid="r2", instance_id=2)
CHILD = RunFact("c1", "loop", 1, 1, RunStatus.SUCCEEDED, "w", {}, parent_attempt="x3", is_inline=True)
FOULS = {
    "led to 2 instances": replace(FAIR, runs=(ONE, TWIN)),
    "led to 0 instances": replace(FAIR, requests={"q1": "w", "q2": "w"}),
    "is IN_PROGRESS": replace(FAIR, runs=(replace(ONE, status=RunStatus.IN_PROGRESS),), moves=MOVES[:-1]),
    "are numbered": replace(FAIR, runs=(replace(ONE, instance_id=2),)),
    "but was SUCCEEDED": replace(FAIR, moves=(*MOVES, MOVES[7])),
    "moved back": replace(FAIR, moves=(*MOVES, Move("r1", "SUCCEEDED", "SUCCEEDED", "b", 1))),
    "last recorded state": replace(FAIR, moves=(*MOVES[:7], MOVES[8])),
    "has moved, but is not there": replace(FAIR, moves=(*MOVES, Move("r9", None, "CREATED"))),
    "the attempts of a": replace(FAIR, attempts=(replace(TRIED, attempt_id=3), AGAIN, NEXT)),
    "another followed": replace(FAIR, attempts=(replace(TRIED, is_superseded=False), AGAIN, NEXT)),
    "the last attempt of b": replace(FAIR, attempts=(TRIED, AGAIN, replace(NEXT, status=StepStatus.RUNNING))),
    "began before a was complete": replace(FAIR, moves=(*MOVES[:4], *MOVES[6:8], *MOVES[4:6], MOVES[8])),
    "succeeded without c": replace(FAIR, runs=(replace(ONE, predecessors={"a": (), "b": ("a",), "c": ()}),)),
    "has the children": replace(FAIR, runs=(ONE, replace(CHILD, instance_id=2))),
    "has a parent that is not there": replace(FAIR, runs=(ONE, replace(CHILD, parent_attempt="x9"))),
    "is not on record": replace(FAIR, journal={**FAIR.journal, "x9": ("z",)}),
    "was never carried out": replace(FAIR, journal={"x1": ("u",), "x2": ("v",)}),
    "none of its calls gave": replace(FAIR, journal={**FAIR.journal, "x3": ("z",)}),
    "without a result": replace(FAIR, attempts=(TRIED, AGAIN, replace(NEXT, artifacts={}))),
    "went beyond": replace(FAIR, limits={"w": Limits(1, 0)}),
    "left behind": replace(FAIR, left=("task x1",)),
}


def test_a_fair_history_passes() -> None:
    """Even if an attempt was carried out twice: it was recorded once."""
    assert violations(FAIR) == []


@pytest.mark.parametrize("foul", FOULS)
def test_a_foul_is_seen(foul: str) -> None:
    """Each is named."""
    assert any(foul in said for said in violations(FOULS[foul]))
