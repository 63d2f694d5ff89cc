"""Events as they come."""

from collections.abc import AsyncGenerator

import anyio
import strawberry
from graphql import GraphQLError
from starlette.concurrency import run_in_threadpool

from calve.api.graphql.types import Event
from calve.api.graphql.values import Listening, Long, described
from calve.api.routes.events import Chosen
from calve.engine import model
from calve.errors import CalveError

_OFTEN = 0.25


@described
@strawberry.type
class Subscription:
    """What can be listened to."""

    @strawberry.subscription
    async def events(
        self,
        info: Listening,
        workflow_id: str | None = None,
        instance_id: Long | None = None,
        after: Long | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Yield what happens, in order; ``after`` goes on after an event that is known."""
        call = info.context["caller"]
        try:
            chosen = await run_in_threadpool(Chosen, call, workflow_id, instance_id)
            last = await run_in_threadpool(call.engine.state.last_event) if after is None else int(after)
            while not call.is_ending:
                found, seen = await run_in_threadpool(chosen.page, last)
                for event in found:
                    yield _event(event)
                if seen == last:
                    await anyio.sleep(_OFTEN)
                last = seen
        except CalveError as error:
            raise GraphQLError(error.message, extensions={"code": error.code, "remedy": error.remedy}) from error


def _event(event: model.Event) -> Event:
    return Event(
        seq=Long(event.seq),
        type=event.kind,
        workflow_id=event.workflow_id,
        instance_id=Long(event.instance_id),
        run_id=event.run_id,
        step_id=event.step_id,
        attempt_id=event.attempt_id,
        before=event.before,
        after=event.after,
        at=Long(event.at),
    )
