"""Arguments that many operations take: names by pattern, numbers from one, and paths that cannot leave their folder."""

from typing import TYPE_CHECKING, Annotated

from calve.operations.declaration import Argument

if TYPE_CHECKING:
    from calve.engine import Address

NAME = r"[_a-zA-Z0-9][._a-zA-Z0-9-]{0,127}"
"""The pattern of the names that workflows, steps, tags and params may have."""
_LARGEST = 2**63 - 1
_NUMBER = "^(?i:latest|[0-9]{1,9})$"

WorkflowId = Annotated[str, Argument("The workflow's id.", pattern=f"^{NAME}$", examples=["demo.pipeline"])]
StepPath = Annotated[
    str,
    Argument(
        "The step's id; for a step inside another one, its path: loop/3/load, subworkflow/load.",
        pattern=f"^{NAME}(?:/{NAME}){{0,30}}$",
        examples=["load"],
    ),
]
Tag = Annotated[str, Argument("The tag's name.", pattern=f"^{NAME}$", examples=["gold"])]
Word = Annotated[str, Argument(pattern=f"^{NAME}$")]
InstanceId = Annotated[int, Argument("The number of the instance.", ge=1, le=_LARGEST, examples=[1])]
RunId = Annotated[str | int, Argument("The number of the run, or latest.", pattern=_NUMBER, examples=["1"])]
AttemptId = Annotated[str | int, Argument("The number of the attempt, or latest.", pattern=_NUMBER, examples=["1"])]
Version = Annotated[
    str | int,
    Argument(
        "A number, active, latest, or default: the active version, otherwise the latest.",
        pattern=r"^(?i:active|latest|default|[0-9]{1,9})$",
        examples=["active"],
    ),
]
Blocking = Annotated[bool, Argument("Wait up to 5 seconds for the effect.", is_query=True)]
OfWorkflow = Annotated[str | None, Argument("Only those of this workflow.", max_length=128)]


def number_of(given: str | int) -> int | None:
    """Return the number; None stands for the latest."""
    return int(given) if str(given).isdecimal() else None


def step_address(workflow_id: str, instance_id: int, path: str, run_id: int | None = None) -> "Address":
    """Return the address of a step."""
    from calve.engine import Address

    return Address(workflow_id, instance_id, run_id, tuple(path.split("/")))
