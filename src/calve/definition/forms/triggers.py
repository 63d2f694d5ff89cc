"""What starts a workflow: ``Trigger`` as the talk writes it, and Maestro's own lists."""

from collections.abc import Callable

from calve.definition.document import Node
from calve.definition.forms import signals
from calve.definition.forms.keys import same, sort_keys
from calve.definition.forms.shapes import as_list, entries_of, items_of, uppered, without_nulls
from calve.definition.problems import Problems, did_you_mean

TIME = "time_triggers"
SIGNAL = "signal_triggers"
INCREMENTAL = "incremental_triggers"

_KINDS = ("cron", "interval", "signal", "incremental", "valid_through")
_BESIDE_TIME = ("timezone", "fuzzy_max_delay", "catch_up")
_KEYS = same(*_KINDS, *_BESIDE_TIME) | {"signals": "signal"}
_HINT = "write cron, interval, signal, incremental or valid_through"
_PREDEFINED = frozenset({"hourly", "daily", "weekly", "monthly", "yearly"})
_TYPE_OF = {"cron": "CRON", "expression": "PREDEFINED", "interval": "INTERVAL"}


def triggers(node: Node, problems: Problems) -> dict[str, list[Node]]:
    """Return the triggers that ``Trigger`` gives, by the list they belong to."""
    found: dict[str, list[Node]] = {TIME: [], SIGNAL: [], INCREMENTAL: []}
    for item in items_of(node):
        match item.value:
            case str():
                found[TIME].append(_cron(item, {}))
            case dict() as entries if "definitions" in entries:
                found[SIGNAL].append(signals.full_trigger(item, problems))
            case dict() as entries if "source_tables" in entries:
                found[INCREMENTAL].append(incremental(item))
            case dict() as entries if "type" in entries or "expression" in entries:
                found[TIME].append(time_trigger(item))
            case dict() as entries:
                _add(found, item, entries, problems)
            case _:
                problems.add(item, "trigger_malformed", "a trigger is a map", hint=_HINT)
    return found


def _add(found: dict[str, list[Node]], node: Node, entries: dict[str, Node], problems: Problems) -> None:
    keys = sort_keys(entries, _KEYS, problems, spelling=str.casefold)
    fields = keys.fields
    for key, item in keys.others.items():
        problems.add(
            item, "unknown_key", f"{key} says nothing of a trigger", hint=did_you_mean(key, _KEYS), at_key=True
        )
    beside = {key: fields[key] for key in _BESIDE_TIME if key in fields}
    if "cron" in fields:
        found[TIME].append(uppered(_cron(fields["cron"], beside), "catch_up"))
    if "interval" in fields:
        every = fields["interval"].made({"type": "INTERVAL", "interval": fields["interval"], **beside})
        found[TIME].append(uppered(every, "catch_up"))
    for kind, (into, write) in _WRITTEN.items():
        if kind in fields:
            found[into].append(write(fields[kind], problems))
    if not any(kind in fields for kind in _KINDS):
        if not keys.others:
            problems.add(node, "trigger_malformed", "the trigger says nothing that starts the workflow", hint=_HINT)
    elif beside and not ("cron" in fields or "interval" in fields):
        for key, item in beside.items():
            problems.add(item, "misplaced_key", f"{key} belongs beside cron or interval", at_key=True)


def _cron(node: Node, beside: dict[str, Node]) -> Node:
    word = predefined(node)
    if word is not None:
        return node.made({"type": "PREDEFINED", "expression": word, **beside})
    return node.made({"type": "CRON", "cron": node, **beside})


def predefined(node: Node) -> str | None:
    """Return ``@daily`` for its spellings; None for what is no such word."""
    word = node.value.strip().lower() if isinstance(node.value, str) else ""
    return f"@{word.removeprefix('@')}" if word.startswith("@") or word in _PREDEFINED else None


def time_trigger(node: Node) -> Node:
    """Return one of Maestro's time triggers; its type may be left out where its keys tell it."""
    entries = entries_of(without_nulls(node))
    if not entries:
        return node
    if "type" not in entries:
        kind = next((kind for key, kind in _TYPE_OF.items() if key in entries), None)
        entries = entries if kind is None else {"type": node.made(kind), **entries}
    if "expression" in entries and (word := predefined(entries["expression"])) is not None:
        entries = {**entries, "expression": entries["expression"].made(word)}
    return uppered(node.made(entries), "type", "catch_up")


def incremental(node: Node) -> Node:
    """Return an incremental trigger from a table, a list of tables, or a map."""
    if isinstance(node.value, str | list):
        return node.made({"source_tables": as_list(node)})
    entries = entries_of(without_nulls(node))
    if not entries:
        return node
    lists = {key: as_list(entries[key]) for key in ("source_tables", "data_operations") if key in entries}
    return node.made({**entries, **lists})


_WRITTEN: dict[str, tuple[str, Callable[[Node, Problems], Node]]] = {
    "signal": (SIGNAL, signals.trigger),
    "valid_through": (SIGNAL, signals.valid_through_trigger),
    "incremental": (INCREMENTAL, lambda node, _: incremental(node)),
}
"""Triggers that are no times: the list that each belongs to, and how it is written."""


def merged(lists: dict[str, Node], more: dict[str, list[Node]]) -> dict[str, Node]:
    """Return the lists of a workflow with more triggers after those it has."""
    found = dict(lists)
    for name, added in more.items():
        own = lists.get(name)
        if added and own is None:
            found[name] = added[0].made(added)
        elif added and own is not None and isinstance(own.value, list):
            found[name] = own.made([*own.value, *added])
    return found


def listed(fields: dict[str, Node], problems: Problems, params_of: signals.ParamsOf) -> dict[str, Node]:
    """Return Maestro's lists of triggers, in full."""
    written = {
        TIME: time_trigger,
        SIGNAL: lambda item: signals.full_trigger(item, problems, params_of),
        INCREMENTAL: incremental,
    }
    return {
        name: fields[name].made([write(item) for item in items])
        if isinstance(items := fields[name].value, list)
        else fields[name]
        for name, write in written.items()
        if name in fields
    }
