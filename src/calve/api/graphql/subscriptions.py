"""The subscription to events."""

from collections.abc import AsyncGenerator

import strawberry
from graphql import GraphQLError

from calve.api.graphql.types import Event
from calve.api.graphql.values import Listening, Long, described
from calve.api.responses import Watch
from calve.api.threads import in_thread
from calve.engine import model
from calve.errors import CalveError
from calve.operations import ChosenEvents


@described
@strawberry.type
class Subscription:
    """Events as they happen."""

    @strawberry.subscription
    async def events(
        self,
        info: Listening,
        workflow_id: str | None = None,
        instance_id: Long | None = None,
        after: Long | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Yield events in order; ``after`` continues after the event with that number."""
        call = info.context["caller"]
        try:
            with call.services.streams.opened(call.name):
                chosen = await in_thread(ChosenEvents, call, workflow_id, instance_id)
                last = await in_thread(call.engine.state.last_event) if after is None else int(after)
                watch = Watch(call)
                while await watch.goes_on():
                    beats = watch.beats
                    found, seen = await in_thread(chosen.page, last)
                    for event in found:
                        yield _event(event)
                    if seen == last:
                        await watch.news(beats)
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
