"""What may stand in a path: names by pattern, never a dot or two alone, numbers from one."""

from typing import Annotated

from fastapi import Path

from calve.engine import Address
from calve.engine.views import API

PREFIX = API
NAME = r"[_a-zA-Z0-9][._a-zA-Z0-9-]{0,127}"
"""The pattern of the names that workflows, steps, tags and params may have."""
_LARGEST = 2**63 - 1
_NUMBER = "^(?i:latest|[0-9]{1,9})$"

WorkflowId = Annotated[str, Path(pattern=f"^{NAME}$", description="The workflow's id.", examples=["demo.pipeline"])]
StepPath = Annotated[
    str,
    Path(
        pattern=f"^{NAME}(?:/{NAME}){{0,30}}$",
        description="The step's id; inside of others, their path: loop/3/load, subworkflow/load.",
        examples=["load"],
    ),
]
Tag = Annotated[str, Path(pattern=f"^{NAME}$", description="The tag's name.", examples=["gold"])]
Word = Annotated[str, Path(pattern=f"^{NAME}$")]
InstanceId = Annotated[int, Path(ge=1, le=_LARGEST, description="The number of the instance.", examples=[1])]
RunId = Annotated[str, Path(pattern=_NUMBER, description="The number of the run, or latest.", examples=["1"])]
AttemptId = Annotated[str, Path(pattern=_NUMBER, description="The number of the attempt, or latest.", examples=["1"])]
Version = Annotated[
    str,
    Path(
        pattern=r"^(?i:active|latest|default|[0-9]{1,9})$",
        description="A number, active, latest, or default: the active one, else the latest.",
        examples=["active"],
    ),
]


def number_of(given: str) -> int | None:
    """Return the number that is meant; None is the latest."""
    return int(given) if given.isdecimal() else None


def step_address(workflow_id: str, instance_id: int, path: str, run_id: int | None = None) -> Address:
    """Return where a step is."""
    return Address(workflow_id, instance_id, run_id, tuple(path.split("/")))
