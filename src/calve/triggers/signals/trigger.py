"""Signal triggers: join the signals that arrived since the last evaluation with those that wait."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from calve.definition.model import VALID_THROUGH, SignalTrigger
from calve.engine import Json
from calve.errors import OF_THE_WORKFLOW
from calve.lake import no_table
from calve.triggers.model import Evaluation, Fire, Trigger
from calve.triggers.signals.fire import fire_for
from calve.triggers.signals.joins import Arrived, Waiting, counts, join
from calve.triggers.signals.signals import SignalState

log = logging.getLogger(__name__)
BATCH = 200
"""The most signals of one name that an evaluation reads; the rest follows immediately."""
NOTED = 20
"""How many failures are recorded."""


@dataclass(frozen=True, slots=True)
class SignalTriggers:
    """Fires signal triggers.

    Its state: ``read``, the last signal of each name that was read; ``waiting``, those without counterparts so
    far; ``failed``, the last joins whose params or condition could not be evaluated; and ``given_up``, how many signals
    were dropped because too many waited.
    """

    signals: SignalState
    environment: str = "local"
    is_disabled: Callable[[str], bool] = lambda _: False
    """Tells whether signals must not start a workflow now; skipped starts are not made up for."""
    may_read_table: Callable[[str, str], bool] = lambda _workflow_id, _table: True
    """Tells whether a workflow may read until when a table is complete."""

    def begin(self, trigger: Trigger, now: int) -> Evaluation:
        """Use signals from the moment at which the trigger became active."""
        definition = SignalTrigger.model_validate(trigger.definition)
        known = trigger.state.get("read", {})
        read = {
            name: known[name] if name in known else self.signals.last_before(name, trigger.made_at)
            for name in definition.definitions
        }
        return self._from(trigger, definition, read, now)

    def evaluate(self, trigger: Trigger, now: int) -> Evaluation:
        """Read new signals, and fire for those that join."""
        return self._from(trigger, SignalTrigger.model_validate(trigger.definition), trigger.state["read"], now)

    def _from(self, trigger: Trigger, definition: SignalTrigger, read: Mapping[str, int], now: int) -> Evaluation:
        self._check_tables(trigger.workflow_id, definition)
        come = {name: self.signals.signals_after(name, read[name], BATCH) for name in definition.definitions}
        waiting = _waiting(trigger.state)
        lines = {
            name: [
                arrived
                for arrived in (*waiting.get(name, ()), *(Arrived(each.seq, each.params) for each in come[name]))
                if counts(entry, arrived.params)
            ]
            for name, entry in definition.definitions.items()
        }
        joined = join(definition, lines)
        fires: list[Fire] = []
        failed = list(trigger.state.get("failed", ()))
        # Join them even if nothing is fired: signals that arrive while the workflow is disabled are used up.
        for group in joined.groups if not self.is_disabled(trigger.workflow_id) else ():
            try:
                fire = fire_for(trigger, definition, group, now=now, environment=self.environment)
            except OF_THE_WORKFLOW as error:
                failed.append({"at": now, "signal_ids": _ids(group), "error": error.message})
                log.warning("%s of %s: %s", trigger.trigger_id, trigger.workflow_id, error.message)
            else:
                fires += [fire] if fire is not None else []
        if joined.given_up:
            log.warning("%s of %s skips %d signals", trigger.trigger_id, trigger.workflow_id, joined.given_up)
        state: dict[str, Any] = {
            "read": {name: found[-1].seq if found else read[name] for name, found in come.items()},
            "waiting": _written(joined.waiting),
            "failed": failed[-NOTED:],
            "given_up": trigger.state.get("given_up", 0) + joined.given_up,
        }
        # A full batch: there may be more, so the trigger is due again right away.
        is_more = any(len(found) == BATCH for found in come.values())
        return Evaluation(tuple(fires), {key: value for key, value in state.items() if value}, now if is_more else None)

    def _check_tables(self, workflow_id: str, definition: SignalTrigger) -> None:
        """Refuse signals about tables that the workflow may not read; its author may use all other signals.

        Raises:
            TableMissing: the definition names such a table.
        """
        for name in definition.definitions:
            table = name.removeprefix(VALID_THROUGH)
            if table != name and not self.may_read_table(workflow_id, table):
                raise no_table(table)


def _waiting(state: Json) -> Waiting:
    return {name: [Arrived(seq, params) for seq, params in found] for name, found in state.get("waiting", {}).items()}


def _written(waiting: Waiting) -> dict[str, Any]:
    return {name: [[each.seq, dict(each.params)] for each in found] for name, found in waiting.items() if found}


def _ids(group: Mapping[str, Arrived]) -> dict[str, int]:
    return {name: arrived.seq for name, arrived in group.items()}


def read_through(trigger: Trigger, name: str) -> int:
    """Return the number up to which a trigger no longer needs the signals of a name; it may need all later ones."""
    if not trigger.is_begun:
        return 0
    waiting = [int(seq) - 1 for seq, _ in trigger.state.get("waiting", {}).get(name, ())]
    return min([int(trigger.state.get("read", {}).get(name, 0)), *waiting])


def is_needed(seq: int, newest: int, read: Iterable[int]) -> bool:
    """Tell whether a signal may still be used.

    Args:
        seq: the number of the signal.
        newest: the newest of its name, which is kept: a step that begins to wait also looks at earlier signals.
        read: the number up to which each trigger or step that waits for its name has read.
    """
    return seq >= newest or any(seq > each for each in read)
