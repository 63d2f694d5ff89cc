"""The safe expression language (SEL): parse, evaluate. Pure."""

from calve.expressions.evaluation import Result, evaluate, evaluate_text
from calve.expressions.limits import Clock, Limits
from calve.expressions.meter import ParamFunctions
from calve.expressions.names import inputs, names
from calve.expressions.program import Program, parse
from calve.expressions.values import ResultType

__all__ = [
    "Clock",
    "Limits",
    "ParamFunctions",
    "Program",
    "Result",
    "ResultType",
    "evaluate",
    "evaluate_text",
    "inputs",
    "names",
    "parse",
]
