"""Signals: those that a step waits for, those it sends, and those that start a workflow."""

import re
from collections.abc import Callable

from calve.definition.document import Node
from calve.definition.forms.inference import is_typed
from calve.definition.forms.params import params
from calve.definition.forms.shapes import entries_of, items_of, without_nulls
from calve.definition.forms.typed_params import any_params, typed_param
from calve.definition.model.triggers import THROUGH, VALID_THROUGH, Operator
from calve.definition.problems import Problems

PASSED_ON = "VALID_THROUGH"
"""The param of such a trigger: through which time its tables are complete."""
_REFERENCE = re.compile(r"\$\{(\w+)\}")

ParamsOf = Callable[[Node, Problems], Node]
"""How the params of a map are written in this form."""


def dependencies(node: Node, problems: Problems) -> Node:
    """Return a list of signals to wait for; each may be a name, and each value a bare one."""

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


def outputs(node: Node, problems: Problems, params_of: ParamsOf = any_params) -> Node:
    """Return a list of signals to send; each may be a name."""

    def output(item: Node) -> Node:
        entries = entries_of(item)
        return item.made({**entries, "params": params_of(entries["params"], problems)}) if "params" in entries else item

    return _listed(node, output)


def trigger(node: Node, problems: Problems) -> Node:
    """Return a signal trigger from a name, a list of names, a map of definitions, or a trigger in full."""
    if "definitions" in entries_of(node):
        return full_trigger(node, problems)
    return node.made({"definitions": _definitions(node, problems)})


def full_trigger(node: Node, problems: Problems, params_of: ParamsOf = any_params) -> Node:
    """Return one of Maestro's signal triggers."""
    found = dict(entries_of(without_nulls(node)))
    if "definitions" in found:
        found["definitions"] = found["definitions"].made(_definitions(found["definitions"], problems))
    if "params" in found:
        found["params"] = params_of(found["params"], problems)
    return node.made(found) if found else node


def _valid_through(node: Node, entries: dict[str, Node], problems: Problems) -> Node:
    """Return the signal that tells that a table is complete through a time: a number, or an expression."""
    if entries.keys() != {"table", "valid_through"} or not isinstance(entries["table"].value, str):
        hint = "write {table: db.events, valid_through: RUN_TS}"
        problems.add(node, "signal_malformed", "a table is waited for by table and valid_through alone", hint=hint)
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
    """Return the trigger that comes when tables are complete through a later time, all through the same."""
    tables = [item.value for item in items_of(node)]
    if not tables or not all(isinstance(table, str) for table in tables):
        problems.add(node, "signal_malformed", "valid_through names a table, or a list of them")
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
                problems.add(item, "signal_malformed", "this names no signal", hint=hint)
    return found


def _definition(node: Node) -> Node:
    """Return which signals of a name count; a value that stands alone in match_params must be equal."""
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
    return next(iter(params({name: node}, problems).values()), node)
