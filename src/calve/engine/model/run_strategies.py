"""The six run strategies: which instances of a workflow may run concurrently. Pure."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import assert_never

from calve.definition.model import Rule, RunStrategy
from calve.engine.model.workflows import WorkflowRecord
from calve.errors import RequestInvalid

QUEUE_BATCH = 50
"""How many instances leave the queue at once."""
DEFAULT_STRATEGY = RunStrategy(rule=Rule.SEQUENTIAL)


@dataclass(frozen=True, slots=True)
class QueueView:
    """The unfinished instances of one workflow, as the uuids of their latest runs, oldest first."""

    queued: tuple[str, ...] = ()
    """Instances in the queue: at least the first ``QUEUE_BATCH``, or all if ``needs_all`` says so."""
    active: tuple[str, ...] = ()
    is_blocked: bool = False
    """A failed instance was neither unblocked nor restarted."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """What a new instance means for the others."""

    is_refused: bool = False
    """It is written as STOPPED, and never runs."""
    stopped: tuple[str, ...] = ()
    """Instances to stop: a queued one immediately, an active one by a STOP action."""


def strategy_of(record: WorkflowRecord | None) -> RunStrategy:
    """Return the run strategy of a workflow."""
    given = record.properties.get("run_strategy") if record else None
    return DEFAULT_STRATEGY if given is None else RunStrategy.model_validate(given)


def needs_all(rule: Rule) -> bool:
    """Tell whether a rule looks at every instance in the queue."""
    return rule in {Rule.LAST_ONLY, Rule.SERIAL_LATEST_ONLY}


def arrive(strategy: RunStrategy, view: QueueView) -> Arrival:
    """Return what happens when one more instance starts; if it is not refused, it joins the queue."""
    match strategy.rule:
        case Rule.SEQUENTIAL | Rule.STRICT_SEQUENTIAL | Rule.PARALLEL:
            return Arrival()
        case Rule.FIRST_ONLY:
            return Arrival(is_refused=bool(view.queued or view.active))
        case Rule.LAST_ONLY:
            return Arrival(stopped=(*view.queued, *view.active))
        case Rule.SERIAL_LATEST_ONLY:
            return Arrival(stopped=view.queued)
        case _:
            assert_never(strategy.rule)


def never_begins(
    strategy: RunStrategy, active: Collection[str], above: Collection[str], waiting: Collection[str]
) -> bool:
    """Tell whether an instance that starts inside others of its own workflow can never leave the queue.

    This is so for every rule: the instances above wait for the new one to end, and keep their places until then. With
    LAST_ONLY the new one would stop them, and so itself; with FIRST_ONLY it is refused because of them.

    Args:
        strategy: the run strategy of their workflow.
        active: the instances that have a place.
        above: the instances that wait for the end of the new one.
        waiting: the instances that wait for the end of one in the queue.
    """
    held = sum(uuid in above or uuid in waiting for uuid in active)
    return any(uuid in above for uuid in active) and held >= strategy.concurrency


def leaving(strategy: RunStrategy, view: QueueView) -> tuple[str, ...]:
    """Return which instances leave the queue and start now, oldest first."""
    if strategy.rule is Rule.STRICT_SEQUENTIAL and view.is_blocked:
        return ()
    free = max(0, strategy.concurrency - len(view.active))
    return view.queued[: min(free, QUEUE_BATCH)]


def check_change(before: RunStrategy, after: RunStrategy, view: QueueView) -> None:
    """Refuse a change of run strategy that the unfinished instances contradict.

    Raises:
        RequestInvalid: unfinished or failed instances contradict it.
    """
    if before.rule is after.rule:
        return
    live = len(view.queued) + len(view.active)
    if after.rule in {Rule.FIRST_ONLY, Rule.LAST_ONLY} and live > 1:
        raise RequestInvalid(
            f"The run strategy cannot become {after.rule} while {live} instances have not ended.",
            remedy="Wait until they end, or stop them.",
        )
    if after.rule is Rule.STRICT_SEQUENTIAL and view.is_blocked:
        raise RequestInvalid(
            "The run strategy cannot become STRICT_SEQUENTIAL while there are failed instances.",
            remedy="Restart or unblock them first.",
        )
