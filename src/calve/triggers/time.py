"""When time triggers fire: at the times of their schedule, each once, whatever the clock does. Pure."""

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from itertools import accumulate, takewhile
from typing import Any, assert_never
from zoneinfo import ZoneInfo

from pydantic import TypeAdapter

from calve.definition.model.triggers import CatchUp, CronTrigger, IntervalTrigger, PredefinedTrigger, TimeTrigger
from calve.definition.params import InitiatorType, parse_duration
from calve.definition.schedules import MINIMUM_GAP, Schedule, cron_of, interval_of, predefined_of, zone_of
from calve.engine import Initiator
from calve.triggers.model import Fire, Looked, Trigger

log = logging.getLogger(__name__)

RUN_TS = "RUN_TS"
"""The param that tells a run which moment it is for."""
ON_TIME = 300_000
"""By how many milliseconds a firing may be late without having been missed."""
_ON_TIME_MOST = 4
"""More firings cannot lie in that time: two minutes are between them at least."""
AT_ONCE = 20
"""How many firings of one trigger one look brings at most; the rest follows at once."""
PASSED_OVER = "passed_over"
"""In the state: from which scheduled time on, and before which, firings were last passed over."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_TRIGGER: TypeAdapter[TimeTrigger] = TypeAdapter(TimeTrigger)


@dataclass(frozen=True, slots=True)
class Plan:
    """A time trigger as it is understood; times are milliseconds."""

    schedule: Schedule
    zone: ZoneInfo
    max_delay: int
    catch_up: CatchUp

    def after(self, moment: int) -> int | None:
        """Return the first scheduled time after a moment; None if there is no more."""
        return _after(self.schedule, self.zone, moment)

    def between(self, after: int, until: int) -> Iterator[int]:
        """Yield the scheduled times after a moment, up to another one."""
        found = self.after(after)
        while found is not None and found <= until:
            yield found
            found = self.after(found)

    def latest(self, after: int, until: int, most: int) -> list[int]:
        """Return the last scheduled times between two moments, without going through all that lie before."""
        span = most * (MINIMUM_GAP // _MILLISECOND)
        while True:
            begin = max(after, until - span)
            found = list(self.between(begin, until))
            if begin == after or len(found) >= most:
                return found[-most:]
            span *= 2


@lru_cache(maxsize=10_000)
def _after(schedule: Schedule, zone: ZoneInfo, moment: int) -> int | None:
    found = schedule.next_after(_EPOCH + moment * _MILLISECOND, zone)
    return None if found is None else (found - _EPOCH) // _MILLISECOND


def plan_of(trigger: Trigger) -> Plan:
    """Return what a time trigger says.

    Raises:
        DefinitionInvalid: its schedule or its time zone cannot be understood.
        ParamError: one of its durations cannot be.
    """
    return _plan(json.dumps(trigger.definition, sort_keys=True))


@lru_cache(maxsize=10_000)
def _plan(written: str) -> Plan:
    trigger = _TRIGGER.validate_json(written)
    delay = 0 if trigger.fuzzy_max_delay is None else parse_duration(trigger.fuzzy_max_delay, {})
    return Plan(_schedule(trigger), zone_of(trigger.timezone), delay, trigger.catch_up or CatchUp.ALL)


def _schedule(trigger: TimeTrigger) -> Schedule:
    match trigger:
        case CronTrigger():
            return cron_of(trigger.cron)
        case PredefinedTrigger():
            return predefined_of(trigger.expression)
        case IntervalTrigger():
            return interval_of(timedelta(milliseconds=parse_duration(trigger.interval, {})))
        case _:
            assert_never(trigger)


def delay_of(trigger: Trigger, scheduled: int, max_delay: int) -> int:
    """Return by how much a firing is put off: spread evenly, but the same whoever computes it."""
    digest = sha256(f"{trigger.uuid}:{scheduled}".encode()).digest()
    return int.from_bytes(digest[:8]) % (max_delay + 1)


@dataclass(frozen=True, slots=True)
class TimeTriggers:
    """Fires time triggers. Its state is ``after``: every scheduled time up to that one has been dealt with.

    That the clock goes back fires nothing again; if it goes forward, or nobody looked for a while, the times that were
    missed are made up for as the trigger's ``catch_up`` says.
    """

    limit: int = 1_000
    """How many missed firings of one trigger are made up for at most: the latest ones."""
    is_disabled: Callable[[str], bool] = lambda _: False
    """Tells whether time is not to start a workflow now; what it would have started then is not made up for."""

    def begin(self, trigger: Trigger, now: int) -> Looked:
        """Fire from the moment on at which the trigger became active."""
        return self._from(trigger, max(trigger.made_at, trigger.state.get("after", 0)), now)

    def look(self, trigger: Trigger, now: int) -> Looked:
        """Fire for every scheduled time that has come."""
        return self._from(trigger, trigger.state["after"], now)

    def _from(self, trigger: Trigger, after: int, now: int) -> Looked:
        plan = plan_of(trigger)
        come = self._come(plan, trigger, after, now)
        chosen, until = _chosen(plan, come, _dues(plan, trigger, come), now) if come else ([], after)
        if chosen and self.is_disabled(trigger.workflow_id):
            chosen = []
        first, following = plan.after(after), plan.after(until)
        due_at = None if following is None else following + delay_of(trigger, following, plan.max_delay)
        passed: dict[str, Any] = {name: trigger.state[name] for name in (PASSED_OVER,) if name in trigger.state}
        if come and first not in chosen:
            passed = {PASSED_OVER: {"from": first, "before": chosen[0] if chosen else following}}
            log.warning(
                "%s of %s passes over firings: %s", trigger.trigger_id, trigger.workflow_id, passed[PASSED_OVER]
            )
        return Looked(tuple(_fire(trigger, plan, moment) for moment in chosen), {"after": until, **passed}, due_at)

    def _come(self, plan: Plan, trigger: Trigger, after: int, now: int) -> list[int]:
        """Return the scheduled times that have come, put off as they are, in order: the latest ones that count."""
        sure = now - plan.max_delay
        most = {CatchUp.ALL: self.limit, CatchUp.LATEST: _ON_TIME_MOST, CatchUp.NONE: _ON_TIME_MOST}[plan.catch_up]
        head = plan.latest(after, sure, most) if sure > after else []
        tail = takewhile(
            lambda moment: moment + delay_of(trigger, moment, plan.max_delay) <= now,
            plan.between(max(after, sure), now),
        )
        return [*head, *tail]


def _dues(plan: Plan, trigger: Trigger, moments: Sequence[int]) -> Sequence[int]:
    """Return when each of some scheduled times was to fire, put off as it is: in order, so none before the last one."""
    if not plan.max_delay:
        return moments
    return list(accumulate((moment + delay_of(trigger, moment, plan.max_delay) for moment in moments), max))


def _chosen(plan: Plan, come: Sequence[int], dues: Sequence[int], now: int) -> tuple[Sequence[int], int]:
    """Return which of the times that have come fire now, and up to which time they are dealt with.

    What is hardly late has not been missed: where firings are put off, several may come at once, and each fires.
    """
    on_time = [moment for moment, due in zip(come, dues, strict=True) if due >= now - ON_TIME]
    match plan.catch_up:
        case CatchUp.ALL:
            chosen = come[:AT_ONCE]
            return chosen, chosen[-1]
        case CatchUp.LATEST:
            return (on_time if plan.max_delay else ()) or come[-1:], come[-1]
        case CatchUp.NONE:
            return on_time, come[-1]
        case _:
            assert_never(plan.catch_up)


def _fire(trigger: Trigger, plan: Plan, moment: int) -> Fire:
    told = {"trigger_id": trigger.trigger_id, "trigger_uuid": trigger.uuid, "scheduled_at": moment}
    return Fire(str(moment), Initiator(InitiatorType.TIME, timezone=plan.zone.key, trigger=told), {RUN_TS: moment})
