"""How a text becomes a document: YAML or JSON, read without trusting it. Pure."""

from calve.definition.reading.reader import read
from calve.definition.reading.scalars import Unfit, looks_boolean, resolve

__all__ = ["Unfit", "looks_boolean", "read", "resolve"]
