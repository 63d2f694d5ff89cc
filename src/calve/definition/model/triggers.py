"""What starts a workflow: time, signals, or a change of its source tables."""

from enum import StrEnum
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, StrictInt, model_validator
from pydantic_core import PydanticCustomError

from calve.definition.model.fields import Model, ParsableLong
from calve.definition.model.params import Long, Param, Params

SIGNALS_A_TRIGGER = 8
NAME_BYTES = 255
"""How many bytes the names of a signal and of its params may have."""
VALID_THROUGH = "vtts/"
"""What the name of a signal begins with that tells through which time a table is complete; the table follows."""
THROUGH = "through"
"""Its param: milliseconds."""


class Operator(StrEnum):
    """How a param of a signal is compared."""

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
    """Tell whether a signal, or a param of one, may be called so."""
    size = len(name.encode("utf-8", "surrogatepass"))
    return 0 < size <= NAME_BYTES and name.isprintable() and name == name.strip()


class CatchUp(StrEnum):
    """What becomes of the firings that a time trigger has missed while nothing was there to fire it."""

    ALL = "ALL"
    """Each starts an instance of its own."""
    LATEST = "LATEST"
    """Only the last one does."""
    NONE = "NONE"
    """None does."""


class _TimeTrigger(Model):
    timezone: str | None = None
    fuzzy_max_delay: ParsableLong | None = None
    catch_up: CatchUp | None = None


class CronTrigger(_TimeTrigger):
    """Five fields of Unix, or six or seven of Quartz."""

    type: Literal["CRON"] = "CRON"
    cron: str


class PredefinedTrigger(_TimeTrigger):
    """``@hourly``, ``@daily``, ``@weekly``, ``@monthly`` or ``@yearly``."""

    type: Literal["PREDEFINED"] = "PREDEFINED"
    expression: str


class IntervalTrigger(_TimeTrigger):
    """Again and again after the same span of time."""

    type: Literal["INTERVAL"] = "INTERVAL"
    interval: ParsableLong


TimeTrigger = Annotated[CronTrigger | PredefinedTrigger | IntervalTrigger, Field(discriminator="type")]


class SignalMatch(Model):
    """A value that a signal's param must have."""

    value: str | Long
    operator: Operator = Operator.EQUALS


class SignalEntry(Model):
    """Which signals of one name count, and what joins them with the others."""

    match_params: dict[str, SignalMatch] = Field(default_factory=dict)
    join_keys: tuple[str, ...] = ()


class SignalTrigger(Model):
    """All its signals have come, with equal join keys."""

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
"""What a change may be made of: the operations of snapshots but for compaction, which changes nothing."""
DATA_OPERATIONS: tuple[str, ...] = get_args(DataOperation)


class IncrementalTrigger(Model):
    """Its source tables hold changes that the workflow has not committed."""

    source_tables: tuple[str, ...] = Field(min_length=1)
    data_operations: tuple[DataOperation, ...] = ()
    min_files: Annotated[StrictInt, Field(ge=1)] | None = None
    min_bytes: Annotated[StrictInt, Field(ge=1)] | None = None
    max_delay: ParsableLong | None = None
    debounce: ParsableLong | None = None


class SignalDependencyMatch(Model):
    """A value that the awaited signal's param must have."""

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
