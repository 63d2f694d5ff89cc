"""Small JSON Schemas that the others consist of."""

from enum import StrEnum
from typing import Any

from calve.definition.step_types import Schema

TEXT: Schema = {"type": "string"}
TRUTH: Schema = {"type": "boolean"}
NAME: Schema = {"type": ["string", "number"]}
"""An id or a version, which may look like a number."""
DURATION: Schema = {"type": ["integer", "string"]}
TEXTS: Schema = {"type": "array", "items": TEXT}
ONE_OR_MORE: Schema = {"anyOf": [TEXT, TEXTS]}
ANYTHING: Schema = {}


def closed(properties: dict[str, Schema], *required: str) -> Schema:
    """Return an object that has only these keys."""
    closed: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**closed, "required": list(required)} if required else closed


def ref(name: str) -> Schema:
    """Return a reference to one of the schema's own definitions."""
    return {"$ref": f"#/$defs/{name}"}


def described(description: str, shape: Schema, **more: Any) -> Schema:
    """Return a schema with a description, which editors show."""
    return {**shape, "description": description, **more}


def count(most: int | None = None) -> Schema:
    """Return a whole number of at least 1."""
    return {"type": "integer", "minimum": 1, **({"maximum": most} if most else {})}


def words(words: type[StrEnum]) -> Schema:
    """Return the values of an enum, in upper and lower case."""
    return {"enum": [spelt for word in words for spelt in dict.fromkeys((word.value, word.value.lower()))]}


def any_case(word: str) -> str:
    """Return a pattern for a word in any case, as JSON Schema has no flag for it."""
    return "".join(f"[{letter.lower()}{letter.upper()}]" for letter in word)
