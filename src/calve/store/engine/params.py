"""Params of runs and attempts as rows store them: definitions that are the same in each instance are stored once.

The definitions of a version's params, and of the default params that every run and attempt has, are the same in each
of its instances and many times longer than the results. A row contains the id of a set of definitions, a hash of their
content, and the results in the same order; 0 stands for the uuid of the row. For a literal, the row contains only the
value, whoever gave it. Any other definition that came with the instance stays in the row, as does everything in rows
that an older calve wrote.
"""

import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from sqlalchemy import Connection, select

from calve.definition.params import ParamSource
from calve.store.database import Transaction
from calve.store.tables import param_set

Stored = Mapping[str, Any]
"""A param as ``Parameter.as_stored`` returns it."""
Pattern = tuple[str, dict[str, Any] | None, bool]
"""A name, its definition unless the row has it, and whether the result is the value of the definition."""
_SHARED = frozenset({ParamSource.SYSTEM_DEFAULT, ParamSource.DEFINITION, ParamSource.TEMPLATE_SCHEMA})
"""Sources whose definitions are the same in every instance of a version."""
_FIELDS = frozenset({"name", "definition", "result", "evaluated_time", "note"})
_MOST = 10_000
_read: dict[str, tuple[Pattern, ...]] = {}
"""Sets of definitions by id, for all databases: the same id means the same content."""
_encode = json.JSONEncoder(separators=(",", ":")).encode


def write_params(transaction: Transaction, params: Mapping[str, Stored], uuid: str) -> str:
    """Return params as stored in the row with that uuid, and store the set of their definitions."""
    patterns = [_pattern(name, param) for name, param in params.items()]
    if all(definition is None for _, definition, _ in patterns):
        return _encode(params) if params else "{}"
    clock = _Clock()
    kept = [
        param if pattern[1] is None else _result(param, clock, uuid)
        for pattern, param in zip(patterns, params.values(), strict=True)
    ]
    return _encode([_keep(transaction, _encode(patterns)), clock.start, *kept])


def read_params(connection: Connection, text: str, uuid: str) -> dict[str, Any]:
    """Return the params that are stored in the row with that uuid."""
    if text == "{}":
        return {}
    kept = json.loads(text)
    if isinstance(kept, dict):
        return kept
    key, start, *results = kept
    clock = _Clock(start)
    return {
        pattern[0]: result if pattern[1] is None else _param(pattern, result or [uuid], clock)
        for pattern, result in zip(_patterns(connection, key), results, strict=True)
    }


class _Clock:
    """Encodes consecutive times as differences, most of which are 0."""

    def __init__(self, start: int | None = None) -> None:
        self.start = self._last = start

    def span(self, at: int) -> int:
        """Return how much later a time is than the previous one."""
        if self._last is None:
            self.start = self._last = at
        span, self._last = at - self._last, at
        return span

    def after(self, span: int) -> int:
        """Return the time that is this much later than the previous one."""
        self._last = (self._last or 0) + span
        return self._last


def _pattern(name: str, param: Stored) -> Pattern:
    if param.keys() != _FIELDS or param["name"] != name or param["evaluated_time"] is None or param["note"] is not None:
        return name, None, False
    definition, result = param["definition"], param["result"]
    if type(result) in {str, int, float, bool} and _is_same(definition.get("value"), result):
        return name, {key: value for key, value in definition.items() if key != "value"}, True
    is_shared = definition.get("meta", {}).get("source") in _SHARED
    return name, definition if is_shared else None, False


def _is_same(value: Any, result: Any) -> bool:
    return type(value) is type(result) and value == result  # 1 is neither 1.0 nor true


def _result(param: Stored, clock: _Clock, uuid: str) -> list[Any] | int:
    span = clock.span(param["evaluated_time"])
    if param["result"] == uuid and not span:
        return 0
    return [param["result"], span] if span else [param["result"]]


def _param(pattern: Pattern, result: list[Any], clock: _Clock) -> dict[str, Any]:
    name, definition, is_literal = pattern
    value, *span = result
    return {
        "name": name,
        "definition": {**definition, "value": value} if definition is not None and is_literal else definition,
        "result": value,
        "evaluated_time": clock.after(*span or [0]),
        "note": None,
    }


def _keep(transaction: Transaction, patterns: str) -> str:
    """Store a set unless it is known to be stored; return its id."""
    key = urlsafe_b64encode(blake2b(patterns.encode(), digest_size=12).digest()).decode()
    if not transaction.has_param_set(key):
        row = {"id": key, "definitions": patterns}
        transaction.connection.execute(transaction.insert(param_set).values(row).on_conflict_do_nothing())
        transaction.new_param_sets.add((transaction.server, key))
    return key


def _patterns(connection: Connection, key: str) -> tuple[Pattern, ...]:
    if key not in _read:
        if len(_read) >= _MOST:
            _read.clear()
        text = connection.execute(select(param_set.c.definitions).where(param_set.c.id == key)).scalar_one()
        _read[key] = tuple((name, definition, is_literal) for name, definition, is_literal in json.loads(text))
    return _read[key]
