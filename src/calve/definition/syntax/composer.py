"""Build a document from the events of a parser, within limits, so that a hostile text is refused early."""

import json
import re
from dataclasses import dataclass, field
from math import isfinite
from typing import cast

from calve.definition.document import Mark, Node
from calve.definition.problems import Problems

_WORDS: dict[str, bool | None] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_BOOLEANS_OF_YAML_1_1 = frozenset({"yes", "no", "on", "off"})
_INTEGER = re.compile(r"[-+]?[0-9]+")
_OCTAL_OR_HEXADECIMAL = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_MAY_BE_A_NUMBER = frozenset("-+.0123456789")

_LONG = range(-(2**63), 2**63)
_LONGEST_NUMBER = 400
"""Characters; every 64-bit number and every float can be written with fewer."""


@dataclass(frozen=True, slots=True)
class Unsupported:
    """Why a value is refused."""

    code: str
    message: str
    hint: str


def resolve(text: str) -> bool | int | float | str | Unsupported | None:
    """Return the value of a scalar without quotes, by the core schema of YAML 1.2."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _MAY_BE_A_NUMBER:
        return text
    if _INTEGER.fullmatch(text):
        return _number(text, 10)
    if _OCTAL_OR_HEXADECIMAL.fullmatch(text):
        return _number(text, 0)
    if _FLOAT.fullmatch(text):
        return _number(text, None)
    if _NOT_FINITE.fullmatch(text):
        return Unsupported("not_finite", f"{text} cannot be stored as a number", "quote it if you mean text")
    return text


def looks_boolean(text: str) -> bool:
    """Tell whether YAML 1.1 reads this text as true or false."""
    return text.lower() in _BOOLEANS_OF_YAML_1_1


def _number(text: str, base: int | None) -> int | float | Unsupported:
    # The length comes first, because converting digits takes more than linear time.
    if len(text) > _LONGEST_NUMBER:
        return _unfit(f"the number {text[:20]}… has {len(text)} characters, which is too many")
    number = float(text) if base is None else int(text, base)
    fits = isfinite(number) if isinstance(number, float) else number in _LONG
    return number if fits else _unfit(f"the number {text} does not fit in 64 bits")


def _unfit(message: str) -> Unsupported:
    return Unsupported("number_too_large", message, "quote it if you mean text")


MAX_DEPTH = 50
MAX_NODES = 100_000
MAX_SCALAR = 250_000
MAX_KEY = 1024
"""Characters; YAML allows no longer key on one line."""
MAX_PATH = 1000
"""Characters; every node stores its path, so long paths of many nodes would fill the memory."""
MAX_PROBLEMS = 100

_BETWEEN = 2
"""Bytes between two values in JSON: a comma or a colon, and a space."""
_QUOTES = 2
_COUNTED = 100
"""The maximum number of bytes of each text that count while reading. The number of values is what costs time. A
document that is too large because of a few long texts is reported later, with its whole size."""
_KEY_SHOWN = 100
_CLEAR_KEY = re.compile(r"[\w-]+")
_NEVER_TEXT = re.compile("[\0\ud800-\udfff]")
_LOST = ""


class Halted(Exception):
    """The text cannot be read any further."""

    def __init__(
        self, code: str, message: str, mark: Mark, *, hint: str = "", path: str = "", reached: Mark | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint
        self.place = Node(None, mark, path)
        self.reached = reached or mark

    def add_to(self, problems: Problems) -> None:
        """Report it as a problem."""
        problems.add(self.place, self.code, str(self), hint=self.hint)


@dataclass(slots=True)
class _Open:
    """A list or a mapping that has not ended yet."""

    items: list[Node] | dict[str, Node]
    mark: Mark
    path: str
    key_mark: Mark | None
    key: str | None = None
    """The key that waits for its value."""
    key_at: Mark | None = None
    is_lost: bool = False
    """Whether the next value is dropped, because its key was refused."""


@dataclass(slots=True)
class Composer:
    """Builds the tree from events."""

    problems: Problems
    most: int | None = None
    """The most bytes that the tree may have as JSON; a larger text is not read to its end."""
    root: Node | None = None
    _open: list[_Open] = field(default_factory=list)
    _nodes: int = 0
    _size: int = 0
    """A lower bound of the bytes of the tree as JSON."""
    _refused: int = 0
    _warned: int = 0

    def scalar(self, text: str, mark: Mark, *, is_plain: bool) -> None:
        """Add a scalar: a key if the open mapping expects one, otherwise a value."""
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
            hint = "quote it if you mean text"
            self.refuse(mark, Unsupported("key_not_text", "a list or a mapping cannot be a key", hint))
        path = self._path()
        if len(path) > MAX_PATH:
            raise Halted("path_too_long", "the keys that lead here are too long", mark)
        self._open.append(_Open(items, mark, path, self._key_mark()))

    def end(self) -> None:
        """End the innermost list or mapping."""
        done = self._open.pop()
        if self._waits_for_key():
            # It was a key, which begin() has refused.
            self._open[-1].key = _LOST
            return
        self._place(Node(done.items, done.mark, done.path, done.key_mark))

    def alias(self, name: str, mark: Mark) -> None:
        """Refuse an alias."""
        self._count(mark)
        self.refuse(mark, Unsupported("alias", f"the alias *{name} is not supported", "write the value out"))
        if self._waits_for_key():
            self._open[-1].key = _LOST
            self._open[-1].is_lost = True
            return
        self._place(Node(None, mark, self._path(), self._key_mark()))

    def refuse(self, mark: Mark, unfit: Unsupported) -> None:
        """Report a problem at a position, and continue unless there are too many."""
        self.problems.add(Node(None, mark, self._path()), unfit.code, unfit.message, hint=unfit.hint)
        self._refused += 1
        if self._refused == MAX_PROBLEMS:
            raise Halted("too_many_problems", "there are too many problems; the rest is not read", mark)

    def _count(self, mark: Mark, length: int = 0) -> None:
        self._nodes += 1
        self._size += min(length, _COUNTED) + _BETWEEN
        if self.most is not None and self._size > self.most:
            message = f"the definition has more than {self.most:,} bytes, as JSON; the rest is not read"
            raise Halted("too_large", message, mark, path=self._path(), hint="keep long texts in files, or split it")
        if self._nodes > MAX_NODES:
            raise Halted("too_many_values", f"there are more than {MAX_NODES} values", mark)

    def _waits_for_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1].items, dict) and self._open[-1].key is None

    def _take_key(self, text: str, mark: Mark, *, is_plain: bool) -> None:
        inner = self._open[-1]
        unfit = _unfit_key(text)
        # A key that cannot be shown is not part of a path either.
        inner.key, inner.key_at = (_LOST if unfit else text), mark
        if unfit := unfit or _unfit_entry(text, cast("dict[str, Node]", inner.items), is_plain=is_plain):
            inner.is_lost = True
            self.refuse(mark, unfit)

    def _value(self, text: str, mark: Mark, *, is_plain: bool) -> bool | int | float | str | None:
        value = resolve(text) if is_plain else text
        if isinstance(value, str):
            value = _unfit_text(text) or value
        if isinstance(value, Unsupported):
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
    """Return the path of a key's value: ``a.b``, or ``a["b c"]`` if the key is not a plain word."""
    if len(key) <= _KEY_SHOWN and _CLEAR_KEY.fullmatch(key):
        return f"{path}.{key}" if path else key
    return f"{path}[{_shown(key)}]"


def _shown(key: str) -> str:
    return json.dumps(key if len(key) <= _KEY_SHOWN else f"{key[:_KEY_SHOWN]}…", ensure_ascii=False)


def _unfit_text(text: str) -> Unsupported | None:
    if len(text) > MAX_SCALAR:
        return Unsupported("text_too_long", f"this text has more than {MAX_SCALAR} characters", "keep it in a file")
    if not text.isprintable() and (found := _NEVER_TEXT.search(text)):
        return Unsupported("character", f"\\u{ord(found[0]):04x} is not allowed in a text", "remove it")
    return None


def _unfit_key(text: str) -> Unsupported | None:
    if len(text) > MAX_KEY:
        return Unsupported("key_too_long", f"this key has more than {MAX_KEY} characters", "")
    return _unfit_text(text)


def _unfit_entry(text: str, entries: dict[str, Node], *, is_plain: bool) -> Unsupported | None:
    if is_plain and text == "<<":
        return Unsupported("merge_key", "the merge key << is not supported", "write its keys out")
    if text in entries:
        first = entries[text].key_mark or entries[text].mark
        where = f"line {first.line}, column {first.column}"
        return Unsupported("duplicate_key", f"the key {_shown(text)} is already used at {where}", "keep one of them")
    return None
