"""The conversion between dataclasses and rows: the type of a field and the column of its name define its form.

- An enum is stored as its value.
- A mapping, a tuple or a dataclass with a column is stored as JSON: a dataclass by its ``as_json`` and ``from_json``
  if it has them, else as an object with the fields that differ from their defaults.
- The fields of a dataclass that has no column are columns of the same table.
- Everything else is stored unchanged; column types such as ``UtcTime`` convert the rest.

A ``Form`` defines the exceptions. A field without a column is an error when the module is imported.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum
from itertools import repeat
from operator import attrgetter, methodcaller
from types import NoneType, UnionType
from typing import Any, Generic, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from sqlalchemy import JSON, BindParameter, Column, Row, Table, bindparam

Record = TypeVar("Record")
Convert = Callable[[Any], Any]

_encode = json.JSONEncoder(separators=(",", ":")).encode
_NO_OBJECT = "{}"
_NO_LIST = "[]"


def dumped(value: Mapping[str, Any]) -> str:
    """Return an object as JSON text; it escapes what PostgreSQL cannot store, such as NUL."""
    return _encode(value) if value else _NO_OBJECT


def loaded(text: str) -> dict[str, Any]:
    """Read what ``dumped`` wrote."""
    return {} if text == _NO_OBJECT else json.loads(text)


def plain(text: str) -> str:
    """Return a text that every database can store: programs print anything."""
    if text.isprintable():
        return text
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


@dataclass(frozen=True, slots=True)
class Form:
    """How a field is stored if its type does not define it: its column, and how to write and read the value."""

    column: str | None = None
    """None means the column of the field's name."""
    write: Convert | None = None
    read: Convert | None = None


@dataclass(frozen=True, slots=True)
class Spread:
    """How a field is stored in several columns: how to make it from their values, and how to write each of them.

    A part is an attribute of the field, or the empty text for the field itself.
    """

    make: Callable[..., Any]
    columns: Mapping[str, tuple[str, Convert | None]]


NOT_STORED = Form("")
"""A field that is not stored, and has its default when read: it must be the last of its class."""


@dataclass(frozen=True, slots=True)
class _Leaf:
    path: str
    column: str
    write: Convert | None
    read: Convert | None


@dataclass(frozen=True, slots=True)
class _Part:
    """The values of one field: the index of the first one in a row, and their number."""

    start: int
    size: int
    make: Callable[..., Any]
    optional: str | None = None
    """The path of a field that may be None: then all of its columns are NULL."""


class Codec(Generic[Record]):
    """Writes and reads the rows of one dataclass."""

    def __init__(
        self,
        kind: type[Record],
        table: Table,
        forms: Mapping[str, Form | Spread] | None = None,
        *,
        given: Collection[str] = (),
    ) -> None:
        """Compute once how each field is stored.

        ``forms`` are by the path of a field, such as ``target.uuid``. Fields that are ``given`` are neither written
        nor read here: the caller has their values.

        Raises:
            TypeError: a field has no column.
        """
        self.kind = kind
        self.table = table
        self._given = frozenset(given)
        self._leaves: list[_Leaf] = []
        self._parts: list[_Part] = []
        self._collect(kind, "", forms or {})
        # From the last to the first, inner before outer, so that the indexes of the others stay valid.
        self._parts.sort(key=lambda part: -part.start)
        self.columns: list[Column[Any]] = [table.c[leaf.column] for leaf in self._leaves]
        """The columns to select for ``from_values``."""
        self._read_row: Convert = attrgetter(*(leaf.column for leaf in self._leaves))
        self._readers = [(place, leaf.read) for place, leaf in enumerate(self._leaves) if leaf.read is not None]
        self._places = {leaf.path: place for place, leaf in enumerate(self._leaves)}
        is_generated = {leaf.path for leaf in self._leaves if table.c[leaf.column].autoincrement is True}
        self.to_row = self._writer([leaf for leaf in self._leaves if leaf.path not in self._given | is_generated])

    def from_row(self, row: Row[Any], **given: Any) -> Record:
        """Read a row that has the columns of the table."""
        return self.from_values(self._read_row(row), **given)

    def from_values(self, row: Sequence[Any], **given: Any) -> Record:
        """Read the values of ``columns``, in their order."""
        values = list(row)
        for place, read in self._readers:
            value = values[place]
            if value is not None:
                values[place] = read(value)
        for name, value in given.items():
            values[self._places[name]] = value
        for part in self._parts:
            end = part.start + part.size
            inner = values[part.start : end]
            is_none = part.optional is not None and inner[0] is None
            values[part.start : end] = [None if is_none else part.make(*inner)]
        return self.kind(*values)

    def written(self, path: str, value: Any) -> Any:
        """Return the value of a field as its column stores it."""
        write = self._leaves[self._places[path]].write
        return value if write is None or value is None else write(value)

    def update(self, *names: str) -> "Update[Record]":
        """Return a writer of some fields only, as parameters of an UPDATE."""
        leaves = [leaf for leaf in self._leaves if leaf.path.partition(".")[0] in names]
        written = [leaf for leaf in leaves if leaf.path not in self._given]
        parameters: dict[str, BindParameter[Any]] = {leaf.column: bindparam(f"new_{leaf.column}") for leaf in leaves}
        return Update(parameters, self._writer(written, "new_"))

    def _writer(self, leaves: Sequence[_Leaf], prefix: str = "") -> Callable[..., dict[str, Any]]:
        """Return a function that writes a value as a row; its caller passes the other columns by name."""
        optional = {part.optional: part for part in self._parts if part.optional is not None}
        flat = [leaf for leaf in leaves if leaf.path.rpartition(".")[0] not in optional]
        names = [prefix + leaf.column for leaf in flat]
        get: Convert = attrgetter(*(leaf.path for leaf in flat))
        writers = [(prefix + leaf.column, leaf.write) for leaf in flat if leaf.write is not None]
        inner = [
            (path, prefix + leaf.column, attrgetter(leaf.path))
            for path in optional
            for leaf in leaves
            if leaf.path.startswith(f"{path}.")
        ]

        def to_row(value: Record, **given: Any) -> dict[str, Any]:
            row = dict(zip(names, get(value), strict=True))
            for name, write in writers:
                found = row[name]
                if found is not None:
                    row[name] = write(found)
            for path, name, get_inner in inner:
                row[name] = None if getattr(value, path) is None else get_inner(value)
            row.update(given)
            return row

        return to_row

    def _collect(self, kind: Any, path: str, forms: Mapping[str, Form | Spread]) -> int:
        """Add the fields of a class; return how many it has."""
        hints = get_type_hints(kind)
        stored = [each.name for each in fields(kind) if forms.get(path + each.name) is not NOT_STORED]
        for name in stored:
            self._add(path + name, name, hints[name], forms)
        return len(stored)

    def _add(self, path: str, name: str, hint: Any, forms: Mapping[str, Form | Spread]) -> None:
        form = forms.get(path, Form())
        start = len(self._leaves)
        if isinstance(form, Spread):
            for part, (column, write) in form.columns.items():
                self._leaves.append(_Leaf(f"{path}.{part}" if part else path, column, write, None))
            self._parts.append(_Part(start, len(form.columns), form.make))
            return
        column = form.column or name
        if column in self.table.c:
            write, read = form.write, form.read
            if write is None and read is None and path not in self._given:
                write, read = _conversion(hint, self.table.c[column])
            self._leaves.append(_Leaf(path, column, write, read))
            return
        kind = _without_none(hint)
        if not is_dataclass(kind):
            raise TypeError(f"Table {self.table.name} has no column for {self.kind.__name__}.{path}.")
        size = self._collect(kind, f"{path}.", forms)
        self._parts.append(_Part(start, size, cast("type[Any]", kind), None if kind is hint else path))


@dataclass(frozen=True, slots=True)
class Update(Generic[Record]):
    """Some fields of a record, for an UPDATE."""

    parameters: dict[str, BindParameter[Any]]
    """By column: the arguments of ``values``."""
    to_row: Callable[..., dict[str, Any]]
    """Writes a record as these parameters."""


def _conversion(hint: Any, column: Column[Any]) -> tuple[Convert | None, Convert | None]:
    """Return how to write and read a field of a type in a column; None if it is stored unchanged."""
    kind = _without_none(hint)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return attrgetter("value"), {each.value: each for each in kind}.__getitem__
    if not (is_dataclass(kind) or get_origin(kind) in {tuple, Mapping, dict}):
        return None, None
    write, read = _to_json(kind), _from_json(kind)
    if isinstance(column.type, JSON):
        return write, read
    empty = _NO_LIST if get_origin(kind) is tuple else _NO_OBJECT

    def write_text(value: Any) -> str:
        raw = value if write is None else write(value)
        return _encode(raw) if raw else empty

    def read_text(text: str) -> Any:
        raw = {} if text == _NO_OBJECT else () if text == _NO_LIST else json.loads(text)
        return raw if read is None else read(raw)

    return write_text, read_text


def _to_json(hint: Any) -> Convert | None:
    """Return a function that turns a value of a type into plain JSON; None if it is plain JSON already."""
    kind, parts = get_origin(hint), get_args(hint)
    if is_dataclass(hint):
        return methodcaller("as_json") if hasattr(hint, "as_json") else _object_writer(hint)
    if kind is tuple:
        writers = [_to_json(part) for part in parts if part is not ...]
        if not any(writers):
            return None
        return lambda values: list(map(_converted, _each(writers, parts), values))
    if kind in {Mapping, dict}:
        write = _to_json(parts[1])
        return None if write is None else lambda values: {key: write(value) for key, value in values.items()}
    return None


def _from_json(hint: Any) -> Convert | None:
    """Return a function that turns plain JSON into a value of a type; None if it is one already."""
    kind, parts = get_origin(hint), get_args(hint)
    if is_dataclass(hint):
        return hint.from_json if hasattr(hint, "from_json") else _object_reader(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint
    if kind is tuple:
        readers = [_from_json(part) for part in parts if part is not ...]
        if not any(readers):
            return tuple
        return lambda values: tuple(map(_converted, _each(readers, parts), values))
    if kind in {Mapping, dict}:
        read = _from_json(parts[1])
        return None if read is None else lambda values: {key: read(value) for key, value in values.items()}
    return None


def _each(converts: Sequence[Convert | None], parts: Sequence[Any]) -> Iterable[Convert | None]:
    """Return a conversion for each item of a tuple: the same for all if the type ends with an ellipsis."""
    return repeat(converts[0]) if parts[-1] is ... else converts


def _converted(convert: Convert | None, value: Any) -> Any:
    return value if convert is None or value is None else convert(value)


def _object_writer(kind: Any) -> Convert:
    hints = get_type_hints(kind)
    plan = [(each.name, _default(each), _to_json(_without_none(hints[each.name]))) for each in fields(kind)]

    def write(value: Any) -> dict[str, Any]:
        found = ((name, default, convert, getattr(value, name)) for name, default, convert in plan)
        return {name: _converted(convert, each) for name, default, convert, each in found if each != default}

    return write


def _object_reader(kind: Any) -> Convert:
    hints = get_type_hints(kind)
    readers = {each.name: _from_json(_without_none(hints[each.name])) for each in fields(kind)}

    def read(raw: Mapping[str, Any]) -> Any:
        return kind(**{name: _converted(readers[name], value) for name, value in raw.items()})

    return read


def _default(each: Field[Any]) -> Any:
    """Return the default of a field; a field without one gets a value that equals nothing."""
    if each.default_factory is not MISSING:
        return each.default_factory()
    return each.default


def _without_none(hint: Any) -> Any:
    """Return the type of a field that may be None."""
    if get_origin(hint) not in {Union, UnionType}:
        return hint
    others = [part for part in get_args(hint) if part is not NoneType]
    return others[0] if len(others) == 1 else hint
