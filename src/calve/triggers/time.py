"""Time triggers: fire once at each time of their schedule, whatever the clock does. Pure."""

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

from calve.definition.model import CatchUp, CronTrigger, IntervalTrigger, PredefinedTrigger, TimeTrigger
from calve.definition.params import InitiatorType, parse_duration
from calve.definition.schedules import MINIMUM_GAP, Schedule, cron_of, interval_of, predefined_of, zone_of
from calve.engine import Initiator
from calve.triggers.model import Evaluation, Fire, Trigger

log = logging.getLogger(__name__)

RUN_TS = "RUN_TS"
"""The param with the scheduled time of a run."""
ON_TIME = 300_000
"""How many milliseconds late a firing may be without counting as missed."""
_ON_TIME_MOST = 4
"""There cannot be more firings within ``ON_TIME``: they are at least two minutes apart."""
AT_ONCE = 20
"""The most firings of one trigger in an evaluation; the rest follows immediately."""
PASSED_OVER = "passed_over"
"""The key of the state for the scheduled times that were last skipped: from one, to before another."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_TRIGGER: TypeAdapter[TimeTrigger] = TypeAdapter(TimeTrigger)


@dataclass(frozen=True, slots=True)
class Plan:
    """A time trigger, parsed; times are milliseconds."""

    schedule: Schedule
    zone: ZoneInfo
    max_delay: int
    catch_up: CatchUp

    def after(self, moment: int) -> int | None:
        """Return the first scheduled time after a moment; None if there is none."""
        return _after(self.schedule, self.zone, moment)

    def between(self, after: int, until: int) -> Iterator[int]:
        """Yield the scheduled times after a moment, up to another one."""
        found = self.after(after)
        while found is not None and found <= until:
            yield found
            found = self.after(found)

    def latest(self, after: int, until: int, most: int) -> list[int]:
        """Return the last scheduled times between two moments, without computing all earlier ones."""
        # Doubling the window finds the last few of a year of missed minutes in a handful of rounds.
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
    """Parse a time trigger.

    Raises:
        DefinitionInvalid: its schedule or its time zone is invalid.
        ParamError: one of its durations is invalid.
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


def upcoming(trigger: Trigger, now: int, count: int) -> list[int]:
    """Return the next times at which a time trigger fires, with their delays.

    Raises:
        DefinitionInvalid: its schedule or its time zone is invalid.
        ParamError: one of its durations is invalid.
    """
    plan = plan_of(trigger)
    found: list[int] = []
    moment = plan.after(max(now - plan.max_delay, trigger.state.get("after", 0)))
    while moment is not None and len(found) < count:
        due = moment + delay_of(trigger, moment, plan.max_delay)
        if due > now:
            found.append(due)
        moment = plan.after(moment)
    return sorted(found)


def delay_of(trigger: Trigger, scheduled: int, max_delay: int) -> int:
    """Return the delay of a firing: evenly distributed, but the same in every process that computes it."""
    digest = sha256(f"{trigger.uuid}:{scheduled}".encode()).digest()
    return int.from_bytes(digest[:8]) % (max_delay + 1)


@dataclass(frozen=True, slots=True)
class TimeTriggers:
    """Fires time triggers. Its state is ``after``: all scheduled times up to it are done.

    A clock that goes back fires nothing twice. If it jumps ahead, or no scheduler ran for a while, the trigger's
    ``catch_up`` decides about the missed times.
    """

    limit: int = 1_000
    """The most missed firings of one trigger that are made up for: the latest ones."""
    is_disabled: Callable[[str], bool] = lambda _: False
    """Tells whether time must not start a workflow now; skipped starts are not made up for."""

    def begin(self, trigger: Trigger, now: int) -> Evaluation:
        """Fire from the moment at which the trigger became active."""
        return self._from(trigger, max(trigger.made_at, trigger.state.get("after", 0)), now)

    def evaluate(self, trigger: Trigger, now: int) -> Evaluation:
        """Fire for every scheduled time that has passed."""
        return self._from(trigger, trigger.state["after"], now)

    def _from(self, trigger: Trigger, after: int, now: int) -> Evaluation:
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
            log.warning("%s of %s skips firings: %s", trigger.trigger_id, trigger.workflow_id, passed[PASSED_OVER])
        return Evaluation(tuple(_fire(trigger, plan, moment) for moment in chosen), {"after": until, **passed}, due_at)

    def _come(self, plan: Plan, trigger: Trigger, after: int, now: int) -> list[int]:
        """Return the latest scheduled times that have passed, including their delay, in order."""
        sure = now - plan.max_delay
        most = {CatchUp.ALL: self.limit, CatchUp.LATEST: _ON_TIME_MOST, CatchUp.NONE: _ON_TIME_MOST}[plan.catch_up]
        head = plan.latest(after, sure, most) if sure > after else []
        tail = takewhile(
            lambda moment: moment + delay_of(trigger, moment, plan.max_delay) <= now,
            plan.between(max(after, sure), now),
        )
        return [*head, *tail]


def _dues(plan: Plan, trigger: Trigger, moments: Sequence[int]) -> Sequence[int]:
    """Return when each scheduled time was to fire, including its delay, but not before the previous one."""
    if not plan.max_delay:
        return moments
    return list(accumulate((moment + delay_of(trigger, moment, plan.max_delay) for moment in moments), max))


def _chosen(plan: Plan, come: Sequence[int], dues: Sequence[int], now: int) -> tuple[Sequence[int], int]:
    """Return which of the passed times fire now, and the time up to which all are done.

    A firing that is only slightly late was not missed: with delays, several may come together, and each fires.
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
