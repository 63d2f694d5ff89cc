"""Text in UTF-16 code units, in which SEL measures, cuts and compares it; and values as text."""

import re
import struct

from calve.expressions.failures import too_deep, too_much_memory, unsupported
from calve.expressions.java import double_text
from calve.expressions.limits import OBJECT_SIZE, Run
from calve.expressions.values import (
    Array,
    Bool,
    DateTime,
    Days,
    Double,
    Formatter,
    Long,
    Map,
    Null,
    Property,
    Text,
    Uuid,
    Value,
    Void,
    Zone,
)

_SURROGATE = re.compile("[\ud800-\udfff]")
_LONE = re.compile("[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]")


def to_units(text: str) -> str:
    """Return ``text`` with every character beyond U+FFFF as its two surrogates."""
    if text.isascii() or max(text) <= "\uffff":
        return text
    data = text.encode("utf-16-le", "surrogatepass")
    return "".join(map(chr, struct.unpack(f"<{len(data) // 2}H", data)))


def from_units(units: str) -> str:
    """Return ordinary text: pairs of surrogates joined, and a ``?`` for each that has no partner."""
    if units.isascii() or not _SURROGATE.search(units):
        return units
    whole = _LONE.sub("?", units)
    return whole.encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def without_lone_surrogates(text: str) -> str:
    """Return ``text`` as it comes out of UTF-8: a surrogate that has no partner becomes a ``?``."""
    return text if text.isascii() else to_units(from_units(to_units(text)))


_DEPTH = 200
_TOLD = 10_000
_JAVA = "com.netflix.sel.type."
_ELEMENT_CLASSES = {
    "STRING_ARRAY": "SelString",
    "LONG_ARRAY": "SelLong",
    "DOUBLE_ARRAY": "SelDouble",
    "BOOLEAN_ARRAY": "SelBoolean",
}
_JAVA_ARRAYS = {"STRING_ARRAY": "[Ljava.lang.String;", "LONG_ARRAY": "[J", "DOUBLE_ARRAY": "[D", "BOOLEAN_ARRAY": "[Z"}
_CLASS_TEXTS = {
    "SelParams": "PRESET_PARAMS",
    "SelUtilFunc": "Preset SEL Utility Function Class",
    "SelMiscFunc": "SEL Miscellaneous Function Class",
    "SelJavaMath": "Java Math Class",
}


def without_content(value: Value) -> Exception:
    """Return the error of a value, such as a class, that has no content."""
    return unsupported(f"class {_JAVA}{value.java_class} does not support getInternalVal operation.")


def appended(run: Run, value: Value) -> str:
    """Return the content of a value as ``'' + value`` appends it.

    Raises:
        ExpressionFailed: it has no content.
    """
    match value:
        case Text():
            return "null" if value.val is None else value.val
        case Long():
            return str(value.val)
        case Double():
            return double_text(value.val)
        case Bool():
            return "true" if value.val else "false"
        case Null() | Void():
            return "null"
        case Array():
            # Java prints the identity hash of the array, an arbitrary number.
            return f"[L{_JAVA}{_ELEMENT_CLASSES[value.type]};@{_place(value)}"
        case Map() | DateTime() | Zone() | Property() | Days():
            return shown(run, value)
        case Formatter():
            return "null" if value.val is None else f"org.joda.time.format.DateTimeFormatter@{_place(value)}"
        case _:
            raise without_content(value)


def java_array(value: Array) -> str:
    """Return the text of a Java array: its type, and an arbitrary number."""
    return f"{_JAVA_ARRAYS[value.type]}@{_place(value)}"


def shown(run: Run, value: Value) -> str:
    """Return a value as text, within the memory that is left."""
    writer = _Writer(run, run.room)
    try:
        writer.write(value, 0)
    except _TooLongError:
        raise too_much_memory(run.limits.memory) from None
    return "".join(writer.parts)


def brief_text(run: Run, value: Value) -> str:
    """Return the beginning of a value as text, for a message."""
    writer = _Writer(run, _TOLD)
    try:
        writer.write(value, 0)
    except _TooLongError:
        writer.parts.append("…")
    return "".join(writer.parts)


def brief_arguments(run: Run, arguments: list[Value]) -> str:
    """Return the arguments of a call as text, for a message."""
    return f"[{', '.join(brief_text(run, argument) for argument in arguments)}]"


class _TooLongError(Exception):
    """The text does not fit."""


class _Writer:
    """Collects the parts of a text, and stops when they take more than ``room`` bytes."""

    def __init__(self, run: Run, room: int) -> None:
        self.parts: list[str] = []
        self._run = run
        self._room = room

    def write(self, value: Value, depth: int) -> None:
        if depth > _DEPTH:
            raise too_deep("the value")
        self._run.tick()
        # A map that occurs twice in another one is written twice, and so on, so empty ones must count too.
        self._room -= OBJECT_SIZE if isinstance(value, Array | Map) else 0
        match value:
            case Array():
                self._add("[")
                for index, element in enumerate(value.val):
                    self._add(", " if index else "")
                    self.write(element, depth + 1)
                self._add("]")
            case Map() if value.val is not None:
                self._add("{")
                for index, (key, element) in enumerate(value.val.items()):
                    self._add(", " if index else "")
                    self._add("null" if key.val is None else key.val)
                    self._add("=")
                    self.write(element, depth + 1)
                self._add("}")
            case _:
                self._add(_simple(value))

    def _add(self, part: str) -> None:
        self._room -= 2 * len(part)
        if self._room <= 0:
            raise _TooLongError
        self.parts.append(part)


def _simple(value: Value) -> str:  # noqa: C901 - one case for each type
    match value:
        case Text():
            return "null" if value.val is None else value.val
        case Long():
            return str(value.val)
        case Double():
            return double_text(value.val)
        case Bool():
            return "true" if value.val else "false"
        case Null():
            return "NULL"
        case Days():
            return "null" if value.val is None else f"P{value.val}D"
        case DateTime() | Map():
            return "null" if value.val is None else str(value.val)
        case Zone():
            return "null" if value.val is None else value.val.id
        case Property():
            return "null" if value.val is None else f"Property[{value.val.field}]"
        case Formatter() | Uuid():
            return f"{_JAVA}{value.java_class}@{_place(value)}"
        case _:
            return _CLASS_TEXTS[value.java_class]


def _place(value: Value) -> str:
    return f"{id(value) & 0xFFFFFFF | 0x10000000:x}"
