"""How events become nodes: one at a time, within limits, so that a hostile text is refused before it costs anything."""

import json
import re
from dataclasses import dataclass, field
from typing import cast

from calve.definition.document import Mark, Node
from calve.definition.problems import Problems
from calve.definition.reading.scalars import Unfit, looks_boolean, resolve

MAX_DEPTH = 50
MAX_NODES = 100_000
MAX_SCALAR = 250_000
MAX_KEY = 1024
"""Characters; YAML itself allows no longer key on a line."""
MAX_PATH = 1000
"""Characters; every node holds its path, so long paths times many nodes would fill the memory."""
MAX_PROBLEMS = 100

_BETWEEN = 2
"""Bytes that JSON has beside each value: a comma or a colon, and a space."""
_QUOTES = 2
_COUNTED = 100
"""Of a longer text, so many bytes are counted while it is read: what costs time is the number of values, and what is
too large by few long texts is told with its whole size when all of it has been read."""
_KEY_SHOWN = 100
_CLEAR_KEY = re.compile(r"[\w-]+")
_NEVER_TEXT = re.compile("[\0\ud800-\udfff]")
_LOST = ""


class Halted(Exception):
    """The reading cannot go on."""

    def __init__(
        self, code: str, message: str, mark: Mark, *, hint: str = "", path: str = "", reached: Mark | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint
        self.place = Node(None, mark, path)
        self.reached = reached or mark

    def add_to(self, problems: Problems) -> None:
        """Note it as a problem."""
        problems.add(self.place, self.code, str(self), hint=self.hint)


@dataclass(slots=True)
class _Open:
    """A list or a mapping that has begun and not ended."""

    items: list[Node] | dict[str, Node]
    mark: Mark
    path: str
    key_mark: Mark | None
    key: str | None = None
    """The key that waits for its value."""
    key_at: Mark | None = None
    is_lost: bool = False
    """Whether the value that comes next has no place."""


@dataclass(slots=True)
class Composer:
    """The tree as far as events have come."""

    problems: Problems
    most: int | None = None
    """How many bytes the tree may have as JSON; what has more is not read to its end."""
    root: Node | None = None
    _open: list[_Open] = field(default_factory=list)
    _nodes: int = 0
    _size: int = 0
    """How many bytes the tree has as JSON at least: its texts, and something between them."""
    _refused: int = 0
    _warned: int = 0

    def scalar(self, text: str, mark: Mark, *, is_plain: bool) -> None:
        """Take a scalar: a key if the mapping that is open waits for one, otherwise a value."""
        if self._waits_for_key():
            self._count(mark, len(text) + _QUOTES)
            self._take_key(text, mark, is_plain=is_plain)
            return
        value = self._value(text, mark, is_plain=is_plain)
        self._count(mark, len(value) + _QUOTES if isinstance(value, str) else 1)
        self._place(Node(value, mark, self._path(), self._key_mark()))

    def begin(self, items: list[Node] | dict[str, Node], mark: Mark) -> None:
        """Begin a list or a mapping; ``items`` is the empty one."""
        self._count(mark)
        if len(self._open) == MAX_DEPTH:
            raise Halted("too_deep", f"this is nested more than {MAX_DEPTH} deep", mark, path=self._path())
        if self._waits_for_key():
            self._open[-1].is_lost = True
            hint = "quote it if text is meant"
            self.refuse(mark, Unfit("key_not_text", "a list or a mapping cannot be a key", hint))
        path = self._path()
        if len(path) > MAX_PATH:
            raise Halted("path_too_long", "the keys that lead here are too long", mark)
        self._open.append(_Open(items, mark, path, self._key_mark()))

    def end(self) -> None:
        """End the list or the mapping that began last."""
        done = self._open.pop()
        if self._waits_for_key():
            # It was a key, which begin has refused.
            self._open[-1].key = _LOST
            return
        self._place(Node(done.items, done.mark, done.path, done.key_mark))

    def alias(self, name: str, mark: Mark) -> None:
        """Refuse a value that is told by reference."""
        self._count(mark)
        self.refuse(mark, Unfit("alias", f"*{name} refers to a value elsewhere", "write the value out"))
        if self._waits_for_key():
            self._open[-1].key = _LOST
            self._open[-1].is_lost = True
            return
        self._place(Node(None, mark, self._path(), self._key_mark()))

    def refuse(self, mark: Mark, unfit: Unfit) -> None:
        """Note a problem at a place, and go on unless there are too many."""
        self.problems.add(Node(None, mark, self._path()), unfit.code, unfit.message, hint=unfit.hint)
        self._refused += 1
        if self._refused == MAX_PROBLEMS:
            raise Halted("too_many_problems", "there are too many problems; the rest is not read", mark)

    def _count(self, mark: Mark, length: int = 0) -> None:
        self._nodes += 1
        self._size += min(length, _COUNTED) + _BETWEEN
        if self.most is not None and self._size > self.most:
            message = f"the definition has more than {self.most:,} bytes, as JSON; it is not read any further"
            raise Halted("too_large", message, mark, path=self._path(), hint="keep long texts in files, or split it")
        if self._nodes > MAX_NODES:
            raise Halted("too_many_values", f"there are more than {MAX_NODES} values", mark)

    def _waits_for_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1].items, dict) and self._open[-1].key is None

    def _take_key(self, text: str, mark: Mark, *, is_plain: bool) -> None:
        inner = self._open[-1]
        unfit = _unfit_key(text)
        # A key that cannot be shown stands in no path either.
        inner.key, inner.key_at = (_LOST if unfit else text), mark
        if unfit := unfit or _unfit_entry(text, cast("dict[str, Node]", inner.items), is_plain=is_plain):
            inner.is_lost = True
            self.refuse(mark, unfit)

    def _value(self, text: str, mark: Mark, *, is_plain: bool) -> bool | int | float | str | None:
        value = resolve(text) if is_plain else text
        if isinstance(value, str):
            value = _unfit_text(text) or value
        if isinstance(value, Unfit):
            self.refuse(mark, value)
            return None
        if is_plain and self._warned < MAX_PROBLEMS and looks_boolean(text):
            self._warned += 1
            hint = "write true or false, or quote it"
            node = Node(None, mark, self._path())
            self.problems.warn(node, "looks_boolean", f"{text} is text, not a boolean", hint=hint)
        return value

    def _path(self) -> str:
        if not self._open:
            return ""
        inner = self._open[-1]
        if isinstance(inner.items, list):
            return f"{inner.path}[{len(inner.items)}]"
        return inner.path if inner.key is None else path_of(inner.path, inner.key)

    def _key_mark(self) -> Mark | None:
        return self._open[-1].key_at if self._open else None

    def _place(self, node: Node) -> None:
        if not self._open:
            self.root = node
            return
        inner = self._open[-1]
        if isinstance(inner.items, list):
            inner.items.append(node)
            return
        if inner.key is not None and not inner.is_lost:
            inner.items[inner.key] = node
        inner.key, inner.key_at, inner.is_lost = None, None, False


def path_of(path: str, key: str) -> str:
    """Return the path of what a key leads to: ``a.b``, or ``a["b c"]`` if the key is not one clear word."""
    if len(key) <= _KEY_SHOWN and _CLEAR_KEY.fullmatch(key):
        return f"{path}.{key}" if path else key
    return f"{path}[{_shown(key)}]"


def _shown(key: str) -> str:
    return json.dumps(key if len(key) <= _KEY_SHOWN else f"{key[:_KEY_SHOWN]}…", ensure_ascii=False)


def _unfit_text(text: str) -> Unfit | None:
    if len(text) > MAX_SCALAR:
        return Unfit("text_too_long", f"this text has more than {MAX_SCALAR} characters", "keep it in a file")
    if not text.isprintable() and (found := _NEVER_TEXT.search(text)):
        return Unfit("character", f"\\u{ord(found[0]):04x} is no character of a text", "leave it out")
    return None


def _unfit_key(text: str) -> Unfit | None:
    if len(text) > MAX_KEY:
        return Unfit("key_too_long", f"this key has more than {MAX_KEY} characters", "")
    return _unfit_text(text)


def _unfit_entry(text: str, entries: dict[str, Node], *, is_plain: bool) -> Unfit | None:
    if is_plain and text == "<<":
        return Unfit("merge_key", "<< merges another mapping into this one", "write its keys out")
    if text in entries:
        first = entries[text].key_mark or entries[text].mark
        where = f"line {first.line}, column {first.column}"
        return Unfit("duplicate_key", f"the key {_shown(text)} stands here and at {where}", "keep one of them")
    return None
