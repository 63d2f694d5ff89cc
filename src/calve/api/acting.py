"""What is asked of a step, and how the step stands then."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from calve.access import Permission
from calve.api.answers import Document
from calve.api.callers import Caller
from calve.api.documents import action_event
from calve.api.effects import wait_for_effect
from calve.api.models import StepAction
from calve.engine import Action, Address
from calve.engine.addresses import Found, find
from calve.engine.views import runtime_state
from calve.engine.views.models import ActionEvent, RuntimeState

Blocking = Annotated[bool, Query(description="Wait up to 5 seconds for the effect.")]


@dataclass(frozen=True, slots=True)
class Asking:
    """A request to do something to a step."""

    call: Caller
    address: Address
    is_blocking: bool

    def do(self, action: Action, act: Callable[..., object], **said: str) -> Response:
        """Ask it of the engine, with what is said about it, and answer how the step stands then."""
        engine = self.call.engine
        self.call.require_inside(Permission.RUN, self.address)
        act(engine, self.address, by=self.call.name, **said)
        if self.is_blocking:
            wait_for_effect(engine.state, self.address, action)
        message = f"{action} was asked of {self.address}."
        event = action_event(action, self.call.name, engine.tools.clock(), message, "".join(said.values()))
        return Document(_standing(find(engine.state, self.address), event).as_json())


def _standing(found: Found, event: ActionEvent) -> StepAction:
    attempt = found.attempt
    return StepAction(
        workflow_id=found.run.workflow_id,
        workflow_instance_id=found.run.instance_id,
        workflow_run_id=found.run.run_id,
        step_id=found.step_id,
        step_attempt_id=attempt.attempt_id if attempt else None,
        step_runtime_state=runtime_state(attempt) if attempt else RuntimeState(status="NOT_CREATED"),
        timeline_event=event,
    )
