"""How dataclasses become rows, and rows dataclasses."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pytest
from sqlalchemy import JSON, Boolean, Column, Integer, MetaData, Table, Text, create_engine, insert, select, update

from calve.store import access, alerts
from calve.store.captures import deliveries, rows as captures
from calve.store.codec import NOT_STORED, Codec, Form, Spread, dumped, loaded, plain
from calve.store.engine import rows as engine
from calve.store.tables import metadata


class Colour(StrEnum):
    """An enum."""

    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True)
class Point:
    """A value that is kept in columns of its own."""

    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Note:
    """A value that is kept as JSON."""

    text: str
    colour: Colour = Colour.RED
    tags: tuple[str, ...] = ()
    at: Point | None = None


@dataclass(frozen=True, slots=True)
class Version:
    """A value that knows its own JSON."""

    number: int

    def as_json(self) -> dict[str, Any]:
        """Return the version as plain JSON."""
        return {"v": self.number}

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> "Version":
        """Read what ``as_json`` gave."""
        return cls(raw["v"])


@dataclass(frozen=True, slots=True)
class Thing:
    """Something with one field of every kind."""

    thing_id: str
    colour: Colour
    place: Point
    other: Point | None = None
    last: Colour | None = None
    is_old: bool = False
    note: Note | None = None
    pairs: tuple[tuple[Note, str], ...] = ()
    shades: Mapping[str, Colour] = field(default_factory=dict)
    notes: Mapping[str, Note] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    version: Version = field(default_factory=lambda: Version(0))
    name: str = ""
    length: int = 0
    seq: int = 0
    scratch: int = 7


schema = MetaData()
thing = Table(
    "thing",
    schema,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("id", Text, nullable=False),
    Column("colour", Text, nullable=False),
    *(Column(name, Integer) for name in ("x", "y", "other_x", "other_y")),
    Column("last", Text),
    Column("is_old", Boolean, nullable=False),
    Column("note", Text),
    Column("pairs", JSON, nullable=False),
    *(Column(name, Text, nullable=False) for name in ("shades", "notes", "data", "version", "name")),
    Column("length", Integer, nullable=False),
)
CODEC = Codec(
    Thing,
    thing,
    {
        "thing_id": Form("id"),
        "other.x": Form("other_x"),
        "other.y": Form("other_y"),
        "name": Form(write=str.upper, read=str.lower),
        "scratch": NOT_STORED,
    },
    given=["length"],
)
SMALL = Thing("a", Colour.BLUE, Point(1, 2), length=5)
WHOLE = Thing(
    "b",
    Colour.RED,
    Point(3, 4),
    other=Point(5, 6),
    last=Colour.BLUE,
    is_old=True,
    note=Note("hi", Colour.BLUE, ("t",), Point(7, 8)),
    pairs=((Note("n"), "p"), (Note("m", at=Point(0, 0)), "q")),
    shades={"k": Colour.RED},
    notes={"n": Note("x", tags=("y",))},
    data={"any": [1, {"thing": None}]},
    version=Version(3),
    name="shout",
    length=5,
)


@pytest.mark.parametrize("value", [SMALL, WHOLE])
def test_what_was_written_is_read(value: Thing) -> None:
    """By the names of columns, and by their order; the database gives the number, and the caller what is given."""
    with create_engine("sqlite://").begin() as connection:
        schema.create_all(connection)
        connection.execute(insert(thing), CODEC.to_row(value, length=5))
        by_name = connection.execute(select(thing)).one()
        by_order = connection.execute(select(*CODEC.columns)).one()
    assert CODEC.from_row(by_name, seq=0) == CODEC.from_values(by_order, seq=0) == value
    assert CODEC.from_row(by_name, length=1).length == 1
    assert by_name.seq == 1
    assert by_name.name == value.name.upper()


def test_a_dataclass_keeps_what_differs_from_its_defaults() -> None:
    """A row is as short as it can be, and a new field with a default can be read from an old one."""
    row = CODEC.to_row(WHOLE, length=5)
    assert row["pairs"] == [[{"text": "n"}, "p"], [{"text": "m", "at": {"x": 0, "y": 0}}, "q"]]
    assert row["version"] == '{"v":3}'
    assert "seq" not in row
    assert CODEC.written("note", Note("hi")) == '{"text":"hi"}'
    assert CODEC.written("note", None) is None
    assert CODEC.written("is_old", True) is True


def test_some_fields_are_updated() -> None:
    """Those that are named, into parameters that no condition of the statement uses."""
    changes = CODEC.update("colour", "place", "name", "length")
    with create_engine("sqlite://").begin() as connection:
        schema.create_all(connection)
        connection.execute(insert(thing), CODEC.to_row(SMALL, length=5))
        statement = update(thing).where(thing.c.id == "a").values(**changes.parameters)
        connection.execute(statement, changes.to_row(WHOLE, new_length=9))
        found = CODEC.from_row(connection.execute(select(thing)).one(), seq=0)
    assert found == Thing("a", Colour.RED, Point(3, 4), name="shout", length=9)


def test_a_field_is_spread_over_columns() -> None:
    """In any way that its parts can be told, and put together again."""

    @dataclass(frozen=True, slots=True)
    class Named:
        name: str
        at: tuple[int, int]

    table = Table("named", MetaData(), *(Column(name, Text) for name in ("name", "x", "y")))
    spread = Spread(lambda *at: at, {"": ("x", lambda at: at[0])} | {"__class__": ("y", lambda _: 2)})
    codec = Codec(Named, table, {"at": spread})
    assert codec.to_row(Named("n", (1, 2))) == {"name": "n", "x": 1, "y": 2}
    assert codec.from_values(("n", 1, 2)) == Named("n", (1, 2))


def test_a_field_without_a_column_is_an_error() -> None:
    """It is found when the codec is made, not when the first row is written."""
    table = Table("short", MetaData(), *(Column(name, Text) for name in ("text", "colour", "tags")))
    with pytest.raises(TypeError, match=r"Table short has no column for Note\.at\.x\."):
        Codec(Note, table)


def test_texts() -> None:
    """Objects are kept as short JSON; what no database can hold is replaced."""
    assert (dumped({}), dumped({"a": "\0"})) == ("{}", '{"a":"\\u0000"}')
    assert (loaded("{}"), loaded('{"a":1}')) == ({}, {"a": 1})
    assert plain("a\0b\ud800\n") == "a\ufffdb?\n"


EXTRA = {
    "alert_message": {"id"},
    "delivery_branch": {"staged_at"},
    "event": {"root_uuid"},
    "log_chunk": {"size"},
    "task": {"key", "generation", "wakes", "tries", "due_at", "priority"},
    "worker": {"is_dead"},
    "workflow": {"last_instance"},
}
"""Required columns that no field has: those who write a row give them by name."""


def test_every_required_column_has_a_field() -> None:
    """A new column of a table needs a field in its dataclass, or someone who gives it."""
    modules = (access, alerts, captures, deliveries, engine)
    codecs = [each for module in modules for each in vars(module).values() if isinstance(each, Codec)]
    assert {codec.table.name for codec in codecs} <= metadata.tables.keys()
    for codec in codecs:
        required = {column.name for column in codec.table.c if not column.nullable and column.autoincrement is not True}
        assert required - {column.name for column in codec.columns} <= EXTRA.get(codec.table.name, set()), codec.kind
