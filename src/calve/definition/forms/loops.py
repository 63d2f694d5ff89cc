"""The params that a loop runs over."""

from collections.abc import Iterator

from calve.definition.document import Node
from calve.definition.forms.keys import same, sort_keys
from calve.definition.forms.params import params
from calve.definition.forms.shapes import text_of
from calve.definition.problems import Problems, did_you_mean

_RANGE = same("from", "to", "increment")
_HINT = "write {from: 0, to: 24, increment: 1}; to is exclusive, and from and increment may be left out"


def loop_params(fields: dict[str, Node], problems: Problems) -> Node | None:
    """Return the loop params of a job as a MAP, those of its ranges included; None if it has none."""
    given = [fields[key] for key in ("loop_params", "ranges") if key in fields]
    if not given:
        return None
    found: dict[str, Node] = {}
    if "loop_params" in fields:
        entries = _entries(fields["loop_params"], "loop_params", problems)
        found |= params(entries, problems)
    if "ranges" in fields:
        for name, node in _ranges(fields["ranges"], problems):
            if name in found:
                problems.add(node, "said_twice", f"the loop param {name} is given twice", at_key=True)
            found.setdefault(name, node)
    return given[0].made({"type": "MAP", "value": found})


def _ranges(node: Node, problems: Problems) -> Iterator[tuple[str, Node]]:
    for name, item in _entries(node, "ranges", problems).items():
        expression = _range(name, item, problems)
        if expression is not None:
            yield name, item.made({"type": "LONG_ARRAY", "expression": expression})


def _range(name: str, node: Node, problems: Problems) -> str | None:
    match node.value:
        case dict() as entries:
            keys = sort_keys(entries, _RANGE, problems)
            for key, item in keys.others.items():
                hint = did_you_mean(key, _RANGE)
                problems.add(item, "unknown_key", f"{key} says nothing of a range", hint=hint, at_key=True)
            bounds = keys.fields
        case list() as items if 2 <= len(items) <= 3:
            bounds = dict(zip(_RANGE, items, strict=False))
        case _:
            bounds = {}
    if "to" not in bounds:
        problems.add(node, "range_malformed", f"the range {name} does not say where it ends", hint=_HINT)
        return None
    written = {"from": "0", "increment": "1"}
    for key, bound in bounds.items():
        # A text is an expression of its own: to: day_count.
        if isinstance(bound.value, bool | float) or (text := text_of(bound)) is None:
            problems.add(bound, "range_malformed", f"{key} of the range {name} is not a whole number", hint=_HINT)
            return None
        written[key] = text
    return f"Util.intsBetween({written['from']}, {written['to']}, {written['increment']});"


def _entries(node: Node, name: str, problems: Problems) -> dict[str, Node]:
    if isinstance(node.value, dict):
        return node.value
    problems.add(node, "map_expected", f"{name} is a map of names to values")
    return {}
