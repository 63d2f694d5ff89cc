"""Triggers and signals: the short forms of YAML, and Maestro's own lists."""

import re
from collections.abc import Callable

from calve.definition.document import Node, entries as entries_of
from calve.definition.forms.keys import same, sort_keys
from calve.definition.forms.params import any_params, typed_param, yaml_params
from calve.definition.forms.values import as_list, is_typed, items_of, uppered, without_nulls
from calve.definition.model import THROUGH, VALID_THROUGH, Operator
from calve.definition.problems import Problems, did_you_mean

PASSED_ON = "VALID_THROUGH"
"""The param of a valid_through trigger: the time through which its tables are complete."""
_REFERENCE = re.compile(r"\$\{(\w+)\}")

ParamsOf = Callable[[Node, Problems], Node]
"""Reads the params of a map in the syntax of a form."""


def signal_dependencies(node: Node, problems: Problems) -> Node:
    """Return a list of signals to wait for; each may be a name, and each match param a plain value."""

    def matched(name: str, item: Node) -> Node:
        entries = dict(entries_of(without_nulls(item)))
        operator = {"operator": entries.pop("operator")} if "operator" in entries else {}
        if entries.keys() in ({"param"}, {"value"}):
            item = next(iter(entries.values()))
        elif operator:
            item = item.made(entries)
        return item.made({"param": _one_param(name, item, problems), **operator})

    def dependency(item: Node) -> Node:
        entries = entries_of(item)
        if "table" in entries:
            return _valid_through(item, entries, problems)
        match_params = entries.get("match_params")
        if match_params is None or not isinstance(match_params.value, dict):
            return item
        found = {name: matched(name, value) for name, value in match_params.value.items()}
        return item.made({**entries, "match_params": match_params.made(found)})

    return _listed(node, dependency)


def signal_outputs(node: Node, problems: Problems, params_of: ParamsOf = any_params) -> Node:
    """Return a list of signals to send; each may be a name."""

    def output(item: Node) -> Node:
        entries = entries_of(item)
        return item.made({**entries, "params": params_of(entries["params"], problems)}) if "params" in entries else item

    return _listed(node, output)


def any_signal_trigger(node: Node, problems: Problems) -> Node:
    """Return a signal trigger from a name, a list of names, a map of definitions, or a full trigger."""
    if "definitions" in entries_of(node):
        return signal_trigger(node, problems)
    return node.made({"definitions": _definitions(node, problems)})


def signal_trigger(node: Node, problems: Problems, params_of: ParamsOf = any_params) -> Node:
    """Return a signal trigger in Maestro's form."""
    found = dict(entries_of(without_nulls(node)))
    if "definitions" in found:
        found["definitions"] = found["definitions"].made(_definitions(found["definitions"], problems))
    if "params" in found:
        found["params"] = params_of(found["params"], problems)
    return node.made(found) if found else node


def _valid_through(node: Node, entries: dict[str, Node], problems: Problems) -> Node:
    """Return the dependency on a table that is complete through a time: a number, or an expression."""
    if entries.keys() != {"table", "valid_through"} or not isinstance(entries["table"].value, str):
        hint = "write {table: db.events, valid_through: RUN_TS}"
        problems.add(
            node,
            "signal_malformed",
            "a dependency on a table has only the keys table and valid_through",
            hint=hint,
        )
        return node
    through = entries["valid_through"]
    match through.value:
        case str() as text:
            reference = _REFERENCE.fullmatch(text.strip())
            param = through.made({"type": "LONG", "expression": reference[1] if reference else text})
        case _:
            param = through.made({"type": "LONG", "value": through})
    match = through.made({THROUGH: through.made({"operator": Operator.GREATER_OR_EQUAL.value, "param": param})})
    return node.made({"name": f"{VALID_THROUGH}{entries['table'].value}", "match_params": match})


def valid_through_trigger(node: Node, problems: Problems) -> Node:
    """Return the trigger that fires when all tables are complete through the same time."""
    tables = [item.value for item in items_of(node)]
    if not tables or not all(isinstance(table, str) for table in tables):
        problems.add(node, "signal_malformed", "valid_through must be a table or a list of tables")
        return node
    entry = {"join_keys": [THROUGH]} if len(tables) > 1 else {}
    asked = f"params.getFromSignal('{VALID_THROUGH}{tables[0]}', '{THROUGH}')"
    return node.made(
        {
            "definitions": {f"{VALID_THROUGH}{table}": entry for table in tables},
            "params": {PASSED_ON: {"type": "LONG", "expression": asked}},
        }
    )


def _definitions(node: Node, problems: Problems) -> dict[str, Node]:
    found: dict[str, Node] = {}
    for item in items_of(node):
        match item.value:
            case str() as name:
                found[name] = item.made({})
            case dict() as entries:
                found |= {name: _definition(entry) for name, entry in entries.items()}
            case _:
                hint = "write a name, a list of names, or a map of names to match_params and join_keys"
                problems.add(item, "signal_malformed", "this is not the name of a signal", hint=hint)
    return found


def _definition(node: Node) -> Node:
    """Return the definition of a signal; a plain value in match_params must be equal."""
    if node.value is None:
        return node.made({})
    entries = entries_of(without_nulls(node))
    match_params = entries.get("match_params")
    if match_params is None or not isinstance(match_params.value, dict):
        return node.made(entries) if entries else node
    found = {
        name: item if isinstance(item.value, dict) else item.made({"value": item})
        for name, item in match_params.value.items()
    }
    return node.made({**entries, "match_params": match_params.made(found)})


def _listed(node: Node, written: Callable[[Node], Node]) -> Node:
    """Return a list, which Maestro also writes as ``{"definitions": […]}``."""
    inner = entries_of(node).get("definitions", node)
    if not isinstance(inner.value, list | str):
        return inner
    return inner.made(
        [
            item.made({"name": item}) if isinstance(item.value, str) else written(without_nulls(item))
            for item in items_of(inner)
        ]
    )


def _one_param(name: str, node: Node, problems: Problems) -> Node:
    if is_typed(node):
        return typed_param(name, node, problems)
    return next(iter(yaml_params({name: node}, problems).values()), node)


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
    """Return the triggers of ``Trigger``, by the list they belong to."""
    found: dict[str, list[Node]] = {TIME: [], SIGNAL: [], INCREMENTAL: []}
    for item in items_of(node):
        match item.value:
            case str():
                found[TIME].append(_cron(item, {}))
            case dict() as entries if "definitions" in entries:
                found[SIGNAL].append(signal_trigger(item, problems))
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
            item, "unknown_key", f"{key} is not a key of a trigger", hint=did_you_mean(key, _KEYS), at_key=True
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
            problems.add(node, "trigger_malformed", "the trigger does not define what starts the workflow", hint=_HINT)
    elif beside and not ("cron" in fields or "interval" in fields):
        for key, item in beside.items():
            problems.add(item, "misplaced_key", f"{key} belongs next to cron or interval", at_key=True)


def _cron(node: Node, beside: dict[str, Node]) -> Node:
    word = predefined(node)
    if word is not None:
        return node.made({"type": "PREDEFINED", "expression": word, **beside})
    return node.made({"type": "CRON", "cron": node, **beside})


def predefined(node: Node) -> str | None:
    """Return ``@daily`` for ``daily`` and ``@Daily``; None if it is not a predefined schedule."""
    word = node.value.strip().lower() if isinstance(node.value, str) else ""
    return f"@{word.removeprefix('@')}" if word.startswith("@") or word in _PREDEFINED else None


def time_trigger(node: Node) -> Node:
    """Return a time trigger in Maestro's form; a missing type follows from its keys."""
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
    "signal": (SIGNAL, any_signal_trigger),
    "valid_through": (SIGNAL, valid_through_trigger),
    "incremental": (INCREMENTAL, lambda node, _: incremental(node)),
}
"""The triggers that are not by time: the list that each belongs to, and its reader."""


def merged(lists: dict[str, Node], more: dict[str, list[Node]]) -> dict[str, Node]:
    """Return the lists of a workflow with more triggers added."""
    found = dict(lists)
    for name, added in more.items():
        own = lists.get(name)
        if added and own is None:
            found[name] = added[0].made(added)
        elif added and own is not None and isinstance(own.value, list):
            found[name] = own.made([*own.value, *added])
    return found


def listed(fields: dict[str, Node], problems: Problems, params_of: ParamsOf) -> dict[str, Node]:
    """Return Maestro's lists of triggers with short forms expanded."""
    written = {
        TIME: time_trigger,
        SIGNAL: lambda item: signal_trigger(item, problems, params_of),
        INCREMENTAL: incremental,
    }
    return {
        name: fields[name].made([write(item) for item in items])
        if isinstance(items := fields[name].value, list)
        else fields[name]
        for name, write in written.items()
        if name in fields
    }
