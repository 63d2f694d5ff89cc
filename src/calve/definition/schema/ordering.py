"""How jobs follow one another."""

from calve.definition.schema.shapes import ONE_OR_MORE, TEXT, any_case, ref, said
from calve.definition.step_types.json_schema import Schema


def ordering() -> dict[str, Schema]:
    """Return the spellings of edges, by name."""
    return {
        "dag": _dag(),
        "chain": said("Jobs that follow one another: a -> b -> c.", {"type": "string", "pattern": "->"}),
        "transition": _transition(),
    }


def _dag() -> Schema:
    order = "|".join(any_case(word) for word in ("sequential", "parallel"))
    by_job = {"type": "object", "additionalProperties": ref("transition")}
    return {
        "description": "How the jobs follow one another: sequential, parallel, chains, or a map of jobs.",
        "anyOf": [
            {"enum": ["sequential", "parallel"]},
            {"type": "string", "pattern": rf"^\s*({order})\s*$"},
            ref("chain"),
            {"type": "array", "items": {"anyOf": [TEXT, by_job]}},
            by_job,
        ],
    }


def _transition() -> Schema:
    branches = {
        "type": "object",
        "patternProperties": {
            rf"^\s*{any_case('IF')}\s": ONE_OR_MORE,
            rf"^\s*{any_case('OTHERWISE')}\s*$": ONE_OR_MORE,
        },
        "additionalProperties": False,
    }
    one = {"anyOf": [TEXT, {"type": "null"}, branches]}
    return {
        "description": "What comes next: a job, IF <condition> THEN a job, OTHERWISE a job.",
        "anyOf": [*one["anyOf"], {"type": "array", "items": one}],
    }
