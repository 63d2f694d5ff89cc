"""Triggers and signals."""

from calve.definition.model import DATA_OPERATIONS
from calve.definition.schema.shapes import DURATION, ONE_OR_MORE, TEXT, TEXTS, count, described, ref
from calve.definition.step_types import Schema

_CATCH_UP: Schema = {"enum": ["all", "latest", "none", "ALL", "LATEST", "NONE"]}

_OPERATION: Schema = {"enum": list(DATA_OPERATIONS)}


def triggers() -> dict[str, Schema]:
    """Return triggers, and the signals of steps, by name."""
    return {
        "trigger": _trigger(),
        "time_trigger": _time_trigger(),
        "signal_trigger": _signal_trigger(),
        "incremental_trigger": _incremental_trigger(),
        "signal_dependencies": described("Signals to wait for before it starts.", _signals(_valid_through())),
        "signal_outputs": described("Signals to send when it has succeeded.", _signals()),
    }


def _trigger() -> Schema:
    keys = {
        "cron": described("A schedule: five fields as in Unix, six or seven as in Quartz, or a word: @daily.", TEXT),
        "interval": described("The time between two starts: seconds, or a text such as 15 minutes.", DURATION),
        "timezone": described("The time zone of cron.", TEXT, default="UTC"),
        "fuzzy_max_delay": described("The maximum random delay of a start.", DURATION),
        "catch_up": described("Which missed starts to make up for.", _CATCH_UP, default="all"),
        "signal": ref("signal_trigger"),
        "signals": ref("signal_trigger"),
        "incremental": ref("incremental_trigger"),
        "valid_through": described("Starts when these tables are complete through a later time.", ONE_OR_MORE),
    }
    spelt = keys | {key.capitalize(): item for key, item in keys.items()}
    one = {"anyOf": [TEXT, {"type": "object", "properties": spelt, "additionalProperties": False, "minProperties": 1}]}
    return {
        "description": "What starts the workflow: time, signals, or a change of its source tables.",
        "anyOf": [*one["anyOf"], {"type": "array", "items": one}],
    }


def _time_trigger() -> Schema:
    keys = {
        "cron": TEXT,
        "expression": TEXT,
        "interval": DURATION,
        "timezone": TEXT,
        "fuzzy_max_delay": DURATION,
        "catch_up": _CATCH_UP,
    }
    kind = {"enum": ["CRON", "PREDEFINED", "INTERVAL", "cron", "predefined", "interval"]}
    return {
        "type": "object",
        "properties": {"type": kind, **keys},
        "oneOf": [{"required": [key]} for key in ("cron", "expression", "interval")],
        "additionalProperties": False,
    }


def _signal_trigger() -> Schema:
    return {
        "description": "Starts when all its signals have arrived, with equal join keys.",
        "anyOf": [TEXT, TEXTS, {"type": "object"}],
    }


def _incremental_trigger() -> Schema:
    keys = {
        "source_tables": described("The tables to watch.", ONE_OR_MORE),
        "data_operations": {"anyOf": [_OPERATION, {"type": "array", "items": _OPERATION}]},
        "min_files": count(),
        "min_bytes": count(),
        "max_delay": DURATION,
        "debounce": DURATION,
    }
    full = {"type": "object", "properties": keys, "required": ["source_tables"], "additionalProperties": False}
    return {
        "description": "Starts when its source tables have uncommitted changes.",
        "anyOf": [TEXT, TEXTS, full],
    }


def _valid_through() -> Schema:
    keys = {"table": TEXT, "valid_through": described("Milliseconds, or an expression such as RUN_TS.", {})}
    return {"type": "object", "properties": keys, "required": ["table", "valid_through"], "additionalProperties": False}


def _signals(*more: Schema) -> Schema:
    named: Schema = {"type": "object", "required": ["name"], "properties": {"name": TEXT}}
    one = {"anyOf": [TEXT, named, *more]}
    return {"anyOf": [TEXT, {"type": "array", "items": one}, {"type": "object", "required": ["definitions"]}]}
