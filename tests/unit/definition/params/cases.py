"""What Maestro's own tests expect, and short ways to write params."""

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from calve.definition.model import Param, Params

_DATA = Path(__file__).parents[3] / "data" / "maestro"
_PARAM: TypeAdapter[Param] = TypeAdapter(Param)


def cases(file: str, **having: str) -> list[dict[str, Any]]:
    """Return the cases of a file that have these values."""
    lines = (_DATA / file).read_text(encoding="utf-8").splitlines()
    read = [json.loads(line) for line in lines if line]
    return [case for case in read if all(case.get(key) == value for key, value in having.items())]


def param(**fields: Any) -> Param:
    """Return a param of the given fields; it is a STRING unless ``type`` says otherwise."""
    return _PARAM.validate_python({"type": "STRING", **fields})


def params(**definitions: Any) -> Params:
    """Return params by name; a bare value is a literal whose type it tells."""
    return {name: _one(definition) for name, definition in definitions.items()}


def _one(definition: Any) -> Param:
    if isinstance(definition, dict):
        return param(**definition)
    if isinstance(definition, list):
        kind = {str: "STRING", bool: "BOOLEAN", int: "LONG", float: "DOUBLE"}[type(definition[0])]
        return param(type=f"{kind}_ARRAY", value=definition)
    kind = {str: "STRING", bool: "BOOLEAN", int: "LONG", float: "DOUBLE"}[type(definition)]
    return param(type=kind, value=definition)
