"""The safe expression language (SEL): parse, evaluate. Pure."""

from calve.expressions.asking import ParamCall, calls, reads
from calve.expressions.conditions import Asked, Atom, Constant, atoms_of, together
from calve.expressions.evaluation import Result, complete, evaluate, evaluate_text
from calve.expressions.limits import Clock, Limits, system_millis
from calve.expressions.lint import Warning, lint  # noqa: A004 - see there
from calve.expressions.meter import ParamFunctions
from calve.expressions.names import inputs, names
from calve.expressions.program import Program, parse
from calve.expressions.values import ResultType

__all__ = [
    "Asked",
    "Atom",
    "Clock",
    "Constant",
    "Limits",
    "ParamCall",
    "ParamFunctions",
    "Program",
    "Result",
    "ResultType",
    "Warning",
    "atoms_of",
    "calls",
    "complete",
    "evaluate",
    "evaluate_text",
    "inputs",
    "lint",
    "names",
    "parse",
    "reads",
    "system_millis",
    "together",
]
