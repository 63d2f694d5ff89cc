"""What starts a workflow: triggers and signals."""

from calve.definition.schema.shapes import DURATION, ONE_OR_MORE, TEXT, TEXTS, count, ref, said
from calve.definition.step_types.json_schema import Schema

_CATCH_UP: Schema = {"enum": ["all", "latest", "none", "ALL", "LATEST", "NONE"]}

_OPERATION = {"enum": ["append", "overwrite", "delete"]}


def starting() -> dict[str, Schema]:
    """Return what starts a workflow or holds a step, by name."""
    return {
        "trigger": _trigger(),
        "time_trigger": _time_trigger(),
        "signal_trigger": _signal_trigger(),
        "incremental_trigger": _incremental_trigger(),
        "signal_dependencies": said("Signals to wait for before it starts.", _signals(_valid_through())),
        "signal_outputs": said("Signals to send when it has succeeded.", _signals()),
    }


def _trigger() -> Schema:
    keys = {
        "cron": said("Five fields of Unix, six or seven of Quartz, or @daily and its like.", TEXT),
        "interval": said("Again after so long: seconds, or a text such as 15 minutes.", DURATION),
        "timezone": said("The time zone of cron.", TEXT, default="UTC"),
        "fuzzy_max_delay": said("Start up to so much later, at random.", DURATION),
        "catch_up": said("Which missed firings are made up for.", _CATCH_UP, default="all"),
        "signal": ref("signal_trigger"),
        "signals": ref("signal_trigger"),
        "incremental": ref("incremental_trigger"),
        "valid_through": said("Starts when these tables are complete through a later time.", ONE_OR_MORE),
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
        "description": "Starts when all its signals have come, with equal join keys.",
        "anyOf": [TEXT, TEXTS, {"type": "object"}],
    }


def _incremental_trigger() -> Schema:
    keys = {
        "source_tables": said("The tables to watch.", ONE_OR_MORE),
        "data_operations": {"anyOf": [_OPERATION, {"type": "array", "items": _OPERATION}]},
        "min_files": count(),
        "min_bytes": count(),
        "max_delay": DURATION,
        "debounce": DURATION,
    }
    full = {"type": "object", "properties": keys, "required": ["source_tables"], "additionalProperties": False}
    return {
        "description": "Starts when its source tables hold changes that are not committed.",
        "anyOf": [TEXT, TEXTS, full],
    }


def _valid_through() -> Schema:
    keys = {"table": TEXT, "valid_through": said("Milliseconds, or an expression such as RUN_TS.", {})}
    return {"type": "object", "properties": keys, "required": ["table", "valid_through"], "additionalProperties": False}


def _signals(*more: Schema) -> Schema:
    named: Schema = {"type": "object", "required": ["name"], "properties": {"name": TEXT}}
    one = {"anyOf": [TEXT, named, *more]}
    return {"anyOf": [TEXT, {"type": "array", "items": one}, {"type": "object", "required": ["definitions"]}]}
