"""What starts a workflow: time, signals, or a change of its source tables."""

from enum import StrEnum
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, StrictInt, model_validator
from pydantic_core import PydanticCustomError

from calve.definition.model.fields import Model, ParsableLong
from calve.definition.model.params import Long, Param, Params

SIGNALS_A_TRIGGER = 8
NAME_BYTES = 255
"""The maximum length in bytes of the name of a signal or of its params."""
VALID_THROUGH = "vtts/"
"""The prefix of signals that announce through which time a table is complete; the name of the table follows."""
THROUGH = "through"
"""The param of such a signal: the time in milliseconds."""


class Operator(StrEnum):
    """The comparison of a signal's param with a value."""

    EQUALS = "="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    LESS = "<"
    LESS_OR_EQUAL = "<="

    @property
    def is_range(self) -> bool:
        """Tell whether it matches more than one value."""
        return self is not Operator.EQUALS


def is_signal_name(name: str) -> bool:
    """Tell whether a name is valid for a signal or for a param of a signal."""
    size = len(name.encode("utf-8", "surrogatepass"))
    return 0 < size <= NAME_BYTES and name.isprintable() and name == name.strip()


class CatchUp(StrEnum):
    """How to make up for the firings of a time trigger that were missed while no scheduler was running."""

    ALL = "ALL"
    """Each missed firing starts an instance."""
    LATEST = "LATEST"
    """Only the last missed firing starts an instance."""
    NONE = "NONE"
    """No missed firing starts an instance."""


class _TimeTrigger(Model):
    timezone: str | None = None
    fuzzy_max_delay: ParsableLong | None = None
    catch_up: CatchUp | None = None


class CronTrigger(_TimeTrigger):
    """A cron expression: five fields as in Unix, or six or seven as in Quartz."""

    type: Literal["CRON"] = "CRON"
    cron: str


class PredefinedTrigger(_TimeTrigger):
    """``@hourly``, ``@daily``, ``@weekly``, ``@monthly`` or ``@yearly``."""

    type: Literal["PREDEFINED"] = "PREDEFINED"
    expression: str


class IntervalTrigger(_TimeTrigger):
    """Fires at a fixed interval."""

    type: Literal["INTERVAL"] = "INTERVAL"
    interval: ParsableLong


TimeTrigger = Annotated[CronTrigger | PredefinedTrigger | IntervalTrigger, Field(discriminator="type")]


class SignalMatch(Model):
    """A condition on a param of a signal: an operator and a value."""

    value: str | Long
    operator: Operator = Operator.EQUALS


class SignalEntry(Model):
    """The conditions on one signal of a trigger, and the keys that join it with the other signals."""

    match_params: dict[str, SignalMatch] = Field(default_factory=dict)
    join_keys: tuple[str, ...] = ()


class SignalTrigger(Model):
    """Fires when all its signals have arrived with equal join keys."""

    definitions: dict[str, SignalEntry] = Field(min_length=1, max_length=SIGNALS_A_TRIGGER)
    params: Params = Field(default_factory=dict)
    condition: str | None = None
    dedup_expr: str | None = None

    @model_validator(mode="after")
    def _keys_fit(self) -> "SignalTrigger":
        if len({len(entry.join_keys) for entry in self.definitions.values()}) > 1:
            raise PydanticCustomError("join_keys_differ", "every signal needs the same number of join_keys")
        for name, entry in self.definitions.items():
            for key in entry.join_keys:
                if key in entry.match_params:
                    raise PydanticCustomError(
                        "join_key_matched",
                        "the join key {key} of {name} cannot be in match_params too",
                        {"key": key, "name": name},
                    )
        return self


DataOperation = Literal["append", "overwrite", "delete"]
"""The snapshot operations that count as a change: all except ``replace`` (compaction), which changes no rows."""
DATA_OPERATIONS: tuple[str, ...] = get_args(DataOperation)


class IncrementalTrigger(Model):
    """Fires when its source tables have changes that the workflow has not committed."""

    source_tables: tuple[str, ...] = Field(min_length=1)
    data_operations: tuple[DataOperation, ...] = ()
    min_files: Annotated[StrictInt, Field(ge=1)] | None = None
    min_bytes: Annotated[StrictInt, Field(ge=1)] | None = None
    max_delay: ParsableLong | None = None
    debounce: ParsableLong | None = None


class SignalDependencyMatch(Model):
    """A condition on a param of the awaited signal: an operator and a param with the value."""

    param: Param
    operator: Operator = Operator.EQUALS


class SignalDependency(Model):
    """A signal that a step waits for."""

    name: str = Field(min_length=1)
    match_params: dict[str, SignalDependencyMatch] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _has_one_range(self) -> "SignalDependency":
        ranges = [name for name, match in self.match_params.items() if match.operator.is_range]
        if len(ranges) > 1:
            raise PydanticCustomError(
                "ranges_many",
                "the signal {name} has more than one range param: {params}",
                {"name": self.name, "params": ", ".join(ranges)},
            )
        return self


class SignalOutput(Model):
    """A signal that a step sends when it has succeeded."""

    name: str = Field(min_length=1)
    params: Params = Field(default_factory=dict)
    payload: dict[str, Any] | None = None
