"""Signal triggers: what has come since the last look, joined with what waits, fires."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from calve.definition.model.triggers import VALID_THROUGH, SignalTrigger
from calve.engine.model import Json
from calve.errors import OF_THE_WORKFLOW
from calve.lake import no_table
from calve.triggers.model import Fire, Looked, Trigger
from calve.triggers.signals.joining import Arrived, Waiting, counts, join
from calve.triggers.signals.judging import judge
from calve.triggers.signals.ports import SignalState

log = logging.getLogger(__name__)

BATCH = 200
"""How many signals of one name a look takes in at most; the rest follows at once."""
NOTED = 20
"""How many failures are kept."""


@dataclass(frozen=True, slots=True)
class SignalTriggers:
    """Fires signal triggers.

    Its state: ``read``, the last signal of each name that was taken in; ``waiting``, those of them that have found no
    counterparts yet; ``failed``, the last ones that came together but whose params or condition gave no answer; and
    ``given_up``, how many have waited in vain because too many others did.
    """

    signals: SignalState
    environment: str = "local"
    is_disabled: Callable[[str], bool] = lambda _: False
    """Tells whether signals are not to start a workflow now; what they would have started then is not made up for."""
    may_read_table: Callable[[str, str], bool] = lambda _workflow_id, _table: True
    """Tells whether a workflow may know how far a table is complete."""

    def begin(self, trigger: Trigger, now: int) -> Looked:
        """Count the signals from the moment on at which the trigger became active."""
        definition = SignalTrigger.model_validate(trigger.definition)
        known = trigger.state.get("read", {})
        read = {
            name: known[name] if name in known else self.signals.last_before(name, trigger.made_at)
            for name in definition.definitions
        }
        return self._from(trigger, definition, read, now)

    def look(self, trigger: Trigger, now: int) -> Looked:
        """Take in the signals that have come, and fire for those that come together."""
        return self._from(trigger, SignalTrigger.model_validate(trigger.definition), trigger.state["read"], now)

    def _from(self, trigger: Trigger, definition: SignalTrigger, read: Mapping[str, int], now: int) -> Looked:
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
        for group in joined.groups if not self.is_disabled(trigger.workflow_id) else ():
            try:
                fire = judge(trigger, definition, group, now=now, environment=self.environment)
            except OF_THE_WORKFLOW as error:
                failed.append({"at": now, "signal_ids": _ids(group), "error": error.message})
                log.warning("%s of %s: %s", trigger.trigger_id, trigger.workflow_id, error.message)
            else:
                fires += [fire] if fire is not None else []
        if joined.given_up:
            log.warning("%s of %s gives up %d signals", trigger.trigger_id, trigger.workflow_id, joined.given_up)
        state: dict[str, Any] = {
            "read": {name: found[-1].seq if found else read[name] for name, found in come.items()},
            "waiting": _written(joined.waiting),
            "failed": failed[-NOTED:],
            "given_up": trigger.state.get("given_up", 0) + joined.given_up,
        }
        is_more = any(len(found) == BATCH for found in come.values())
        return Looked(tuple(fires), {key: value for key, value in state.items() if value}, now if is_more else None)

    def _check_tables(self, workflow_id: str, definition: SignalTrigger) -> None:
        """Refuse to tell of tables that are not for the workflow; of other signals, who pushed it could read them.

        Raises:
            TableMissing: there is one.
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
