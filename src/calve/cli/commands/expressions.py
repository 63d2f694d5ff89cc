"""``calve eval``: one expression, or a stream of them."""

import json
import math
import sys
from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click

from calve.cli.options import params_option
from calve.cli.output import print_json, shown
from calve.cli.state import State, json_option
from calve.errors import ExpressionError, ParamError, RequestInvalid

if TYPE_CHECKING:
    from calve.expressions import Limits, Result

_KEYS = {"expr", "params", "limits", "level", "param_type"}


@click.command(name="eval")
@click.argument("expression", required=False)
@params_option
@click.option("--jsonl", is_flag=True, help="Read {expr, params, limits} lines from standard input, and answer each.")
@json_option
@click.pass_obj
def evaluate(state: State, expression: str | None, params: Mapping[str, Any], *, jsonl: bool) -> None:
    r"""Evaluate a SEL expression.

    \b
      calve eval '1 + 1'
      calve eval 'Util.dateIntsBetween(from, from + 3, 1)' -p from=20210101

    With --jsonl, each line of standard input is a JSON object with expr and, optionally, params and limits
    (stack, loop, array, length, visit, memory, seconds). Each is answered by a line with type and value, or
    with error. A line with limits, or with level "sel", is read as the language itself does: statements end
    with a semicolon, and a result may be of any type.
    """
    if jsonl:
        if expression is not None or params:
            raise click.UsageError("With --jsonl, expressions and params are read from standard input.")
        for line in sys.stdin:
            if line.strip():
                click.echo(json.dumps(_answer(line)))
        return
    if expression is None:
        raise click.UsageError("Give an expression, or --jsonl.")
    from calve.expressions import complete, evaluate, lint, parse

    program = parse(complete(expression))
    for warning in lint(program):
        click.echo(f"{warning.line}:{warning.column}: {warning.message}", err=True)
    result = evaluate(program, params)
    if state.json:
        print_json(_as_json(result))
    else:
        click.echo(f"{result.type.value}  {shown(result.value)}")


def _answer(line: str) -> dict[str, Any]:
    """Return the answer to one line; an invalid line is answered with an error."""
    try:
        return _evaluated(_request(line))
    except ExpressionError as error:
        return {"error": f"{error.kind}: {error.message}"}
    except ParamError as error:
        return {"error": f"InvalidParam: {error.message}"}
    except RequestInvalid as error:
        return {"error": f"InvalidRequest: {error.message}"}


def _request(line: str) -> dict[str, Any]:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RequestInvalid(f"the line is not JSON: {error}") from error
    if not isinstance(request, dict) or not isinstance(request.get("expr"), str):
        raise RequestInvalid("the line is not an object with a text expr")
    for key in request.keys() - _KEYS:  # other keys, such as a note, are ignored
        if near := get_close_matches(key, _KEYS, n=1, cutoff=0.8):
            raise RequestInvalid(f"{key} looks like {near[0]}")
    for key in ("params", "limits"):
        if not isinstance(request.setdefault(key, {}), dict | None):
            raise RequestInvalid(f"{key} is not an object")
        request[key] = request[key] or {}
    return request


def _evaluated(request: dict[str, Any]) -> dict[str, Any]:
    from calve.expressions import complete, evaluate, evaluate_text

    expression, params = request["expr"], request["params"]
    limits = _limits(request["limits"])
    match request.get("level", "sel" if request["limits"] else None):
        case "sel":
            result: Result = evaluate(expression, params, limits=limits)
        case None:
            result = evaluate(complete(expression), params, limits=limits)
        case "expr":
            result = evaluate_text(expression, params, limits=limits)
        case "param":
            return _as_param(request.get("param_type"), evaluate_text(expression, params, limits=limits))
        case other:
            raise RequestInvalid(f"level is sel, expr or param, not {other}")
    return _as_json(result)


def _as_param(name: Any, result: "Result") -> dict[str, Any]:
    """Return a result, converted to the type of a param."""
    from calve.definition.model import ParamType
    from calve.definition.params import cast

    if name not in set(ParamType):
        raise RequestInvalid(f"param_type is one of {', '.join(ParamType)}, not {name}")
    return {"type": name, "value": _finite(cast("param", ParamType(name), result.value).value)}


def _as_json(result: "Result") -> dict[str, Any]:
    return {"type": result.type.value, "value": _finite(result.value)}


def _finite(value: Any) -> Any:
    """Return a value with NaN and infinities, which JSON cannot represent, as Java writes them."""
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case list():
            return [_finite(item) for item in value]
        case dict():
            return {key: _finite(item) for key, item in value.items()}
        case _:
            return value


def _limits(given: dict[str, Any]) -> "Limits":
    from calve.expressions import Limits

    known = {field.name for field in fields(Limits)}
    if unknown := sorted(given.keys() - known):
        raise RequestInvalid(f"limits may hold {', '.join(sorted(known))}, not {', '.join(unknown)}")
    if any(isinstance(value, bool) or not isinstance(value, int) for value in given.values()):
        raise RequestInvalid("each limit is a whole number")
    return Limits(**given)
