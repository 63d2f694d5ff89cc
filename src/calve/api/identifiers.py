"""What may stand in a path: names by pattern, never a dot or two alone, numbers from one."""

from typing import Annotated

from fastapi import Depends, Path, Request

PREFIX = "/api/v3"
_ID = r"^[_a-zA-Z0-9][._a-zA-Z0-9-]{0,127}$"
_LARGEST = 2**63 - 1

WorkflowId = Annotated[str, Path(pattern=_ID, description="The workflow's id.", examples=["demo.pipeline"])]
StepId = Annotated[str, Path(pattern=_ID, description="The step's id.", examples=["load"])]
Tag = Annotated[str, Path(pattern=_ID, description="The tag's name.")]
InstanceId = Annotated[int, Path(ge=1, le=_LARGEST, description="The number of the instance.", examples=[1])]
RunId = Annotated[int, Path(ge=1, le=_LARGEST, description="The number of the run.", examples=[1])]
Version = Annotated[
    str,
    Path(
        pattern=r"^(?i:active|latest|default|[0-9]{1,9})$",
        description="A number, active, latest, or default: the active one, else the latest.",
        examples=["active"],
    ),
]


async def _body(request: Request) -> bytes:
    return await request.body()


Body = Annotated[bytes, Depends(_body)]
"""The body as it was sent."""
