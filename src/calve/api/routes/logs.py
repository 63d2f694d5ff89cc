"""What steps have written."""

from collections.abc import AsyncIterator
from typing import Annotated

import anyio
from fastapi import Query
from starlette.responses import PlainTextResponse, Response

from calve.access import Permission
from calve.api.callers import Call, Caller
from calve.api.identifiers import InstanceId, StepPath, WorkflowId, step_address
from calve.api.policy import Policy
from calve.api.routing import Routes
from calve.api.streaming import Stream, Watch
from calve.api.threads import in_thread
from calve.engine.addresses import find_attempt
from calve.engine.model import Attempt

routes = Routes("logs", is_slow=True)
_OFTEN = 0.5
_TEXT = {"content": {"text/plain": {"schema": {"type": "string"}}}}


@routes.get(
    "/workflows/{workflow_id}/instances/{instance_id}/steps/{step_id:path}/logs",
    "get_logs",
    Policy(Permission.LOGS),
    answers=_TEXT,
)
def get_logs(
    call: Call,
    workflow_id: WorkflowId,
    instance_id: InstanceId,
    step_id: StepPath,
    attempt: Annotated[int | None, Query(ge=1, lt=2**31, description="An earlier attempt.")] = None,
    *,
    follow: Annotated[bool, Query(description="Go on until the attempt has ended.")] = False,
) -> Response:
    """Return what an attempt of a step has written, the newest if none is named."""
    _, found = find_attempt(call.engine.state, step_address(workflow_id, instance_id, step_id), attempt)
    if follow:
        return Stream(call, _followed(call, found), media_type="text/plain")
    return PlainTextResponse("".join(chunk.text for chunk in call.engine.state.log(found.uuid)))


async def _followed(call: Caller, attempt: Attempt) -> AsyncIterator[str]:
    """Yield an attempt's log as it comes, until the attempt ends, or the server, or the caller's right to hear it."""
    last, state, watch = -1, call.engine.state, Watch(call)
    while True:
        now = await in_thread(state.attempt, attempt.uuid)
        for chunk in await in_thread(state.log, attempt.uuid, after=last):
            last = chunk.number
            yield chunk.text
        if now is None or now.status.is_terminal or not await watch.goes_on():
            return
        await anyio.sleep(_OFTEN)
